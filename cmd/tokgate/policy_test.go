package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

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
	if _, err := os.Stat(filepath.Join(dir, "head", "started")); err == nil {
		t.Error("what is not allowed was started")
	}
}
