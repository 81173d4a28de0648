package movein

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Recipe reads a recipe of perf-eval or srt-slurm.
func Recipe(text []byte) (*Benchmark, error) {
	var r struct {
		VLLM         *perfEval `yaml:"vllm"`
		Benchmark    *saBench  `yaml:"benchmark"`
		perfEvalRest `yaml:",inline"`
		srtRest      `yaml:",inline"`
	}
	if err := yaml.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("it is not valid YAML: %w", err)
	}
	switch {
	case r.VLLM != nil:
		return r.VLLM.benchmark(r.perfEvalRest)
	case r.Benchmark != nil:
		return r.Benchmark.benchmark(r.srtRest)
	case r.Base.Kind != 0:
		return nil, errors.New("it holds several recipes, a base and overrides; a plan is made from one: write out the one you mean")
	}
	return nil, errors.New("it is neither a recipe of perf-eval, which has vllm and vllm_bench, nor one of srt-slurm, which has benchmark")
}

// perfEval is how a recipe of perf-eval starts its server.
type perfEval struct {
	Model     string            `yaml:"model"`
	Image     string            `yaml:"image"`
	ServeArgs string            `yaml:"serve_args"`
	Env       map[string]string `yaml:"env"`
}

// perfEvalRest is the rest of a recipe of perf-eval.
type perfEvalRest struct {
	Title string `yaml:"name"`
	GPU   string `yaml:"gpu"`
	GPUs  int    `yaml:"num_gpus"`
	Bench struct {
		Configs []perfEvalConfig `yaml:"configs"`
	} `yaml:"vllm_bench"`
	Eval struct {
		Tasks []struct{ Name string } `yaml:"tasks"`
	} `yaml:"lm_eval"`
	BFCL struct {
		Categories []string `yaml:"test_categories"`
	} `yaml:"bfcl"`
}

// perfEvalConfig is one run of `vllm bench serve`, or one for each level.
type perfEvalConfig struct {
	Name        string         `yaml:"name"`
	Backend     string         `yaml:"backend"`
	Dataset     string         `yaml:"dataset"`
	Input       int            `yaml:"input_len"`
	Output      int            `yaml:"output_len"`
	Prompts     ints           `yaml:"num_prompts"`
	Concurrency ints           `yaml:"max_concurrency"`
	Repetitions int            `yaml:"repetitions"`
	Args        map[string]any `yaml:"args"`
}

// ints is a number or a list of numbers; also "1x4x16".
type ints []int

func (n *ints) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.ScalarNode {
		return node.Decode((*[]int)(n))
	}
	for _, s := range strings.Split(node.Value, "x") {
		one, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil {
			return fmt.Errorf("line %d: %q is no number", node.Line, node.Value)
		}
		*n = append(*n, one)
	}
	return nil
}

func (p *perfEval) benchmark(r perfEvalRest) (*Benchmark, error) {
	b := &Benchmark{Origin: "the perf-eval recipe " + r.Title, Engine: "vllm", Model: p.Model, Image: p.Image, GPUs: r.GPUs}
	if b.Image == "" {
		if b.Image = "vllm/vllm-openai:nightly"; strings.HasPrefix(r.GPU, "MI") {
			b.Image = "vllm/vllm-openai-rocm:nightly"
		}
	}
	for _, words := range commands(p.ServeArgs) {
		b.Args = append(b.Args, words...)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		b.Env = append(b.Env, Pair{name, quote(p.Env[name])})
	}
	b.lose("the environment that lib/gpu_profiles.yaml sets for %s", r.GPU)
	for _, t := range r.Eval.Tasks {
		b.lose("lm_eval task %s: tokgate runs no accuracy harness; answers {} and data sets with answers gate what a change does to answers", t.Name)
	}
	if len(r.BFCL.Categories) > 0 {
		b.lose("bfcl %s: as above", strings.Join(r.BFCL.Categories, ", "))
	}
	if len(r.Bench.Configs) == 0 {
		return nil, fmt.Errorf("the recipe %s has no vllm_bench: it measures answers only, and no speed that a plan could gate", r.Title)
	}
	for _, c := range r.Bench.Configs {
		if err := c.add(b); err != nil {
			return nil, fmt.Errorf("vllm_bench %s: %w", c.Name, err)
		}
	}
	return b, nil
}

// add reads a configuration as the command line that perf-eval makes of it.
func (c perfEvalConfig) add(b *Benchmark) error {
	if len(c.Concurrency) == 0 || len(c.Prompts) == 0 {
		return errors.New("it has no max_concurrency, or no num_prompts")
	}
	if c.Dataset != "" && c.Dataset != "random" {
		return fmt.Errorf("dataset %s is prepared while the recipe runs; a plan needs a file: prompt { dataset = \"prompts.jsonl\" }", c.Dataset)
	}
	o := newOptions(nil, "")
	set := func(name string, values ...string) {
		o.values[name] = values
		o.order = append(o.order, name)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Args)) {
		if v := c.Args[name]; v != false && v != nil {
			set(strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-"), fmt.Sprint(v))
		}
	}
	set("backend", c.Backend)
	set("random-input-len", strconv.Itoa(c.Input))
	set("random-output-len", strconv.Itoa(c.Output))
	set("max-concurrency", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(c.Concurrency)), ","), "[]"))
	set("num-prompts", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(c.Prompts)), ","), "[]"))
	if c.Backend == "" {
		o.drop("backend")
	}
	one := &Benchmark{}
	vllmBench(o, one)
	o.leave(one)
	if o.err != nil {
		return o.err
	}
	l := one.Loads[0]
	l.Name, l.Repeat = named(c.Name), c.Repetitions
	if c.Repetitions > 1 {
		l.Doc = fmt.Sprintf("%d repetitions of the recipe, as one measurement", c.Repetitions)
	}
	b.Loads, b.Lost = append(b.Loads, l), append(b.Lost, one.Lost...)
	return nil
}

// saBench is what a recipe of srt-slurm measures.
type saBench struct {
	Type        string   `yaml:"type"`
	Input       int      `yaml:"isl"`
	Output      int      `yaml:"osl"`
	Concurrency ints     `yaml:"concurrencies"`
	Rate        string   `yaml:"req_rate"`
	Range       *float64 `yaml:"random_range_ratio"`
	Times       int      `yaml:"num_prompts_mult"`
	Warmup      int      `yaml:"num_warmup_mult"`
}

// srtRest is the rest of a recipe of srt-slurm.
type srtRest struct {
	Base  yaml.Node `yaml:"base"`
	Model struct {
		Path string `yaml:"path"`
	} `yaml:"model"`
	Backend struct {
		Type string `yaml:"type"`
	} `yaml:"backend"`
}

func (s *saBench) benchmark(r srtRest) (*Benchmark, error) {
	if s.Type != "sa-bench" && s.Type != "sglang-bench" {
		return nil, fmt.Errorf("its benchmark has the type %q; sa-bench and sglang-bench send a load that a plan can", s.Type)
	}
	if s.Input == 0 || s.Output == 0 || len(s.Concurrency) == 0 {
		return nil, errors.New("its benchmark has no isl, no osl or no concurrencies")
	}
	b := &Benchmark{Origin: "a recipe of srt-slurm", Engine: r.Backend.Type, Model: r.Model.Path}
	if !slices.Contains([]string{"sglang", "vllm", "trtllm"}, b.Engine) {
		b.Engine = "sglang" // its default
	}
	b.lose("the servers: srtctl starts them. Run this plan as the recipe's benchmark: type: custom, command: tokgate run --var url=http://$SRT_FRONTEND_HOST:$SRT_FRONTEND_PORT PLAN")
	l := Load{Name: fmt.Sprintf("in%d-out%d", s.Input, s.Output), API: "completions", Input: s.Input, Output: s.Output, Concurrency: s.Concurrency}
	ratio, times := 0.8, 10
	if s.Range != nil {
		ratio = *s.Range
	}
	if s.Times > 0 {
		times = s.Times
	}
	if ratio < 0 || ratio > 1 {
		return nil, fmt.Errorf("random_range_ratio is %g, but not between 0 and 1", ratio)
	}
	if ratio < 1 {
		// It draws lengths evenly from the ratio of the length to the length.
		l.Input, l.Output = int(float64(s.Input)*(1+ratio)/2), int(float64(s.Output)*(1+ratio)/2)
		l.Jitter = (1 - ratio) / (1 + ratio)
		b.lose("prompts of %g to 1 times %d tokens: each prompt has the mean of these lengths", ratio, s.Input)
	}
	for _, n := range s.Concurrency {
		l.Requests = append(l.Requests, n*times)
	}
	if s.Rate != "" && s.Rate != "inf" {
		b.lose("req_rate %s beside concurrencies: a closed loop sends a request when one ends", s.Rate)
	}
	b.Loads = []Load{l}
	return b, nil
}
