package metric

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Together returns the telemetry of several servers as that of one. Counters and histograms are
// summed. A gauge has the mean over all readings of all servers, their smallest and their largest
// value. A series is that of the server whose values are largest. What one server lacks is missing,
// with the server's name from names.
func Together(parts []*Telemetry, names []string) *Telemetry {
	out := &Telemetry{
		Added: map[string]float64{}, Histograms: map[string]Histogram{}, Gauges: map[string]Gauge{}, Missing: map[string]string{},
	}
	highest := map[string]float64{}
	for i, t := range parts {
		if i == 0 || t.From > out.From {
			out.From = t.From
		}
		if i == 0 || t.To < out.To {
			out.To = t.To
		}
		out.Reads, out.Failed, out.Restarted = out.Reads+t.Reads, out.Failed+t.Failed, out.Restarted || t.Restarted
		for name, why := range t.Missing {
			out.Missing[name] = cmp.Or(out.Missing[name], names[i]+": "+why)
		}
		for name, n := range t.Added {
			out.Added[name] += n
		}
		for name, h := range t.Histograms {
			sum, alike := out.Histograms[name].merge(h)
			if out.Histograms[name] = sum; !alike {
				out.Missing[name] = cmp.Or(out.Missing[name], names[i]+": its histogram has other buckets than those of the other replicas")
			}
		}
		for name, g := range t.Gauges {
			out.Gauges[name] = out.Gauges[name].merge(g)
		}
		out.largestSeries(t.Series, highest)
	}
	for name := range out.Missing {
		delete(out.Added, name)
		delete(out.Histograms, name)
		delete(out.Gauges, name)
	}
	return out
}

// largestSeries keeps, of each metric, the series with the largest mean. highest holds the means so
// far.
func (t *Telemetry) largestSeries(from []Series, highest map[string]float64) {
	for _, s := range from {
		mean := 0.0
		for _, v := range s.Values {
			mean += v / float64(len(s.Values))
		}
		i := slices.IndexFunc(t.Series, func(x Series) bool { return x.Metric == s.Metric })
		switch {
		case i < 0:
			t.Series = append(t.Series, s)
		case mean > highest[s.Metric]:
			t.Series[i] = s
		default:
			continue
		}
		highest[s.Metric] = mean
	}
}

// AddReplicas adds what replicas did in a further load to what they did before. If the counters of a
// replica are not known for one of the loads, its field Missing says why, and Added is nil.
func AddReplicas(before, more []Replica) []Replica {
	out := slices.Clone(before)
	for _, x := range more {
		i := slices.IndexFunc(out, func(y Replica) bool { return y.URL == x.URL })
		if i < 0 {
			out = append(out, x)
			continue
		}
		sum := &out[i]
		sum.Requests += x.Requests
		sum.Gauges = maps.Clone(sum.Gauges)
		for name, g := range x.Gauges {
			sum.Gauges[name] = sum.Gauges[name].merge(g)
		}
		if sum.Missing = cmp.Or(sum.Missing, x.Missing); sum.Missing != "" {
			sum.Added = nil
			continue
		}
		sum.Added = maps.Clone(sum.Added)
		for name, n := range x.Added {
			sum.Added[name] += n
		}
	}
	return out
}

// Busiest returns the replica that made the most output tokens, and its share of them. If that is
// not known, why says so.
func (l *Level) Busiest() (busiest Replica, share float64, of int, why string) {
	all := l.Replicas
	if len(all) < 2 {
		return Replica{}, 0, len(all), "the plan does not name several replicas of the server"
	}
	total, most := 0.0, -1.0
	for _, x := range all {
		n, ok := x.Added[GeneratedTokens]
		if !ok {
			return Replica{}, 0, len(all), fmt.Sprintf("%s: %s", x.URL, cmp.Or(x.Missing, "the server does not report its output tokens"))
		}
		if total += n; n > most {
			busiest, most = x, n
		}
	}
	if total <= 0 {
		return Replica{}, 0, len(all), "the replicas made no output token"
	}
	return busiest, most / total, len(all), ""
}

// imbalance returns the largest replica's share of the output tokens over its fair share: 1 if all
// made the same number, and the number of replicas if one made them all.
func (l *Level) imbalance() Value {
	_, share, of, why := l.Busiest()
	if why != "" {
		return None(why)
	}
	return Some(share * float64(of))
}
