package metric

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// Distribution is a set of observations, with the number of requests that have none. Such requests
// failed, or completed without the metric. They count as worse than every observation.
type Distribution struct {
	Values []float64 // in ascending order
	// Until[i] is the number of observations that are at most Values[i]. It is needed if several
	// equal observations share one entry of Values. nil means that each entry of Values is one
	// observation.
	Until []int
	Worst int // requests without a value
	// LeftOut is the number of answers that came in one chunk. Metrics of streaming count them
	// neither as observations nor as failures.
	LeftOut int
	Better  Direction
	// The pooled mean of a metric is Tokens / Seconds. Both are 0 if the metric has no pooled mean.
	Tokens, Seconds float64
}

// NewDistribution sorts values and uses the slice for its result.
func NewDistribution(values []float64, worst int, better Direction) Distribution {
	slices.Sort(values)
	return Distribution{Values: values, Worst: worst, Better: better}
}

// N is the number of requests (or gaps), with and without an observation.
func (d Distribution) N() int { return d.Count() + d.Worst }

// Count returns the number of requests or gaps with an observation.
func (d Distribution) Count() int { return d.Before(len(d.Values)) }

// Before returns the number of observations in front of Values[i].
func (d Distribution) Before(i int) int {
	if d.Until == nil || i == 0 {
		return i
	}
	return d.Until[i-1]
}

// Rank returns the observation with the given rank; the smallest has rank 1. It returns −Inf for a
// rank below 1 and +Inf for a rank above the number of observations.
func (d Distribution) Rank(rank int) float64 {
	switch {
	case rank < 1:
		return math.Inf(-1)
	case rank > d.Count():
		return math.Inf(1)
	case d.Until == nil:
		return d.Values[rank-1]
	}
	return d.Values[sort.SearchInts(d.Until, rank)]
}

// Percentile returns the nearest-rank percentile for p in (0, 100): the ⌈p/100·N⌉-th smallest
// observation. A request without a value ranks as worst: its value is +Inf if lower is better, and
// 0 if higher is better. ok is false if N is zero.
func (d Distribution) Percentile(p float64) (v float64, ok bool) {
	n := d.N()
	if n == 0 {
		return 0, false
	}
	// Subtract a little, because p/100·N may be slightly above a whole number: 0.999·1000 is
	// 999.0000000000001 in binary.
	rank := int(math.Ceil(p/100*float64(n) - 1e-9))
	rank = min(max(rank, 1), n)
	if d.Better == HigherIsBetter {
		if rank <= d.Worst {
			return 0, true
		}
		return d.Rank(rank - d.Worst), true
	}
	return d.Rank(rank), true
}

// Mean is the arithmetic mean of the observations, or the pooled mean (see Def.Pooled). Requests
// without an observation are left out, so the caller should report their number, Worst. ok is false
// if there are no observations.
func (d Distribution) Mean() (v float64, ok bool) {
	if len(d.Values) == 0 {
		return 0, false
	}
	if d.Seconds > 0 {
		return d.Tokens / d.Seconds, true
	}
	sum := 0.0
	for i, x := range d.Values {
		for range d.Before(i+1) - d.Before(i) {
			sum += x
		}
	}
	return sum / float64(d.Count()), true
}

// Stat returns a statistic of the distribution. Min, Max and Every count a request without a value
// as worse than every value. Every returns the worst observation.
func (d Distribution) Stat(s Stat) (v float64, ok bool) {
	if d.N() == 0 {
		return 0, false
	}
	switch s.Kind {
	case Mean:
		return d.Mean()
	case Percentile:
		return d.Percentile(s.P)
	case Min:
		if d.Better == HigherIsBetter && d.Worst > 0 {
			return 0, true
		}
		if len(d.Values) == 0 {
			return math.Inf(1), true
		}
		return d.Values[0], true
	case Max:
		if d.Better != HigherIsBetter && d.Worst > 0 {
			return math.Inf(1), true
		}
		if len(d.Values) == 0 {
			return 0, true
		}
		return d.Values[len(d.Values)-1], true
	case Every:
		if d.Better == HigherIsBetter {
			return d.Stat(Stat{Kind: Min})
		}
		return d.Stat(Stat{Kind: Max})
	}
	return 0, false
}

func sortByStart(samples []*Sample) {
	slices.SortFunc(samples, func(a, b *Sample) int {
		return cmp.Or(cmp.Compare(a.Round, b.Round), cmp.Compare(a.Order, b.Order), cmp.Compare(a.Sent, b.Sent))
	})
}

// MeasuredSamples returns every judged request of the level, in order of
// start.
func (l *Level) MeasuredSamples() []*Sample {
	var out []*Sample
	for _, r := range l.Rounds {
		out = append(out, r.MeasuredSamples()...)
	}
	return out
}

// Due is the number of measured requests that the plan asked for.
func (l *Level) Due() int {
	n := 0
	for _, r := range l.Rounds {
		n += r.Due
	}
	return n
}

// Of returns the distribution of a PerRequest or PerGap metric over the requests samples. A
// PerRequest metric has one observation for each request, and a PerGap metric one for each gap. A
// failed request counts as one gap that is worse than every measured gap.
//
// Requests that tokgate cancelled are left out. A negative, NaN or infinite value counts as
// missing, because it comes from a broken clock or record.
func Of(def Def, samples []*Sample) Distribution {
	d := Distribution{Better: def.Better}
	if def.Scope == PerGap {
		d.Values, d.Until = gapsOf(samples)
	} else {
		d.Values = make([]float64, 0, len(samples))
	}
	for _, s := range samples {
		if !s.Canceled() && def.speaksOf(s) {
			d.add(def, s)
		}
	}
	if def.Scope != PerGap {
		slices.Sort(d.Values)
	}
	return d
}

// speaksOf reports whether the metric applies to the request. For example, ttft_later does not
// apply to a first turn.
func (d Def) speaksOf(s *Sample) bool {
	switch d.Name {
	case "ttft_turn_1":
		return s.Turn == 1
	case "ttft_later":
		return s.Turn > 1
	}
	return true
}

// OfTurns reports whether the metric exists only for conversations.
func OfTurns(name string) bool { return name == "ttft_turn_1" || name == "ttft_later" }

// gapsOf returns the gaps of the requests that the run did not cancel, in seconds. It returns them
// as the fields Values and Until of a distribution.
func gapsOf(samples []*Sample) (values []float64, until []int) {
	n, least, most := 0, uint32(math.MaxUint32), uint32(0)
	for _, s := range samples {
		if s.Canceled() {
			continue
		}
		n += len(s.Gaps)
		for _, us := range s.Gaps {
			least, most = min(least, us), max(most, us)
		}
	}
	if n < manyGaps {
		out := make([]float64, 0, n)
		for _, s := range samples {
			if s.Canceled() {
				continue
			}
			for _, us := range s.Gaps {
				out = append(out, float64(us)/1e6)
			}
		}
		slices.Sort(out)
		return out, nil
	}
	t := tallyOf(n, least, most)
	for _, s := range samples {
		if s.Canceled() {
			continue
		}
		for _, us := range s.Gaps {
			t.add(us, 1)
		}
	}
	return t.seconds()
}

// Pool joins several distributions of the metric into one. It returns the fields Values and Until
// of the joined distribution.
func (d Def) Pool(parts []Distribution) (values []float64, until []int) {
	n, least, most := 0, math.Inf(1), 0.0
	for _, part := range parts {
		if n += part.Count(); len(part.Values) > 0 {
			least, most = min(least, part.Values[0]), max(most, part.Values[len(part.Values)-1])
		}
	}
	if d.Scope != PerGap || n < manyGaps {
		for _, part := range parts {
			values = append(values, part.Values...)
		}
		slices.Sort(values)
		return values, nil
	}
	t := tallyOf(n, micros(least), micros(most))
	for _, part := range parts {
		for i, v := range part.Values {
			t.add(micros(v), part.Before(i+1)-part.Before(i))
		}
	}
	return t.seconds()
}

// micros converts a gap in seconds back to whole microseconds.
func micros(seconds float64) uint32 { return uint32(int64(seconds*1e6 + 0.5)) }

// add adds the observations of one request to the distribution. They are observations of the metric
// def.
func (d *Distribution) add(def Def, s *Sample) {
	if def.Scope == PerGap {
		switch {
		case !s.Completed():
			d.Worst++
		case len(s.Gaps) == 0 && s.Chunks <= 1:
			d.LeftOut++
		case len(s.Gaps) == 0:
			d.Worst++ // the answer had gaps, but they were not recorded
		}
		return
	}
	v, ok := s.Value(def.Name)
	switch {
	case ok && s.Completed() && v >= 0 && !math.IsInf(v, 0):
		d.Values = append(d.Values, v)
		if def.Pooled {
			tokens, took := s.Streamed()
			d.Tokens, d.Seconds = d.Tokens+float64(tokens), d.Seconds+took.Seconds()
		}
	case def.Streams && s.OneChunk():
		d.LeftOut++
	default:
		d.Worst++
	}
}
