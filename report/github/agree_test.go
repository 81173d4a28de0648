package github

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/report"
)

// The exit code, JUnit, the annotations and the outputs of a step agree with each other, whatever
// the verdicts are.
func TestOutputsAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	server := &plan.Server{Name: "s"}
	w := &plan.Workload{Name: "w", Servers: []*plan.Server{server}, Loads: []*plan.Load{{Kind: metric.ClosedLoop, Levels: []plan.Level{{Name: "4", N: 4}}}}}
	red := regexp.MustCompile(`<(failure|error)[ >]`)
	kinds := []verdict.Kind{verdict.KindSLA, verdict.KindAssert, verdict.KindCompare, verdict.KindServer, verdict.KindCapacity}
	outcomes := []verdict.Outcome{verdict.Pending, verdict.Skipped, verdict.Pass, verdict.Pass, verdict.Pass, verdict.Inconclusive, verdict.Fail, verdict.Error}
	seen := map[int]int{}
	for range 3000 {
		// The policies of the plan and the workload have no effect, because each verdict has its
		// own policy.
		policies := []plan.OnInconclusive{plan.Stop, plan.Warn}
		p := &plan.Plan{Path: "p.hcl", Servers: []*plan.Server{server}, Workloads: []*plan.Workload{w}}
		p.Gate.OnInconclusive, w.Policy.OnInconclusive = policies[rng.IntN(2)], policies[rng.IntN(2)]
		run := &metric.Run{ID: "1", Plan: "p.hcl", Servers: []*metric.ServerRun{{Address: "s"}},
			Levels: []*metric.Level{{Server: "s", Workload: "w", Name: "4", Kind: metric.ClosedLoop, N: 4}}}
		v := assert.Verdicts{Outcome: verdict.Pass, List: []verdict.Verdict{{Kind: verdict.KindLoad, Server: "s", Workload: "w", Level: "4", Name: "load at 4", Outcome: verdict.Pass, Severity: verdict.SeverityError}}}
		for range rng.IntN(4) {
			x := verdict.Verdict{Kind: kinds[rng.IntN(len(kinds))], Name: "x", Outcome: outcomes[rng.IntN(len(outcomes))], Message: "m", Warn: rng.IntN(2) == 0,
				Severity: []verdict.Severity{verdict.SeverityError, verdict.SeverityWarn}[rng.IntN(2)]}
			switch x.Kind {
			case verdict.KindAssert:
			case verdict.KindServer:
				x.Server = "s"
			default:
				x.Server, x.Workload = "s", "w"
			}
			if x.Kind == verdict.KindCompare && rng.IntN(2) == 0 {
				x.Workload = "" // a verdict on the comparison as a whole
			}
			v.List = append(v.List, x)
			v.Outcome = max(v.Outcome, x.Counts())
		}
		interrupted := rng.IntN(10) == 0
		if interrupted {
			run.Stopped = "interrupted"
		}
		code := v.ExitCode(interrupted)
		seen[code]++
		doc := report.New(run, p, v, report.Meta{ExitCode: code})
		var junit bytes.Buffer
		must.Do(t, report.JUnit(&junit, doc))
		errors := 0
		for _, a := range Annotations(doc, Workspace{}) {
			if !a.Warning {
				errors++
			}
		}
		if n := len(red.FindAll(junit.Bytes(), -1)); (code == 0) != (n == 0) || (code == 0) != (errors == 0) || (code == 0) != (Outputs([]*report.Document{doc}, code, Workspace{})[0].Value == "pass") {
			t.Fatalf("exit code %d, %d red test cases, %d annotated errors\n%+v\n%s", code, n, errors, v.List, junit.Bytes())
		}
	}
	for _, code := range []int{0, 1, 3, 4, 130} {
		must.Hold(t, seen[code] >= 30, "exit code %d came %d times: it was not tried", code, seen[code])
	}
}
