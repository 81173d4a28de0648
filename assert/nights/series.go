package nights

import (
	"fmt"
	"math"
	"slices"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// series holds the values of one metric at one load, by night. A night is one run of the history;
// nights without a value are left out.
type series struct {
	key    metric.Trend
	at     []int // indices of the nights
	values []float64
	scale  scale
	def    *metric.Def // of a series that the plan names itself; nil for a metric
	// next is the trend of the same metric after the workload changed; nil if it did not change.
	next *metric.Trend
}

func gather(nights []metric.Night) []*series {
	var list []*series
	known := map[metric.Trend]*series{}
	last := map[metric.Trend]*series{} // latest series of each metric; the keys have an empty Asked
	for i, n := range nights {
		for _, f := range n.Figures {
			s := known[f.Trend]
			if s == nil {
				s = &series{key: f.Trend}
				if i := slices.IndexFunc(n.Series, func(d metric.Def) bool { return d.Name == f.Metric }); i >= 0 {
					s.def = &n.Series[i]
				}
				known[f.Trend] = s
				list = append(list, s)
			}
			// Link each series to the next one of the same metric, with a changed workload. The
			// workload may also change back.
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

// read prepares the series for the function watch, as one column of all runners. If the series cannot be judged, ok
// is false and t explains why.
func (s *series) read(nights []metric.Night, opts Options) (c column, t Trend, ok bool) {
	t = Trend{Trend: s.key, Outcome: verdict.Error}
	def, ok := s.definition()
	if !ok {
		t.Message = fmt.Sprintf("this version does not know the metric %q", s.key.Metric)
		return c, t, false
	}
	t.Unit, t.Better = def.Unit, def.Better
	s.scale = scaleOf(def)
	c = column{worse: worseOf(def.Better), floor: leastNoise, ignore: opts.Ignore, wait: opts.Wait}
	c.values = slices.Repeat([]float64{math.NaN()}, len(nights))
	if over := metric.LoadKind(s.key.Stat); def.Name == limitMetric && over != metric.OpenLoop && over != metric.Speedup {
		c.floor = max(c.floor, 0.5/s.values[0]) // a capacity is rounded by up to half a unit
	}
	for i, v := range s.values {
		run := nights[s.at[i]].Run
		if v == 0 && s.scale.log && (def.Source == metric.Server || def.Source == metric.Queried) {
			t.Outcome, t.Message = verdict.Skipped, fmt.Sprintf("recorded only: nights are compared by ratios, and the value was 0 in run %s", run)
			return c, t, false
		}
		if !s.scale.takes(v) {
			t.Message = fmt.Sprintf("run %s has the value %v, which is not valid for %s", run, v, def.Name)
			return c, t, false
		}
		c.values[s.at[i]] = s.scale.transform(v)
	}
	return c, t, true
}

// worseOf returns the sign of a change for the worse. It returns 0 if changes in both directions
// are worse.
func worseOf(better metric.Direction) int {
	switch better {
	case metric.LowerIsBetter:
		return +1
	case metric.HigherIsBetter:
		return -1
	}
	return 0
}

func (s *series) definition() (def metric.Def, ok bool) {
	if s.key.Metric == limitMetric {
		return metric.Def{Name: limitMetric, Unit: metric.LoadKind(s.key.Stat).Unit(), Better: metric.HigherIsBetter}, true
	}
	if s.key.Metric == metric.MetricForeign {
		def := metric.Def{Name: metric.MetricForeign, Better: metric.LowerIsBetter}
		if s.key.Stat == metric.StatHigherIsBetter {
			def.Better = metric.HigherIsBetter
		}
		return def, true
	}
	if s.def != nil {
		def = *s.def
		def.Scope, def.Source = metric.PerReading, metric.Queried
		return def, true
	}
	def, ok = metric.Lookup(s.key.Metric)
	if kind, err := metric.ParseStat(s.key.Stat); err == nil {
		def.Unit = def.UnitOf(kind)
	}
	return def, ok
}
