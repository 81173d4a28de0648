package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/record"
)

// nearPlan compares two servers that differ by about as much as is tolerated, so that few starts do
// not decide.
const nearPlan = `server "today" {
  simulator { profile = "today.json" }
}
server "next" {
  simulator { profile = "next.json" }
}
workload "chat" {
  input_tokens  = 512
  output_tokens = 32
  load {
    concurrency = 8
    requests    = 12 * 50
  }
}
compare "upgrade" {
  control   = server.today
  candidate = server.next
  changed   = ["profile"]
  rounds    = 12
  tolerate { e2e = "mean +5%" }
}
`

func nearFolder(t *testing.T) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{
		"plan.hcl":   nearPlan,
		"today.json": `{ "name": "today", "description": "x", "base": "default", "noise": { "start_cv": 0.03 } }`,
		"next.json":  `{ "name": "next", "description": "x", "base": "default", "decode": { "base_ms": 5.8, "per_seq_ms": 0.62, "per_ktoken_ms": 0.05 }, "noise": { "start_cv": 0.03 } }`,
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return dir, filepath.Join(dir, "plan.hcl")
}

// A comparison that a short budget left undecided goes on at its next look, in the same rounds.
// Judging the recording of both sessions gives the same result.
func TestContinue(t *testing.T) {
	t.Parallel()
	dir, file := nearFolder(t)
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	const salt = "--salt=2"
	tokgate(t, "run", "--simulate", salt, file, "--out", first).check(t, verdict.ExitInconclusive)
	before, _, err := record.Read(first)
	must.Do(t, err)
	old := before.Comparisons[0]
	at := old.Looks[len(old.Looks)-1].Rounds
	must.Need(t, at < 12, "the comparison was looked at for the last time, after %d rounds", at)
	on := tokgate(t, "run", "--simulate", salt, file, "--continue", first, "--out", second)
	run, problems, err := record.Read(second)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	c := run.Comparisons[0]
	if len(c.Sessions) != 1 || c.Sessions[0] != at || len(c.Looks) <= len(old.Looks)+1 && c.Looks[len(c.Looks)-1].Rounds < 12 {
		t.Errorf("sessions %v after %d rounds, looks %+v: the first look of a session must not give up", c.Sessions, at, c.Looks)
	}
	on.check(t, on.code, "each session has a level of its own")
	tokgate(t, "judge", second, file).check(t, on.code)
	for i, l := range run.Levels {
		must.Need(t, len(l.Rounds) == c.Looks[len(c.Looks)-1].Rounds, "%d rounds on %s, looks %+v", len(l.Rounds), l.Server, c.Looks)
		for k, r := range l.Rounds {
			if r.Index != k+len(l.Voided) && len(l.Voided) == 0 || r.Leg.Start != k || k > 0 && r.Start <= l.Rounds[k-1].Start {
				t.Errorf("%s: round %d has index %d, start %d", l.Server, k, r.Index, r.Leg.Start)
			}
		}
		got, want := l.Rounds[0].Samples[0].End, before.Levels[i].Rounds[0].Samples[0].End
		must.Hold(t, got == want, "%s: the first request ended at %v, before at %v", l.Server, got, want)
	}

	// A session that ended at its first look may only do so because it was decided, or for the last time.
	if last := c.Looks[len(c.Looks)-1]; last.Rounds == 12 || last.Outcome != metric.Inconclusive {
		tokgate(t, "run", "--simulate", salt, file, "--continue", second).check(t, verdict.ExitPlan, "cannot be continued")
	}
	changed := filepath.Join(dir, "changed.hcl")
	must.Do(t, os.WriteFile(changed, []byte(strings.ReplaceAll(nearPlan, "+5%", "+6%")), 0o644))
	tokgate(t, "run", "--simulate", salt, changed, "--continue", first).check(t, verdict.ExitPlan, "the plan, or a variable of it, is another")
	tokgate(t, "run", "--simulate", file, "--continue", first).check(t, verdict.ExitPlan, "another salt: --salt 2")
	tokgate(t, "run", "--simulate", salt, file, "--continue", filepath.Join(dir, "none")).check(t, verdict.ExitError, "none")
	tokgate(t, "run", "--simulate", filepath.Join(plansDir, "demo.hcl"), "--continue", first).check(t, verdict.ExitPlan, "can be continued")
}

// Only the same run on the same machine goes on, and only within a day.
func TestContinueOtherRun(t *testing.T) {
	ended := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	before := metric.Run{Tool: "v1", PlanHash: "p", Host: "gpu-0", Commit: "c", Started: ended.Add(-time.Hour), End: time.Hour}
	for _, row := range []struct {
		name   string
		change func(*metric.Run)
		says   string // "": it may go on
	}{
		{"the same", func(*metric.Run) {}, ""},
		{"another plan", func(r *metric.Run) { r.PlanHash = "q" }, "the plan, or a variable of it"},
		{"another version", func(r *metric.Run) { r.Tool = "v2" }, "the version of tokgate"},
		{"another commit", func(r *metric.Run) { r.Commit = "" }, "the commit"},
		{"another machine", func(r *metric.Run) { r.Host = "gpu-1" }, "the machine"},
		{"simulated", func(r *metric.Run) { r.Simulated = true }, "simulated"},
		{"too late", func(r *metric.Run) { r.Started = ended.Add(25 * time.Hour) }, "it ended 25h ago"},
		{"before its end", func(r *metric.Run) { r.Started = ended.Add(-time.Minute) }, "ago"},
	} {
		now := before
		now.Started = ended.Add(23 * time.Hour)
		row.change(&now)
		got := otherRun(&before, now)
		must.Hold(t, (got == "") == (row.says == "") && strings.Contains(got, row.says), "%s: %q, want %q", row.name, got, row.says)
	}
}

// A rerun counts as another attempt, wherever an earlier one can be known.
func TestAttempt(t *testing.T) {
	for _, row := range []struct {
		name string
		env  []string
		run  metric.Run
		want int
	}{
		{"nothing known", nil, metric.Run{}, 1},
		{"the third attempt of a workflow", []string{"GITHUB_RUN_ATTEMPT=3"}, metric.Run{}, 3},
		{"no number", []string{"GITHUB_RUN_ATTEMPT=x"}, metric.Run{}, 1},
		{"simulated", []string{"GITHUB_RUN_ATTEMPT=3"}, metric.Run{Simulated: true}, 1},
	} {
		a := &app{environ: row.env}
		must.Same(t, fmt.Sprintf("%s: attempt", row.name), row.want, a.attempt(&plan.Plan{}, row.run, t.TempDir()))
	}
}
