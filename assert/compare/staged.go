package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// A comparison with a fresh server for each leg is judged after every round from the first look on,
// and ends when it is decided. Its members are what can fail the plan: its required changes, and the
// candidate's thresholds on the compared workloads. It is green if all members hold, each at the
// error of a single test that is looked at as often. It is red if one fails at the error of as many
// tests as the workload has members. What tokgate requires by itself is no member: it is judged once,
// when the comparison ends.

// Stage is what a look decided about a comparison.
type Stage struct {
	Planned []int `json:"planned"` // numbers of rounds after which it was planned to look
	Rounds  int   `json:"rounds"`  // rounds at this look
	// Stop means that no further round is worth its cost: the comparison is decided, was looked at for
	// the last time, or is futile.
	Stop bool `json:"stop"`
	// Futile means that the comparison is undecided, and that its last look would decide it with a
	// chance below leastHope. Hope is that chance.
	Futile bool     `json:"futile,omitempty"`
	Hope   float64  `json:"hope,omitempty"`
	Open   []string `json:"open,omitempty"` // members that are not decided
}

// early reports whether the comparison ended before its last planned look.
func (s *Stage) early() bool { return s != nil && s.Stop && s.Rounds < slices.Max(s.Planned) }

// leastHope is the smallest chance of a decision at the last look for which a comparison goes on.
const leastHope = 0.1

// leastFutile is the smallest number of observations after which a comparison can be futile.
const leastFutile = 3

// nominal returns a function for the error of one test, if the planned looks of a comparison together
// may err with a given probability.
func nominal(p *plan.Plan, record *metric.Comparison, block *plan.Compare) func(alpha float64) float64 {
	switch n := len(record.Planned); {
	case n > 0 && block.Restart == plan.RestartLeg:
		looks := make([]int, n)
		for i, rounds := range record.Planned {
			looks[i] = rounds / block.Unit()
		}
		return func(alpha float64) float64 { return designOf(p, block).Boundary(looks, alpha) }
	case n > 0:
		return func(alpha float64) float64 { return stat.SplitAlpha(alpha, n) }
	case len(record.Looks) > 0:
		planned := record.Looks[len(record.Looks)-1].Planned
		return func(alpha float64) float64 { return stat.SplitAlpha(alpha, planned) }
	}
	return once
}

// leastWarm is the smallest number of warm starts of a side with which they are compared: two have no
// trend.
const leastWarm = 3

// looksOf returns the numbers of observations after which a metric is judged, of those of its comparison.
func looksOf(def metric.Def, looks []int) (out []int) {
	if def.Source != metric.Starts {
		return looks
	}
	for _, n := range looks {
		if n-1 >= leastWarm {
			out = append(out, n-1)
		}
	}
	return out
}

// nominalOf returns the function for the error of one test of a metric. Warm starts have looks of their own.
func (x *comparison) nominalOf(def metric.Def) func(alpha float64) float64 {
	if def.Source != metric.Starts || x.record == nil || len(x.record.Planned) == 0 {
		return x.nominal
	}
	looks := make([]int, len(x.record.Planned))
	for i, rounds := range x.record.Planned {
		looks[i] = rounds / x.Block.Unit()
	}
	looks = looksOf(def, looks)
	return func(alpha float64) float64 { return stat.Groups.Boundary(looks, alpha) }
}

// designOf says how the starts of a comparison are compared. If other prompts or lengths are sent in
// one round than in another, but the same on both sides, then pairs cancel that. Otherwise two groups
// have nearly twice the degrees of freedom.
func designOf(p *plan.Plan, c *plan.Compare) stat.Design {
	if c.Alike(p) {
		return stat.Groups
	}
	return stat.Pairs
}

// once is the error of a test that is the only one to use it.
func once(alpha float64) float64 { return alpha }

// Errors returns the errors at which a threshold of a compared workload passes and fails, if alpha is
// the error that all looks share. staged is false if the comparison is judged once.
func Errors(p *plan.Plan, c *plan.Compare, record *metric.Comparison, w *plan.Workload, alpha float64) (pass, fail float64, staged bool) {
	if c.Restart != plan.RestartLeg || len(record.Planned) < 2 {
		return alpha, alpha, false
	}
	of, workloads := nominal(p, record, c), 0
	for _, other := range c.Workloads(p) {
		if members(p, c, other) > 0 {
			workloads++
		}
	}
	return of(alpha), of(alpha / float64(max(members(p, c, w), 1)*max(workloads, 1))), true
}

// members returns how many members of a comparison a workload has.
func members(p *plan.Plan, c *plan.Compare, w *plan.Workload) int {
	n := 0
	for _, claim := range c.Claims {
		if !claim.MustHold() || !slices.Contains(claim.Workloads, w) {
			continue
		}
		for _, ch := range claim.Changes {
			if ofLevel(ch) && applies(ch, w) {
				n += len(claim.At)
			}
		}
	}
	for _, sla := range w.SLAs {
		if sla.Severity == plan.SeverityError && !p.ControlOnly(c.Candidate, w) {
			n += len(sla.At) * len(sla.Thresholds)
		}
	}
	return n
}

// staged reports whether the comparison was planned to be judged more than once, with fresh servers.
func (x *comparison) staged() bool {
	return x.out.Paired && x.Block.Restart == plan.RestartLeg && x.record != nil && len(x.record.Planned) > 1
}

// errorOf returns the error at which a claim is judged. A claim that tokgate adds is judged once, so
// it has the whole error.
func (x *comparison) errorOf(claim *plan.Claim) float64 {
	if claim == x.usual || slices.Contains(x.failures, claim) {
		return x.whole
	}
	return x.alpha
}

func (x *comparison) own(claim *plan.Claim) bool {
	return claim == x.usual || claim == x.reading || slices.Contains(x.failures, claim)
}

// certain reports which failures of a staged comparison are certain. The members of a workload share
// the error of the workload (Bonferroni), and the workloads share the error of the comparison by
// Holm's rule. forms are rows of default limits, which share an error of their own.
func (x *comparison) certain(rows []*Change, forms map[*Change]bool) []bool {
	out := make([]bool, len(rows))
	of := map[string]int{}
	for _, w := range x.Block.Workloads(x.Plan) {
		if n := members(x.Plan, x.Block, w); n > 0 {
			of[w.Address()] = n
		}
	}
	least, ofForms := map[string]float64{}, 0
	for _, row := range rows {
		if forms[row] {
			ofForms++
		} else if p, ok := least[row.Workload]; !ok || row.pFail < p {
			least[row.Workload] = row.pFail
		}
	}
	var order []string
	for w := range least {
		order = append(order, w)
	}
	slices.SortFunc(order, func(a, b string) int {
		return cmp.Or(cmp.Compare(least[a]*float64(of[a]), least[b]*float64(of[b])), cmp.Compare(a, b))
	})
	all := max(len(of), len(order))
	for k, w := range order {
		some := false
		for i, row := range rows {
			if !forms[row] && row.Workload == w && row.pFail <= x.nominalOf(row.Metric)(x.whole/float64(max(of[w], 1)*(all-k))) {
				out[i], some = true, true
			}
		}
		if !some {
			break
		}
	}
	for i, row := range rows {
		switch {
		case forms[row]:
			out[i] = row.pFail <= x.whole/float64(ofForms)
		case row.implied || row.OfCapacity:
			out[i] = true // judged by its own rule
		}
	}
	return out
}

func (x *comparison) stage() {
	if x.record == nil || len(x.record.Planned) < 2 || x.look == nil {
		return
	}
	s := &Stage{Planned: x.record.Planned, Rounds: x.look.Rounds}
	x.out.Stage = s
	var all standing
	all.changes(x)
	all.thresholds(x.Thresholds)
	s.Open = all.open
	switch hope := x.hope(all.undecided); {
	case all.failed || all.lost || x.slow || len(s.Open) == 0 || s.Rounds >= slices.Max(s.Planned):
		s.Stop = true
	case all.hopeless:
		s.Stop, s.Futile = true, true
	case hope < leastHope:
		s.Stop, s.Futile, s.Hope = true, true, hope
	}
}

// standing is how the members of a comparison stand at a look.
type standing struct {
	failed    bool      // one fails
	lost      bool      // one cannot be judged, and no further round mends that
	hopeless  bool      // one can no longer pass
	open      []string  // names of those that are not decided
	undecided []*Change // those of them that are changes
}

// changes adds the required changes. What tokgate requires by itself is judged when the comparison
// ends, but certain harm ends it.
func (s *standing) changes(x *comparison) {
	for _, c := range x.claims {
		row := &x.out.Changes[c.index]
		switch {
		case row.OfCapacity || row.Severity == verdict.SeverityWarn || c.claim.Severity == plan.SeverityWarn:
		case row.Outcome == verdict.Error:
			s.invalid(row.Name(), row.cause)
		case x.own(c.claim) && !row.OfAnswers:
			s.failed = s.failed || row.Outcome == verdict.Fail && row.pFail <= x.nominal(x.whole)
		case row.Outcome == verdict.Fail:
			s.failed = true
		case row.Outcome == verdict.Inconclusive:
			s.open, s.undecided = append(s.open, row.Name()), append(s.undecided, row)
			s.hopeless = s.hopeless || row.OfAnswers // all its answers were given before the first look
		}
	}
}

// thresholds adds the verdicts on the candidate's thresholds.
func (s *standing) thresholds(list []verdict.Verdict) {
	for _, v := range list {
		switch v.Outcome {
		case verdict.Fail:
			s.failed = true
		case verdict.Error:
			s.invalid(v.Name, v.Cause)
		case verdict.Inconclusive:
			s.open = append(s.open, v.Name)
			s.hopeless = s.hopeless || v.More < 0
		}
	}
}

// invalid adds a member that cannot be judged. If the generator is the cause, further rounds may mend
// it.
func (s *standing) invalid(name string, cause verdict.Cause) {
	s.open, s.lost = append(s.open, name), s.lost || cause != verdict.CauseGenerator
}

// hope estimates the chance that the last look decides the comparison: that all undecided changes
// pass there, or that one of them fails. It assumes that the changes are as large as they seem. It is
// 1 or more if the chance is not known.
func (x *comparison) hope(undecided []*Change) float64 {
	passes, fails := 1.0, 0.0
	unit := x.Block.Unit()
	n, last := x.look.Rounds/unit, slices.Max(x.record.Planned)/unit
	// A session that continued the comparison is not given up at its first look.
	if n < leastFutile || len(x.record.Sessions) > 0 && !slices.ContainsFunc(x.record.Looks, func(look metric.ComparisonLook) bool {
		return look.Rounds > slices.Max(x.record.Sessions) && look.Rounds < x.look.Rounds
	}) {
		return 1
	}
	for _, row := range undecided {
		drift, ok := row.delta.drift()
		if !ok || row.delta.counts != nil || row.delta.paired != nil {
			continue
		}
		m := 1
		for _, w := range x.Block.Workloads(x.Plan) {
			if w.Address() == row.Workload {
				m = max(members(x.Plan, x.Block, w), 1)
			}
		}
		of, at := x.nominalOf(row.Metric), looksOf(row.Metric, []int{n, last})
		pass, fail := decides(drift, row.limit, at[0], at[len(at)-1], of(x.whole), of(x.whole/float64(m)))
		passes, fails = min(passes, pass), max(fails, fail)
	}
	return passes + fails
}

// decides returns the chances that a change passes or fails its limit at the last look, after last
// observations a side, if it looks like drift after n. The errors pass and fail are those of the
// tests at that look.
func decides(drift stat.Drift, limit float64, n, last int, pass, fail float64) (passes, fails float64) {
	moves := drift.Spread * math.Sqrt(2*(1/float64(n)-1/float64(last)))
	tail := func(distance float64) float64 {
		if moves <= 0 {
			return map[bool]float64{true: 1}[distance < 0]
		}
		return 0.5 * math.Erfc(distance/moves/math.Sqrt2)
	}
	return tail(drift.Diff + drift.Half(last, pass) - limit), tail(limit + drift.Half(last, fail) - drift.Diff)
}
