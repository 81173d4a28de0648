package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// runTime is how long a run of a plan with comparisons takes: at least, if nothing changed, if the
// candidates are just as much worse as is tolerated, and at most. Without comparisons that may end
// early all are equal.
type runTime struct {
	least, unchanged, tolerated, most time.Duration
	starts                            [2]int // fewest and most starts of all servers
	unknown                           int    // parts of the plan without an estimate
}

// takes predicts how long a run takes, by the last run and by what is foretold of its comparisons.
func (l *lastRun) takes(p *plan.Plan, start map[*plan.Server]startTime) runTime {
	chances := compare.Chances(p)
	at := func(rounds func(compare.Rounds) float64) (time.Duration, int, int) {
		f := l.forecast(p, nil, start)
		starts := 0
		for i := range f.Parts {
			part := &f.Parts[i]
			if r, ok := roundsOf(p, chances, part.Server, rounds); ok && part.Times > 1 {
				// Rounds are whole, but their mean is not: stretch the time of one instead.
				n := min(rounds(r), float64(part.Times))
				part.Took = time.Duration(float64(part.Took) * n / float64(max(1, int(n))))
				part.Times = max(1, int(n))
			}
			if part.Workload == "" {
				starts += part.Times
			}
		}
		sum, unknown := f.Total()
		return sum, unknown, starts
	}
	var s runTime
	s.least, _, s.starts[0] = at(func(r compare.Rounds) float64 { return float64(r.Least) })
	s.unchanged, _, _ = at(func(r compare.Rounds) float64 { return r.Unchanged })
	s.tolerated, _, _ = at(func(r compare.Rounds) float64 { return r.Tolerated })
	s.most, s.unknown, s.starts[1] = at(func(r compare.Rounds) float64 { return float64(r.Most) })
	return s
}

// roundsOf returns the rounds of the longest comparison that the server takes part in, because servers
// that share a control run together.
func roundsOf(p *plan.Plan, chances []compare.Chance, server string, by func(compare.Rounds) float64) (out compare.Rounds, ok bool) {
	for _, g := range plan.Groups(p) {
		if !slices.ContainsFunc(g.Servers, func(s *plan.Server) bool { return s.Address() == server }) {
			continue
		}
		for _, x := range chances {
			if slices.Contains(g.Compares, x.Compare) && (!ok || by(x.Rounds) > by(out)) {
				out, ok = x.Rounds, true
			}
		}
	}
	return out, ok
}

// varies reports whether the time depends on what the comparisons find.
func (s runTime) varies() bool { return s.most > s.least }

// gpusAtOnce returns how many GPUs the servers of the plan hold at once: those of the largest server
// that runs alone, or of all servers that run together. It is 0 if the plan does not say.
func gpusAtOnce(p *plan.Plan) int {
	of := func(s *plan.Server) int {
		g := s.GPUs()
		if g == nil || g.All {
			return 0
		}
		return cmp.Or(len(g.IDs), g.Count)
	}
	most := 0
	for _, s := range p.Servers {
		if of(s) == 0 && s.Local() && s.Simulator == nil {
			return 0
		}
		most = max(most, of(s))
	}
	for _, g := range plan.Groups(p) {
		if c := g.Compares[0]; c.SideBySide || c.Restart == plan.RestartNever {
			sum := 0
			for _, s := range g.Servers {
				sum += of(s)
			}
			most = max(most, sum)
		}
	}
	return most
}

// price says what a run costs, in GPU-hours and money: expected if nothing changed, and its range. It
// returns "" if no time is known.
func (s runTime) price(p *plan.Plan) string {
	if s.most < time.Second || s.unknown > 0 {
		return ""
	}
	gpus := gpusAtOnce(p)
	unit, factor := "hours", 1.0
	if gpus > 0 {
		unit, factor = "GPU-hours", float64(gpus)
	}
	hours := func(d time.Duration) string { return metric.FormatDigits("", d.Hours()*factor, 2) }
	perHour := perHourOf(p)
	said := []string{hours(s.unchanged) + " " + unit}
	if perHour > 0 {
		said[0] += ", " + metric.Format(metric.Unit(p.Prices.Currency), s.unchanged.Hours()*perHour) + ","
	}
	if s.varies() {
		said = append(said, fmt.Sprintf("if nothing changed (at least %s, at most %s; %s if just as much worse as is tolerated)", hours(s.least), hours(s.most), hours(s.tolerated)))
		if s.starts[1] > 0 {
			said = append(said, fmt.Sprintf("with %d to %d starts", s.starts[0], s.starts[1]))
		}
	}
	return strings.Join(said, " ")
}

// perHourOf returns the price per hour of the plan's servers, if all have the same price. Otherwise it
// is 0.
func perHourOf(p *plan.Plan) float64 {
	if p.Prices == nil || len(p.Servers) == 0 || prices(p) != "" {
		return 0
	}
	return p.Prices.PerHour[p.Servers[0].Address()]
}

// text returns the time as text.
func (s runTime) text() string {
	if !s.varies() {
		return "about " + roundTime(s.most)
	}
	return fmt.Sprintf("about %s if nothing changed, %s to %s", roundTime(s.unchanged), roundTime(s.least), roundTime(s.most))
}
