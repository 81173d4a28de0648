package movein

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
)

var (
	recipes = flag.String("recipes", "", "folder of perf-eval recipes to carry over")
	update  = flag.Bool("update", false, "rewrite the golden files")
)

// sent says what a plan sends: API, lengths, levels with their requests or time, and what is shared.
func sent(p *plan.Plan) string {
	var all []string
	for _, w := range p.Workloads {
		out := fmt.Sprint(w.Output.Mean)
		if w.Output.Natural {
			out = "at most " + out
		} else if w.Output.Jitter > 0 {
			out += fmt.Sprintf("±%.0f%%", 100*w.Output.Jitter)
		}
		said := fmt.Sprintf("%s, %d in, %s out", w.API, w.Input, out)
		if w.Prompt.Shared.Tokens > 0 {
			said += fmt.Sprintf(", %d in %d shared", w.Prompt.Shared.Tokens, w.Prompt.Shared.Groups)
		}
		for _, l := range w.Loads[0].Levels {
			said += fmt.Sprintf("; %s: %d", l.Name, l.Requests)
			if l.Duration > 0 {
				said += fmt.Sprintf(" in %v", l.Duration)
			}
		}
		all = append(all, said)
	}
	return strings.Join(all, "\n")
}

// readBack decodes the plan of a benchmark. It must be formatted, and valid.
func readBack(t *testing.T, b *Benchmark, dir string) *plan.Plan {
	t.Helper()
	file := filepath.Join(dir, "gate.hcl")
	if b.URL == "" {
		b.URL = "http://127.0.0.1:8000"
	}
	text := must.Get(b.Plan(file))(t)
	p, diags := decode.File(decode.Options{Path: file, Source: text})
	must.Need(t, !diags.HasErrors(), "%v\n%s", diags, text)
	return p
}

// A command line, read back from its plan, has the same lengths, load and counts.
func TestLines(t *testing.T) {
	for _, tt := range []struct{ line, want, lost string }{
		{"vllm bench serve --random-input-len 2048 --max-concurrency 16", "completions, 2048 in, 128 out; 16: 1000", ""},
		{"VLLM_USE_RUST_BENCH=1 vllm bench serve \\\n  --backend openai-chat --model=m --dataset_name random \\\n  --random-input-len 100 --random-output-len 50 --num-prompts 60 --max-concurrency 4 --num-warmups 8 # quick",
			"chat, 100 in, 50 out; 4: 60", "chat template"},
		{`vllm bench serve --input-len 512 --output-len 100 --random-range-ratio '{"input": 0, "output": 0.2}' --random-prefix-len 512 --num-prompts 300 --max-concurrency 2 --seed 7 --lora-modules a b`,
			"completions, 1024 in, 100±20% out, 512 in 1 shared; 2: 300", "--seed 7|--lora-modules a b"},
		{"vllm bench serve --dataset-name prefix_repetition --prefix-repetition-prefix-len 1024 --prefix-repetition-suffix-len 128 --prefix-repetition-num-prefixes 5 --prefix-repetition-output-len 64 --ignore-eos --max-concurrency 8 --num-prompts 80",
			"completions, 1152 in, 64 out, 1024 in 5 shared; 8: 80", ""},
		{"vllm bench serve --request-rate 4 --num-prompts 400 --max-concurrency 32 --goodput ttft:500 e2el:4000", "completions, 1024 in, 128 out; 4 req/s: 400", "--max-concurrency 32"},
		{"vllm bench serve --num-prompts 200", "completions, 1024 in, 128 out; burst 200: 200", ""},
		{"python3 benchmarks/benchmark_serving.py --backend vllm --model m --max-concurrency 1 --num-prompts 50 --random-input-len 64 --random-output-len 32 > out.txt", "completions, 64 in, 32 out; 1: 50", ""},
		{`guidellm benchmark --target "http://h:8000" --rate-type concurrent --rate 1,2,4 --max-requests 200 --data "prompt_tokens=256,output_tokens=128"`,
			"chat, 256 in, 128 out; 1: 200; 2: 200; 4: 200", ""},
		{`guidellm run --backend kind=openai_http,target=http://h:8000,request_format=/v1/completions --data kind=synthetic_text,prompt_tokens=256,output_tokens=128,output_tokens_stdev=9 --profile '{"kind":"poisson","rate":[10,20]}' --constraint kind=max_duration,seconds=60`,
			"completions, 256 in, 128 out; 10 req/s: 600; 20 req/s: 1200", "output_tokens_stdev=9"},
		{"guidellm run --data kind=synthetic_text,prompt_tokens=8,output_tokens=4 --profile kind=concurrent --override profile.streams 2,4 --constraint kind=max_requests,count=90",
			"chat, 8 in, 4 out; 2: 90; 4: 90", ""},
		{"guidellm benchmark --target h:8000 --rate-type sweep --max-seconds 30 --data prompt_tokens=8,output_tokens=4", "chat, 8 in, 4 out; 1: 10 in 30s", "profile sweep"},
		{"aiperf profile --model m -u h:8000 --streaming --isl 1024 --osl 256 --concurrency 8,16 --request-count 160 --extra-inputs ignore_eos:true --shared-system-prompt-length 512",
			"chat, 1536 in, 256 out, 512 in 1 shared; 8: 160; 16: 160", ""},
		{"aiperf profile --model m --url http://h --endpoint-type completions --isl 100 --osl 20 --request-rate 5 --benchmark-duration 60 --arrival-pattern constant --osl-stddev 5",
			"completions, 100 in, at most 20 out; 5 req/s: 300", "--osl-stddev 5"},
		{"aiperf profile -m m --concurrency 30", "chat, 550 in, at most 1024 out; 30: 60", "no --osl"},
	} {
		b, err := Line(tt.line, "gate.hcl")
		must.Need(t, err == nil, "%s: %v", tt.line, err)
		must.Same(t, tt.line+" (-want +got)", tt.want, sent(readBack(t, b, t.TempDir())))
		lost := strings.Join(b.Lost, "\n")
		for _, words := range strings.Split(tt.lost, "|") {
			must.Hold(t, strings.Contains(lost, words) && (words != "" || lost == ""), "%s: not carried over: %q, want %q", tt.line, lost, words)
		}
	}
}

// What no plan can say is an error with its reason, and never another load.
func TestRefused(t *testing.T) {
	for line, want := range map[string]string{
		"wrk -t4 http://127.0.0.1":                                                    "no command line of a known tool",
		"vllm bench serve --max-concurrency $CONC":                                    "in place of the shell's variable",
		"vllm bench serve --max-concurrency many":                                     `--max-concurrency is "many", but not a number`,
		"vllm bench serve --num-prompts 1.5":                                          "not a whole number",
		"vllm bench serve --backend openai-embeddings":                                "chat and completions",
		"vllm bench serve --dataset-name random-mm":                                   "a plan has prompts of a length, or of a file",
		"vllm bench serve --dataset-name sharegpt":                                    "needs --dataset-path",
		"vllm bench serve --extra-body x":                                             "no JSON object",
		"guidellm run --profile kind=throughput --data prompt_tokens=8":               "without a number of streams",
		"guidellm run --profile kind=constant --data prompt_tokens=8,output_tokens=8": "without a rate",
		"aiperf profile --endpoint-type embeddings":                                   "chat and completions",
		"aiperf profile --conversation-turn-mean 3":                                   "conversations of 3 turns",
		"aiperf profile --isl 128,256":                                                "one line for each",
	} {
		_, err := Line(line, "gate.hcl")
		must.Hold(t, err != nil && strings.Contains(err.Error(), want), "%s: %v, want %q", line, err, want)
	}
	for recipe, want := range map[string]string{
		"a: [":                         "not valid YAML",
		"name: x":                      "neither a recipe of perf-eval",
		"base: {name: x}":              "several recipes",
		"name: x\nvllm: {model: m}":    "no vllm_bench",
		"benchmark: {type: gpqa}":      `type "gpqa"`,
		"benchmark: {type: sa-bench}":  "no isl",
		"benchmark: {concurrencies: }": `type ""`,
		"vllm: {}\nvllm_bench: {configs: [{name: a, dataset: speed_bench, num_prompts: 1, max_concurrency: 1}]}": "a plan needs a file",
		"vllm: {}\nvllm_bench: {configs: [{name: a}]}":                                                           "no max_concurrency",
	} {
		_, err := Recipe([]byte(recipe))
		must.Hold(t, err != nil && strings.Contains(err.Error(), want), "%s: %v, want %q", recipe, err, want)
	}
}

// The plans of recipes, as files.
func TestRecipes(t *testing.T) {
	for name, want := range map[string]string{
		"perf-eval": "completions, 1024 in, 256 out; 1: 10; 64: 640\nchat, 8192 in, 1024 out; 128: 768",
		"srt-slurm": "completions, 921 in, 460±11% out; 4: 40; 16: 160",
	} {
		b, err := Read(filepath.Join("testdata", name+".yaml"), "gate.hcl")
		must.Do(t, err)
		must.Same(t, name+" (-want +got)", want, sent(readBack(t, b, t.TempDir())))
		got, err := b.Plan("gate.hcl")
		must.Do(t, err)
		golden := filepath.Join("testdata", name+".hcl")
		if *update {
			must.Do(t, os.WriteFile(golden, got, 0o644))
		}
		old, err := os.ReadFile(golden)
		d := cmp.Diff(string(old), string(got))
		must.Hold(t, err == nil && d == "", "%s: %v (-golden +got):\n%s", name, err, d)
	}
}

// Files of prompts and traces.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{
		"share.json":     `[{"id":"a","conversations":[{"from":"system","value":"s"},{"from":"human","value":"Why?"},{"from":"gpt","value":"Because."}]},{"id":"b","conversations":[]}]`,
		"trace.jsonl":    `{"timestamp":0,"input_length":100,"output_length":5,"hash_ids":[1]}` + "\n" + `{"timestamp":900,"input_length":100,"output_length":5,"hash_ids":[1]}` + "\n",
		"nothing.jsonl":  `{"a":1}` + "\n",
		"silent.json":    `[{"id":"b","conversations":[]}]`,
		"run.sh":         "#!/bin/sh\nset -e\n# vllm bench serve --never\necho hello\nexec vllm bench serve --max-concurrency 2 --num-prompts 40\n",
		"sub/ignored.md": "",
	} {
		_ = os.MkdirAll(filepath.Dir(name), 0o755)
		must.Do(t, os.WriteFile(name, []byte(text), 0o644))
	}
	for from, want := range map[string]string{
		"share.json": "chat, 0 in, at most 512 out; 1: 200; 4: 200",
		"run.sh":     "completions, 1024 in, 128 out; 2: 40",
		"vllm bench serve --dataset-name sharegpt --dataset-path share.json --max-concurrency 2 --num-prompts 40": "completions, 0 in, at most 1024 out; 2: 40",
	} {
		b, err := Read(from, filepath.Join(dir, "gate.hcl"))
		must.Need(t, err == nil, "%s: %v", from, err)
		must.Same(t, from+" (-want +got)", want, sent(readBack(t, b, dir)))
	}
	b, err := Read("trace.jsonl", filepath.Join(dir, "gate.hcl"))
	must.Hold(t, err == nil && b.Loads[0].Trace == "trace.jsonl", "%+v, %v", b, err)
	for from, want := range map[string]string{
		"nothing.jsonl": "neither a trace of a known format nor a data set", "silent.json": "no person speaks", "none.yaml": "there is no file", "sub": "not a regular file",
	} {
		if _, err := Read(from, "gate.hcl"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", from, err, want)
		}
	}
}

// A folder of perf-eval's own recipes, by -recipes: at least nine in ten become valid plans, and the
// others have a reason.
func TestPerfEval(t *testing.T) {
	if *recipes == "" {
		t.Skip("no -recipes")
	}
	files, _ := filepath.Glob(filepath.Join(*recipes, "*.yaml"))
	good := 0
	for _, file := range files {
		b, err := Read(file, "gate.hcl")
		if err != nil {
			t.Logf("%s: %v", filepath.Base(file), err)
			continue
		}
		readBack(t, b, t.TempDir())
		good++
	}
	if t.Logf("%d of %d", good, len(files)); len(files) == 0 || good*10 < len(files)*9 {
		t.Error("fewer than nine in ten")
	}
}

// Any text gives an error, or a benchmark whose plan can be formatted.
func FuzzLine(f *testing.F) {
	for _, seed := range []string{
		`vllm bench serve --base-url "http://a" --extra-body '{"a":"${b}"}' --header a=b --goodput ttft:1`,
		`guidellm run --profile '{"kind":"poisson","rate":[1]}' --data prompt_tokens=8,output_tokens=8 --override profile.rate 1,2`,
		"aiperf profile --extra-inputs a:b --header 'x: y' --concurrency 1,2 --goodput request_latency:9",
		"name: x\nvllm: {serve_args: \"-a 'b\", env: {A: 1}}\nvllm_bench: {configs: [{name: \"8k\", input_len: 1, output_len: 2, num_prompts: [1], max_concurrency: [2], args: {x: [1]}}]}",
		"benchmark: {type: sa-bench, isl: 1, osl: 2, concurrencies: 1x4, random_range_ratio: 0.5}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, read := range []func() (*Benchmark, error){
			func() (*Benchmark, error) { return Line(text, "gate.hcl") }, func() (*Benchmark, error) { return Recipe([]byte(text)) },
		} {
			b, err := read()
			if err != nil {
				continue
			}
			if text, err := b.Plan("gate.hcl"); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
		}
	})
}
