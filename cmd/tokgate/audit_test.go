package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tokgate/tokgate/assert"
)

// The audit reads only files in the folder. It follows no link, because a link may lead to a device
// that never ends.
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

// The audit also handles rates, users and data sets. The latency of a request then starts when the
// request is due. An answer may begin in one round and end in the next.
func TestLongAuditOfWindows(t *testing.T) {
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
workload "people" {
  input_tokens  = 64
  output_tokens = 16
  prompt { turns = 3 }
  load {
    users      = 4
    think_time = { mean = "1s", cv = 1 }
    duration   = "30s"
  }
  capacity {
    over       = "users"
    up_to      = 8
    resolution = 4
  }
  sla {
    e2e = "mean < 5s"
  }
}
workload "rows" {
  input_tokens  = 64
  output_tokens = 16
  prompt { dataset = "rows.jsonl" }
  load {
    concurrency = 1
    requests    = 10
  }
  sla {
    e2e = "mean < 5s"
  }
}
`), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	err = os.WriteFile(filepath.Join(dir, "rows.jsonl"), []byte(`{"prompt":"one"}`+"\n"+`{"messages":[{"role":"user","content":"two"}]}`), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	tokgate(t, "run", "--simulate", "--out", out, path).check(t, assert.ExitPass, "people: 8+ users", "of 10 prompts may be in a cache")
	tokgate(t, "audit", out).check(t, assert.ExitPass, " 0 differ")
}
