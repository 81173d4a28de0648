package main

import (
	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/record"
)

// It examines their answers again, because the plan may require other things now.
func baselines(p *plan.Plan) (map[string]*metric.Run, error) {
	out := map[string]*metric.Run{}
	for _, c := range p.Compares {
		switch {
		case c.Control.Base && c.Control.Server == nil && c.Skip == plan.SkipNoBase:
			return nil, usageError("for example: --base ../main", "compare.%s compares with the base branch: add a checkout of that branch with --base", c.Name)
		case c.Control.Baseline != "":
			run, _, err := record.Read(c.Control.Baseline)
			if err != nil {
				return nil, usageError("baseline(…) names a folder that `tokgate run` wrote, relative to the plan", "the control of compare.%s: %v", c.Name, err)
			}
			if run.Recording == "" {
				return nil, usageError("record it again with `tokgate run`", "the recording of the control of compare.%s is from an older version and has no checksums, so damage would not be noticed", c.Name)
			}
			assert.Reread(p, run)
			out[c.Name] = run
		}
	}
	return out, nil
}
