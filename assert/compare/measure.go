package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// matched holds the measurements of control and candidate at one level of a workload.
type matched struct {
	workload *plan.Workload
	level    string
	// The levels have only the judged rounds. Unless unpaired is set, the rounds i of both levels
	// are a pair.
	control, candidate     *metric.Level
	ofControl, ofCandidate metric.Terms
	unpaired               bool
	block                  int  // number of rounds in an independent unit
	fresh                  bool // every unit is of fresh starts of both servers
	design                 stat.Design
	sessions               []int // numbers of units after which a later session began
	confidence             float64
}

func (m matched) measure(c *Change, alpha float64) {
	c.Workload, c.Level, c.Confidence = m.workload.Address(), m.level, m.confidence
	a, b := values(c, m.control, m.ofControl), values(c, m.candidate, m.ofCandidate)
	for i := range max(len(a), len(b)) {
		p := Pair{Round: i, Control: metric.None(""), Candidate: metric.None(""), Change: metric.None("")}
		if i < len(a) {
			p.Control, p.Round, p.Seed = a[i], m.control.Rounds[i].Index, m.control.Rounds[i].Seed
		}
		if i < len(b) {
			p.Candidate, p.Round, p.Seed = b[i], m.candidate.Rounds[i].Index, m.candidate.Rounds[i].Seed
		}
		if x, ok := c.step(p.Control, p.Candidate); ok && !m.unpaired && !math.IsInf(x, 0) && !math.IsNaN(x) {
			p.Change = metric.Some(c.unscaled(x))
		}
		c.Pairs = append(c.Pairs, p)
	}
	whole := func(l *metric.Level, of metric.Terms) metric.Value {
		if l == nil {
			return metric.None(c.Metric.NoValue)
		}
		return valueOf(c, l, of)
	}
	lacking, ok := c.sides(a, b, whole(m.control, m.ofControl), whole(m.candidate, m.ofCandidate))
	if !ok {
		return
	}
	if len(lacking) > 0 {
		// Only the candidate lacks the value of a required change, so the candidate lost the
		// metric. That is an error.
		if lost := len(lacking) == 1 && c.Control.OK; lost && c.bound != nil {
			c.Outcome, c.Why, c.Message = verdict.Error, lacking[0], lacking[0]
			return
		}
		c.inapplicable(lacking[0])
		return
	}
	if why := m.unstreamed(c); why != "" && c.bound == nil {
		c.inapplicable(why)
		return
	} else if why != "" {
		c.Outcome, c.Why, c.Message = verdict.Error, why, c.Name()+" has no value: "+why
		return
	}
	c.delta = m.delta(c, a, b, m.ofControl.Good, alpha)
	c.estimate(alpha)
}

// sides sets the values of control and candidate over all rounds, as the table of the level shows
// them. The list lacking has the reason for each side without a value in any round. ok is false if
// a side has values in some rounds only.
func (c *Change) sides(control, candidate []metric.Value, ofControl, ofCandidate metric.Value) (lacking []string, ok bool) {
	for _, side := range []struct {
		name   string
		values []metric.Value
		whole  metric.Value
		out    *metric.Value
	}{{"control", control, ofControl, &c.Control}, {"candidate", candidate, ofCandidate, &c.Candidate}} {
		missing, why := 0, c.Metric.NoValue
		for _, v := range side.values {
			if !v.OK {
				missing, why = missing+1, cmp.Or(v.Why, why)
			}
		}
		switch {
		case missing == len(side.values):
			lacking = append(lacking, fmt.Sprintf("the %s has no value of %s: %s", side.name, c.Name(), cmp.Or(why, "nothing was measured")))
		case missing > 0:
			c.Outcome, c.Why = verdict.Error, fmt.Sprintf("%d of %d rounds of the %s have no value of %s: %s", missing, len(side.values), side.name, c.Name(), why)
			c.Message = c.Why
			return nil, false
		default:
			*side.out = side.whole
		}
	}
	return lacking, true
}

// values returns the values of a change's metric in level l, one for each round.
func values(c *Change, l *metric.Level, of metric.Terms) []metric.Value {
	if l == nil {
		return nil
	}
	out := make([]metric.Value, len(l.Rounds))
	foreign := ""
	if c.Metric.Source == metric.Server {
		foreign = sample.Elsewhere(l)
	}
	var ones []*metric.Level
	if of.One != nil {
		ones = of.One.Each()
	}
	for i, single := range l.Each() {
		if of.One = nil; i < len(ones) {
			of.One = ones[i]
		}
		out[i] = valueOf(c, single, of)
		if foreign != "" && out[i].OK {
			out[i] = metric.None(foreign)
		}
		if out[i].OK && math.IsNaN(out[i].V) {
			out[i] = metric.None("it is no number")
		}
	}
	return out
}

// valueOf returns the value of the change's statistic over the rounds of l. Of what the server counts in
// buckets, only the mean is exact: a percentile may stay in its bucket although the value has doubled.
func valueOf(c *Change, l *metric.Level, of metric.Terms) metric.Value {
	stat := c.Stat
	if c.Metric.Scope == metric.PerReading || c.Metric.Scope == metric.Counted {
		stat.Kind = metric.Mean
	}
	v := l.Stat(c.Metric, stat, of)
	if v.OK && c.Metric.Scope == metric.Counted && c.Stat.Kind != metric.Mean {
		return metric.None("the server reports this metric as a histogram, so only its mean can be compared")
	}
	return v
}

// step returns the change of one pair of values: a difference if Points is set, otherwise a
// difference of logarithms.
func (c *Change) step(a, b metric.Value) (float64, bool) {
	if !a.OK || !b.OK {
		return 0, false
	}
	if c.Points {
		return turned(c.Metric) * (b.V - a.V), true
	}
	if a.V == 0 && b.V == 0 {
		return 0, true // zero on both sides is no change, and zero has no logarithm
	}
	return turned(c.Metric) * (math.Log(b.V) - math.Log(a.V)), true
}

// delta computes a change as it is tested. a and b are the values of the control and of the
// candidate, one for each independent unit.
func (m matched) delta(c *Change, a, b []metric.Value, good func(*metric.Sample) bool, alpha float64) delta {
	d := delta{unpaired: m.unpaired, design: m.design, sessions: m.sessions}
	control, candidate := c.logs(a, m.block), c.logs(b, m.block)
	if m.unpaired {
		control = sample.Apart(m.control, control, c.Metric.Scope == metric.PerLevel)
		candidate = sample.Apart(m.candidate, candidate, c.Metric.Scope == metric.PerLevel)
	}
	some := slices.ContainsFunc(slices.Concat(control, candidate), func(x float64) bool { return math.IsInf(x, 0) })
	if !m.unpaired || some {
		// Rounds of separate runs and of fresh starts are independent. So any pairing is valid that does
		// not depend on the values.
		for i := 0; i+m.block <= min(len(a), len(b)); i += m.block {
			unit := 0.0
			for k := i; k < i+m.block; k++ {
				x, _ := c.step(a[k], b[k])
				unit += x / float64(m.block)
			}
			d.units = append(d.units, unit)
		}
	}
	if m.unpaired || m.fresh {
		d.control, d.candidate = control, candidate
	}
	if m.fresh && !some { // an infinite value, or zero on both sides, is judged in pairs
		d.starts = &[2][]float64{slots(m.control, m.block), slots(m.candidate, m.block)}
	}
	switch {
	case c.Metric.OfAnswers:
		if o, ok := m.paired(c.Metric, alpha); ok {
			d.paired = &o
			return d
		}
		good = func(s *metric.Sample) bool { return !s.Bad(c.Metric) }
	case c.Metric.Name == "success":
		good = (*metric.Sample).Completed
	case c.Stat.Kind != metric.Share:
		return d
	}
	var x counts
	x.goodA, x.allA = goodOnes(m.control, good, alpha)
	x.goodB, x.allB = goodOnes(m.candidate, good, alpha)
	d.counts = &x
	return d
}

// logs returns the values of one side in the units of delta, one for each block of rounds: the mean of
// their logarithms, or of the values if the change is in points.
func (c *Change) logs(values []metric.Value, block int) []float64 {
	var out []float64
	for i := 0; i+block <= len(values); i += block {
		mean := 0.0
		for _, v := range values[i : i+block] {
			x := v.V
			if !c.Points {
				x = math.Log(v.V)
			}
			mean += turned(c.Metric) * x / float64(block)
		}
		out = append(out, mean)
	}
	return out
}

// slots returns the places in time of a level's blocks of rounds.
func slots(l *metric.Level, block int) []float64 {
	var out []float64
	for i := 0; i+block <= len(l.Rounds); i += block {
		mean := 0.0
		for _, r := range l.Rounds[i : i+block] {
			mean += float64(r.Leg.Slot) / float64(block)
		}
		out = append(out, mean)
	}
	return out
}

// goodOnes returns the number k of a level's good requests, and the number n of all its requests.
// Both are effective numbers, in which dependent requests count less.
func goodOnes(l *metric.Level, good func(*metric.Sample) bool, alpha float64) (k, n float64) {
	groups := make([]stat.Group, len(l.Rounds))
	bad, all := 0, 0
	for i, r := range l.Rounds {
		samples := r.MeasuredSamples()
		x := max(0, r.Due-len(samples))
		for _, s := range samples {
			if !good(s) {
				x++
			}
		}
		due := max(r.Due, len(samples))
		groups[i] = stat.Group{K: float64(x), N: float64(due)}
		bad, all = bad+x, all+due
	}
	n = stat.Effective(float64(all), groups, nil, alpha)
	return n * float64(all-bad) / float64(max(all, 1)), n
}

// unstreamed explains why the metric has no value: one of the servers did not stream its answers.
// It returns "" if both streamed.
func (m matched) unstreamed(c *Change) string {
	if !sample.Streamed(c.Metric, m.workload) {
		return ""
	}
	return cmp.Or(m.control.Unstreamed(), m.candidate.Unstreamed())
}

// outliers adds a note on the rounds whose change is far from the median. These rounds are judged
// like all others.
func (m matched) outliers(c *Change) {
	if m.unpaired || c.Points || c.Metric.Source == metric.Starts || c.Metric.Scope == metric.PerLevel && c.Metric.Unit == metric.Ratio {
		return
	}
	var xs []float64
	for _, p := range c.Pairs {
		if p.Change.OK {
			xs = append(xs, math.Log1p(p.Change.V))
		}
	}
	if len(xs) < 5 {
		return
	}
	mid := median(xs)
	dev := make([]float64, len(xs))
	for i, x := range xs {
		dev[i] = math.Abs(x - mid)
	}
	// 1.4826 times the median absolute deviation estimates the standard deviation of a normal
	// distribution.
	far := max(standsOut*1.4826*median(dev), leastOut)
	for i := range c.Pairs {
		p := &c.Pairs[i]
		if !p.Change.OK || math.Abs(math.Log1p(p.Change.V)-mid) <= far {
			continue
		}
		p.Note = "stands out"
		side, r := "candidate", m.candidate.Rounds[i]
		if (math.Log1p(p.Change.V)-mid > 0) != (turned(c.Metric) > 0) {
			side, r = "control", m.control.Rounds[i]
		}
		switch cold := coldFirst(r); {
		case cold > 0:
			p.Note += fmt.Sprintf(": the first request on the %s had a ttft of %s, %.0f times the median of the leg", side, metric.Format(metric.Seconds, cold.Seconds()),
				cold.Seconds()/sample.MedianTTFT(r.MeasuredSamples()))
		case r.Health.Stall >= metric.LeastStall:
			p.Note += fmt.Sprintf(": the generator was held up for %s during the leg on the %s", metric.Format(metric.Seconds, r.Health.Stall.Seconds()), side)
		default:
			p.Note += ": the leg on the " + side + " was slower than the others"
		}
	}
}

func median(xs []float64) float64 {
	s := slices.Sorted(slices.Values(xs))
	n := len(s)
	if n == 0 {
		return math.NaN()
	}
	return (s[(n-1)/2] + s[n/2]) / 2
}

// coldFirst returns the TTFT of a round's first measured request if that request was cold. A TTFT
// much longer than the round's median means cold. Otherwise coldFirst returns 0.
func coldFirst(r *metric.Round) time.Duration {
	samples := r.MeasuredSamples()
	if len(samples) < 5 {
		return 0
	}
	first, ok := samples[0].Value("ttft")
	if mid := sample.MedianTTFT(samples); !ok || mid <= 0 || first < coldTimes*mid {
		return 0
	}
	return time.Duration(first * float64(time.Second))
}
