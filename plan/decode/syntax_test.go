package decode

import (
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// People who do not know HCL often make the same syntax errors. Each error gets one diagnostic with
// the right syntax.
func TestHowItIsWritten(t *testing.T) {
	const text = `server "s" {
  simulator {}
}
workload "w" {
  input_tokens  = 256
  output_tokens = 16
  load {
    concurrency = 8
    requests    = 150
  }
  sla {
    ttft = "p95 < 8s"
  }
}
`
	_, diags := File(Options{Path: "test.hcl", Source: []byte(text)})
	must.Need(t, len(diags) <= 0, "%v", diags)
	for _, row := range []struct {
		old, new string
		line     int
		says     string
	}{
		{`"p95 < 8s"`, `p95 < 8s`, 12, `in quotes: ttft = "p95 < 8s".`},
		{`"p95 < 8s"`, `p95 < 8s # soon`, 12, `in quotes: ttft = "p95 < 8s".`},
		{`= 256`, `= 4k`, 5, "Write 4000, or 4 * 1024."},
		{`= 256`, `= "4K"`, 5, "Write 4000, or 4 * 1024."},
		{`= 256`, `= "256"`, 5, "Write it without quotes: 256."},
		{`"p95 < 8s"`, `"p95 < 8s`, 12, "The closing quote is missing"},
		{`"p95 < 8s"`, `"p950 < 8s"`, 12, `Did you mean "p95"?`},
		{`"p95 < 8s"`, `"p95 < 8 sec"`, 12, `unknown unit "sec". Write 8s.`},
		{`"p95 < 8s"`, `"p95 < 800 msec"`, 12, `unknown unit "msec". Write 800ms.`},
		{`"p95 < 8s"`, `"p95 < 8 parsecs"`, 12, "Write a number with its unit, such as 2s."},
		{`ttft = "p95 < 8s"`, `speed = "mean > 40 tps"`, 12, `unknown unit "tps". Write 40 tok/s.`},
		{`ttft = "p95 < 8s"`, `latency = "mean < 2s"`, 12, "Use e2e for the time of the whole request"},
		{`ttft = "p95 < 8s"`, `error_rate = "< 1%"`, 12, `such as success = "every"`},
		{`"p95 < 8s"`, `'p95 < 8s'`, 12, "Put text in double quotes"},
		{`"p95 < 8s"`, `"p95 < 8s, p99 < 9s"`, 12, `ttft = ["p95 < 2s", "p99 < 4s"]`},
		{`"p95 < 8s"`, `"p95 < var.limit"`, 12, "Write ${var.limit}."},
		{`sla {`, `SLA {`, 11, `Did you mean "sla"?`},
		{`server "s"`, `sever "s"`, 1, `Did you mean "server"?`},
		{`server "s"`, `server`, 1, "must have 1 labels (name)"},
		{`ttft = "p95 < 8s"`, `speed = "p95 > 40 tok/s"`, 12, "p95 of speed already holds if only 5% of the requests meet the limit. To bound all but 5% of the requests, use p5."},
		{`"p95 < 8s"`, `"p1 < 8s"`, 12, "p1 of ttft already holds if only 1% of the requests meet the limit. To bound all but 1% of the requests, use p99."},
		{`"p95 < 8s"`, `"min < 8s"`, 12, "min of ttft already holds if a single request stays below the limit"},
		{`ttft = "p95 < 8s"`, `speed = "max > 40 tok/s"`, 12, "max of speed already holds if a single request reaches the limit"},
		{`ttft = "p95 < 8s"`, `preemptions = "< 1ms"`, 12, "Write a number without a unit, such as 1"},
		{`sla {`, `slo {`, 11, `Did you mean "sla"?`},
		{`workload "w"`, `worklaod "w"`, 4, `Did you mean "workload"?`},
		{"load {\n    concurrency = 8\n    requests    = 150\n  }", `load { concurrency = 8 requests = 20 }`, 7, "A block on one line can have only one argument. End the line after load {."},
		{"load {\n    concurrency = 8\n    requests    = 150\n  }", `load { concurrency = 8, requests = 20 }`, 7, "can have only one argument"},
		{`load {`, "load\n  {", 7, "on the same line as the name of the block"},
		{`= 256`, `= 256,`, 5, "Remove the comma."},
		{`= 256`, `= 256;`, 5, "Remove the semicolon."},
		{`= 256`, ` = 256 output_tokens = 16`, 5, "Write output_tokens = … on a new line."},
		{`= 256`, `=`, 5, "input_tokens has no value."},
		{`input_tokens  = 256`, `input_tokens: 256`, 5, "Write an equals sign, not a colon: input_tokens = 256."},
		{`input_tokens  = 256`, `"input_tokens": 256,`, 5, "Write names without quotes"},
		{`input_tokens  = 256`, `input_tokens 256`, 5, "Write an equals sign: input_tokens = 256."},
		{`input_tokens  = 256`, `input_tokens == 256`, 5, "Write one equals sign: input_tokens = …."},
		{`ttft = "p95 < 8s"`, `ttft < "p95 8s"`, 12, `inside the quotes: ttft = "< …".`},
		{`input_tokens  = 256`, "input_tokens = 256\n  input_tokens = 512", 6, "input_tokens is already set in line 5."},
		{"sla {\n", "sla: {\n", 11, "Write a block with braces and without a colon: sla { … }."},
		{`"p95 < 8s"`, `“p95 < 8s”`, 12, "Put text in straight quotes"},
		{"    requests    = 150\n  }", "    requests    = 150", 4, "load (line 7) is not closed. The indentation suggests a missing } after line 9."},
		{"8s\"\n  }\n}", "8s\"\n  }\n}\n}", 15, "This closing brace has no opening brace."},
		{text, "{\n  \"server\": {}\n}\n", 1, "must end in .hcl.json"},
		{`server "s"`, "gate {\n  confidence = 95\n}\nserver \"s\"", 2, "95% is 0.95."},
	} {
		src := strings.Replace(text, row.old, row.new, 1)
		_, diags := File(Options{Path: "test.hcl", Source: []byte(src)})
		if len(diags) != 1 || diags[0].Subject == nil || diags[0].Subject.Start.Line != row.line || !strings.Contains(diags[0].Detail, row.says) {
			t.Errorf("%s: %v, want at line %d: %s", row.new, diags, row.line, row.says)
		}
	}
}
