package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// If a plan requires less than its earlier version, diff ends with exit code 1. It lists each
// weaker requirement with its line.
func TestDiffWeakened(t *testing.T) {
	plan := "server \"s\" {\n  simulator {}\n}\nworkload \"w\" {\n  input_tokens  = 128\n  output_tokens = 16\n  load { concurrency = [1] }\n  sla {\n    ttft = \"p95 < 2s\"\n  }\n}\n"
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
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
