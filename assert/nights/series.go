package nights

import (
	"fmt"
	"slices"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// series is one trend with the nights in which it has a figure.
type series struct {
	key    metric.Trend
	at     []int // indices of the nights
	values []float64
	// next is the trend that took its place when the workload changed; nil:
	// none did.
	next *metric.Trend
}

// gather finds the series of the nights, in the order in which they
// first occur.
func gather(nights []metric.Night) []*series {
	var list []*series
	known := map[metric.Trend]*series{}
	last := map[metric.Trend]*series{} // by the trend without what was asked
	for i, n := range nights {
		for _, f := range n.Figures {
			s := known[f.Trend]
			if s == nil {
				s = &series{key: f.Trend}
				known[f.Trend] = s
				list = append(list, s)
			}
			// A workload may also become what it was.
			any := f.Trend
			any.Asked = ""
			if old := last[any]; old != nil && old != s {
				old.next = &s.key
			}
			last[any] = s
			if len(s.at) == 0 || s.at[len(s.at)-1] != i {
				s.at, s.values = append(s.at, i), append(s.values, f.Value)
			}
		}
	}
	return list
}

// judge holds the last night against those before it.
func (s *series) judge(nights []metric.Night, opts Options) Trend {
	t := Trend{Trend: s.key, Outcome: verdict.Error}
	def, ok := s.definition()
	if !ok {
		t.Message = fmt.Sprintf("this version does not know the metric %q", s.key.Metric)
		return t
	}
	t.Unit, t.Better = def.Unit, def.Better
	by := scaleOf(def)
	scaled := make([]float64, len(s.values))
	for i, v := range s.values {
		run := nights[s.at[i]].Run
		if v == 0 && by.log && def.Source == metric.Server {
			t.Outcome, t.Message = verdict.Skipped, fmt.Sprintf("recorded only: it was 0 in run %s, and nothing is a ratio of that", run)
			return t
		}
		if !by.takes(v) {
			t.Message = fmt.Sprintf("run %s has the value %v, which is none of %s", run, v, def.Name)
			return t
		}
		scaled[i] = by.to(v)
	}
	floor := leastNoise
	if def.Name == limitMetric {
		floor = max(floor, 0.5/s.values[0]) // half a request in flight
	}
	watched := watch(scaled, floor, opts.Ignore)
	t.Points, t.Changes = s.points(nights, watched), s.changes(nights, divisive(scaled), by)
	if last := s.at[len(s.at)-1]; last != len(nights)-1 {
		t.Message = fmt.Sprintf("was not measured tonight; last in run %s", nights[last].Run)
		if s.next != nil {
			t.Outcome, t.Message = verdict.Skipped, fmt.Sprintf("ended with run %s: the workload is another one since", nights[last].Run)
		}
		return t
	}
	t.decide(s.values[len(s.values)-1], watched[len(watched)-1], by)
	return t
}

// definition is that of the series' metric, its unit that of its statistic.
func (s *series) definition() (def metric.Def, ok bool) {
	if s.key.Metric == limitMetric {
		return metric.Def{Name: limitMetric, Unit: metric.Requests, Better: metric.HigherIsBetter}, true
	}
	def, ok = metric.Lookup(s.key.Metric)
	if kind, err := metric.ParseStat(s.key.Stat); err == nil {
		def.Unit = def.UnitOf(kind)
	}
	return def, ok
}

// points are the nights of the series, those of an alarm marked.
func (s *series) points(nights []metric.Night, watched []night) []Point {
	out := make([]Point, 0, len(s.values))
	for i, v := range s.values {
		n := nights[s.at[i]]
		out = append(out, Point{n.Run, n.Started, v, false})
		for k := i + 1 - watched[i].Alarm; k <= i; k++ {
			out[k].Alarm = true
		}
	}
	return out
}

// changes are the cuts with what else changed then.
func (s *series) changes(nights []metric.Night, cuts []cut, by scale) []Change {
	var out []Change
	for _, c := range cuts {
		n := nights[s.at[c.Night]]
		out = append(out, Change{
			Run: n.Run, Started: n.Started, Before: by.from(c.Before), After: by.from(c.After), P: c.P,
			Differs: differs(nights[s.at[c.Night-1]], n, s.key.Server),
		})
	}
	return out
}

// decide judges tonight's value by what was watched.
func (t *Trend) decide(value float64, tonight night, by scale) {
	if tonight.Reference < leastReference {
		t.Outcome = verdict.Skipped
		t.Message = fmt.Sprintf("%s, recorded: night %d, judged from the %dth on", metric.Format(t.Unit, value), tonight.Reference+1, leastReference+1)
		return
	}
	t.Tonight = &Bounds{
		Reference: tonight.Reference,
		Center:    by.from(tonight.Mean),
		Low:       by.from(by.within(tonight.Low)),
		High:      by.from(by.within(tonight.High)),
		Noise:     tonight.Sigma,
		Shift:     tonight.Shift,
	}
	t.Outcome = verdict.Pass
	expected := fmt.Sprintf("expected %s to %s after %d nights", metric.Format(t.Unit, t.Tonight.Low), metric.Format(t.Unit, t.Tonight.High), tonight.Reference)
	if tonight.Alarm == 0 {
		t.Message = fmt.Sprintf("%s, %s", metric.Format(t.Unit, value), expected)
		return
	}
	direction, stretch := "higher", "tonight"
	if tonight.Shift < 0 {
		direction = "lower"
	}
	if tonight.Alarm > 1 {
		stretch = fmt.Sprintf("the last %d nights together", tonight.Alarm)
	}
	t.Message = fmt.Sprintf("%s: %s %s %s than %s, the mean of %d nights; %s", metric.Format(t.Unit, value), stretch,
		by.shift(tonight.Shift), direction, metric.Format(t.Unit, t.Tonight.Center), tonight.Reference, expected)
	switch {
	case t.Better == metric.LowerIsBetter && tonight.Shift < 0, t.Better == metric.HigherIsBetter && tonight.Shift > 0:
		t.Message += "; better: pin this run to hold later nights to it"
	default:
		t.Outcome = verdict.Fail
	}
}

// differs lists what of a server is another in b than in a.
func differs(a, b metric.Night, server string) []string {
	was, is := a.Servers[server], b.Servers[server]
	var out []string
	note := func(key, x, y string) {
		if x != y {
			out = append(out, fmt.Sprintf("%s %s → %s", key, either(x != "", x, "unknown"), either(y != "", y, "unknown")))
		}
	}
	var keys []string
	for k := range was {
		keys = append(keys, k)
	}
	for k := range is {
		if _, ok := was[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		note(k, was[k], is[k])
	}
	note("tokgate", a.Tool, b.Tool)
	return out
}

func either(cond bool, a, b string) string {
	if cond {
		return a
	}
	return b
}
