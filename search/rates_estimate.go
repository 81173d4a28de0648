package search

import "math"

func (s *Rates) estimate() (n float64, ok bool) {
	n, _, ok = s.crossing()
	return n, ok
}

// crossing returns the rate at which a threshold first reaches its limit. It also returns that
// threshold's name. If no threshold does, ok is false.
func (s *Rates) crossing() (n float64, name string, ok bool) {
	least := math.Inf(1)
	for _, th := range thresholds(s.visits) {
		if th == growing {
			continue // a backlog grows only above the largest rate, and that bounds the search
		}
		if x, found := s.meets(th); found && x < least {
			least, name = x, th
		}
	}
	if name == "" || !(s.opts.Largest > 0) {
		return 0, "", false
	}
	return s.opts.Largest / (1 + math.Exp(-least)), name, true
}

// meets estimates the load at which a threshold reaches its limit. It returns ln(ρ/(1 − ρ)), where
// ρ is that load divided by the largest rate.
//
// Near the largest rate of a queue the wait is proportional to ρ/(1 − ρ) (Kingman, Proc. Camb.
// Phil. Soc. 57, 1961). So ln(latency/limit) rises by 1 when ln(ρ/(1 − ρ)) rises by 1. Latency that
// is not waiting time rises more slowly, so the slope is estimated from the probes, with 1 as the
// prior. A probe has more weight near the limit and with more independent requests.
func (s *Rates) meets(threshold string) (x float64, ok bool) {
	var xs, ys, ws []float64
	for _, v := range s.visits {
		for _, m := range v.Result.Margins {
			if m.Threshold != threshold || v.Result.Requests < 1 {
				continue
			}
			load := min(max(float64(v.Probe.N)/s.opts.Largest, 0.001), mostLoad)
			effective := max(1, float64(v.Result.Requests)*(1-load)*(1-load)/(s.opts.Scatter+0.5))
			xs, ys = append(xs, math.Log(load/(1-load))), append(ys, m.Log)
			ws = append(ws, 1/(1/effective+0.25*m.Log*m.Log))
		}
	}
	if len(xs) == 0 {
		return 0, false
	}
	var w, mx, my float64
	for i := range xs {
		w, mx, my = w+ws[i], mx+ws[i]*xs[i], my+ws[i]*ys[i]
	}
	mx, my = mx/w, my/w
	sxx, sxy := prior*w, prior*w // as if a slope of 1 had been measured, with the weight prior
	for i := range xs {
		sxx, sxy = sxx+ws[i]*(xs[i]-mx)*(xs[i]-mx), sxy+ws[i]*(xs[i]-mx)*(ys[i]-my)
	}
	return mx - my/min(max(sxy/sxx, leastSlope), mostSlope), true
}

const (
	mostLoad              = 0.97
	prior                 = 0.1
	leastSlope, mostSlope = 0.25, 2
)
