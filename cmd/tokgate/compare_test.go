package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/server"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan/decode"
)

// plansDir is the folder of the plans that ship with tokgate.
var plansDir = filepath.Join("..", "..", "plans")

// The shipped comparisons give the results that comments in their plans promise. Judging a
// recording of such a comparison gives the same result again.
func TestLongShippedComparisons(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mtp := filepath.Join(dir, "mtp")
	r := tokgate(t, "run", "--simulate", "--out", mtp, filepath.Join(plansDir, "compare.hcl"))
	const answer = `mtp: yes for test["chat"], test["single_decode"] and test["stress"]; no for test["long_prefill"]`
	r.check(t, verdict.ExitPass, answer, "flags.speculative-config: not set →")
	for name, says := range map[string]string{
		"report.md": "mtp: yes for", "junit.xml": "mtp: yes for", "results.json": "mtp: yes for",
		"report.html": `test long_prefill</th><td data-label="Level">4</td><td data-label="Answer">worse</td>`,
	} {
		text := read(t, filepath.Join(mtp, name))
		must.Hold(t, strings.Contains(text, "decode") && strings.Contains(text, says), "%s says nothing of the comparison", name)
	}
	tokgate(t, "judge", mtp, filepath.Join(plansDir, "compare.hcl")).check(t, verdict.ExitPass, answer)

	// Without a plan, the flag --changed lists in what the servers may differ. Any other difference
	// is an error.
	tokgate(t, "compare", mtp, mtp).check(t, verdict.ExitError, "the servers differ in flags.speculative-config, but `changed` does not list it")
	tokgate(t, "compare", mtp, mtp, "--changed", "flags", "--tolerate", "throughput=-2%").
		check(t, verdict.ExitFail, `no for test["long_prefill"]`, "FAIL    compare.mtp.tolerate.throughput at 4")
	junit := filepath.Join(dir, "c.xml")
	tokgate(t, "compare", mtp, mtp, "--changed", "flags", "--tolerate", "throughput=-20%", "--improve", "success=rate +0pp", "--junit", junit, "--html", filepath.Join(dir, "c.html")).
		check(t, verdict.ExitInconclusive, "UNSURE  compare.mtp.improve.success.rate")
	wellFormed(t, junit)
	for _, tt := range []struct{ flag, value, says string }{
		{"--tolerate", "ttft p95 +10%", "is not metric=change"},
		{"--tolerate", "ttft=+10%", "needs the statistic to compare"},
		{"--improve", "tfft=mean -10%", `Did you mean "ttft"?`},
		{"--confidence", "2", "above 0.5 and below 1"},
		{"--candidate", "nobody", "has no server nobody"},
	} {
		tokgate(t, "compare", mtp, mtp, tt.flag, tt.value).check(t, verdict.ExitPlan, tt.says)
	}
	tokgate(t, "compare", mtp).check(t, verdict.ExitPlan, "two results folders")

	upgrade := filepath.Join(plansDir, "upgrade.hcl")
	good, bad := filepath.Join(dir, "good"), filepath.Join(dir, "bad")
	tokgate(t, "run", "--simulate", "--out", good, upgrade).check(t, verdict.ExitPass, "upgrade: no meaningful difference for chat")
	tokgate(t, "run", "--simulate", "--out", bad, "--var", "next=profiles/slower.json", upgrade).
		check(t, verdict.ExitFail, "upgrade: no for chat", "FAIL    compare.upgrade.tolerate.throughput at 8")
	// compare cannot pair the rounds of two separate runs, and says so.
	tokgate(t, "compare", good, bad, "--control", "today", "--candidate", "next", "--changed", "profile").
		check(t, verdict.ExitFail, "unpaired: drift not excluded", "against a record")
}

// The shipped comparison passes a candidate that is as good as the control in at least four runs of
// five. It never passes a worse candidate. Each run has new noise; fixed seeds make the counts
// repeatable.
func TestLongShippedGatePassesWhatIsUnchanged(t *testing.T) {
	t.Parallel()
	count := func(next string, runs int) map[verdict.Outcome]int {
		out := map[verdict.Outcome]int{}
		for i := range runs {
			p, diags := decode.File(decode.Options{Path: filepath.Join(plansDir, "upgrade.hcl"), Inputs: []decode.Input{{Var: "next=profiles/" + next + ".json"}}})
			must.Need(t, !diags.HasErrors(), "%v", diags)
			for _, s := range p.Servers {
				s.Simulator.Seed = int64(1000 + i)
			}
			c := clock.NewVirtual()
			run := must.Get(exec.Run(context.Background(), exec.Config{Plan: p, Clock: c, Observer: observers(), Run: metric.Run{Simulated: true},
				Launch: (&server.Virtual{Clock: c, Dir: plansDir, Seldom: time.Minute}).Launch}))(t)
			out[assert.Judge(p, run, assert.Options{}).Outcome]++
		}
		return out
	}
	got := count("today", 10)
	must.Hold(t, got[verdict.Pass] >= 8 && got[verdict.Fail] <= 0, "unchanged: %v, want at least 8 of 10 to pass", got)
	if got := count("slower", 3); got[verdict.Pass] > 0 || got[verdict.Fail] < 3 {
		t.Errorf("worse: %v", got)
	}
}

// The control may be a recorded run, or the server of the base branch.
func TestLongOtherControls(t *testing.T) {
	t.Parallel()
	const source = `server "next" {
  simulator { profile = "PROFILE" }
}
workload "chat" {
  input_tokens  = 256
  output_tokens = { mean = 16, jitter = "10%" }
  load {
    concurrency = 4
    requests    = 400
    seeds       = [1, 2, 3, 4, 5, 6, 7, 8]
  }
  SLA
}
`
	at := func(dir, profile, sla, rest string) string {
		t.Helper()
		text := strings.NewReplacer("PROFILE", profile, "SLA", sla).Replace(source) + rest
		path := filepath.Join(dir, "plan.hcl")
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	dir, base := t.TempDir(), t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(dir, ".git"), 0o755))
	const sla = `sla { ttft = "p95 < 5s" }`
	recorded := filepath.Join(dir, "perf")
	tokgate(t, "run", "--simulate", "--out", recorded, at(dir, "default", sla, "")).check(t, verdict.ExitPass)

	// compare refuses to compare a run with itself, wherever it is stored: every change would pass.
	again := filepath.Join(t.TempDir(), "again")
	must.Do(t, os.CopyFS(again, os.DirFS(recorded)))
	tokgate(t, "compare", recorded, recorded).check(t, verdict.ExitPlan, "nothing to compare it with", "name two runs")
	tokgate(t, "compare", recorded, again).check(t, verdict.ExitPlan, "hold the same run")

	stored := at(dir, "default", sla, `compare "night" {
  control   = baseline("perf")
  candidate = server.next
  tolerate { ttft = "p95 +40%" }
}
`)
	tokgate(t, "run", "--simulate", "--out", filepath.Join(dir, "r"), stored).check(t, verdict.ExitPass, "unpaired: drift not excluded", "compare.night.tolerate.ttft.p95 at 4")
	tokgate(t, "judge", filepath.Join(dir, "r"), stored).check(t, verdict.ExitPass, "unpaired")
	must.Do(t, os.RemoveAll(recorded))
	tokgate(t, "run", "--simulate", "--out", filepath.Join(dir, "r"), stored).check(t, verdict.ExitPlan, "the control of compare.night")

	const branch = `compare "branch" {
  control   = base.server.next
  candidate = server.next
  changed   = ["profile"]
  tolerate { ttft = "p95 +15%" }
}
`
	slower := filepath.Join(dir, "slower.json")
	must.Do(t, os.WriteFile(slower, []byte(read(t, filepath.Join(plansDir, "profiles", "slower.json"))), 0o644))
	out := filepath.Join(dir, "b")
	path := at(dir, slower, sla, branch)
	tokgate(t, "validate", path).check(t, verdict.ExitPass)
	tokgate(t, "run", "--simulate", "--out", out, path).check(t, verdict.ExitPlan, "add a checkout of that branch with --base")
	tokgate(t, "run", "--simulate", "--out", out, "--base", filepath.Join(base, "absent"), path).check(t, verdict.ExitPlan, "absent", "is not a folder")
	// The base branch does not have the plan. The comparison is skipped, and the thresholds of the
	// sla block still decide.
	tokgate(t, "run", "--simulate", "--out", out, "--base", base, path).check(t, verdict.ExitPass, "the base branch has no plan plan.hcl", "sla.ttft.p95 at 4")
	at(base, "default", sla, "")
	tokgate(t, "run", "--simulate", "--out", out, "--base", base, path).check(t, verdict.ExitPass, "compare branch: next against base.next", "server base.next")
	// If the server and the plan are the same on the base branch, the comparison passes and sends
	// no requests.
	tokgate(t, "run", "--simulate", "--out", out, "--base", base, at(dir, "default", "", branch)).
		check(t, verdict.ExitPass, "nothing changed: server.next is the same on the base branch", "PASS")
	tokgate(t, "run", "--simulate", "--out", out, "--base", base, at(dir, "default", sla, branch)).
		check(t, verdict.ExitPass, "nothing changed", "sla.ttft.p95 at 4")
}
