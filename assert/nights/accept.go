package nights

import (
	"fmt"
	"math"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// of reports whether an accept block covers a series.
func of(a *metric.Accept, t metric.Trend) bool {
	level := t.Level
	if t.Metric == limitMetric {
		level = ""
	}
	return a.Covers(metric.AcceptNights, t.Workload, level, t.Metric, t.Stat)
}

// allowed returns how much worse an accept block lets the lane be, on the lane's scale.
func (l *judgedLane) allowed(a *metric.Accept) float64 {
	if l.src.scale.log {
		return math.Abs(math.Log1p(a.Limit))
	}
	return math.Abs(a.Limit)
}

// accepted reports whether an accept block of the last night lets the lane's change for the worse pass.
// If so, it sets the outcome and the message.
func (l *judgedLane) accepted(t *Trend, nights []metric.Night) bool {
	accepts := nights[len(nights)-1].Accepts
	for i := range accepts {
		a := &accepts[i]
		if !of(a, l.src.key) {
			continue
		}
		if l.beyond(l.allowed(a)) {
			t.Message += fmt.Sprintf("; this is beyond %s, which accept.%s accepts", a.Text, a.Name)
			return false
		}
		t.Outcome, t.Accepted = verdict.Pass, a.Name
		t.Message += "; " + a.Holds("no change")
		return true
	}
	return false
}

// beyondErrors is how far the last nights must be beyond what is accepted, in standard errors. All
// nights since the change together need no margin.
const beyondErrors = 2

// beyond reports whether the lane is worse than what is accepted, relative to the reference: all nights
// since the change, or the last two, three or five, which show that a change has grown.
func (l *judgedLane) beyond(allowed float64) bool {
	var worse []float64 // since the change, the last night first
	for i := len(l.at) - 1; i >= 0 && l.at[i] >= l.last.From; i-- {
		worse = append(worse, float64(l.worse)*(l.values[l.at[i]]-l.last.Expected.Center))
	}
	sum := 0.0
	for i, x := range worse {
		sum += x
		n := float64(i + 1)
		switch i + 1 {
		case 2, 3, 5:
			if sum/n > allowed+beyondErrors*l.last.Expected.Sigma/math.Sqrt(n) {
				return true
			}
		}
	}
	return len(worse) == 0 || sum/float64(len(worse)) > allowed
}

// remark says which of the last night's accept blocks are not needed or too wide.
func (r *Result) remark(accepts []metric.Accept) {
	for i := range accepts {
		a := &accepts[i]
		covered, needed, wide := false, false, false
		for _, t := range r.Trends {
			if !of(a, t.Trend) || t.Tonight == nil {
				continue
			}
			covered = true
			needed = needed || t.Accepted == a.Name || t.Outcome == verdict.Fail
			shift := math.Abs(t.Tonight.Shift)
			if t.Unit != metric.Ratio {
				shift = math.Abs(math.Expm1(t.Tonight.Shift))
			}
			wide = wide || t.Accepted == a.Name && a.Wide(shift, math.Abs(a.Limit))
		}
		switch {
		case covered && !needed:
			r.Remarks = append(r.Remarks, fmt.Sprintf("accept.%s is no longer needed: no series that it covers is worse. Remove the block", a.Name))
		case wide:
			r.Remarks = append(r.Remarks, fmt.Sprintf("accept.%s is too wide: %s is more than twice the change that was measured. Accept less", a.Name, a.Text))
		}
	}
}
