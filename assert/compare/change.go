package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Change describes how one statistic of one metric changed from control to candidate.
type Change struct {
	Workload string `json:"workload"`
	Level    string `json:"level"` // "capacity" for the capacity
	// OfCapacity marks a change of the capacity. OfAnswers marks a change of a metric of scored
	// answers. Changes of both kinds belong to no level.
	OfCapacity bool        `json:"of_capacity,omitempty"`
	OfAnswers  bool        `json:"of_answers,omitempty"`
	Metric     metric.Def  `json:"metric"`
	Stat       metric.Stat `json:"stat"` // "" for a metric of the whole level
	Shift
	Limit     metric.Value     `json:"limit"` // largest allowed change; null if the plan sets no limit
	Improve   bool             `json:"improve,omitempty"`
	Outcome   verdict.Outcome  `json:"outcome"` // Skipped if there is no limit, or if the change does not apply
	Severity  verdict.Severity `json:"severity,omitempty"`
	Direction Direction        `json:"direction,omitempty"`
	Message   string           `json:"message"`
	verdict.Lack
	Why     string   `json:"why,omitempty"`      // why the change has no value
	LeftOut bool     `json:"left_out,omitempty"` // the user did not select this change
	Notes   []string `json:"notes,omitempty"`
	Pairs   []Pair   `json:"pairs,omitempty"` // one for each round; if Paired is false, Change is null
	judging
}

// Shift is the size of a change.
type Shift struct {
	// Points means that the change is a difference in the metric's base unit. Otherwise it is a
	// share of the control's value.
	Points bool `json:"points"`
	// Control and Candidate are the values over all rounds, as in the tables of the levels. Change
	// is candidate / control − 1, as the geometric mean over the rounds. If Points is set, it is
	// candidate − control, as the arithmetic mean. The interval is that of Change.
	Control   metric.Value `json:"control"`
	Candidate metric.Value `json:"candidate"`
	Change    metric.Value `json:"change"`
	verdict.Interval
	// Certifiable is the smallest tolerance that the measured data could certify, with its sign. It
	// is 0 if the candidate is better.
	Certifiable metric.Value `json:"certifiable"`
}

// judging is what the judgement of a change needs.
type judging struct {
	lacks string // reason why the change is not applicable; otherwise ""
	// instead is the text of the verdict if no number is meaningful; otherwise "".
	instead string
	cause   verdict.Cause     // of an error
	sure    bool              // the load generator cannot have caused this failure
	bound   *plan.ChangeBound // nil: shown only
	implied bool              // tokgate adds the limit; see fewMore
	delta   delta
	limit   float64 // of the change, in the units of delta
	pFail   float64 // p-value of the claim that the change is larger than the limit
}

// Direction is the direction of a change, if it is certain.
type Direction string

const (
	Better  Direction = "better"
	Worse   Direction = "worse"
	NoneWay Direction = "" // undecided: the interval includes 0
)

// Pair holds the control's and the candidate's values of one round.
type Pair struct {
	Round     int          `json:"round"` // 0-based
	Seed      int64        `json:"seed"`
	Control   metric.Value `json:"control"`
	Candidate metric.Value `json:"candidate"`
	Change    metric.Value `json:"change"`
	Note      string       `json:"note,omitempty"` // why the pair is an outlier; "" if it is none
}

// Unit is the unit of the values that changed.
func (c *Change) Unit() metric.Unit { return c.Metric.UnitOf(c.Stat) }

// Title names what changed for readers, such as "TTFT p95".
func (c *Change) Title() string { return strings.TrimSpace(c.Metric.Title + " " + c.Stat.String()) }

// Status is the status of the change in reports.
func (c *Change) Status() verdict.Status {
	v := verdict.Verdict{Outcome: c.Outcome, Severity: c.Severity}
	return v.Status()
}

func (c *Change) inapplicable(lacks string) {
	c.Outcome, c.lacks, c.Why = verdict.Skipped, lacks, "not applicable: "+lacks
	c.Message = c.Why
}

// turned returns the factor that makes a change for the worse positive. It is +1 if lower values
// are better, and −1 if higher values are.
func turned(def metric.Def) float64 {
	if def.Better == metric.HigherIsBetter {
		return -1
	}
	return 1
}

// scaled converts a change to the units of delta. The change may be measured, or be a limit in the
// plan.
func (c *Change) scaled(change float64) float64 {
	if c.Points {
		return turned(c.Metric) * change
	}
	return turned(c.Metric) * math.Log1p(change)
}

func (c *Change) unscaled(x float64) float64 {
	x = turned(c.Metric)*x + 0 // no negative zero
	if c.Points {
		return x
	}
	return math.Expm1(x)
}

// Name writes the metric and its statistic, such as "ttft p95".
func (c *Change) Name() string {
	if s := c.Stat.String(); s != "" {
		return c.Metric.Name + " " + s
	}
	return c.Metric.Name
}

// OfUnits judges a change outside of a plan's comparison. The parameter units holds the changes of
// independent pairs, each as ln(candidate / control).
func OfUnits(units []float64, bound *plan.ChangeBound, claim *plan.Claim, policy plan.Policy) Change {
	alpha := policy.Alpha()
	c := Change{Metric: bound.Metric, Stat: bound.Stat, Shift: Shift{Interval: verdict.Interval{Confidence: 1 - alpha}}}
	for _, x := range units {
		c.delta.units = append(c.delta.units, turned(c.Metric)*x)
	}
	c.estimate(alpha)
	c.require(bound, claim, policy, alpha)
	return c
}

// estimate fills in the size, the bounds and the direction of the change. It also fills in the
// tolerance that the data can certify.
func (c *Change) estimate(alpha float64) {
	mid, low, high, ok := c.delta.bounds(alpha)
	switch {
	case ok:
		c.Change = metric.Some(c.unscaled(mid))
		a, b := c.unscaled(low), c.unscaled(high)
		c.Low, c.High = metric.Some(min(a, b)), metric.Some(max(a, b))
		c.Certifiable = metric.Some(c.unscaled(max(high, 0)))
		if c.Metric.TwoSided {
			// Neither direction of this metric is better, so take the larger change. A decrease by
			// the share x is −log1p(−x) here, so that it compares with an increase.
			c.Certifiable = metric.Some(max(c.High.V, -c.Low.V))
		}
		if !c.Metric.TwoSided && high < 0 {
			c.Direction = Better
		} else if !c.Metric.TwoSided && low > 0 {
			c.Direction = Worse
		}
	case c.delta.infinite():
		c.Notes = append(c.Notes, "in some rounds the percentile falls on a failed request and has no value, so only the sign of each round's change was used")
		c.Why = "in some rounds the percentile falls on a failed request and has no value"
	default:
		c.Why = "there are too few rounds for an interval"
	}
}

// require judges a change against its bound, as if it were the only one. Holm's rule later decides
// whether a failure stands, with regard to the other changes.
func (c *Change) require(bound *plan.ChangeBound, claim *plan.Claim, policy plan.Policy, alpha float64) {
	c.bound, c.Improve, c.Severity = bound, claim.Improve, verdict.Severity(claim.Severity)
	c.Limit = metric.Some(bound.Limit)
	c.pFail = 1
	if c.Outcome == verdict.Skipped || c.Outcome == verdict.Error {
		return
	}
	c.limit = c.scaled(bound.Limit)
	mid, _, _, ok := c.delta.bounds(alpha)
	within, below := mid <= c.limit, c.delta.below(c.limit, alpha)
	if bound.TwoSided {
		other, least := c.delta.mirrored(), -c.scaled(-bound.Limit)
		within, below = within && -mid <= least, below && other.below(least, alpha)
		if other.pAbove(least) < c.delta.pAbove(c.limit) {
			c.delta, c.limit = other, least // the opposite change is more likely to fail
		}
	}
	test := stat.Open
	if policy.Estimates() && ok {
		c.Notes = append(c.Notes, verdict.ByEstimate)
	} else if policy.Decide = plan.Certified; below {
		test = stat.Below
	} else if c.pFail = c.delta.pAbove(c.limit); c.pFail <= alpha {
		test = stat.Above
	}
	c.Outcome = sample.Decide(policy, within, test)
	c.Message = c.line()
	if c.Outcome == verdict.Inconclusive {
		c.Needs = c.needs(alpha)
	}
}

// needs says what would decide an inconclusive verdict. If possible, it estimates how many more
// rounds are needed.
func (c *Change) needs(alpha float64) string {
	switch {
	case c.delta.infinite() && slices.ContainsFunc(c.delta.control, func(x float64) bool { return math.IsInf(x, 0) }):
		return "needs a new recording of the control, in which fewer requests fail"
	case c.delta.infinite():
		return "needs rounds in which fewer requests fail"
	case c.delta.unpaired && min(len(c.delta.control), len(c.delta.candidate)) < metric.LeastRounds:
		return fmt.Sprintf("needs at least %d rounds of each server", metric.LeastRounds)
	case c.delta.unpaired:
		return "needs more rounds, or a run in which both servers take turns"
	}
	if o := c.delta.paired; o != nil {
		return "needs more answers" + o.needs(c.limit, alpha)
	}
	if drift, ok := c.delta.drift(); ok && c.delta.counts == nil {
		n, ok := drift.StartsNeeded(c.limit, alpha)
		if !ok {
			return "the change is too near to its limit: more than 1000 starts of each server would be needed"
		}
		if c.Metric.Source == metric.Starts {
			return fmt.Sprintf("needs about %d starts of each server if the change stays as it seems", n+1)
		}
		return fmt.Sprintf("needs about %d starts of each server if the change stays as it seems, or more requests in each round", n)
	}
	n, ok := stat.MeanNeeded(c.delta.units, c.limit, alpha)
	if !ok || n <= len(c.delta.units) {
		return "needs more rounds"
	}
	if n > 50*len(c.delta.units) {
		return fmt.Sprintf("the change is too near to its limit: more than %d times as many rounds would be needed", 50)
	}
	more := (n - len(c.delta.units)) * max(1, len(c.Pairs)/max(len(c.delta.units), 1))
	return verdict.NeedsMore(more, "rounds") + ", or more requests in each round"
}

// line describes the change in one line: "ttft p95 −1.2% (−3.4% to +1.1%), tolerated +10%".
func (c *Change) line() string {
	s := c.Name()
	if c.Change.OK {
		s = fmt.Sprintf("%s %s → %s, %s (%s)", c.Name(), metric.Format(c.Unit(), c.Control.V), metric.Format(c.Unit(), c.Candidate.V),
			c.percent(c.Change.V), c.Bounds(c.percent))
	} else if c.Why != "" {
		s += ": " + c.Why
	}
	if c.Limit.OK {
		s += map[bool]string{true: ", asked for ", false: ", tolerated "}[c.Improve]
		if c.Metric.TwoSided {
			s += "±" + strings.TrimPrefix(c.percent(c.Limit.V), "+")
		} else {
			s += c.percent(c.Limit.V)
		}
	}
	if c.Limit.OK && c.Certifiable.OK && !c.Improve && c.Outcome != verdict.Pass {
		s += fmt.Sprintf("; the smallest tolerance that these rounds certify is %s", c.percent(c.Certifiable.V))
	}
	return s
}

// percent writes a change of this metric with its sign: "+3.1%", "−0.4 pp".
func (c *Change) percent(x float64) string { return FormatChange(c.Unit(), x, c.Points) }

// FormatChange writes a change with its sign. The change is a share, such as "+3.1%", or a
// difference in a unit, such as "+0.02 nats/token". A difference of two shares is in percentage
// points: "-0.4pp".
func FormatChange(of metric.Unit, x float64, points bool) string {
	unit := "%"
	if points && of != metric.Ratio {
		sign := "+"
		if x < 0 {
			sign = "" // it has one
		}
		return sign + metric.Format(of, x)
	}
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

// A round is an outlier if its change differs from the median change by more than standsOut robust
// standard deviations, and by more than leastOut. Changes are logarithms of ratios.
const (
	standsOut = 4
	leastOut  = 0.05
)

// A leg starts cold if the TTFT of its first measured request is at least coldTimes the median TTFT
// of the round.
const coldTimes = 3
