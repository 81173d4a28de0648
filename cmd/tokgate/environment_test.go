package main

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// environmentPlan uses a value of the environment in every place that takes text.
const environmentPlan = `
gate {
  budget = "1h"
  decide = "estimate"
}
locals {
  whole  = env.PLACE
  part   = "before ${env.PLACE} after"
  made   = upper(env.PLACE)
  listed = [for x in [env.PLACE] : "${x}-listed"]
  coded  = strrev(env.PLACE)
  keyed  = { "k" = env.PLACE }
  json   = jsonencode({ a = env.PLACE })
}
server "s" {
  engine = "vllm"
  model  = local.whole
  flags = merge(zipmap([local.made], ["x"]), {
    served-model-name = local.part
    hf-overrides      = { a = local.whole, b = [local.made] }
    chat-template     = local.listed
  })
  args = ["--seed", local.coded, local.json]
  container {
    image      = "vllm/vllm-openai:v0.19.1"
    entrypoint = local.whole
    env        = { PLAIN = local.whole, MORE = local.part }
    volumes    = ["/data/${local.whole}:/data"]
    user       = local.whole
    network    = local.whole
    options    = ["--label", local.part]
    served_as  = local.whole
  }
  simulator {}
  expect {
    engine = local.part
  }
}
server "e" {
  endpoint {
    url       = "http://${local.whole}.example:8000"
    api_key   = local.made
    headers   = { X-A = local.whole, X-B = local.part }
    served_as = local.keyed["k"]
  }
  simulator {}
  telemetry {
    metrics_url = "http://${local.whole}.example/metrics"
    dcgm_url    = "http://${local.whole}.example/dcgm"
  }
}
workload "w" {
  input_tokens  = 64
  output_tokens = 8
  request {
    model = local.whole
    stop  = [local.part]
    user  = local.whole
    extra = { deep = [local.whole, { deeper = local.made }] }
  }
  load {
    concurrency = [1, 2]
    requests    = 6
  }
  sla {
    ttft = "p95 < 1ms"
  }
}
assert "made" {
  condition     = result.s.w.level[1].failed > 0
  error_message = "after ${result.s.w.level[1].failed} of ${upper(env.PLACE)}, ${substr(strrev(local.whole), 0, 9)}"
}
assert "quoted" {
  condition     = seconds("${result.s.w.level[1].failed}") > 1
  error_message = "no duration"
}
assert "said" {
  condition     = result.s.w.level[1].failed > 0
  error_message = "because of ${local.whole}, ${local.made} and ${local.json}"
}
`

// TestLongEnvironmentStays checks that a value from env.NAME is in no file and in no output. The
// plan uses the value in all possible places, also in part and transformed. All commands that read
// the run are tried.
func TestLongEnvironmentStays(t *testing.T) {
	t.Parallel()
	environ := []string{"PLACE=sp1ll-place", "COLUMNS=1000"}
	dir := t.TempDir()
	file, out := filepath.Join(dir, "plan.hcl"), filepath.Join(dir, "out")
	must.Do(t, os.WriteFile(file, []byte(environmentPlan), 0o644))
	holds := func(where, text string) {
		lower := strings.ToLower(text)
		for _, secret := range []string{"sp1ll", "lp-ll1"} {
			if i := strings.Index(lower, secret); i >= 0 {
				t.Errorf("%s says %q", where, text[max(i-60, 0):min(i+40, len(text))])
			}
		}
	}
	more := func(name string) []string {
		var args []string
		for _, f := range []string{"csv", "json", "junit", "html", "markdown", "comment"} {
			args = append(args, "--"+f, filepath.Join(dir, name+"."+f))
		}
		return args
	}
	for _, tt := range []struct {
		args []string
		code int
	}{
		{[]string{"validate", file}, 0},
		{[]string{"validate", "--json", file}, 0},
		{[]string{"plan", file}, 0},
		{append([]string{"run", "--simulate", "--out", out, file}, more("run")...), 1},
		{append([]string{"judge", out, file}, more("judge")...), 1},
		{append([]string{"report", out}, more("report")...), 0},
		{[]string{"run", "--out", filepath.Join(dir, "real"), "--only", "e/w/1", "--budget", "1s", file}, 4}, // no such host
	} {
		var stdout, stderr bytes.Buffer
		code := Main(context.Background(), tt.args, environ, Streams{Out: &stdout, Err: &stderr})
		said := stdout.String() + stderr.String()
		must.Hold(t, code == tt.code, "%v: exit %d, want %d\n%s", tt.args, code, tt.code, said)
		holds(strings.Join(tt.args[:2], " "), said)
	}
	seen := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == file {
			return err
		}
		seen++
		raw, err := os.ReadFile(path)
		holds(path, string(raw))
		return err
	})
	must.Hold(t, err == nil && seen >= 20, "%d files: %v", seen, err)
}
