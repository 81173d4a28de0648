package demand_test

import (
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
	"github.com/tokgate/tokgate/plan/demand"
)

const base = `
gate {
  confidence = 0.95
}
server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
  expect {
    version = "1.2"
  }
}
workload "w" {
  input_tokens  = 128
  output_tokens = 16
  load {
    concurrency = [1, 8]
    requests    = 400
    timeout     = "60s"
  }
  sla {
    ttft    = "p95 < 2s"
    speed   = "mean > 40 tok/s"
    success = "observed >= 98%"
  }
  sla {
    severity = "warn"
    itl      = "p50 < 50ms"
  }
}
assert "a" {
  condition     = result.s.w.level[8].failed < 3
  error_message = "failed"
}
`

func load(t *testing.T, src string) *plan.Plan {
	t.Helper()
	p, diags := decode.File(decode.Options{Path: "p.hcl", Source: []byte(src)})
	must.Need(t, !diags.HasErrors(), "%v\n%s", diags, src)
	return p
}

func TestWeakened(t *testing.T) {
	for _, tt := range []struct{ name, old, new, want string }{ // want is "" if nothing is weaker
		{"the same", "", "", ""},
		{"a comment", "gate {", "# a comment\ngate {", ""},
		{"stricter", "p95 < 2s", "p95 < 1s", ""},
		{"another unit", "p95 < 2s", "p95 < 2000ms", ""},
		{"more requests", "= 400", "= 500", ""},
		{"a warning is required", "severity = \"warn\"", "severity = \"error\"", ""},
		{"a level more", "[1, 8]", "[1, 8, 16]", ""},
		{"loosened", "p95 < 2s", "p95 < 4s", "w on s at 1: ttft p95: p95 < 2s is now p95 < 4s"},
		{"loosened, of the other way", "mean > 40", "mean > 30", "w on s at 1: speed mean: mean > 40 tok/s is now mean > 30 tok/s"},
		{"a share", "observed >= 98%", "observed >= 90%", "success"},
		{"another statistic", "p95 < 2s", "p50 < 2s", "ttft p95: p95 < 2s is gone"},
		{"removed", "    ttft    = \"p95 < 2s\"\n", "", "ttft p95: p95 < 2s is gone"},
		{"only a warning", "  sla {\n    ttft ", "  sla {\n    severity = \"warn\"\n    ttft ", "which only warns"},
		{"a warning loosened", "p50 < 50ms", "p50 < 90ms", "p50 < 90ms"},
		{"a level dropped", "[1, 8]", "[8]", "w on s at 1: requests: 400 is gone"},
		{"fewer requests", "= 400", "= 300", "requests: 400 is now 300"},
		{"a longer time-out", "60s", "90s", "timeout"},
		{"an easier prompt", "input_tokens  = 128", "input_tokens  = 64", "input_tokens: 128 is now 64"},
		{"confidence", "0.95", "0.9", "gate: confidence: 0.95 is now 0.9"},
		{"estimates", "gate {", "gate {\n  decide = \"estimate\"", "gate: decide: certified is now estimate"},
		{"inconclusive is a warning", "gate {", "gate {\n  on_inconclusive = \"warn\"", "on_inconclusive"},
		{"measure only", "gate {", "gate {\n  measure_only = true", "gate: measure_only: false is gone"},
		{"expected", "  expect {\n    version = \"1.2\"\n  }\n", "", "s: expect version: 1.2 is gone"},
		{"an assert", "failed < 3", "failed < 30", "assert.a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			must.Need(t, tt.old == "" || strings.Contains(base, tt.old), "the plan holds no %q", tt.old)
			got := demand.Weakened(load(t, base), load(t, strings.Replace(base, tt.old, tt.new, 1)))
			var said []string
			for _, w := range got {
				said = append(said, w.What)
				must.Hold(t, w.Range.Filename == "p.hcl", "%s: it names no file", w.What)
			}
			text := strings.Join(said, "\n")
			must.Hold(t, (tt.want != "" || len(got) <= 0) && strings.Contains(text, tt.want), "want %q, got:\n%s", tt.want, text)
		})
	}
}

const compared = `
server "control" {
  engine = "vllm"
  endpoint { url = "http://127.0.0.1:8000" }
}
server "candidate" {
  engine = "vllm"
  endpoint { url = "http://127.0.0.1:8001" }
}
workload "w" {
  input_tokens  = 128
  output_tokens = 16
  load {
    concurrency = [8]
    requests    = 400
  }
  sla { success = "every" }
}
compare "c" {
  control   = server.control
  candidate = server.candidate
  changed   = ["url"]
  rounds    = 6
  tolerate {
    ttft  = "p95 +10%"
    speed = "mean -10%"
  }
}
`

func TestWeakenedComparison(t *testing.T) {
	for _, tt := range []struct{ name, old, new, want string }{
		{"the same", "", "", ""},
		{"stricter", "+10%", "+5%", ""},
		{"wider", "+10%", "+20%", "ttft p95: p95 +10% is now p95 +20%"},
		{"wider, of the other way", "mean -10%", "mean -20%", "speed"},
		{"a warning", "tolerate {", "tolerate {\n    severity = \"warn\"", "which only warns"},
		{"more rounds", "rounds    = 6", "rounds    = 8", ""},
		{"fewer rounds", "rounds    = 6", "rounds    = 5", "rounds"},
		{"more may differ", "[\"url\"]", "[\"url\", \"version\"]", "changed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var said []string
			for _, w := range demand.Weakened(load(t, compared), load(t, strings.Replace(compared, tt.old, tt.new, 1))) {
				said = append(said, w.What)
			}
			text := strings.Join(said, "\n")
			must.Hold(t, (tt.want != "" || text == "") && strings.Contains(text, tt.want), "want %q, got:\n%s", tt.want, text)
		})
	}
}

// Thresholds imply how many requests may fail: none under a mean, at most 2 % under a percentile. A
// threshold on success that allows more is weaker.
func TestWeakenedFailures(t *testing.T) {
	plan := func(sla string) *plan.Plan {
		return load(t, "server \"s\" {\n  simulator {}\n}\nworkload \"w\" {\n  input_tokens  = 128\n  output_tokens = 16\n  load {\n    concurrency = [8]\n    requests    = 400\n  }\n  sla {\n"+sla+"\n  }\n}\n")
	}
	const p95, mean = "ttft = \"p95 < 2s\"\ntpot = \"p95 < 1s\"\n", "speed = \"mean > 9 tok/s\"\n"
	for _, tt := range []struct{ was, is, want string }{
		{p95, p95, ""},
		{p95, p95 + "success = \"observed >= 90%\"", "w on s at 8: failed requests: at most 2% is now at most 10%"},
		{p95, p95 + "success = \"observed >= 99%\"", ""},
		{p95, p95 + "success = \"every\"", ""},
		{p95 + mean, p95 + mean + "success = \"observed >= 98%\"", "w on s at 8: failed requests: none is now at most 2%"},
		{p95, p95 + mean, ""},
		{p95 + "success = \"observed >= 90%\"", p95 + "success = \"observed >= 80%\"", "w on s at 8: success observed: observed >= 90% is now observed >= 80%"}, // once
	} {
		var said []string
		for _, w := range demand.Weakened(plan(tt.was), plan(tt.is)) {
			said = append(said, w.What)
		}
		got := strings.Join(said, "\n")
		must.Hold(t, got == tt.want, "%q, then %q:\n%s\nwant\n%s", tt.was, tt.is, got, tt.want)
	}
}
