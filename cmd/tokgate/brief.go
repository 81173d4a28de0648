package main

import (
	"fmt"
	"math"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/plan"
)

// leastLoad is the shortest load of a level without a warning.
const leastLoad = time.Minute

// brief warns of levels whose load takes less than a minute on a server that meets its limits. It
// gives at most one warning for a plan. It computes the time from the load's duration, or from the
// thresholds on the time of a request.
func brief(p *plan.Plan) hcl.Diagnostics {
	cases := exec.Cases(p)
	var first *exec.Case
	short, longest, confidence := 0, time.Duration(0), 0.0
	for _, c := range cases {
		took, ok := longestLoad(c)
		if !ok || took >= leastLoad {
			continue
		}
		if short++; first == nil {
			first = &c
		}
		longest, confidence = max(longest, took), max(confidence, c.Workload.Policy.Confidence)
	}
	if short == 0 || p.Gate.MeasureOnly {
		return nil
	}
	more := `Set a duration, such as "2m", instead of requests`
	if first.Level.Speedup > 0 {
		more = "Replay a longer stretch of the trace"
	}
	unseen := time.Duration(float64(longest) / -math.Log(1-confidence))
	return hcl.Diagnostics{{
		Severity: hcl.DiagWarning,
		Summary:  "Less than a minute of load",
		Detail: fmt.Sprintf("%d of %s end within %s on a server that meets its limits. An event rarer than once in %s, such as a freeze, may be missed. %s.",
			short, count(len(cases), "case"), roundTime(longest), roundTime(unseen), more),
		Subject: first.Load.Range.Ptr(),
	}}
}
