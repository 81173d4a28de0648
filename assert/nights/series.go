package nights

import (
	"fmt"
	"math"
	"slices"
	"time"

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

// read prepares the series for the function watch, as a column. If the series cannot be judged, ok
// is false and t explains why.
func (s *series) read(nights []metric.Night, ignore float64) (c column, t Trend, ok bool) {
	t = Trend{Trend: s.key, Outcome: verdict.Error}
	def, ok := s.definition()
	if !ok {
		t.Message = fmt.Sprintf("this version does not know the metric %q", s.key.Metric)
		return c, t, false
	}
	t.Unit, t.Better = def.Unit, def.Better
	s.scale = scaleOf(def)
	c = column{values: slices.Repeat([]float64{math.NaN()}, len(nights)), worse: worseOf(def.Better), floor: leastNoise, ignore: ignore}
	if over := metric.LoadKind(s.key.Stat); def.Name == limitMetric && over != metric.OpenLoop && over != metric.Speedup {
		c.floor = max(c.floor, 0.5/s.values[0]) // a capacity is rounded by up to half a unit
	}
	for i, v := range s.values {
		run := nights[s.at[i]].Run
		if v == 0 && s.scale.log && def.Source == metric.Server {
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

// judge writes the result of the series into t. If tonight has no value, the result only says on
// which night the series was last measured.
func (s *series) judge(t *Trend, c column, nights []metric.Night, watched []night) {
	cuts := located(c, watched)
	tonight := &watched[len(watched)-1]
	if s.at[len(s.at)-1] == len(nights)-1 {
		tonight.confirm(cuts, c, watched)
	}
	t.Points, t.Changes = s.points(nights, watched), s.changes(nights, cuts, *tonight)
	if last := s.at[len(s.at)-1]; last != len(nights)-1 {
		t.Message = fmt.Sprintf("was not measured tonight; the last run that measured this series is %s", nights[last].Run)
		if s.next != nil {
			t.Outcome, t.Message = verdict.Skipped, fmt.Sprintf("this series ends with run %s, because the workload has changed since", nights[last].Run)
		}
		return
	}
	t.decide(s.values[len(s.values)-1], *tonight, nights, s.scale)
}

func (s *series) definition() (def metric.Def, ok bool) {
	if s.key.Metric == limitMetric {
		return metric.Def{Name: limitMetric, Unit: metric.LoadKind(s.key.Stat).Unit(), Better: metric.HigherIsBetter}, true
	}
	def, ok = metric.Lookup(s.key.Metric)
	if kind, err := metric.ParseStat(s.key.Stat); err == nil {
		def.Unit = def.UnitOf(kind)
	}
	return def, ok
}

// points returns the series as points, one for each night. It marks the nights of a change.
func (s *series) points(nights []metric.Night, watched []night) []Point {
	changed, worse := make([]bool, len(nights)), make([]bool, len(nights))
	for i, w := range watched {
		if w.Changed {
			for k := w.From; k <= i; k++ {
				changed[k], worse[k] = true, w.Worse
			}
		}
	}
	out := make([]Point, 0, len(s.values))
	for i, v := range s.values {
		n := nights[s.at[i]]
		out = append(out, Point{n.Run, n.Started, v, changed[s.at[i]], worse[s.at[i]]})
	}
	return out
}

// changes returns all changes of a series. First come the changes whose first night is known, in
// order. A current change that is too recent to be located comes last.
func (s *series) changes(nights []metric.Night, cuts []cut, tonight night) []Change {
	var out []Change
	add := func(c cut) {
		i, _ := slices.BinarySearch(s.at, c.Night)
		n := nights[c.Night]
		out = append(out, Change{
			Run: n.Run, Started: n.Started, Before: s.scale.invert(c.Before), After: s.scale.invert(c.After), P: c.P,
			Job: n.Job, Differs: differs(nights[s.at[i-1]], n, s.key.Server),
		})
	}
	for _, c := range cuts {
		add(c)
	}
	if young := len(cuts) == 0 || cuts[len(cuts)-1].Night < tonight.From-leastSegment; tonight.Changed && young {
		add(cut{Night: tonight.From, Before: tonight.Expected.Center, After: tonight.Expected.Center + tonight.Shift, P: math.NaN()})
	}
	return out
}

func (t *Trend) decide(value float64, tonight night, nights []metric.Night, by scale) {
	said := metric.Format(t.Unit, value)
	if tonight.Reference < leastReference {
		t.Outcome = verdict.Skipped
		t.Message = fmt.Sprintf("%s, recorded only: this is night %d, and judging begins with night %d", said, tonight.Reference+1, leastReference+1)
		return
	}
	low, high := tonight.bounds()
	if math.IsInf(low, 0) {
		t.Outcome = verdict.Skipped
		t.Message = fmt.Sprintf("%s, recorded only: each night is so much like the night before that %d nights are too few to judge by", said, tonight.Reference)
		return
	}
	t.Tonight = &Bounds{
		Reference: tonight.Reference,
		Center:    by.invert(tonight.Expected.Center),
		Low:       by.invert(by.within(low)),
		High:      by.invert(by.within(high)),
		Noise:     tonight.Expected.Sigma,
		Shift:     tonight.Shift,
	}
	t.Outcome = verdict.Pass
	expected := fmt.Sprintf("expected %s to %s after %d nights", metric.Format(t.Unit, t.Tonight.Low), metric.Format(t.Unit, t.Tonight.High), tonight.Reference)
	if !tonight.Changed {
		t.Message = said + ", " + expected
		if tonight.Back {
			t.Message += "; the value is back where it was before the alarm"
		}
		return
	}
	from := nights[tonight.From]
	direction, stretch := "higher", "tonight"
	if tonight.Shift < 0 {
		direction = "lower"
	}
	if tonight.From < len(nights)-1 {
		stretch = fmt.Sprintf("since run %s of %s", from.Run, from.Started.UTC().Format(time.DateOnly))
	}
	t.Message = fmt.Sprintf("%s: %s the value is %s %s than %s, the mean of %d nights; %s", said, stretch,
		by.shift(tonight.Shift), direction, metric.Format(t.Unit, t.Tonight.Center), tonight.Reference, expected)
	if !tonight.Worse {
		t.Message += fmt.Sprintf("; this is an improvement. To hold later nights to this value, pin run %s", from.Run)
		return
	}
	t.Outcome, t.Since = verdict.Fail, from.Run
	t.Message += fmt.Sprintf("; every night fails until the value is back, or until run %s is pinned to accept the change", from.Run)
}
