package compare

import (
	"slices"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// usualOfAnswers are the default limits on how a candidate's natural answers may change. A change
// beyond its limit warns. A change of the answers' form that is certainly beyond it fails.
var usualOfAnswers = []plan.ChangeBound{
	{Metric: metric.MustLookup("empty"), Stat: metric.Stat{Kind: metric.Rate}, Limit: 0.01, Points: true, Text: "rate +1pp"},
	{Metric: metric.MustLookup("invalid_text"), Stat: metric.Stat{Kind: metric.Rate}, Limit: 0.01, Points: true, Text: "rate +1pp"},
	{Metric: metric.MustLookup("repetition"), Stat: metric.Stat{Kind: metric.Rate}, Limit: 0.01, Points: true, Text: "rate +1pp"},
	{Metric: metric.MustLookup("answer_tokens"), Stat: metric.Stat{Kind: metric.Mean}, Limit: 0.10, TwoSided: true, Text: "mean +-10%"},
}

// unsettled reports whether a change is inconclusive although its point estimate is within the
// limit.
func (c *Change) unsettled(alpha float64) bool {
	mid, _, _, ok := c.delta.bounds(alpha)
	return c.Outcome == verdict.Inconclusive && ok && mid <= c.limit
}

// onForm reports whether a claim is a default limit on the form of answers, such as empty.
func (x *comparison) onForm(c claimed) bool {
	return (c.claim == x.usual || c.claim == x.reading) && c.change.Metric.OfAnswers
}

// showOnly removes the limit of a change. The report then shows the change without a verdict.
func (c *Change) showOnly() {
	c.Limit, c.Outcome, c.bound, c.Needs = metric.None(""), verdict.Skipped, nil, ""
	c.Message = c.line()
}

// implied returns the default claim on natural answers. It leaves out metrics that the plan itself
// limits. It returns nil if no metric remains, or if no workload has natural answers.
func implied(p *plan.Plan, c *plan.Compare) *plan.Claim {
	out := &plan.Claim{Severity: plan.SeverityWarn, Range: c.Range}
	for _, w := range c.Workloads(p) {
		if !w.Output.Natural {
			continue
		}
		out.Workloads = append(out.Workloads, w)
		for _, level := range w.Levels() {
			if !slices.Contains(out.At, level.Name) {
				out.At = append(out.At, level.Name)
			}
		}
	}
	for _, ch := range usualOfAnswers {
		bounded := slices.ContainsFunc(c.Claims, func(claim *plan.Claim) bool {
			return slices.ContainsFunc(claim.Changes, func(o *plan.ChangeBound) bool { return o.Metric.Name == ch.Metric.Name })
		})
		if ch.Range = c.Range; !bounded {
			out.Changes = append(out.Changes, &ch)
		}
	}
	if len(out.Workloads) == 0 || len(out.Changes) == 0 {
		return nil
	}
	return out
}
