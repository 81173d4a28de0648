package main

import (
	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/strength"
)

func stretched(p *plan.Plan, run *metric.Run, opts assert.Options) strength.Try {
	recording := strength.Record(p, run)
	return func(r *strength.Regression, seed int) (assert.Outcome, bool, error) {
		longer, planted := recording.Stretch(r, seed)
		if !planted {
			return assert.Skipped, false, nil
		}
		return assert.Judge(p, longer, opts).Outcome, true, nil
	}
}

// mostTold is the largest number of requests of a run whose report shows planted regressions.
// tokgate judges the run again for each regression, which takes too long for larger runs.
const mostTold = 10_000

// requests counts the requests of a run. It stops counting once there are more than mostTold.
func requests(run *metric.Run) (n int) {
	for _, l := range run.Levels {
		if l.Of != "" {
			continue
		}
		for _, r := range l.Rounds {
			if n += max(r.Due, len(r.Samples)); n > mostTold {
				return n
			}
		}
	}
	return n
}

// For this it changes copies of the run's recording, as if the server were worse, and judges them.
// It returns nil if the plan requires nothing, or if the run is not complete.
func findStrength(p *plan.Plan, run *metric.Run, judged assert.Verdicts, opts assert.Options) *report.Strength {
	why := strength.Unstretchable(run)
	switch {
	case p.Gate.MeasureOnly || judged.Partial || run.Stopped != "":
		return nil
	case judged.Outcome != assert.Pass:
		return &report.Strength{Says: "The unchanged server does not pass, so no regression was planted.", Planted: []report.Planted{}}
	case why == "" && requests(run) > mostTold:
		why = "the run is long"
	}
	if why != "" {
		return &report.Strength{Says: "No regression was planted: " + why + ". `tokgate strength` shows what the gate notices.", Planted: []report.Planted{}}
	}
	result, err := strength.Measure(strength.Told(), 1, stretched(p, run, opts))
	if err != nil {
		return nil // cannot happen: the function stretched returns no error
	}
	result.Recorded = true
	out := &report.Strength{Says: result.Headline(), Basis: result.Basis(), Planted: []report.Planted{}}
	for _, f := range result.Findings {
		if !f.Absent {
			out.Planted = append(out.Planted, report.Planted{Regression: f.String(), Passed: f.Passed,
				Undecided: f.Undecided, Failed: f.Failed})
		}
	}
	return out
}
