package main

import (
	"os"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
)

// A mistake on the command line ends before anything starts, with one line that names its cause and
// hints.
func TestMistakesOnTheCommandLine(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"gate.hcl": "server \"s\" {\n  simulator {}\n}\nworkload \"w\" {\n  input_tokens  = 64\n  output_tokens = 8\n  load { concurrency = 1 }\n  sla { ttft = \"p50 < 1s\" }\n}\n", "notes.txt": "hello\n", "empty.hcl": "",
		"pod.hcl": "server \"s\" {\n  engine = \"vllm\"\n  model  = \"m\"\n  pod { image = \"i\" }\n}\nworkload \"w\" {\n  input_tokens  = 64\n  output_tokens = 8\n  load { concurrency = 1 }\n  sla { ttft = \"p50 < 1s\" }\n}\n"} {
		must.Do(t, os.WriteFile(name, []byte(text), 0o644))
	}
	must.Do(t, os.Mkdir("results", 0o755))
	for _, row := range []struct{ line, says string }{
		{"rnu gate.hcl", `unknown command "rnu"`},
		{"run", "plan"},
		{"run nope.hcl", "nope.hcl"},
		{"run gate.hcl --simulte", "--simulate"},
		{"run gate.hcl --var", "--var"},
		{"run gate.hcl --var x", "x"},
		{"run gate.hcl --var nope=1", "nope"},
		{"run gate.hcl --var-file nope.hcl", "nope.hcl"},
		{"run gate.hcl --only nope", "nope"},
		{"run gate.hcl --base nope", "--base nope is not a folder"},
		{"run gate.hcl --confidence 95", "confidence"},
		{"run gate.hcl --junit", "--junit"},
		{"run gate.hcl --policy nope.hcl", "nope.hcl"},
		{"run gate.hcl --color pink", "pink"},
		{"run gate.hcl --salt many", "many"},
		{"run pod.hcl --workers 2 --token-file token", "--workers needs servers that run already, and this run would start s itself"},
		{"run notes.txt", "notes.txt"},
		{"run --simulate empty.hcl", "empty.hcl"},
		{"validate nope", "nope"},
		{"plan nope.hcl", "nope.hcl"},
		{"judge nope", "plan"},
		{"report", "no results folder named"},
		{"report nope --pdf", "--pdf"},
		{"compare nope", "takes two results folders"},
		{"diff gate.hcl", "diff"},
		{"history chekc nope", "chekc"},
		{"strength nope.hcl", "nope.hcl"},
		{"traffic nope.csv", "nope.csv"},
		{"init --url http://127.0.0.1:8000 --image x", "only one server"},
		{"init --use-case nope --command x --engine vllm", "nope"},
		{"init --rate fast --command x --engine vllm", "fast"},
		{"fmt nope.hcl", "nope.hcl"},
		{"schema nope", "nope"},
		{"sim --nope", "--nope"},
	} {
		t.Run(row.line, func(t *testing.T) {
			r := tokgate(t, strings.Fields(row.line)...)
			must.Hold(t, r.code == verdict.ExitPlan, "exit %d, want %d\n%s%s", r.code, verdict.ExitPlan, r.out, r.err)
			said, hints := 0, 0
			for line := range strings.Lines(r.err) {
				if strings.HasPrefix(line, "tokgate: ") || strings.HasPrefix(line, "Error: ") {
					said++
				}
				if strings.HasPrefix(line, "  hint: ") {
					hints++
				}
			}
			must.Hold(t, said >= 1 && said <= 2 && hints <= 2 && strings.Contains(r.err, row.says), "want one message that says %q:\n%s", row.says, r.err)
		})
	}
}
