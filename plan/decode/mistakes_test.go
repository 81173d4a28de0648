package decode

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/internal/must"
)

// sound is a valid plan. Each row of TestMistakes makes one mistake in it.
const sound = `variable "limit" {
  type    = string
  default = "500ms"
}

server "mine" {
  engine = "vllm"
  model  = "m"
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "chat" {
  input_tokens  = 256
  output_tokens = 16

  load {
    concurrency = [1, 8]
    requests    = 200
  }

  sla {
    at      = [8]
    ttft    = "p95 < ${var.limit}"
    speed   = "mean > 40 tok/s"
    success = "every"
  }

  capacity {
    up_to = 64
  }

  sla {
    at  = "capacity"
    e2e = "mean < 9s"
  }
}

gate {
  budget     = "20m"
  confidence = 0.95
}
`

// A mistake that people make gets one message, which names its cause.
func TestMistakes(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{"unknown.csv": "ts,in,out\n0,100,10\n1,100,10\n", "half.jsonl": "{\"prompt\": \"a\"}\n{\"prompt\":\n"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	_, diags := File(Options{Path: "sound.hcl", Source: []byte(sound)})
	must.Need(t, !diags.HasErrors(), "%v", diags)
	for _, row := range []struct{ mistake, old, new, says string }{
		{"a name for ttft", "    ttft ", "    tftt ", `Did you mean "ttft"`},
		{"another tool's metric", "    e2e ", "    latency ", "Use e2e for the time of the whole request"},
		{"another tool's metric of errors", `success = "every"`, `error_rate = "< 1%"`, "Use success"},
		{"an undeclared variable", "var.limit", "var.limits", `no variable "limits". Did you mean "limit"?`},
		{"an undeclared variable in a list", "[1, 8]\n    req", "[for n in [1, 2] : n * var.k]\n    req", `no variable "k"`},
		{"a preset that does not exist", "  input_tokens  = 256\n  output_tokens = 16\n", "  preset = \"chat\"\n", `Did you mean "chatbot"?`},
		{"a misspelt required argument", "up_to = 64", "upto = 64", `Did you mean "up_to"?`},
		{"a missing required argument", "    up_to = 64\n", "", `"up_to" is required`},
		{"a misspelt block", `workload "chat"`, `workloads "chat"`, `Did you mean "workload"?`},
		{"a misspelt argument", "input_tokens ", "input_token ", `Did you mean "input_tokens"?`},
		{"a missing closing brace", "    requests    = 200\n  }", "    requests    = 200", "load (line 16) is not closed. The indentation suggests a missing } after line 18."},
		{"a closing brace too many", "0.95\n}", "0.95\n}\n}", "no opening brace"},
		{"a missing quote", `"mean < 9s"`, `"mean < 9s`, "The closing quote is missing"},
		{"text without quotes", `"20m"`, "20m", `in quotes: budget = "20m"`},
		{"single quotes", `"20m"`, "'20m'", "double quotes"},
		{"a colon", "up_to = 64", "up_to: 64", "Write an equals sign, not a colon: up_to = 64."},
		{"two arguments on a line", "[1, 8]\n    requests", "[1, 8] requests", "requests"},
		{"a comma", "= 256", "= 256,", "Remove the comma."},
		{"an argument set twice", "= 256", "= 256\n  input_tokens = 512", "already set in line"},
		{"a block with an equals sign", "  capacity {", "  capacity = {", "capacity is a block, not an argument"},
		{"a number with K", "= 256", "= 4K", "Write 4000, or 4 * 1024."},
		{"a time without a unit", `< ${var.limit}`, "< 500", "Write 500s or 500ms."},
		{"a duration in words", `"20m"`, `"20 minutes"`, "20 minutes"},
		{"a confidence in percent", "= 0.95", "= 95", "95% is 0.95."},
		{"a threshold without a statistic", `"mean < 9s"`, `"< 9s"`, "needs a statistic"},
		{"a threshold the wrong way round", `"mean > 40 tok/s"`, `"mean < 40 tok/s"`, "speed"},
		{"a statistic that does not exist", `p95 <`, `p95th <`, "p95"},
		{"a unit of another metric", `"mean > 40 tok/s"`, `"mean > 40ms"`, "tok/s"},
		{"a level that is not measured", "at      = [8]", "at      = [16]", "16"},
		{"a negative number", "= 16\n", "= -16\n", "output_tokens"},
		{"a fraction", "= 256", "= 256.5", "whole number"},
		{"a word in place of a number", "= 256", `= "many"`, "whole number"},
		{"no levels", "[1, 8]", "[]", "concurrency is an empty list"},
		{"two shapes of a load", "requests    = 200", "rate = \"4 req/s\"", "only one of concurrency, burst, users, stage, rate or trace"},
		{"a server twice", "workload \"chat\"", "server \"mine\" {\n  simulator {}\n}\n\nworkload \"chat\"", "already declared"},
		{"an engine that does not exist", `"vllm"`, `"vlm"`, `Did you mean "vllm"?`},
		{"a URL without http", `"http://127.0.0.1:8000"`, `"127.0.0.1:8000"`, "http://"},
		{"a trace with unknown columns", "concurrency = [1, 8]\n    requests    = 200\n  }\n\n  sla {\n    at      = [8]", "trace = \"unknown.csv\"\n  }\n\n  sla {", `columns = { time = "ts"`},
		{"half a line in a data set", "  input_tokens  = 256", "  prompt { dataset = \"half.jsonl\" }", "half.jsonl:2: it is not valid JSON"},
		{"a file that does not exist", "  input_tokens  = 256", "  prompt { dataset = \"nope.jsonl\" }", "nope.jsonl"},
	} {
		t.Run(row.mistake, func(t *testing.T) {
			src := strings.Replace(sound, row.old, row.new, 1)
			must.Need(t, src != sound, "%q is not in the plan", row.old)
			_, diags := File(Options{Path: "plan.hcl", Source: []byte(src)})
			var errors []string
			for _, d := range diags {
				if d.Severity == hcl.DiagError {
					errors = append(errors, d.Subject.String()+": "+d.Summary+": "+d.Detail)
				}
			}
			if len(errors) != 1 || !strings.Contains(errors[0], row.says) {
				t.Errorf("%d errors, want one that says %q:\n%s", len(errors), row.says, strings.Join(errors, "\n"))
			}
		})
	}
}
