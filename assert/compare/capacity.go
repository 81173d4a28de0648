package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// capacity checks whether the candidate is certified at the control's capacity minus the tolerance.
func (x *comparison) capacity(w *plan.Workload) {
	for _, claim := range x.Block.Claims {
		if !slices.Contains(claim.Workloads, w) {
			continue
		}
		for _, ch := range claim.Changes {
			if !ofCapacity(ch) || !applies(ch, w) {
				continue
			}
			row := Change{Workload: w.Address(), Level: "capacity", OfCapacity: true, Metric: ch.Metric, Shift: x.unmeasured(false),
				Limit:   metric.Some(ch.Limit),
				Improve: claim.Improve, Severity: verdict.Severity(claim.Severity), judging: judging{bound: ch}}
			x.certified(&row, w, ch.Limit)
			x.claims = append(x.claims, claimed{len(x.out.Changes), claim, ch})
			x.out.Changes = append(x.out.Changes, row)
		}
	}
}

// CapacityTarget is the smallest load at which a candidate must be certified: ⌈control·(1+change)⌉.
// control is the control's certified capacity, and change is the allowed change, as a share of
// control.
func CapacityTarget(control int, change float64) int {
	// 50·1.1 is 55.00000000000001 in binary. Without the subtraction, Ceil would return 56.
	return max(1, int(math.Ceil(float64(control)*(1+change)-1e-9)))
}

func (x *comparison) certified(row *Change, w *plan.Workload, change float64) {
	a, b := x.Limit(x.control, x.address, w), x.Limit(x.Run, x.out.Candidate, w)
	row.Control, row.Candidate = metric.None("unknown"), metric.None("unknown")
	unknown := func(side string, l Limit) bool {
		why := "there was no search"
		switch {
		case l.Capacity == nil:
		case l.Problem != "":
			why = l.Problem
		case l.Pass == 0 && l.Fail == 0:
			why = cmp.Or(l.Reason, "no level was certified")
		default:
			return false
		}
		row.Outcome, row.Why = verdict.Error, fmt.Sprintf("the capacity of the %s is unknown: %s", side, verdict.OneLine(why))
		row.Message = row.Why
		return true
	}
	if unknown("control", a) || unknown("candidate", b) {
		return
	}
	row.Metric.Unit = a.Over.Unit()
	if a.Pass == 0 {
		row.fromNothing(a, b, change)
		return
	}
	target := CapacityTarget(a.Pass, change)
	row.Control = metric.Some(a.Load(a.Pass))
	row.Message = fmt.Sprintf("capacity: the control holds %s; the candidate must hold %s and is certified to hold %s", a.Named(a.Pass), a.Named(target), b.Named(b.Pass))
	if b.Pass > 0 {
		row.Candidate = metric.Some(b.Load(b.Pass))
		row.Change = metric.Some(float64(b.Pass)/float64(a.Pass) - 1)
		row.Low = row.Change
		row.Certifiable = metric.Some(min(0, row.Change.V))
	}
	if b.Fail > 0 {
		row.High = metric.Some(float64(b.Fail-1)/float64(a.Pass) - 1)
		row.Message += fmt.Sprintf(", fails at %s", b.Named(b.Fail))
	}
	switch {
	case b.Pass >= target:
		row.Outcome = verdict.Pass
	case b.Fail > 0 && b.Fail <= target, b.Kind == metric.CapacityServerCap && b.Pass < target:
		row.Outcome = verdict.Fail
	default:
		row.Outcome = verdict.Inconclusive
		row.Needs = fmt.Sprintf("needs a larger budget, or more requests, to decide whether the candidate holds %s", a.Named(target))
	}
	row.pFail = 0 // no test of its own: the search already limits the error of its probes
	if b.Fail > 0 && b.Fail <= a.Pass {
		row.Direction = Worse
	} else if a.Fail > 0 && b.Pass >= a.Fail {
		row.Direction = Better
	}
	if a.Kind == metric.CapacityAtLeast {
		row.Notes = append(row.Notes, fmt.Sprintf("the control passed at every load that was tried, so its capacity is at least %s", a.Named(a.Pass)))
	}
}

// fromNothing judges a change of capacity if the control passed at no level. The control's true
// capacity may then be any load below the lowest level. The candidate's target is computed from the
// highest of these loads. A candidate that is certified at the control's lowest level is better.
func (c *Change) fromNothing(a, b Limit, change float64) {
	nowhere := fmt.Sprintf("the control passed at no load that was tried (%s)", a.Line)
	target := CapacityTarget(a.Fail-1, change)
	c.Change, c.pFail = metric.None(nowhere), 0
	if b.Pass > 0 {
		c.Candidate = metric.Some(b.Load(b.Pass))
	}
	c.Message = fmt.Sprintf("capacity: %s; the candidate is certified to hold %s", nowhere, b.Named(b.Pass))
	if b.Fail > 0 {
		c.Message += fmt.Sprintf(", fails at %s", b.Named(b.Fail))
	}
	if b.Pass >= a.Fail {
		c.Direction = Better
	}
	switch {
	case b.Pass >= target:
		c.Outcome = verdict.Pass
	case !c.Improve:
		c.inapplicable(nowhere)
	case b.Fail > 0 && b.Fail <= 1:
		c.Outcome = verdict.Fail
	default:
		c.Outcome = verdict.Inconclusive
		c.Needs = fmt.Sprintf("needs a capacity search that tries loads below %s", a.Named(a.Fail))
	}
}
