package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tokgate/tokgate/assert"
)

// What is read is the folder's own: a link may lead to a device that never ends.
func TestAuditReadsItsFolderAlone(t *testing.T) {
	dir := t.TempDir()
	for name, to := range map[string]string{"samples.jsonl": os.DevNull, "results.json": os.DevNull} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	r := tokgate(t, "audit", dir)
	r.check(t, assert.ExitError, "samples.jsonl is not a regular file")
}

// A rate's clocks begin when requests are due, and its rounds follow each other, so
// that an answer may span two of them.
func TestLongAuditOfARate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "rate.hcl")
	err := os.WriteFile(path, []byte(`
gate { decide = "estimate" }
server "s" {
  simulator {}
}
workload "w" {
  input_tokens  = 64
  output_tokens = 16
  load {
    rate     = ["2 req/s", "8 req/s"]
    arrivals = "poisson"
    duration = "10s"
  }
  sla {
    e2e = "mean < 5s"
  }
}
`), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	tokgate(t, "run", "--simulate", "--out", out, path).check(t, assert.ExitPass)
	tokgate(t, "audit", out).check(t, assert.ExitPass, " 0 differ")
}
