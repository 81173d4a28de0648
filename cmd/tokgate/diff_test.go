package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// If a plan requires less than its earlier version, diff ends with exit code 1. It lists each
// weaker requirement with its line.
func TestDiffWeakened(t *testing.T) {
	plan := "server \"s\" {\n  simulator {}\n}\nworkload \"w\" {\n  input_tokens  = 128\n  output_tokens = 16\n  load { concurrency = [1] }\n  sla {\n    ttft = \"p95 < 2s\"\n  }\n}\n"
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	base, head := file("base.hcl", plan), file("head.hcl", strings.Replace(plan, "2s", "4s", 1))
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--weakened", base, base}, 0, "demands as much"},
		{[]string{"--weakened", head, base}, 0, "demands as much"},
		{[]string{"--weakened", base, head}, 1, "head.hcl:9: w on s at 1: ttft p95: p95 < 2s is now p95 < 4s"},
		{[]string{"--weakened", base, file("wrong.hcl", "nonsense {}\n")}, 2, ""},
		{[]string{"--weakened", base}, 2, ""},
		{[]string{base, head}, 2, ""},
	} {
		var out, errors bytes.Buffer
		code := Main(context.Background(), append([]string{"diff"}, tt.args...), nil, Streams{Out: &out, Err: &errors})
		if code != tt.code || !strings.Contains(out.String(), tt.says) {
			t.Errorf("diff %v: exit %d, want %d and %q:\n%s%s", tt.args, code, tt.code, tt.says, out.String(), errors.String())
		}
	}
}

// Two folders are compared plan by plan. A plan that is gone is weaker, also for a policy that keeps
// its demands. A new plan is not weaker. A name that the base does not have is an error.
func TestDiffFolders(t *testing.T) {
	const plan = "server \"s\" {\n  simulator {}\n}\nworkload \"w\" {\n  input_tokens  = 128\n  output_tokens = 16\n  load { concurrency = [1] }\n  sla {\n    ttft = \"p95 < 2s\"\n  }\n}\n"
	looser := strings.Replace(plan, "2s", "4s", 1)
	const rules = "allow {\n  servers = [\"simulator\"]\n}\nrequire {\n  keep = [\"KEEP\"]\n}\n"
	both := map[string]string{"base/a.hcl": plan, "base/b.hcl": plan, "head/a.hcl": plan, "head/b.hcl": plan}
	with := func(changes ...string) map[string]string {
		out := maps.Clone(both)
		for i := 0; i < len(changes); i += 2 {
			if out[changes[i]] = changes[i+1]; changes[i+1] == "" {
				delete(out, changes[i])
			}
		}
		return out
	}
	keep := func(what string) string { return strings.Replace(rules, "KEEP", what, 1) }
	for _, tt := range []struct {
		name  string
		files map[string]string
		args  string
		code  int
		says  []string
	}{
		{"the same", both, "--weakened base head", 0, []string{"head/a.hcl demands as much as base/a.hcl", "head/b.hcl demands as much"}},
		{"one is looser", with("head/b.hcl", looser), "--weakened base head", 1, []string{"head/a.hcl demands as much", "head/b.hcl:9: w on s at 1: ttft p95"}},
		{"deleted", with("head/b.hcl", ""), "--weakened base head", 1, []string{"head/a.hcl demands as much", "base/b.hcl:1: the plan is gone: there is no head/b.hcl"}},
		{"renamed", with("head/b.hcl", "", "head/c.hcl", plan), "--weakened base head", 1, []string{"base/b.hcl:1: the plan is gone", "head/c.hcl is new"}},
		{"all deleted", with("head/a.hcl", "", "head/b.hcl", ""), "--weakened base head", 1, []string{"base/a.hcl:1: the plan is gone", "base/b.hcl:1: the plan is gone"}},
		{"no plan is left in the folder", with("head/a.hcl", "", "head/b.hcl", "", "head/readme", "x"), "--weakened base head", 1, []string{"base/a.hcl:1: the plan is gone"}},
		{"moved into a subfolder", with("head/b.hcl", "", "head/sub/b.hcl", plan), "--weakened base head", 1, []string{"base/b.hcl:1: the plan is gone"}},
		{"deleted below", with("base/sub/c.hcl", plan), "--weakened --recursive base head", 1, []string{"there is no head/sub/c.hcl"}},
		{"new", with("head/c.hcl", looser), "--weakened base head", 0, []string{"head/c.hcl is new"}},
		{"two files, the second deleted", with("head/b.hcl", ""), "--weakened base/b.hcl head/b.hcl", 1, []string{"base/b.hcl:1: the plan is gone: there is no head/b.hcl"}},
		{"two files, the first wrong", both, "--weakened base/x.hcl head/b.hcl", 2, []string{"no such file"}},
		{"a wrong folder", both, "--weakened bass head", 2, []string{"bass"}},
		{"a folder and a file", both, "--weakened base head/a.hcl", 2, []string{"base is a folder, and head/a.hcl is not"}},
		{"a wrong plan", with("head/b.hcl", "nonsense {}\n"), "--weakened base head", 2, []string{"head/b.hcl: not a valid plan"}},
		{"a kept demand is gone", with("head/b.hcl", "", "policy.hcl", keep("* ttft *")), "--policy policy.hcl base head", 2, []string{"head/a.hcl keeps to policy.hcl", "The plan is gone", "ttft p95: p95 < 2s is gone", "head/b.hcl: not a valid plan"}},
		{"no kept demand is gone", with("head/b.hcl", "", "policy.hcl", keep("* e2e *")), "--policy policy.hcl base head", 0, []string{"head/a.hcl keeps to policy.hcl"}},
		{"a new plan breaks the policy", with("head/c.hcl", plan, "policy.hcl", "allow {\n  servers = [\"process\"]\n}\n"), "--policy policy.hcl base head", 2, []string{"head/c.hcl: not a valid plan"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for name, text := range tt.files {
				must.Do(t, os.MkdirAll(filepath.Dir(name), 0o755))
				must.Do(t, os.WriteFile(name, []byte(text), 0o644))
			}
			var out, errors bytes.Buffer
			code := Main(context.Background(), append([]string{"diff"}, strings.Fields(tt.args)...), []string{"COLUMNS=1000"}, Streams{Out: &out, Err: &errors})
			said := filepath.ToSlash(out.String() + errors.String())
			must.Hold(t, code == tt.code, "exit %d, want %d:\n%s", code, tt.code, said)
			for _, want := range tt.says {
				must.Hold(t, strings.Contains(said, want), "it does not say %q:\n%s", want, said)
			}
		})
	}
}

// Every command with --policy checks the plans before a server starts. Its messages name the lines
// of the plan and of the policy. A plan must keep the requirements and comparisons that it has on
// the base branch.
func TestPolicies(t *testing.T) {
	const plan = "server \"s\" {\n  simulator {}\n}\nworkload \"w\" {\n  input_tokens  = 128\n  output_tokens = 16\n  load { concurrency = [1] }\n  sla {\n    ttft = \"p95 < 2s\"\n  }\n}\n"
	const rules = "allow {\n  servers = [\"simulator\"]\n}\nrequire {\n  decide = [\"certified\"]\n}\n"
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	file("head/.git/HEAD", "")
	base := file("base/gate.hcl", plan)
	head := file("head/gate.hcl", strings.Replace(plan, "2s", "4s", 1))
	estimate := file("head/estimate.hcl", "gate {\n  decide = \"estimate\"\n}\n"+plan)
	fresh := file("head/new.hcl", plan)
	process := file("head/process.hcl", strings.Replace(plan, "simulator {}", "process {\n    command = [\"touch\", \"started\", \"{port}\"]\n  }", 1))
	lenient, keep, wrong := file("base/policy.hcl", rules), file("base/keep.hcl", strings.Replace(rules, "decide = [\"certified\"]", "keep = [\"* ttft *\"]", 1)), file("base/wrong.hcl", "alow {}\n")
	rows := file("data/rows.jsonl", `{"prompt":"a"}`)
	reads := file("head/reads.hcl", strings.Replace(plan, "input_tokens  = 128\n", fmt.Sprintf("prompt { dataset = %q }\n", rows), 1))
	opens := file("base/opens.hcl", fmt.Sprintf("allow {\n  servers = [\"simulator\"]\n  files = [%q]\n}\n", filepath.Dir(rows)))
	out := filepath.Join(dir, "out")
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"validate", "--policy", lenient, head}, 0, ""},
		{[]string{"validate", "--policy", lenient, estimate}, 2, "policy.hcl:5 requires decide to be certified"},
		{[]string{"validate", "--json", "--policy", lenient, estimate}, 2, `"line": 2`},
		{[]string{"plan", "--policy", lenient, process}, 2, "policy.hcl:2 allows the kinds of servers"},
		{[]string{"run", "--out", out, "--policy", lenient, process}, 2, "process.hcl line 2"},
		{[]string{"run", "--out", out, "--policy", keep, "--base", filepath.Dir(base), head}, 2, "ttft p95: p95 < 2s is now p95 < 4s"},
		{[]string{"validate", "--policy", keep, head}, 2, "Add a checkout of that branch: --base DIR"},
		{[]string{"validate", "--policy", keep, "--base", filepath.Dir(base), fresh}, 0, "The plan is new"},
		{[]string{"validate", "--policy", wrong, head}, 2, "wrong.hcl line 1"},
		{[]string{"validate", "--policy", filepath.Join(dir, "absent.hcl"), head}, 2, "absent.hcl"},
		{[]string{"diff", "--policy", keep, base, head}, 2, "keep.hcl:5 does not let"},
		{[]string{"diff", "--policy", keep, head, base}, 0, "keeps to"},
		{[]string{"diff", "--policy", lenient, "--weakened", base, head}, 1, "p95 < 4s"},
		{[]string{"validate", reads}, 2, "--files " + filepath.Dir(rows)},
		{[]string{"validate", "--policy", lenient, reads}, 2, "--files " + filepath.Dir(rows)},
		{[]string{"validate", "--files", filepath.Dir(rows), reads}, 0, ""},
		{[]string{"validate", "--policy", opens, reads}, 0, ""},
		{[]string{"diff", "--weakened", "--policy", opens, reads, reads}, 0, "demands as much"},
	} {
		var out, errors bytes.Buffer
		code := Main(context.Background(), tt.args, []string{"COLUMNS=1000"}, Streams{Out: &out, Err: &errors})
		if said := out.String() + errors.String(); code != tt.code || !strings.Contains(said, tt.says) {
			t.Errorf("%v: exit %d, want %d and %q:\n%s", tt.args, code, tt.code, tt.says, said)
		}
	}
	_, err := os.Stat(filepath.Join(dir, "head", "started"))
	must.Hold(t, err != nil, "what is not allowed was started")
}
