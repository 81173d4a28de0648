package assert

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Change is one statistic of one metric on both sides of a comparison.
type Change struct {
	Workload string
	Level    string // "capacity" for the capacity
	Metric   metric.Def
	Stat     metric.Stat
	// Points: changes are differences in base units; else shares of the
	// control's value.
	Points bool
	// Control and Candidate are the means of the rounds, geometric unless
	// Points. Change is candidate / control − 1 or candidate − control, Low and
	// High its one-sided bounds at Confidence.
	Control, Candidate metric.Value
	Change, Low, High  metric.Value
	Confidence         float64
	Limit              metric.Value // no value: it is shown only
	Improve            bool
	// Certifiable is the smallest tolerance that these data could have
	// certified, with its sign: 0 where the candidate is better.
	Certifiable metric.Value
	Outcome     Outcome // Skipped without a limit, and where it is not applicable
	Severity    plan.Severity
	Direction   Direction
	Message     string
	Needs       string
	Why         string // why there is no value
	Notes       []string
	Pairs       []Pair

	bound *plan.Change // nil: shown only
	delta delta
	decision
}

// Direction is which way a change certainly goes.
type Direction string

const (
	Better  Direction = "better"
	Worse   Direction = "worse"
	NoneWay Direction = "" // the interval holds no change
)

// Pair is one round on both sides.
type Pair struct {
	Round              int
	Seed               int64
	Control, Candidate metric.Value
	Change             metric.Value
	Note               string // why it stands out; ""
}

// decision is what the tests of a change come to before those of the others are
// looked at.
type decision struct {
	limit float64 // on the scale of delta
	pFail float64 // of being beyond the limit
}

// delta is a change on the scale on which it is tested: turned so that more is
// worse, logarithms unless it is one of points.
type delta struct {
	units []float64 // of independent units, paired
	// Of a stored control each side has units of its own; where one of them is
	// infinite, units are the two sides' rounds in their order.
	control, candidate []float64
	unpaired           bool
	// counts are set where the metric counts requests: those that were good and
	// all of them, worth as much as independent ones.
	counts *counts
}

type counts struct{ goodA, allA, goodB, allB float64 }

// infinite says whether a percentile was that of a failed request somewhere.
func (d delta) infinite() bool {
	return slices.ContainsFunc(d.units, func(x float64) bool { return math.IsInf(x, 0) || math.IsNaN(x) })
}

// bounds is the interval at alpha a side.
func (d delta) bounds(alpha float64) (mid, low, high float64, ok bool) {
	if d.unpaired {
		mid, low, high, ok = stat.Welch(d.control, d.candidate, alpha)
	} else {
		mid, low, high, ok = stat.MeanInterval(d.units, alpha)
		ok = ok && len(d.units) >= 2
	}
	if c := d.counts; ok && c != nil {
		// Worse is fewer good ones. Where neither side failed a request the
		// rounds do not vary, and the t interval has no width.
		l, h, found := stat.ShareDifference(c.goodA, c.allA, c.goodB, c.allB, alpha)
		if !found {
			return mid, math.Inf(-1), math.Inf(1), false
		}
		low, high = min(low, -h), max(high, -l)
	}
	return mid, low, high, ok
}

// pAbove is the smallest error at which the data say that the change is above
// limit; 1 when they never do.
func (d delta) pAbove(limit float64) float64 {
	if d.infinite() {
		return d.signs(func(x float64) bool { return x > limit })
	}
	_, _, _, ok := d.bounds(0.05)
	if !ok {
		return 1
	}
	lo, hi := 1e-9, 0.5
	above := func(alpha float64) bool { _, low, _, _ := d.bounds(alpha); return low > limit }
	if !above(hi) {
		return 1
	}
	if above(lo) {
		return lo
	}
	for range 30 {
		if mid := math.Sqrt(lo * hi); above(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

// below says whether the change is certainly below limit.
func (d delta) below(limit, alpha float64) bool {
	if d.infinite() {
		return d.signs(func(x float64) bool { return x < limit }) <= alpha
	}
	_, _, high, ok := d.bounds(alpha)
	return ok && high < limit
}

// signs is the sign test: the chance that as many units as these are on that
// side if half of all were. It is what is left where a unit has no finite value.
func (d delta) signs(side func(float64) bool) float64 {
	k := 0
	for _, x := range d.units {
		if !math.IsNaN(x) && side(x) {
			k++
		}
	}
	return stat.AtLeast(float64(k), float64(len(d.units)), 0.5)
}

// turned is +1 where lower is better and −1 where higher is.
func turned(def metric.Def) float64 {
	if def.Better == metric.HigherIsBetter {
		return -1
	}
	return 1
}

// scaled is a change as written, or as measured, on the scale of delta.
func (c *Change) scaled(change float64) float64 {
	if c.Points {
		return turned(c.Metric) * change
	}
	return turned(c.Metric) * math.Log1p(change)
}

// unscaled is its inverse.
func (c *Change) unscaled(x float64) float64 {
	x = turned(c.Metric)*x + 0 // no negative zero
	if c.Points {
		return x
	}
	return math.Expm1(x)
}

// matched is what both sides did at one level of one workload.
type matched struct {
	workload           *plan.Workload
	level              string
	control, candidate *metric.Level // the rounds that are judged, pair by pair unless unpaired
	// Concurrency 1 of both, for scaling_efficiency; nil where it was not run.
	one, oneCandidate *metric.Level
	// What an hour of each costs.
	price, priceCandidate metric.Price
	unpaired              bool
	block                 int // rounds that make one independent unit
}

// measure fills in everything that does not depend on a limit.
func (m matched) measure(c *Change, alpha float64) {
	c.Workload, c.Level, c.Confidence = m.workload.Address(), m.level, 1-alpha
	good, window := goodOf(m.workload), m.workload.Policy.Window
	a, b := values(c, m.control, m.one, m.price, window, good), values(c, m.candidate, m.oneCandidate, m.priceCandidate, window, good)
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
	var lacking []string // sides without any value
	for _, side := range []struct {
		name   string
		values []metric.Value
		out    *metric.Value
	}{{"control", a, &c.Control}, {"candidate", b, &c.Candidate}} {
		missing, why := 0, c.Metric.NoValue
		for _, v := range side.values {
			if !v.OK {
				missing, why = missing+1, cmp.Or(v.Why, why)
			}
		}
		switch {
		case len(side.values) == 0 || missing == len(side.values):
			lacking = append(lacking, fmt.Sprintf("the %s has no %s: %s", side.name, c.name(), cmp.Or(why, "nothing was measured")))
		case missing > 0:
			c.Outcome, c.Why = Error, fmt.Sprintf("%d of %d rounds of the %s have no %s: %s", missing, len(side.values), side.name, c.name(), why)
		default:
			*side.out = center(side.values, c.Points)
		}
		if c.Why != "" {
			c.Message = c.Why
			return
		}
	}
	if len(lacking) > 0 {
		// What the control alone has was lost with the change, where it is
		// required: no excuse for the candidate.
		c.Outcome, c.Why = Skipped, "not applicable: "+lacking[0]
		if lost := len(lacking) == 1 && c.Control.OK; lost && c.bound != nil {
			c.Outcome, c.Why = Error, lacking[0]
		}
		c.Message = c.Why
		return
	}
	if lumped := m.lumped(c); lumped != "" {
		c.Outcome, c.Why, c.Message = Error, lumped, c.name()+" cannot be told: "+lumped
		return
	}
	c.delta = m.delta(c, a, b, good, alpha)
	mid, low, high, ok := c.delta.bounds(alpha)
	switch {
	case ok:
		c.Change = metric.Some(c.unscaled(mid))
		x, y := c.unscaled(low), c.unscaled(high)
		c.Low, c.High = metric.Some(min(x, y)), metric.Some(max(x, y))
		c.Certifiable = metric.Some(c.unscaled(max(high, 0)))
		if high < 0 {
			c.Direction = Better
		} else if low > 0 {
			c.Direction = Worse
		}
	case c.delta.infinite():
		c.Notes = append(c.Notes, "in some rounds the statistic is that of a failed request: decided by the sign of each round's change alone")
		c.Why = "in some rounds the statistic is that of a failed request"
	default:
		c.Why = "too few rounds for an interval"
	}
}

// name is the metric and its statistic: "ttft p95".
func (c *Change) name() string {
	if s := c.Stat.String(); s != "" {
		return c.Metric.Name + " " + s
	}
	return c.Metric.Name
}

// values are those of each round.
func values(c *Change, l, one *metric.Level, price metric.Price, window metric.Window, good func(*metric.Sample) bool) []metric.Value {
	if l == nil {
		return nil
	}
	out := make([]metric.Value, len(l.Rounds))
	foreign := ""
	if c.Metric.Source == metric.Server {
		foreign = elsewhere(l)
	}
	for i, r := range l.Rounds {
		single := *l
		single.Rounds = []*metric.Round{r}
		switch {
		case c.Metric.Scope == metric.PerReading:
			out[i] = metric.None("")
			if g, why := single.Gauge(c.Metric.Name); why != "" {
				out[i].Why = why
			} else {
				out[i] = metric.Some(g.Mean)
			}
		case c.Metric.Scope == metric.Counted:
			out[i] = countedMean(&single, c)
		case c.Metric.Source == metric.Prices:
			out[i] = single.Cost(c.Metric.Name, price, single.Windows(window))
		case c.Metric.Scope != metric.PerLevel:
			d := metric.Of(c.Metric, r.MeasuredSamples())
			v, ok := d.Stat(c.Stat)
			if !ok || len(d.Values) == 0 {
				out[i] = metric.None(c.Metric.NoValue)
				continue
			}
			out[i] = metric.Some(v)
		case c.Stat.Kind == metric.Share:
			out[i] = single.GoodputShare(good)
		default:
			var first *metric.Level
			if one != nil && i < len(one.Rounds) {
				f := *one
				f.Rounds = []*metric.Round{one.Rounds[i]}
				first = &f
			}
			out[i] = single.Value(c.Metric.Name, window, good, first)
		}
		if foreign != "" && out[i].OK {
			out[i] = metric.None(foreign)
		}
		if out[i].OK && math.IsNaN(out[i].V) {
			out[i] = metric.None("it is no number")
		}
	}
	return out
}

// countedMean is the mean of what the server counts into buckets: the server
// adds up the values themselves. A percentile lies somewhere in a bucket, on
// both sides the same one even where it has doubled.
func countedMean(l *metric.Level, c *Change) metric.Value {
	h, why := l.Histogram(c.Metric.Name)
	if why != "" {
		return metric.None(why)
	}
	if c.Stat.Kind != metric.Mean {
		return metric.None("the server counts it in buckets, of which only the mean can be compared")
	}
	m, ok := h.Mean()
	if !ok {
		return metric.None(c.Metric.NoValue)
	}
	return metric.Some(m)
}

// center is the mean of the rounds, geometric unless points.
func center(values []metric.Value, points bool) metric.Value {
	xs := make([]float64, len(values))
	for i, v := range values {
		xs[i] = v.V
		if !points {
			xs[i] = math.Log(v.V)
		}
	}
	mean, _ := stat.Moments(xs)
	if !points {
		mean = math.Exp(mean)
	}
	return metric.Some(mean)
}

// step is the change of one pair on the scale of delta.
func (c *Change) step(a, b metric.Value) (float64, bool) {
	if !a.OK || !b.OK {
		return 0, false
	}
	if c.Points {
		return turned(c.Metric) * (b.V - a.V), true
	}
	if a.V == 0 && b.V == 0 {
		return 0, true // as many preemptions as before
	}
	return turned(c.Metric) * (math.Log(b.V) - math.Log(a.V)), true
}

// delta makes the independent units of a change.
func (m matched) delta(c *Change, a, b []metric.Value, good func(*metric.Sample) bool, alpha float64) delta {
	d := delta{unpaired: m.unpaired}
	if m.unpaired {
		side := func(values []metric.Value) []float64 {
			out := make([]float64, len(values))
			for i, v := range values {
				out[i], _ = c.step(metric.Some(map[bool]float64{true: 0, false: 1}[c.Points]), v)
			}
			return out
		}
		d.control, d.candidate = side(a), side(b)
		if slices.ContainsFunc(slices.Concat(d.control, d.candidate), func(x float64) bool { return math.IsInf(x, 0) }) {
			// Rounds that know nothing of each other are pairs whichever way they
			// are put together, as long as it is not by their values.
			for i := range min(len(d.control), len(d.candidate)) {
				d.units = append(d.units, d.candidate[i]-d.control[i])
			}
		}
	} else {
		for i := 0; i+m.block <= min(len(a), len(b)); i += m.block {
			unit := 0.0
			for k := i; k < i+m.block; k++ {
				x, _ := c.step(a[k], b[k])
				unit += x / float64(m.block)
			}
			d.units = append(d.units, unit)
		}
	}
	switch {
	case c.Metric.Name == "success":
		good = (*metric.Sample).Completed
	case c.Stat.Kind != metric.Share:
		return d
	}
	count := func(l *metric.Level) (k, n float64) {
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
	var x counts
	x.goodA, x.allA = count(m.control)
	x.goodB, x.allB = count(m.candidate)
	d.counts = &x
	return d
}

// lumped says why the answers of a side tell no speed; "".
func (m matched) lumped(c *Change) string {
	if c.Stat.Kind != metric.Mean {
		return ""
	}
	for _, l := range []*metric.Level{m.control, m.candidate} {
		s := subject{evidence: gather(l), workload: m.workload}
		if why := s.lumps(c.Metric); why != "" {
			return why
		}
	}
	return ""
}

// require judges the change by its bound, before the other changes are looked
// at: a failure stands only if Holm's rule lets it.
func (c *Change) require(bound *plan.Change, claim *plan.Claim, policy plan.Policy, alpha float64) {
	c.bound, c.Improve, c.Severity = bound, claim.Improve, claim.Severity
	c.Limit = metric.Some(bound.Limit)
	c.pFail = 1
	if c.Outcome == Skipped || c.Outcome == Error {
		return
	}
	c.limit = c.scaled(bound.Limit)
	mid, _, _, ok := c.delta.bounds(alpha)
	switch {
	case policy.Decide == plan.Estimate && ok:
		c.Outcome = Fail
		if mid <= c.limit {
			c.Outcome = Pass
		}
		c.Notes = append(c.Notes, `point estimate (decide = "estimate"): not certified at any confidence`)
	case c.delta.below(c.limit, alpha):
		c.Outcome = Pass
	default:
		c.Outcome = Inconclusive
		if c.pFail = c.delta.pAbove(c.limit); c.pFail <= alpha {
			c.Outcome = Fail
		}
	}
	c.Message = c.line()
	if c.Outcome == Inconclusive {
		c.Needs = c.needs(alpha)
	}
}

// needs says about how many more rounds would settle it.
func (c *Change) needs(alpha float64) string {
	switch {
	case c.delta.infinite() && slices.ContainsFunc(c.delta.control, func(x float64) bool { return math.IsInf(x, 0) }):
		return "needs a recording of the control in which fewer requests fail: record it anew"
	case c.delta.infinite():
		return "needs rounds in which fewer requests fail"
	case c.delta.unpaired && min(len(c.delta.control), len(c.delta.candidate)) < leastRounds:
		return fmt.Sprintf("needs at least %d rounds on each side", leastRounds)
	case c.delta.unpaired:
		return "needs more rounds, or both servers in turns"
	}
	n, ok := stat.MeanNeeded(c.delta.units, c.limit, alpha)
	if !ok || n <= len(c.delta.units) {
		return "needs more rounds"
	}
	if n > 50*len(c.delta.units) {
		return fmt.Sprintf("the change is too near to its limit: more than %d times as many rounds would be needed", 50)
	}
	more := (n - len(c.delta.units)) * max(1, len(c.Pairs)/max(len(c.delta.units), 1))
	return fmt.Sprintf("needs about %s more, or more requests in each", count(more, "rounds"))
}

// line words the change: "ttft p95 −1.2% (−3.4% to +1.1%), tolerated +10%".
func (c *Change) line() string {
	s := c.name()
	if c.Change.OK {
		s = fmt.Sprintf("%s %s → %s, %s (%s bounds %s to %s)", c.name(), metric.Format(c.unit(), c.Control.V), metric.Format(c.unit(), c.Candidate.V),
			c.percent(c.Change.V), metric.Format(metric.Ratio, c.Confidence), c.percent(c.Low.V), c.percent(c.High.V))
	} else if c.Why != "" {
		s += ": " + c.Why
	}
	if c.Limit.OK {
		s += map[bool]string{true: ", asked for ", false: ", tolerated "}[c.Improve] + c.percent(c.Limit.V)
	}
	if c.Limit.OK && c.Certifiable.OK && !c.Improve && c.Outcome != Pass {
		s += fmt.Sprintf("; the smallest tolerance that these rounds certify is %s", c.percent(c.Certifiable.V))
	}
	return s
}

func (c *Change) unit() metric.Unit { return c.Metric.UnitOf(c.Stat) }

// percent writes a change with its sign: "+3.1%", "−0.4 pp".
func (c *Change) percent(x float64) string { return FormatChange(x, c.Points) }

// FormatChange writes a share, or a difference of shares, with its sign: "+3.1%",
// "-0.4pp".
func FormatChange(x float64, points bool) string {
	unit := "%"
	if points {
		unit = "pp"
	}
	if math.Abs(x) < 0.00005 {
		x = 0 // not -0.00%
	}
	switch {
	case math.IsInf(x, 0) || math.IsNaN(x):
		return fmt.Sprintf("%+f%s", x, unit)
	case math.Abs(x) < 0.0005:
		return fmt.Sprintf("%+.2f%s", 100*x, unit)
	case math.Abs(x) < 0.0995:
		return fmt.Sprintf("%+.1f%s", 100*x, unit)
	}
	return fmt.Sprintf("%+.0f%s", 100*x, unit)
}

// standsOut is how many robust standard deviations a round's change lies from
// the median of all before it is pointed out, and leastOut how far at least.
const (
	standsOut = 4
	leastOut  = 0.05
)

// outliers explains the rounds that lie far from the others. They are judged
// all the same: nothing is dropped.
func (m matched) outliers(c *Change) {
	if m.unpaired || c.Points || c.Metric.Scope == metric.PerLevel && c.Metric.Unit == metric.Ratio {
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
	// 1.4826 makes the median deviation of a normal one its standard deviation.
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
			p.Note += fmt.Sprintf(": the first request on the %s had a ttft of %s, %.0f times the median of the leg", side, metric.Format(metric.Seconds, cold.Seconds()), cold.Seconds()/medianTTFT(r.MeasuredSamples()))
		case r.Health.Stall >= leastStall:
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

// coldTimes is how many times the median of its leg the first request takes
// that is called cold.
const coldTimes = 3

// coldFirst is the time to first token of the first measured request of a
// round, if it stands out; 0 when it does not.
func coldFirst(r *metric.Round) time.Duration {
	samples := r.MeasuredSamples()
	if len(samples) < 5 {
		return 0
	}
	first, ok := samples[0].Value("ttft")
	if mid := medianTTFT(samples); !ok || mid <= 0 || first < coldTimes*mid {
		return 0
	}
	return time.Duration(first * float64(time.Second))
}

// mirrored is the same change with worse and better swapped.
func (d delta) mirrored() delta {
	negate := func(xs []float64) []float64 {
		out := make([]float64, len(xs))
		for i, x := range xs {
			out[i] = -x
		}
		return out
	}
	out := delta{units: negate(d.units), control: negate(d.control), candidate: negate(d.candidate), unpaired: d.unpaired}
	if c := d.counts; c != nil {
		out.counts = &counts{c.goodB, c.allB, c.goodA, c.allA}
	}
	return out
}
