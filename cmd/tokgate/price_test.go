package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/report"
)

var before = flag.String("before", "", "folder with a checkout of an earlier commit and its program bin/tokgate, for TestPrice")

// TestPrice compares what closed loops cost with what they cost an earlier commit: that commit's plans,
// simulated by both. It writes the seconds of load into docs/performance.md.
func TestPrice(t *testing.T) {
	if *before == "" {
		t.Skip("no -before; see make price")
	}
	var rows []string
	was, is := 0.0, 0.0
	for _, x := range []struct{ page, plan string }{
		{"plans/gpu/vllm.hcl", ""}, {"docs/recipes.md", "users.hcl"}, {"plans/pull-request.hcl", ""}, {"docs/capacity.md", "carry.hcl"},
		{"plans/capacity.hcl", ""}, {"docs/quickstart.md", "gate.hcl"}, {"docs/history.md", "nightly.hcl"}, {"plans/demo.hcl", ""},
		{"README.md", ""}, {"docs/traffic.md", "rag.hcl"}, {"docs/recipes.md", "gateway.hcl"},
	} {
		src := read(t, filepath.Join(*before, x.page))
		for _, m := range fencedPlan.FindAllStringSubmatch(src, -1) {
			if strings.TrimSpace(m[1]) == x.plan {
				src = m[2]
				break
			}
		}
		dir := t.TempDir()
		path := filepath.Join(dir, "plan.hcl")
		must.Do(t, os.WriteFile(path, []byte(src), 0o600))
		must.Do(t, os.WriteFile(filepath.Join(dir, "prompts.jsonl"), []byte(prompts(t)), 0o600))
		old := exec.Command(filepath.Join(*before, "bin", "tokgate"), "run", "--simulate", "--out", filepath.Join(dir, "old"), path)
		if out, err := old.CombinedOutput(); err != nil && old.ProcessState.ExitCode() != 3 {
			t.Fatalf("%s %s: %v\n%s", x.page, x.plan, err, out)
		}
		tokgate(t, "judge", filepath.Join(dir, "old"), path, "--unprotected", "--json", filepath.Join(dir, "old.json"))
		tokgate(t, "run", "--simulate", "--out", filepath.Join(dir, "new"), path)
		a, b := spentIn(t, filepath.Join(dir, "old.json")), spentIn(t, filepath.Join(dir, "new", "results.json"))
		name := x.plan
		if name == "" {
			name = strings.TrimPrefix(x.page, "plans/")
		}
		rows = append(rows, fmt.Sprintf("%s %.0f/%.0f", name, a, b))
		was, is = was+a, is+b
	}
	rows = append(rows, fmt.Sprintf("together %.0f/%.0f s, %.2f.", was, is, is/was))
	*update = true
	currentDoc(t, "performance.md", "price", strings.Join(rows, ",\n")+"\n")
	if is > 0.65*was {
		t.Errorf("%.2f of the load of before", is/was)
	}
}

func spentIn(t *testing.T, path string) float64 {
	t.Helper()
	var results struct{ Spent report.Spent }
	if err := json.Unmarshal([]byte(read(t, path)), &results); err != nil || results.Spent.Load == 0 {
		t.Fatalf("%s: no load, %v", path, err)
	}
	return results.Spent.Load
}

// prompts returns the data set of docs/traffic.md.
func prompts(t *testing.T) string {
	t.Helper()
	for _, m := range fencedPlan.FindAllStringSubmatch(read(t, filepath.Join(*before, "docs", "traffic.md")), -1) {
		if strings.TrimSpace(m[1]) == "prompts.jsonl" {
			return m[2]
		}
	}
	return ""
}
