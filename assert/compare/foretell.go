package compare

import (
	"math"
	"math/rand/v2"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// foretold simulates a comparison that has not run yet.
type foretold struct {
	*plan.Compare
	design     stat.Design
	unit       int   // rounds of an observation
	looks      []int // numbers of observations after which the comparison is judged
	pass       float64
	fail       map[string]float64 // by workload: the error of a test that a change certainly fails
	members    []member
	thresholds int    // observations that the candidate's thresholds wait for
	waits      string // the threshold that waits for them
}

// member is one change of a comparison that is simulated.
type member struct {
	workload         string
	limit            float64 // in the units of delta
	requests, starts float64 // standard deviations of one leg, from its requests and from its start
	first            bool    // a time of first tokens, which varies with the start by itself
	seen             bool    // starts is what the last comparison showed of whole legs
	required         bool
	// counted means that numbers of requests decide. The change then passes from so many observations
	// on: from, or where the simulation draws less than chance after the look.
	counted bool
	from    int
	left    int       // first observations that are left out; see warm
	chance  []float64 // nil: 1 from then on
}

// Correlations of what starts and legs do to the metrics of a workload: of times that all tokens
// share, among each other; and of times of first tokens with those. Seen on the built-in server in 60
// rounds: throughput, e2e, tpot and speed 0.85 to 0.99, ttft with any of them 0.2.
const (
	alike       = 0.9
	firstTokens = 0.2
)

// foretellings is the number of simulated comparisons.
const foretellings = 1000

func newForetold(p *plan.Plan, c *plan.Compare) *foretold {
	f := &foretold{Compare: c, design: designOf(p, c), unit: c.Unit()}
	planned := c.Looks()
	if p.Gate.MeasureOnly {
		planned = []int{c.Rounds}
	}
	for _, n := range planned {
		f.looks = append(f.looks, n/f.unit)
	}
	alpha := c.Policy.Alpha()
	of := nominal(p, &metric.Comparison{Planned: planned}, c)
	if c.Policy.Estimates() {
		// A point estimate passes if it is within the limit: a test at 50 % confidence, whose bound is
		// the estimate itself.
		of = func(float64) float64 { return 0.5 }
	}
	counts := map[string]int{}
	for _, w := range c.Workloads(p) {
		counts[w.Address()] = members(p, c, w)
		for _, sla := range w.SLAs {
			for _, t := range sla.Thresholds {
				if len(f.looks) > 1 && sla.Severity == plan.SeverityError && len(sla.At) > 0 && !t.Stat.Exact() && !t.Stat.IsShare() &&
					t.Metric.Name != "success" && f.waits == "" {
					f.thresholds, f.waits = LeastStarts, "sla "+t.Metric.Name+" "+t.Stat.String()+" of "+w.Address()
				}
			}
		}
	}
	f.pass = of(alpha)
	f.fail = map[string]float64{}
	for workload, n := range counts {
		f.fail[workload] = of(alpha / float64(max(n, 1)*len(counts)))
	}
	return f
}

// LeastStarts is the smallest number of starts from which a percentile or a mean of the candidate over
// all its starts can be certified.
const LeastStarts = 5

func (f *foretold) last() int { return f.looks[len(f.looks)-1] }

// member returns a change at one level as it is simulated. known is false if its chance cannot be
// computed.
func (f *foretold) member(w *plan.Workload, ch *plan.ChangeBound, level plan.Level) (m member, known bool) {
	if level.Duration > 0 {
		return m, false // with a duration, the number of requests is not known
	}
	n := float64(level.Requests) / float64(max(level.Rounds, 1))
	m = member{workload: w.Address(), limit: (&Change{Metric: ch.Metric, Shift: Shift{Points: ch.Points}}).scaled(ch.Limit),
		starts: usualStarts, first: ch.Metric.Name == "ttft", from: 2}
	switch name := ch.Metric.Name; {
	case name == "accuracy":
		m.counted = true
		m.items(f, w, n)
	case name == "success" || ch.Stat.Kind == metric.Share:
		m.counted = true
		// Even the best result, without a failed request on either server, may be too uncertain to pass.
		for m.from = 1; m.from <= f.last(); m.from++ {
			all := n * float64(m.from*f.unit)
			if low, _, ok := stat.ShareDifference(all, all, all, all, f.pass); ok && -low < m.limit {
				break
			}
		}
	case ch.Metric.Source == metric.Starts:
		m.left, m.from, m.starts, m.first = 1, leastWarm+1, usualLaunch, true
	case ch.Points, ch.Metric.Source != metric.Client:
		return m, false
	case ch.Stat.Kind == metric.Percentile:
		q := ch.Stat.P / 100
		z := stat.NormalQuantile(q)
		density := math.Exp(-z*z/2) / math.Sqrt(2*math.Pi)
		m.requests = usualRequests * math.Sqrt(q*(1-q)/n) / density
	default: // a mean, or a value that is computed from means
		m.requests = math.Sqrt(math.Expm1(usualRepeats*usualRepeats) / n)
	}
	// The two rounds of a pair side by side are one observation of two starts.
	m.requests, m.starts = m.requests/math.Sqrt(float64(f.unit)), m.starts/math.Sqrt(float64(f.unit))
	return m, true
}

// sees makes the noise of a change that of the last comparison: the standard deviation of a leg about
// its side and the drift.
func (m *member) sees(f *foretold, recorded []*Comparison, w *plan.Workload, ch *plan.ChangeBound, level string) {
	if m.counted || f.Restart != plan.RestartLeg {
		return
	}
	for _, c := range recorded {
		if c.Name != f.Name || c.Restart != plan.RestartLeg {
			continue
		}
		for i := range c.Changes {
			row := &c.Changes[i]
			if row.Workload != w.Address() || row.Level != level || row.Metric.Name != ch.Metric.Name || row.Stat != ch.Stat {
				continue
			}
			if spread, ok := row.spread(f.design, f.unit); ok {
				m.starts, m.requests, m.seen = spread, 0, true
			}
			return
		}
	}
}

// spread returns the standard deviation of one observation of a recorded change, of at least three of
// each side.
func (c *Change) spread(design stat.Design, unit int) (float64, bool) {
	var sides [2][]metric.Value
	for _, p := range c.Pairs {
		sides[0], sides[1] = append(sides[0], p.Control), append(sides[1], p.Candidate)
	}
	var timed [2]stat.Timed
	for side, values := range sides {
		for i, x := range c.logs(values, unit) {
			timed[side].Values = append(timed[side].Values, x)
			timed[side].At = append(timed[side].At, float64(2*i+(side+i)%2))
		}
	}
	d, ok := design.Drifting(timed[0], timed[1])
	return d.Spread, ok && d.DF >= 2
}

// items sets the chance that an unchanged candidate passes a limit on accuracy, for each look.
func (m *member) items(f *foretold, w *plan.Workload, n float64) {
	m.from = f.last() + 1
	for _, k := range f.looks {
		requests := int(n) * k * f.unit
		if set := w.Prompt.Dataset; set != nil {
			requests = min(requests, len(set.Rows)) // an item that is asked twice counts once
		}
		if _, best, ok := stat.PairedShare(0, 0, float64(requests), f.pass); !ok || best >= m.limit {
			m.chance = append(m.chance, 0)
			continue
		}
		m.from = min(m.from, k)
		m.chance = append(m.chance, stat.PairedPower(requests, usualDisagreement, m.limit, f.pass))
	}
}

// least returns the number of rounds at the first look that can decide, and what that look waits for.
func (f *foretold) least() (rounds int, waits string) {
	from := f.thresholds
	if waits = f.waits; from <= f.looks[0] {
		from, waits = f.looks[0], ""
	}
	for _, m := range f.members {
		if m.required && m.from > from {
			from, waits = m.from, "the number of requests for a share in "+m.workload
			if !m.counted {
				waits = "start_warm, whose first start is cold,"
			}
		}
	}
	for _, n := range f.looks {
		if n >= from {
			return n * f.unit, waits
		}
	}
	return f.last() * f.unit, waits
}

// unchanged simulates a candidate that did not change. It returns the chance that all required changes
// pass, that of each change, and the mean number of rounds.
func (f *foretold) unchanged() (passes float64, each []float64, rounds float64) {
	each = make([]float64, len(f.members))
	r := rand.New(rand.NewPCG(39, 1))
	required := false
	for _, m := range f.members {
		required = required || m.required
	}
	for range foretellings {
		ended, passed, held := f.once(r, 0)
		if ended == 0 || !required {
			ended = f.last()
		}
		rounds += float64(ended*f.unit) / foretellings
		if passed {
			passes += 1.0 / foretellings
		}
		for i, ok := range held {
			if ok {
				each[i] += 1.0 / foretellings
			}
		}
	}
	return passes, each, rounds
}

// tolerated simulates a candidate whose required changes are as large as the plan tolerates. It
// returns the mean number of rounds.
func (f *foretold) tolerated() (rounds float64) {
	r := rand.New(rand.NewPCG(39, 2))
	for range foretellings {
		ended, _, _ := f.once(r, 1)
		rounds += float64(ended*f.unit) / foretellings
	}
	return rounds
}

// once simulates one comparison, in which every change is worse by the share worse of its limit. It
// returns after how many observations it ends, whether all required changes passed then, and which
// changes passed at one of the looks.
func (f *foretold) once(r *rand.Rand, worse float64) (ended int, passed bool, held []bool) {
	values := f.draw(r)
	luck := make([]float64, len(f.members))
	for i := range luck {
		luck[i] = r.Float64()
	}
	held = make([]bool, len(f.members))
	for k, n := range f.looks {
		all, failed, passes, fails := n >= f.thresholds, false, 1.0, 0.0
		for i, m := range f.members {
			var s stood
			switch {
			case m.counted && m.chance != nil:
				s.holds = luck[i] < m.chance[k]
			case m.counted:
				s.holds = n >= m.from
			case n >= m.from:
				s = f.stands(m, values[i], n, worse)
			}
			held[i] = held[i] || s.holds
			if m.required {
				all, failed = all && s.holds, failed || s.fails
				passes, fails = min(passes, 1-s.noPass), max(fails, s.mayFail)
			}
		}
		if all || failed || len(f.looks) > 1 && n >= leastFutile && passes+fails < leastHope || n == f.last() {
			if ended == 0 {
				ended, passed = n, all && !failed
			}
		}
	}
	return ended, passed, held
}

// stood is how a change stands at a look: whether it holds or certainly fails. If neither, noPass and
// mayFail are the chances that it does not hold, and that it fails, at the last look.
type stood struct {
	holds, fails    bool
	noPass, mayFail float64
}

// stands judges a change after n observations, if it is worse by the share worse of its limit.
func (f *foretold) stands(m member, values [2][]float64, n int, worse float64) (s stood) {
	d, known := f.drift([2][]float64{values[0][m.left:], values[1][m.left:]}, n-m.left)
	if !known {
		return s
	}
	d.Diff += worse * m.limit
	fail := f.fail[m.workload]
	s.holds, s.fails = f.passes(d, m.limit), d.Above(m.limit) <= fail
	if !s.holds && !s.fails {
		pass, fails := decides(d, m.limit, n-m.left, f.last()-m.left, f.pass, fail)
		s.noPass, s.mayFail = 1-pass, fails
	}
	return s
}

func (f *foretold) passes(d stat.Drift, limit float64) bool {
	_, high := d.Bounds(f.pass)
	return high < limit
}

func (f *foretold) drift(values [2][]float64, n int) (stat.Drift, bool) {
	if f.Restart != plan.RestartLeg {
		units := make([]float64, n)
		for i := range units {
			units[i] = values[1][i] - values[0][i]
		}
		mean, variance := stat.Moments(units)
		return stat.Drift{Design: stat.Pairs, Diff: mean, SE: math.Sqrt(variance / float64(n)), DF: float64(n - 1),
			Spread: math.Sqrt(variance / 2)}, n > 1
	}
	at := [2][]float64{make([]float64, n), make([]float64, n)}
	for i := range n {
		at[i%2][i], at[1-i%2][i] = float64(2*i), float64(2*i+1)
	}
	return f.design.Drifting(stat.Timed{Values: values[0][:n], At: at[0]}, stat.Timed{Values: values[1][:n], At: at[1]})
}

// draw returns the values of each change, for both sides and each observation. What a start and a leg
// do to the metrics of one workload is alike.
func (f *foretold) draw(r *rand.Rand) [][2][]float64 {
	out := make([][2][]float64, len(f.members))
	type common struct{ start, leg [2]float64 } // of all tokens, of first tokens
	fresh := func() (c common) {
		const share = firstTokens / alike
		pair := func() [2]float64 {
			z := r.NormFloat64()
			return [2]float64{z, share*z + math.Sqrt(1-share*share)*r.NormFloat64()}
		}
		return common{pair(), pair()}
	}
	for side := range 2 {
		held := map[string]common{}
		for n := range f.last() {
			drawn := map[string]common{}
			for i, m := range f.members {
				c, ok := drawn[m.workload]
				if !ok {
					c = fresh()
					if once, ok := held[m.workload]; ok && f.Restart != plan.RestartLeg {
						c.start = once.start // of the only start
					}
					drawn[m.workload] = c
					if n == 0 {
						held[m.workload] = c
					}
				}
				kind := map[bool]int{true: 1}[m.first]
				own := func(common float64) float64 { return math.Sqrt(alike)*common + math.Sqrt(1-alike)*r.NormFloat64() }
				start := own(c.start[kind])
				if f.Restart != plan.RestartLeg {
					start = c.start[kind]
				}
				out[i][side] = append(out[i][side], m.starts*start+m.requests*own(c.leg[kind]))
			}
		}
	}
	return out
}
