package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// bisectFolder has a plan and a list of profiles: from the given one on they are slower, and one in the
// middle answers no request.
func bisectFolder(t *testing.T, from int) (dir string, args []string) {
	t.Helper()
	dir = t.TempDir()
	var values []string
	for i := range 8 {
		name := fmt.Sprintf("v%d.json", i)
		values = append(values, name)
		ms := 5.5
		if i >= from {
			ms = 6.5
		}
		text := fmt.Sprintf(`{ "name": "v%d", "description": "x", "base": "default", "decode": { "base_ms": %g, "per_seq_ms": 0.62, "per_ktoken_ms": 0.05 }, "noise": { "start_cv": 0.02 } }`, i, ms)
		if i == 4 {
			text = strings.Replace(text, `"noise"`, `"faults": [{ "fault": "http-500", "share": 1 }], "noise"`, 1)
		}
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	plan := strings.Replace(nearPlan, `profile = "next.json"`, "profile = var.profile", 1)
	plan = strings.Replace(plan, `"today.json"`, `"v0.json"`, 1)
	must.Do(t, os.WriteFile(filepath.Join(dir, "plan.hcl"), []byte("variable \"profile\" { default = \"v7.json\" }\n"+plan), 0o644))
	must.Do(t, os.WriteFile(filepath.Join(dir, "values.txt"), []byte("# oldest first\n"+strings.Join(values, "\n")+"\n"), 0o644))
	return dir, []string{"bisect", filepath.Join(dir, "plan.hcl"), "--var", "profile", "--values", filepath.Join(dir, "values.txt"), "--simulate", "-q"}
}

// A bisection that was killed after any leg, or while it wrote one, goes on with the same legs to the same
// answer.
func TestLongBisectGoesOn(t *testing.T) {
	t.Parallel()
	dir, args := bisectFolder(t, 6)
	out := filepath.Join(dir, "whole")
	whole := tokgate(t, append(args, "--out", out)...)
	if whole.code != 0 || !strings.Contains(whole.out, "The change came with v6.json: probability") {
		t.Fatalf("exit %d\n%s\n%s", whole.code, whole.out, whole.err)
	}
	for _, name := range []string{"report.html", "report.md"} {
		if text := read(t, filepath.Join(out, name)); !strings.Contains(text, "v6.json") {
			t.Errorf("%s does not name v6.json", name)
		}
	}
	kept := []byte(read(t, filepath.Join(out, journalFile)))
	lines := bytes.SplitAfter(kept, []byte("\n"))
	for i := 1; i < len(lines)-1; i += 3 {
		again := filepath.Join(dir, fmt.Sprint("killed-", i))
		must.Do(t, os.MkdirAll(again, 0o755))
		part := append(bytes.Join(lines[:i], nil), lines[i][:len(lines[i])/2]...)
		must.Do(t, os.WriteFile(filepath.Join(again, journalFile), part, 0o644))
		got := tokgate(t, append(args, "--out", again)...)
		if now := read(t, filepath.Join(again, journalFile)); got.code != whole.code || now != string(kept) {
			t.Errorf("killed after %d legs: exit %d, the journal is\n%s\nwant\n%s", i-1, got.code, now, kept)
		}
	}
	// The folder of another question is refused.
	if other := tokgate(t, append(args, "--out", out, "--least", "+1%")...); other.code != 2 || !strings.Contains(other.err, "holds another bisection") {
		t.Errorf("exit %d: %s", other.code, other.err)
	}
}

func TestLongBisectAnswers(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		from int
		more []string
		code int
		said string
	}{
		// Of the values 3 to 5, only the one in the middle cannot be measured.
		{"beside a value that cannot be measured", 5, nil, 0, "The change came after v3.json, with v5.json at the latest"},
		{"no change", 8, nil, 1, "Nothing to bisect: the last value is certainly not worse than the first by more than 2.5%"},
		{"too few legs", 6, []string{"--legs", "13"}, 3, "Cannot tell: the change lies between"},
		{"what it would cost", 6, []string{"--estimate"}, 0, "8 values of profile, at most 240 legs. A leg is one start of next and one round of chat at 8. Assumed"},
		{"another metric", 6, []string{"--metric", "throughput", "--at", "chat/8", "--claimed", "+10%"}, 0, "with v6.json"},
		{"no such variable", 6, []string{"--var", "profile2=1"}, 2, ""},
		{"no such cell", 6, []string{"--at", "chat/9"}, 2, ""},
		{"no such metric", 6, []string{"--metric", "speediness"}, 2, ""},
		{"a claim without a unit", 6, []string{"--claimed", "7"}, 2, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			dir, args := bisectFolder(t, row.from)
			got := tokgate(t, append(append(args, "--out", filepath.Join(dir, "out")), row.more...)...)
			if got.code != row.code || !strings.Contains(strings.Join(strings.Fields(got.out), " "), row.said) {
				t.Errorf("exit %d, want %d and %q\n%s\n%s", got.code, row.code, row.said, got.out, got.err)
			}
		})
	}
}
