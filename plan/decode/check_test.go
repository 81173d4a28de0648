package decode

import (
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
)

func TestTokenCount(t *testing.T) {
	for _, row := range []struct {
		value cty.Value
		want  int
	}{
		{cty.NumberIntVal(32768), 32768},
		{cty.StringVal("32768"), 32768},
		{cty.StringVal("32k"), 32_000}, // vLLM's k means 1,000
		{cty.StringVal("32K"), 32_768}, // vLLM's K means 1,024
		{cty.StringVal("1.5K"), 1_536}, // 1.5 · 1024
		{cty.StringVal("1M"), 1 << 20},
		{cty.StringVal("1m"), 1_000_000},
		// these values limit nothing:
		{cty.StringVal("auto"), 0},
		{cty.StringVal(""), 0},
		{cty.StringVal("K"), 0},
		{cty.NumberIntVal(-1), 0},
		{cty.NumberIntVal(0), 0},
		{cty.NumberFloatVal(1.5), 0},
		{cty.NullVal(cty.Number), 0},
		{cty.UnknownVal(cty.Number), 0},
		{cty.True, 0},
	} {
		must.Same(t, fmt.Sprintf("tokenCount(%#v)", row.value), row.want, tokenCount(row.value))
	}
}

func TestContextLimit(t *testing.T) {
	flags := func(kv ...any) []plan.Flag {
		var out []plan.Flag
		for i := 0; i < len(kv); i += 2 {
			v, ok := kv[i+1].(int)
			value := cty.NumberIntVal(int64(v))
			if !ok {
				value = cty.True
			}
			out = append(out, plan.Flag{Name: kv[i].(string), Value: value})
		}
		return out
	}
	for _, row := range []struct {
		engine string
		flags  []plan.Flag
		want   int
	}{
		{"vllm", flags("max-model-len", 4096), 4096},
		{"vllm", flags("max_model_len", 4096), 4096},
		{"vllm", flags("context-length", 4096), 0},
		{"sglang", flags("context-length", 4096), 4096},
		{"llama.cpp", flags("ctx-size", 4096), 4096},
		{"llama.cpp", flags("c", 4096, "np", 4), 1024}, // four slots share the context
		{"llama.cpp", flags("c", 4096, "parallel", 4, "kv-unified", true), 4096},
		{"openai", flags("max-model-len", 4096), 0},
	} {
		got, _ := contextLimit(&plan.Server{Engine: row.engine, Flags: row.flags})
		must.Hold(t, got == row.want, "contextLimit(%s, %v) = %d, want %d", row.engine, row.flags, got, row.want)
	}
}

// The server's command line has the flags in plan order, and then the args. A mistake in one flag
// does not hide the mistakes in other flags.
func TestCommandLineOrder(t *testing.T) {
	src := `
server "s" {
  engine = "sglang"
  flags  = { z = 1, a = 2, off = false, m = null, "bad name" = 1, b = "x" }
  args   = ["--raw", "1"]
  endpoint { url = "http://127.0.0.1:8000" }
}
`
	p, _ := File(Options{Path: "test.hcl", Source: []byte(src)})
	got, diags := plan.CommandLine("sglang", p.Servers[0].Flags, p.Servers[0].Args)
	want := []string{"-z", "1", "-a", "2", "-b", "x", "--raw", "1"}
	diff := gocmp.Diff(want, got)
	must.Hold(t, diff == "" && len(diags) == 2, "%s\n%d problems, want 2: %v", diff, len(diags), diags)
}

func TestMisplacedSettings(t *testing.T) {
	for _, row := range []struct{ src, want string }{
		{"sla {\n}\n", "It belongs in workload."},
		{"workload \"w\" {\n  concurrency = 1\n}\n", "It belongs in workload.load."},
		{"workload \"w\" {\n  load {\n    input_tokens = 1\n  }\n}\n", "It belongs in workload."},
		{"server \"s\" {\n  url = \"x\"\n}\n", "It belongs in server.endpoint, server.stack or server.telemetry.prometheus."},
		{"server \"s\" {\n  workload \"w\" {\n  }\n}\n", "It belongs in the top level of the plan."},
		{"workload \"w\" {\n  ttft = \"p95 < 2s\"\n}\n", "It belongs in workload.sla or workload.good."},
		{"workload \"w\" {\n  sla {\n    ttft_p95 = \"2s\"\n  }\n}\n", "Write the statistic inside the threshold: ttft = \"p95 < 2s\" or \"mean < 2s\"."},
		{"workload \"w\" {\n  sla {\n    nonsense = 1\n  }\n}\n", `An argument named "nonsense" is not expected here.`},
	} {
		_, diags := File(Options{Path: "p.hcl", Source: []byte(row.src)})
		var details []string
		for _, d := range diags {
			if strings.HasPrefix(d.Summary, "Unsupported") {
				details = append(details, d.Detail)
			}
		}
		must.Hold(t, len(details) == 1 && strings.HasSuffix(details[0], row.want), "%q: %q, want one that ends in %q", row.src, details, row.want)
	}
}
