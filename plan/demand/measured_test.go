package demand_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
	"github.com/tokgate/tokgate/plan/demand"
)

const measured = `
gate { budget = "1h" }
server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
  telemetry {
    gpus    = [0]
    require = { throttled = "< 1%", foreign_processes = 0 }
  }
}
workload "tasks" {
  output_tokens = { natural = true, max = 64 }
  request {
    model       = "large"
    stop        = ["END"]
    temperature = 0.7
  }
  prompt { dataset = "builtin:arithmetic" }
  load {
    concurrency = [8]
    requests    = 400
    pause       = "0s"
    warmup      = 8
    seeds       = [1, 2, 3, 4, 5]
  }
  score { match = "number" }
  cancel {
    share = "20%"
    after = "2s"
  }
  residue { burst = true }
  sla { ttft = "p95 < 2s" }
}
workload "rows" {
  output_tokens = { natural = true, max = 16 }
  prompt { dataset = "rows.jsonl" }
  load {
    rate          = ["2 req/s"]
    duration      = "5m"
    arrivals      = "poisson"
    max_in_flight = 100
  }
  sla { ttft = "p95 < 2s" }
}
workload "limit" {
  input_tokens  = 128
  output_tokens = 16
  capacity {
    over    = "concurrency"
    up_to   = 64
    require = 8
  }
  sla { ttft = "p95 < 2s" }
}
`

// Each row keeps every threshold and measures something else. Without a direction the change is
// named as such; an easier condition is a weaker demand.
func TestMeasuredOnSomethingElse(t *testing.T) {
	const other = "measured on something else"
	read := func(t *testing.T, src, rows string) *plan.Plan {
		t.Helper()
		dir := t.TempDir()
		must.Do(t, os.WriteFile(filepath.Join(dir, "rows.jsonl"), []byte(rows), 0o600))
		p, diags := decode.File(decode.Options{Path: filepath.Join(dir, "p.hcl"), Source: []byte(src)})
		must.Need(t, !diags.HasErrors(), "%v\n%s", diags, src)
		return p
	}
	const rows = `{"prompt":"Explain the French Revolution."}`
	for _, tt := range []struct{ name, old, new, want string }{
		{"the same", "", "", ""},
		{"a longer budget", `budget = "1h"`, `budget = "2h"`, ""},
		{"stricter telemetry", "< 1%", "< 0.5%", ""},
		{"another model", `"large"`, `"tiny"`, `request model: ` + other + `: large is now tiny`},
		{"stop", `["END"]`, `["a"]`, "request stop: " + other},
		{"temperature", "= 0.7", "= 0", "request temperature: " + other + ": 0.7 is now 0"},
		{"pause", `"0s"`, `"60s"`, "load concurrency: pause: " + other + ": 0s is now 1m0s"},
		{"warmup", "warmup      = 8", "warmup      = 1000", "warmup: " + other},
		{"seeds", "[1, 2, 3, 4, 5]", "[1]", "seeds: " + other},
		{"forced length", "{ natural = true, max = 16 }", "16", "how answers end: " + other + ": natural is now forced length"},
		{"an own score", `score { match = "number" }`, "score { match = { regex = \"([0-9]+)\" } }", "score: " + other},
		{"a looser score", `score { match = "number" }`, "score { match = { regex = \"(.*)\" } }", "score: " + other},
		{"content of the data set", "rows", `{"prompt":"Say 1"}`, "rows: content of the data set: " + other},
		{"arrivals", `"poisson"`, `"constant"`, "arrivals: " + other + ": poisson is now constant"},
		{"max_in_flight", "= 100", "= 8", "max_in_flight: " + other + ": 100 is now 8"},
		{"capacity over another load", `over    = "concurrency"`, `over    = "burst"`, "capacity over: " + other},
		{"a condition on the GPUs dropped", `, foreign_processes = 0`, "", "s: telemetry: require foreign_processes: 0 is now +Inf"},
		{"a condition on the GPUs loosened", "< 1%", "< 50%", "s: telemetry: require throttled: 0.01 is now 0.5"},
		{"telemetry off", "  telemetry {", "  telemetry {\n    enabled = false", "s: telemetry: enabled true is now enabled false"},
		{"api", "workload \"limit\" {", "workload \"limit\" {\n  api = \"completions\"", "limit: api: " + other + ": chat is now completions"},
		{"good", "  score {", "  good { ttft = \"< 9s\" }\n  score {", "what makes a request good: " + other},
		{"clients that leave", `"20%"`, `"5%"`, "clients that leave: " + other + ": 20% after 2s is now 5% after 2s"},
		{"a shorter time to settle", "{ burst = true }", "{\n    burst  = true\n    settle = \"10s\"\n  }", ""},
		{"a longer time to settle", "{ burst = true }", "{\n    burst  = true\n    settle = \"60s\"\n  }", "at 8: residue: nothing after 30s, as many at once is now nothing after 1m, as many at once"},
		{"no burst", "{ burst = true }", "{}", "at 8: residue burst: "},
		{"budget", `budget = "1h"`, `budget = "30s"`, "gate: budget: 1h is now 30s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src, data := measured, rows
			if tt.old == "rows" {
				data = tt.new
			} else {
				must.Need(t, strings.Contains(src, tt.old), "the plan holds no %q", tt.old)
				src = strings.Replace(src, tt.old, tt.new, 1)
			}
			var said []string
			for _, w := range demand.Weakened(read(t, measured, rows), read(t, src, data)) {
				said = append(said, w.What)
			}
			text := strings.Join(said, "\n")
			must.Hold(t, (tt.want != "" || text == "") && strings.Contains(text, tt.want), "want %q, got:\n%s", tt.want, text)
		})
	}
}
