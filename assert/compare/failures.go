package compare

import (
	"slices"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// moreFailed is by how much a candidate's share of failed requests may exceed the control's, if the
// plan does not say it.
const moreFailed = 0.01

// succeeding returns the default claims on failed requests, one for each level of each workload. A
// candidate could meet a limit on another metric by refusing requests. A plan that tolerates a
// change of success says itself how many may fail. Means and gaps have a stricter rule; see the
// method blind.
func succeeding(p *plan.Plan, c *plan.Compare) []*plan.Claim {
	var out []*plan.Claim
	for _, w := range c.Workloads(p) {
		for _, level := range w.Levels() {
			if by, severity := implies(c, w, level.Name); by != nil {
				ch := &plan.ChangeBound{Metric: metric.MustLookup("success"), Stat: metric.Stat{Kind: metric.Rate}, Limit: -moreFailed,
					Points: true, Text: "rate -1pp", Range: by.Range}
				out = append(out, &plan.Claim{Workloads: []*plan.Workload{w}, At: []string{level.Name}, Changes: []*plan.ChangeBound{ch},
					Severity: severity, Range: by.Range})
			}
		}
	}
	return out
}

// implies returns the first change that implies a limit on failed requests at a level, of those that
// fail the gate if there is one. It returns nil if there is none, or if a claim that is at least as
// severe limits success.
func implies(c *plan.Compare, w *plan.Workload, level string) (by *plan.ChangeBound, severity plan.Severity) {
	var success plan.Severity
	for _, claim := range c.Claims {
		if !slices.Contains(claim.Workloads, w) || !slices.Contains(claim.At, level) {
			continue
		}
		for _, ch := range claim.Changes {
			fails := claim.Severity != plan.SeverityWarn
			switch {
			case !ofLevel(ch) || !applies(ch, w):
			case ch.Metric.Name == "success":
				if !claim.Improve && (success == "" || fails) {
					success = claim.Severity
				}
			case ch.Metric.Source != metric.Starts && !ch.Metric.IgnoresFailures(ch.Stat) &&
				(by == nil || fails && severity == plan.SeverityWarn):
				by, severity = ch, claim.Severity
			}
		}
	}
	if success != "" && (success != plan.SeverityWarn || severity == plan.SeverityWarn) {
		return nil, ""
	}
	return by, severity
}

// fewMore decides the default limit on failed requests where the test does not. A certain change for
// the worse fails. Without certainty the shares in this run decide, so that the limit never needs
// more requests than the comparison has: the candidate passes unless its share is larger by more
// than the limit, and that is at least two requests.
func (m matched) fewMore(c *Change) {
	c.implied = true
	if c.Outcome == verdict.Inconclusive {
		control, candidate := failedOf(m.control), failedOf(m.candidate)
		larger := candidate.share() - control.share()
		if larger <= moreFailed || larger*candidate.all < 2 {
			c.Outcome, c.Needs = verdict.Pass, ""
			c.Message = c.line()
		}
	}
	if c.Outcome == verdict.Fail || c.Outcome == verdict.Inconclusive {
		c.Notes = append(c.Notes, "tokgate adds this limit because a candidate must not meet the others by refusing requests. To allow more failures, add success to a tolerate block")
	}
}

// failed counts the requests of a level that failed, and all of them.
type failed struct{ bad, all float64 }

func (f failed) share() float64 { return f.bad / max(f.all, 1) }

func failedOf(l *metric.Level) failed {
	var out failed
	for _, r := range l.Rounds {
		samples := r.MeasuredSamples()
		due := max(r.Due, len(samples))
		good := 0
		for _, s := range samples {
			if s.Completed() {
				good++
			}
		}
		out.bad, out.all = out.bad+float64(due-good), out.all+float64(due)
	}
	return out
}
