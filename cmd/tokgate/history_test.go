package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
	"github.com/tokgate/tokgate/record/history"
	"github.com/tokgate/tokgate/report"
)

const nightlyPlan = `
gate {
  decide = "estimate"
}
history {
  folder = "history"
}
server "s" {
  simulator {}
}
workload "w" {
  input_tokens  = 64
  output_tokens = 24
  load {
    concurrency = 4
    requests    = 20
    seeds       = [1]
  }
  sla {
    ttft = "p95 < 20s"
  }
}
`

// A run of a plan with a history block starts the history. Changed copies of the run add more
// nights. A worse night fails until a pin accepts it.
func TestNightly(t *testing.T) { inBubble(testNightly)(t) }

func testNightly(t *testing.T) {
	path := writePlan(t, nightlyPlan)
	dir, results := filepath.Join(filepath.Dir(path), "history"), t.TempDir()
	tokgate(t, "run", "--simulate", "--out", results, path).check(t, verdict.ExitPass, "not added to", "simulated")
	_, err := os.Stat(dir)
	must.Need(t, err != nil, "a simulated run began a history")
	tokgate(t, "run", "--out", results, path).check(t, verdict.ExitPass, "added to", "RECORDED", "ttft p95")
	for _, name := range []string{historyJUnit, historyMarkdown, historyPage, historyBadge} {
		_, err := os.Stat(filepath.Join(results, name))
		must.Hold(t, err == nil, "%v", err)
	}
	tokgate(t, "history", "add", dir, results).check(t, verdict.ExitPass, "already")
	simulated := t.TempDir()
	tokgate(t, "run", "--simulate", "--out", simulated, path).check(t, verdict.ExitPass)
	tokgate(t, "history", "add", dir, simulated).check(t, verdict.ExitError, "were not simulated", "keep two histories")

	var doc report.Document
	must.Do(t, json.Unmarshal([]byte(read(t, filepath.Join(results, "results.json"))), &doc))
	night := func(n int, slower float64) {
		t.Helper()
		d, run := doc, *doc.Run
		d.Run = &run
		run.ID, run.Started = fmt.Sprintf("run-%02d", n), doc.Run.Started.AddDate(0, 0, n-20)
		d.Cases = append([]report.Case(nil), doc.Cases...)
		d.Cases[0].Metrics = append([]report.Summary(nil), doc.Cases[0].Metrics...)
		for i := range d.Cases[0].Metrics {
			if m := &d.Cases[0].Metrics[i]; m.Metric == "e2e" {
				m.Mean.V *= slower * (1 + 0.001*float64(n%3))
			}
		}
		folder := t.TempDir()
		var b bytes.Buffer
		must.Do(t, d.Write(&b))
		must.Do(t, os.WriteFile(filepath.Join(folder, "results.json"), b.Bytes(), 0o644))
		tokgate(t, "history", "add", dir, folder).check(t, verdict.ExitPass)
	}
	if err := os.RemoveAll(dir); err != nil { // begin a new history, whose nights are older
		t.Fatal(err)
	}
	for n := range 13 {
		night(n, 1)
	}
	// 13 nights were added. The last night is 8 days old, but the plan allows only 3 days.
	junit := filepath.Join(t.TempDir(), "j.xml")
	tokgate(t, "history", "check", dir, "--junit", junit).check(t, verdict.ExitError, "8 days ago, but at most 3 days is allowed")
	got := read(t, junit)
	must.Hold(t, strings.Contains(got, `errors="1"`) && strings.Contains(got, "8 days ago"), "whoever reads junit.xml alone sees no error: %s", got)
	tokgate(t, "history", "show", dir).check(t, verdict.ExitPass, "13 nights")
	for _, age := range []string{"0", "200h"} {
		tokgate(t, "history", "check", dir, "--max-age", age).check(t, verdict.ExitPass, "PASS", "13 nights")
	}
	// Each of these two lines makes the verdict an error. The first cannot be read, so it may be
	// the last night. The second is a night in the year 2999, which would stay the last night for
	// ever.
	month := filepath.Join(dir, doc.Run.Started.AddDate(0, 0, 12-20).UTC().Format("2006-01")+".jsonl")
	whole := read(t, month)
	for tail, words := range map[string]string{
		"<<<<<<< HEAD\n": "cannot be read, and the last night may be among them",
		`{"schema":"tokgate.history/1","night":{"run":"run-99","started":"2999-01-01T03:00:00Z","figures":[]}}` + "\n": "starts in the future",
	} {
		must.Do(t, os.WriteFile(month, []byte(whole+tail), 0o644))
		tokgate(t, "history", "check", dir, "--max-age", "0").check(t, verdict.ExitError, words)
	}
	must.Do(t, os.WriteFile(month, []byte(whole), 0o644))
	// A bad night is suspect. The third in a row fails, because no single one of ten earlier nights
	// counts as more than three standard deviations.
	for n := 13; n < 15; n++ {
		night(n, 1.2)
		tokgate(t, "history", "check", dir, "--max-age", "0").check(t, verdict.ExitPass, "PASS", "Suspect: w at 4, e2e mean +", "the next night decides", "tokgate run PLAN --only w")
	}
	night(15, 1.2)
	r := tokgate(t, "history", "check", dir, "--max-age", "0", "--junit", junit)
	r.check(t, verdict.ExitFail, "FAIL", "1 worse", "20% higher")
	wellFormed(t, junit)
	must.Hold(t, strings.Contains(read(t, junit), `name="history.e2e.mean at 4"`), "junit.xml does not name the series")
	tokgate(t, "history", "show", dir).check(t, verdict.ExitPass, "FAIL")
	tokgate(t, "history", "check", dir, "--ignore", "0.5", "--max-age", "0").check(t, verdict.ExitPass, "PASS")
	tokgate(t, "history", "pin", dir, "run-13", "--why", "accepted").check(t, verdict.ExitPass, "pinned")
	tokgate(t, "history", "pin", dir, "run13", "--why", "accepted").check(t, verdict.ExitError, "run run13 is not in the history", "did you mean run-13?")
	tokgate(t, "history", "check", dir, "--max-age", "0").check(t, verdict.ExitPass, "RECORDED", "3 nights since run run-13 was pinned")
}

// What was exported as JSON and imported again is judged the same, with its pins and facts. CSV has
// no pins and no facts, so a history without them is judged the same.
func TestHistoryMoves(t *testing.T) {
	for _, format := range []string{"json", "csv"} {
		h := history.Demo()
		if format == "csv" {
			h.Pins = nil
			for i := range h.Nights {
				h.Nights[i].Servers = nil
			}
		}
		from, to, file := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "nights."+format)
		_, _, err := history.Import(from, h)
		must.Need(t, err == nil, "%v", err)
		must.Do(t, os.WriteFile(file, []byte(tokgate(t, "history", "export", from, "--format", format).out), 0o644))
		tokgate(t, "history", "import", to, file).check(t, verdict.ExitPass, "added 120 nights", "0 were in it already")
		tokgate(t, "history", "import", to, file).check(t, verdict.ExitPass, "added 0 nights", "120 were in it already")
		was, is := tokgate(t, "history", "check", from, "--max-age", "0"), tokgate(t, "history", "check", to, "--max-age", "0")
		d := cmp.Diff(strings.ReplaceAll(was.out, from, "H"), strings.ReplaceAll(is.out, to, "H"))
		must.Hold(t, d == "" && was.code == verdict.ExitFail && is.code == was.code, "%s: exit %d and %d: %s", format, was.code, is.code, d)
		folder, replayed := tokgate(t, "history", "replay", from), tokgate(t, "history", "replay", file)
		folder.check(t, verdict.ExitPass, "FAIL", "Of 110 judged mornings", "from -3.", "120 nights of 4 series")
		must.Same(t, "", folder.out, replayed.out)
	}
}

// A void night is named, with the reason, and is not judged. The night before is the last one then.
func TestHistoryVoid(t *testing.T) {
	dir, h := t.TempDir(), history.Demo()
	h.Nights[28].Figures[0].Value, h.Nights[29].Figures[0].Value, h.Nights = 0.6, 0.6, h.Nights[:30]
	h.Pins = nil
	_, _, err := history.Import(dir, h)
	must.Need(t, err == nil, "%v", err)
	tokgate(t, "history", "check", dir, "--max-age", "0").check(t, verdict.ExitFail)
	run := h.Nights[29].Run
	tokgate(t, "history", "void", dir, run, "--why", "a load test ran").check(t, verdict.ExitPass, "run "+run+" is void: a load test ran")
	tokgate(t, "history", "check", dir, "--max-age", "0").check(t, verdict.ExitPass, "29 nights", "Suspect", "Void, so not judged: "+run+" (a load test ran)")
	tokgate(t, "history", "pin", dir, run, "--why", "x").check(t, verdict.ExitError, "is not in the history")
	complete := tokgate(t, "__complete", "history", "void", dir, "20260129")
	complete.check(t, verdict.ExitPass, h.Nights[28].Run)
}

func TestHistoryUsage(t *testing.T) {
	dir := t.TempDir()
	table, wrong := filepath.Join(t.TempDir(), "a.csv"), filepath.Join(t.TempDir(), "b.csv")
	for path, text := range map[string]string{table: "date,series,value\n2026-11-19,\"load, cold\",7\n2026-11-20,\"load, cold\",8\n", wrong: "date,series,value\ntoday,a,1\n"} {
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	}
	for _, tt := range []struct {
		args  []string
		code  int
		words string
	}{
		{[]string{"history"}, verdict.ExitPlan, "add, show, check, pin, void, import, replay, export or demo"},
		{[]string{"history", "chek", dir}, verdict.ExitPlan, "did you mean `tokgate history check`?"},
		{[]string{"history", "show"}, verdict.ExitPlan, "tokgate history show perf/history"},
		{[]string{"history", "check", filepath.Join(dir, "none")}, verdict.ExitError, "could not read the history"},
		{[]string{"history", "check", dir}, verdict.ExitError, "no nights"},
		{[]string{"history", "check", dir, "--ignore", "2"}, verdict.ExitPlan, "0.01 is one percent"},
		{[]string{"history", "check", dir, "--max-age", "-1h"}, verdict.ExitPlan, "is negative"},
		{[]string{"history", "export", dir, "--format", "xml"}, verdict.ExitPlan, "csv, json or openmetrics"},
		{[]string{"history", "export", dir, "--format", "openmetrics"}, verdict.ExitPass, "# EOF"},
		{[]string{"history", "demo"}, verdict.ExitPass, "FAIL 4 series: 1 worse"},
		{[]string{"history", "pin", dir, "r"}, verdict.ExitPlan, "needs a reason"},
		{[]string{"history", "pin", dir, "r", "--why", "x"}, verdict.ExitError, "not in the history"},
		{[]string{"history", "void", dir, "r"}, verdict.ExitPlan, "a void night needs a reason"},
		{[]string{"history", "void", dir, "r", "--why", "x"}, verdict.ExitError, "not in the history"},
		{[]string{"history", "import", dir}, verdict.ExitPlan, "tokgate history import perf/history nights.csv"},
		{[]string{"history", "import", dir, table, "--better", "more"}, verdict.ExitPlan, "use lower or higher"},
		{[]string{"history", "import", dir, wrong}, verdict.ExitError, "line 2: \"today\" is no date"},
		{[]string{"history", "import", filepath.Join(dir, "new"), table, "--better", "higher"}, verdict.ExitPass, "added 2 nights to"},
		{[]string{"history", "show", filepath.Join(dir, "new")}, verdict.ExitPass, "load, cold"},
		{[]string{"history", "replay", table}, verdict.ExitPass, "2 nights of 1 series. None could be judged"},
		{[]string{"history", "replay", table, "--pin-after", "-1"}, verdict.ExitPlan, "is negative"},
		{[]string{"history", "replay", dir}, verdict.ExitError, "has no nights"},
		{[]string{"history", "replay", filepath.Join(dir, "none")}, verdict.ExitError, "could not read the history"},
	} {
		tokgate(t, tt.args...).check(t, tt.code, tt.words)
	}
}

// A plan that does not set ignore gets the default.
func TestHistoryIgnore(t *testing.T) {
	p, diags := decode.File(decode.Options{Path: writePlan(t, nightlyPlan)})
	must.Hold(t, !diags.HasErrors() && p.History != nil && p.History.Ignore == plan.HistoryIgnore, "%+v %v", p.History, diags)
}

// A night records the CI job that ran it. The data come from the CI's environment variables.
func TestCIJob(t *testing.T) {
	for _, tt := range []struct {
		env  map[string]string
		want *metric.Job
	}{
		{nil, nil},
		{map[string]string{"GITHUB_SHA": "abc"}, nil}, // GITHUB_SHA may be set outside of GitHub Actions
		{map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_SHA": "abc", "GITHUB_REF": "refs/heads/main", "RUNNER_NAME": "gpu-0",
			"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "o/r", "GITHUB_RUN_ID": "7"},
			&metric.Job{Commit: "abc", Ref: "refs/heads/main", Runner: "gpu-0", URL: "https://github.com/o/r/actions/runs/7"}},
		{map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_SHA": "abc", "GITHUB_RUN_ID": "7"}, &metric.Job{Commit: "abc"}},
		{map[string]string{"GITLAB_CI": "true", "CI_COMMIT_SHA": "abc", "CI_COMMIT_REF_NAME": "main", "CI_RUNNER_DESCRIPTION": "gpu-0", "CI_JOB_URL": "https://gitlab.com/o/r/-/jobs/7"},
			&metric.Job{Commit: "abc", Ref: "main", Runner: "gpu-0", URL: "https://gitlab.com/o/r/-/jobs/7"}},
	} {
		got := ciJob(func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok })
		must.Same(t, fmt.Sprintf("%v", tt.env), tt.want, got)
	}
}

// The last exit code that is printed is that of the process, also if the history decides it.
func TestNightEnded(t *testing.T) {
	for _, tt := range []struct {
		run, history, want int
		said               string
	}{
		{verdict.ExitPass, verdict.ExitPass, verdict.ExitPass, ""},
		{verdict.ExitFail, verdict.ExitPass, verdict.ExitFail, ""},
		{verdict.ExitFail, verdict.ExitError, verdict.ExitError, "exit 4, because of the history; the run alone: exit 1\n"},
		{verdict.ExitPass, verdict.ExitFail, verdict.ExitFail, "exit 1, because of the history; the run alone: exit 0\n"},
	} {
		var out bytes.Buffer
		a := &app{Streams: Streams{Out: &out}}
		got := a.nightEnded(tt.run, tt.history)
		must.Hold(t, got == tt.want && out.String() == tt.said, "run %d, history %d: %d, %q", tt.run, tt.history, got, out.String())
	}
}
