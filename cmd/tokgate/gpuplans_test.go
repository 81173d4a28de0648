package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
)

// Plans that need a GPU, or a cluster, can be simulated without one. They also show the command that would start
// their server.
func TestLongGPUPlans(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("..", "..", "plans", "gpu", "*.hcl"))
	stacks, _ := filepath.Glob(filepath.Join("..", "..", "plans", "stacks", "*.hcl"))
	must.Need(t, err == nil && len(paths) >= 3 && len(stacks) >= 3, "%d and %d plans, %v", len(paths), len(stacks), err)
	paths = append(paths, stacks...)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			tokgate(t, "validate", path).check(t, verdict.ExitPass, "is valid")
			out := t.TempDir()
			r := tokgate(t, "run", "--simulate", "--out", out, path)
			r.check(t, verdict.ExitPass, "PASS", "simulated")
			audited(t, out, out)
			must.Hold(t, !strings.Contains(r.out+r.err, "TOKEN"), "it asks for a secret")
		})
	}
}
