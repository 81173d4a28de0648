package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/report"
)

// If the base branch lacks the plan or the server, the other requirements decide. Without any, the
// run is inconclusive. --base-missing or a policy decides otherwise. The first line of each report
// says that nothing was compared.
func TestBaseMissing(t *testing.T) {
	t.Parallel()
	const source = `GATE
server "s" {
  simulator {}
}
workload "w" {
  input_tokens  = 128
  output_tokens = 16
  LOAD
  SLA
}
compare "c" {
  control   = base.server.s
  candidate = server.s
  tolerate {
    ttft = "p50 +20%"
  }
}
`
	const (
		loops  = "load {\n    concurrency = [1]\n    requests    = 100\n  }"
		rate   = "load {\n    rate     = \"1 req/s\"\n    duration = \"2m\"\n  }"
		met    = "sla {\n    ttft = \"p50 < 2s\"\n  }"
		unmet  = "sla {\n    ttft = \"p50 < 1ms\"\n  }"
		warns  = "sla {\n    severity = \"warn\"\n    ttft     = \"p50 < 2s\"\n  }"
		noPlan = "nothing was compared: the base branch has no plan gate.hcl"
	)
	for i, tt := range []struct {
		gate, load, sla string
		base            string // the plan on the base branch; "" if there is none
		require         string // of the policy; "" if there is none
		args            []string
		code            int
		says            string // the beginning of the headline
		tally           report.Tally
	}{
		{"", loops, met, "", "", nil, verdict.ExitPass, noPlan + " · 2 requirements met", report.Tally{Required: 2, Met: 2, Skipped: 2}},
		{"", loops, unmet, "", "", nil, verdict.ExitFail, noPlan + " · 1 of 2 requirements failed", report.Tally{Required: 2, Met: 1, Failed: 1, Skipped: 2}},
		{"", loops, "", "", "", nil, verdict.ExitInconclusive, noPlan + ", and nothing else is required", report.Tally{Required: 1, Inconclusive: 1, Skipped: 2}},
		{"", loops, "", "", "", []string{"--base-missing=others"}, verdict.ExitInconclusive, noPlan, report.Tally{Required: 1, Inconclusive: 1, Skipped: 2}},
		{"", loops, "", "server \"old\" {\n  simulator {}\n}", "", nil, verdict.ExitInconclusive, "nothing was compared: the plan on the base branch has no server.s", report.Tally{Required: 1, Inconclusive: 1, Skipped: 2}},
		{"", loops, "", "", "", []string{"--base-missing=pass"}, verdict.ExitPass, noPlan, report.Tally{Skipped: 2}},
		{"", loops, met, "", "", []string{"--base-missing=fail"}, verdict.ExitFail, noPlan + ", and base-missing is fail · 1 of 3 requirements failed", report.Tally{Required: 3, Met: 2, Failed: 1, Skipped: 2}},
		{"", loops, met, "", "", []string{"--base-missing=pass"}, verdict.ExitPass, noPlan, report.Tally{Required: 2, Met: 2, Skipped: 2}},
		// A threshold that only warns, and what tokgate implies, are no requirements. A rate is one.
		{"", loops, warns, "", "", nil, verdict.ExitInconclusive, noPlan, report.Tally{Required: 1, Inconclusive: 1, Skipped: 2}},
		{"", rate, "", "", "", nil, verdict.ExitPass, noPlan, report.Tally{Required: 2, Met: 2, Skipped: 2}},
		// A plan that only measures neither fails nor is inconclusive.
		{"gate {\n  measure_only = true\n}\n", loops, "", "", "", nil, verdict.ExitPass, noPlan, report.Tally{}},
		{"gate {\n  measure_only = true\n}\n", loops, "", "", "", []string{"--base-missing=fail"}, verdict.ExitPass, noPlan, report.Tally{Warnings: 1}},
		{"gate {\n  on_inconclusive = \"warn\"\n}\n", loops, "", "", "", nil, verdict.ExitPass, noPlan, report.Tally{Required: 1, Warnings: 1, Skipped: 2}},
		// A policy decides without the flag, and a flag against it is an error.
		{"", loops, met, "", `base_missing = ["fail"]`, nil, verdict.ExitFail, noPlan + ", and base-missing is fail", report.Tally{Required: 3, Met: 2, Failed: 1, Skipped: 2}},
		{"", loops, met, "", `base_missing = ["fail", "others"]`, []string{"--base-missing=others"}, verdict.ExitPass, noPlan, report.Tally{Required: 2, Met: 2, Skipped: 2}},
		{"", loops, met, "", `base_missing = ["fail"]`, []string{"--base-missing=pass"}, verdict.ExitPlan, "Not allowed by the policy", report.Tally{}},
		{"", loops, met, "", `base_missing = ["never"]`, nil, verdict.ExitPlan, `base_missing is others, fail or pass, not "never"`, report.Tally{}},
		{"", loops, met, "", "", []string{"--base-missing=never"}, verdict.ExitPlan, "write one of others, fail, pass", report.Tally{}},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			head, base, out := t.TempDir(), t.TempDir(), t.TempDir()
			write := func(dir, name, text string) string {
				t.Helper()
				path := filepath.Join(dir, name)
				must.Do(t, os.WriteFile(path, []byte(text), 0o644))
				return path
			}
			path := write(head, "gate.hcl", strings.NewReplacer("GATE\n", tt.gate, "LOAD", tt.load, "SLA", tt.sla).Replace(source))
			if tt.base != "" {
				write(base, "gate.hcl", tt.base+"\n")
			}
			args := append([]string{"run", "--simulate", "--base", base, "--out", out}, tt.args...)
			if tt.require != "" {
				args = append(args, "--policy", write(base, "policy.hcl", "allow {\n  servers = [\"simulator\"]\n}\nrequire {\n  "+tt.require+"\n}\n"))
			}
			tokgate(t, append(args, path)...).check(t, tt.code, tt.says)
			if tt.code == verdict.ExitPlan {
				return
			}
			var doc report.Document
			must.Do(t, json.Unmarshal([]byte(read(t, filepath.Join(out, "results.json"))), &doc))
			got := doc.Headline()
			must.Hold(t, strings.HasPrefix(got, tt.says), "the headline is %q, want it to begin with %q", got, tt.says)
			if got := doc.Tally(); tt.tally != (report.Tally{}) && got != tt.tally {
				t.Errorf("%+v, want %+v", got, tt.tally)
			}
			for _, name := range []string{"report.md", "comment.md"} {
				_, below, _ := strings.Cut(read(t, filepath.Join(out, name)), "\n\n")
				must.Hold(t, strings.HasPrefix(below, tt.says), "%s begins with %.80q", name, below)
			}
			must.Hold(t, strings.Contains(read(t, filepath.Join(out, "report.html")), "N"+noPlan[1:24]), "the page does not say that nothing was compared")
		})
	}
}
