package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
)

const acceptPlan = `
server "s" {
  for_each = { old = "./old.json", new = "./new.json" }
  simulator { profile = each.value }
}
workload "rag" {
  input_tokens  = 1024
  output_tokens = 32
  load {
    concurrency = 8
    requests    = 640
  }
  sla { e2e = "mean < 700ms" }
}
compare "upgrade" {
  control   = server.s["old"]
  candidate = server.s["new"]
  changed   = ["profile"]
  tolerate { e2e = "mean +1%" }
}
`

// The candidate's mean E2E is about 750 ms, 1.4 % longer than the control's. Both are red by the plan's
// own bounds, and green by two accept blocks.
const (
	acceptLatency = `
accept "latency" {
  workload = workload.rag
  at       = 8
  e2e      = "mean < 790ms"
  until    = "UNTIL"
  why      = "longer system prompt"
}
`
	acceptUpgrade = `
accept "upgrade" {
  compare  = compare.upgrade
  workload = workload.rag
  e2e      = "mean +2.5%"
  until    = "UNTIL"
  why      = "attention backend v3"
}
`
)

func TestAccept(t *testing.T) {
	profile := read(t, filepath.Join("..", "..", "sim", "profiles", "default.json"))
	t.Chdir(t.TempDir())
	file := func(name, text string) string {
		t.Helper()
		must.Do(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must.Do(t, os.WriteFile(name, []byte(text), 0o644))
		return name
	}
	today := time.Now().UTC()
	after := func(days int) string { return today.AddDate(0, 0, days).Format(time.DateOnly) }
	with := func(name string, days int, blocks ...string) string {
		for _, side := range []struct{ name, overhead string }{{"old", "12"}, {"new", "32"}} {
			file(filepath.Join(filepath.Dir(name), side.name+".json"), strings.Replace(profile, `"overhead_ms": 12`, `"overhead_ms": `+side.overhead, 1))
		}
		return file(name, acceptPlan+strings.ReplaceAll(strings.Join(blocks, ""), "UNTIL", after(days)))
	}
	file("head/.git/HEAD", "")
	both := with("head/both.hcl", 30, acceptLatency, acceptUpgrade)
	none := with("head/none.hcl", 30)
	far := with("head/far.hcl", 100, acceptLatency, acceptUpgrade)
	gone := with("head/gone.hcl", -1, acceptLatency, acceptUpgrade)
	wide := with("head/wide.hcl", 30, strings.Replace(acceptLatency, "  workload = workload.rag\n", "", 1), strings.Replace(acceptUpgrade, "+2.5%", "+40%", 1))
	unneeded := with("head/unneeded.hcl", 30, strings.Replace(acceptLatency, "790ms", "9s", 1), acceptUpgrade)
	file(unneeded, strings.NewReplacer("mean < 700ms", "mean < 5s", "mean +1%", "mean +2%").Replace(read(t, unneeded)))
	with("base/both.hcl", 30, acceptLatency, acceptUpgrade)
	with("base/gone.hcl", 30)
	with("fresh/both.hcl", 30)
	rules := file("base/policy.hcl", "allow {\n  servers = [\"simulator\"]\n  accepts = [\"lat*\", \"upgrade\"]\n}\n")
	pr := []string{"GITHUB_EVENT_NAME=pull_request_target"}
	for _, tt := range []struct {
		name string
		args []string
		env  []string
		code int
		says []string
	}{
		{"no block", []string{"run", "--simulate", none, "--out", "none"}, nil, 1, []string{"sla.e2e.mean at 8", "tolerate.e2e.mean"}},
		{"accepted", []string{"run", "--simulate", both, "--out", "both"}, nil, 0, []string{
			"accepted until " + after(30) + " by accept.latency: mean < 790ms instead of mean < 700ms (longer system prompt)",
			"accepted until " + after(30) + " by accept.upgrade: mean +2.5% instead of mean +1% (attention backend v3)",
			"holds until " + after(30)}},
		{"judged again", []string{"judge", "both", both}, nil, 0, []string{"by accept.latency"}},
		{"a red run, judged with blocks", []string{"judge", "none", both}, nil, 0, []string{"by accept.latency"}},
		{"a simulated run has no date", []string{"run", "--simulate", gone, "--out", "gone"}, nil, 0, nil},
		{"expired", []string{"validate", gone}, nil, 0, []string{"expired on " + after(-1)}},
		{"too long", []string{"validate", far}, nil, 2, []string{"more than 90 days after the run"}},
		{"too wide", []string{"run", "--simulate", wide, "--out", "wide"}, nil, 0, []string{"it names no workload", "mean +40% is more than twice the change that was measured"}},
		{"no longer needed", []string{"run", "--simulate", unneeded, "--out", "unneeded"}, nil, 0, []string{"2 warnings", "is no longer needed"}},
		{"in a pull request", []string{"run", "--simulate", both, "--out", "pr"}, pr, 1, []string{"without --base"}},
		{"and judged elsewhere", []string{"judge", "pr", both}, nil, 1, []string{"without --base"}},
		{"the base has it", []string{"run", "--simulate", "--base", "base", both, "--out", "based"}, pr, 0, []string{"by accept.latency"}},
		{"the base lacks it", []string{"run", "--simulate", "--base", "fresh", both, "--out", "lacks"}, nil, 1, []string{"is not on the base branch"}},
		{"the policy allows it", []string{"run", "--simulate", "--base", "fresh", "--policy", rules, both, "--out", "allowed"}, pr, 0, []string{"by accept.upgrade"}},
		{"weakened", []string{"diff", "--weakened", none, both}, pr, 1, []string{
			"rag on s[\"new\"] at 8: e2e mean: mean < 700ms is now mean < 790ms until " + after(30) + " (accept.latency)",
			"compare.upgrade: rag at 8: tolerate e2e mean: mean +1% is now mean +2.5% until " + after(30) + " (accept.upgrade)"}},
		{"removed again", []string{"diff", "--weakened", both, none}, nil, 0, []string{"demands as much"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, errors bytes.Buffer
			code := Main(context.Background(), tt.args, append(tt.env, "COLUMNS=1000"), Streams{Out: &out, Err: &errors})
			said := out.String() + errors.String()
			must.Hold(t, code == tt.code, "exit %d, want %d", code, tt.code)
			for _, want := range tt.says {
				must.Hold(t, strings.Contains(said, want), "does not say %q", want)
			}
			if t.Failed() {
				t.Log(said)
			}
		})
	}
	junit := read(t, "both/junit.xml")
	if strings.Contains(junit, "<failure") || !strings.Contains(junit, "longer system prompt") {
		t.Errorf("an accepted failure is no pass with its reason:\n%s", junit)
	}
}
