package plan

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/tokgate/tokgate/internal/must"
)

func TestCommandLine(t *testing.T) {
	for _, row := range []struct {
		engine, name, value string // value as HCL
		want                []string
		problem             string
	}{
		{"vllm", "max-model-len", `32768`, []string{"--max-model-len", "32768"}, ""},
		{"vllm", "max-model-len", `"32K"`, []string{"--max-model-len", "32K"}, ""},
		// vLLM takes names with - or with _, so the name stays as written.
		{"vllm", "max_model_len", `1`, []string{"--max_model_len", "1"}, ""},
		{"vllm", "gpu-memory-utilization", `0.45`, []string{"--gpu-memory-utilization", "0.45"}, ""},
		{"vllm", "big", `12345678901234567890`, []string{"--big", "12345678901234567890"}, ""},
		{"vllm", "seed", `-1`, []string{"--seed", "-1"}, ""},
		{"vllm", "enable-chunked-prefill", `true`, []string{"--enable-chunked-prefill"}, ""},
		{"vllm", "enable-chunked-prefill", `false`, []string{"--no-enable-chunked-prefill"}, ""},
		{"vllm", "kv-cache-dtype", `null`, nil, ""},
		{"vllm", "empty", `""`, []string{"--empty", ""}, ""},
		{"vllm", "text", `"a b"`, []string{"--text", "a b"}, ""},
		{"vllm", "text", `"-O3"`, []string{"--text=-O3"}, ""},
		{"vllm", "O", `3`, []string{"-O", "3"}, ""},
		{"vllm", "lora-modules", `["a=/x", "b=/y"]`, []string{"--lora-modules", "a=/x", "b=/y"}, ""},
		{"vllm", "cudagraph-capture-sizes", `[1, 2]`, []string{"--cudagraph-capture-sizes", "1", "2"}, ""},
		{"vllm", "lora-modules", `[{ name = "a", path = "/x" }]`, []string{"--lora-modules", `{"name":"a","path":"/x"}`}, ""},
		{"vllm", "speculative-config", `{ num = 2, method = "x", on = true, off = null, f = 0.5 }`,
			[]string{"--speculative-config", `{"f":0.5,"method":"x","num":2,"off":null,"on":true}`}, ""},
		{"vllm", "compilation-config.level", `3`, []string{"--compilation-config.level", "3"}, ""},
		{"sglang", "tp", `2`, []string{"--tp", "2"}, ""},
		{"sglang", "enable-metrics", `true`, []string{"--enable-metrics"}, ""},
		{"llama.cpp", "mmap", `false`, []string{"--no-mmap"}, ""},
		{"llama.cpp", "c", `4096`, []string{"-c", "4096"}, ""},
		{"llama.cpp", "text", `"-x"`, []string{"--text", "-x"}, ""}, // llama.cpp does not know --x=v
		{"openai", "x", `1`, []string{"-x", "1"}, ""},

		{"sglang", "enable-metrics", `false`, nil, sumFlagValue},
		{"llama.cpp", "flash-attn", `false`, nil, sumFlagValue},
		{"openai", "x", `false`, nil, sumFlagValue},
		{"vllm", "no-x", `false`, nil, sumFlagValue},
		{"vllm", "list", `[]`, nil, sumFlagValue},
		{"vllm", "list", `[null]`, nil, sumFlagValue},
		{"vllm", "text", `"a\u0000b"`, nil, sumFlagValue},
		{"vllm", "--tp", `2`, nil, sumFlagName},
		{"vllm", "", `2`, nil, sumFlagName},
		{"vllm", "a b", `2`, nil, sumFlagName},
		{"vllm", "a=b", `2`, nil, sumFlagName},
	} {
		expr, diags := hclsyntax.ParseExpression([]byte(row.value), "test", hcl.InitialPos)
		must.Need(t, !diags.HasErrors(), "%v", diags)
		v, diags := expr.Value(nil)
		must.Need(t, !diags.HasErrors(), "%v", diags)
		got, diags := CommandLine(row.engine, []Flag{{Name: row.name, Value: v}}, nil)
		problem := ""
		if len(diags) > 0 {
			problem = diags[0].Summary
		}
		if diff := gocmp.Diff(row.want, got); diff != "" || problem != row.problem {
			t.Errorf("CommandLine(%s, %s = %s) = %q, problem %q; want %q, problem %q", row.engine, row.name, row.value, got, problem, row.want, row.problem)
		}
	}
}
