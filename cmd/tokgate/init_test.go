package main

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/sim"
)

// The plan that init writes is formatted and valid, and its run passes. `make newcomer` does the
// same from a fresh clone, with a real server.
func TestInit(t *testing.T) { inVirtualTime(testInit)(t) }

func testInit(t *testing.T) {
	t.Chdir(t.TempDir())
	server := simServer(t)
	tokgate(t, "init", "--url", server.URL(), "--github", "--gitlab").check(t, verdict.ExitPass,
		"found vllm, tokgate-sim-1, tokgate-sim", "wrote tokgate.hcl", "wrote .github/workflows/tokgate.yml", "wrote .gitlab/tokgate.yml", "wrote .gitignore")
	must.Same(t, ".gitignore", "results/\n", read(t, ".gitignore"))
	tokgate(t, "fmt", "--check", "tokgate.hcl").check(t, verdict.ExitPass)
	tokgate(t, "validate", "tokgate.hcl").check(t, verdict.ExitPass, "is valid")
	tokgate(t, "run", "--simulate", "tokgate.hcl").check(t, verdict.ExitPass, "PASS")

	// Nothing is overwritten without --force.
	must.Do(t, os.WriteFile("tokgate.hcl", []byte("mine"), 0o644))
	tokgate(t, "init", "--url", server.URL()).check(t, verdict.ExitPlan, "tokgate.hcl already exists", "--force")
	must.Hold(t, read(t, "tokgate.hcl") == "mine", "the plan was overwritten")
	tokgate(t, "init", "--force", "--image", "lmsysorg/sglang:v0.5.9", "--model", "Qwen/Qwen3-8B", "--use-case", "rag,long_document").check(t, verdict.ExitPass)
	tokgate(t, "init", "--plan", "llama.hcl", "--command", "llama-server -m x.gguf").check(t, verdict.ExitPass, "--port {port}")
	tokgate(t, "init", "--plan", "rate.hcl", "--url", server.URL(), "--rate", "1 req/s,240 req/min").check(t, verdict.ExitPass)
	tokgate(t, "plan", "rate.hcl").check(t, verdict.ExitPass, "1 req/s", "4 req/s")
	tokgate(t, "validate", "llama.hcl").check(t, verdict.ExitPass, "is valid")
	plan := read(t, "tokgate.hcl")
	for _, want := range []string{`engine = "sglang"`, `model  = "Qwen/Qwen3-8B"`, `workload "rag"`, `workload "long_document"`} {
		must.Hold(t, strings.Contains(plan, want), "the plan does not hold %s:\n%s", want, plan)
	}
	must.Same(t, ".gitignore", "results/\n", read(t, ".gitignore"))
}

// What another tool measures becomes a plan that is valid and runs.
func TestInitFrom(t *testing.T) {
	t.Chdir(t.TempDir())
	line := "vllm bench serve --random-input-len 256 --random-output-len 32 --max-concurrency 4 --num-prompts 40 --seed 9"
	tokgate(t, "init", "--from", line, "--url", "http://10.0.0.1:8000").check(t, verdict.ExitPass,
		"wrote tokgate.hcl from a command line of `vllm bench serve`", "not carried over: --seed 9", "tokgate run --simulate tokgate.hcl")
	tokgate(t, "fmt", "--check", "tokgate.hcl").check(t, verdict.ExitPass)
	tokgate(t, "run", "--simulate", "tokgate.hcl").check(t, verdict.ExitPass, "PASS")
	plan := read(t, "tokgate.hcl")
	must.Hold(t, strings.Contains(plan, "http://10.0.0.1:8000") && strings.Contains(plan, "# - --seed 9"), "%v", plan)
	tokgate(t, "init", "--from", line).check(t, verdict.ExitPlan, "tokgate.hcl already exists", "--force")
	tokgate(t, "init", "--force", "--from", "none.yaml").check(t, verdict.ExitPlan, "there is no file none.yaml")
	tokgate(t, "init", "--force", "--from", line, "--measure").check(t, verdict.ExitPlan, "--from can be combined with")
	tokgate(t, "init", "--force", "--from", line, "--engine", "vlm").check(t, verdict.ExitPlan, "vlm")
	tokgate(t, "init", "--force", "--from", line+" --random-prefix-len 300 --random-input-len 0").check(t, verdict.ExitPlan, "what --from names")
}

func TestInitUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, tt := range []struct {
		args  []string
		words string
	}{
		{nil, "--url, --image or --command"},
		{[]string{"--url", "http://127.0.0.1:1", "--image", "x"}, "a plan has only one server"},
		{[]string{"--image", "x", "--engine", "vlm"}, `--engine "vlm" is not known`},
		{[]string{"--image", "x", "--use-case", "cat"}, `--use-case "cat" is not known`},
		{[]string{"--image", "vllm/vllm-openai:v0.19.1"}, "--image with --engine vllm also needs --model"},
		{[]string{"--image", "x", "--measure"}, "needs a running server"},
		{[]string{"--url", "http://127.0.0.1:1", "--measure", "--rate", "4 req/s"}, "cannot be combined with --rate"},
		{[]string{"--command", "vllm serve m", "--rate", "4"}, "Write 4 req/s"},
		{[]string{"--url", "http://127.0.0.1:1", "--engine", "vllm", "--upgrade"}, "--upgrade compares"},
		{[]string{"--command", "serve --fast"}, "{port}"},
	} {
		tokgate(t, append([]string{"init"}, tt.args...)...).check(t, verdict.ExitPlan, tt.words)
	}
	entries, _ := os.ReadDir(".")
	must.Hold(t, len(entries) <= 0, "something was written: %v", entries)
	tokgate(t, "init", "--url", "http://127.0.0.1:1").check(t, verdict.ExitError, "connection refused", "start the server first", "--engine")
	if entries, _ := os.ReadDir("."); len(entries) > 0 {
		t.Errorf("something was written: %v", entries)
	}
	tokgate(t, "init", "--url", "http://127.0.0.1:1", "--engine", "vllm").check(t, verdict.ExitPass, "wrote tokgate.hcl")
}

// init --measure loads the server for at most two minutes, and writes thresholds from the results.
// The built-in server has a TTFT of 33 ms for 1,024 tokens, and then makes a token every 2.5 ms.
func TestLongInitMeasure(t *testing.T) { inVirtualTime(testInitMeasure)(t) }

func testInitMeasure(t *testing.T) {
	t.Chdir(t.TempDir())
	server := simServer(t)
	begin := time.Now() // simulated time, in a synctest bubble
	tokgate(t, "init", "--url", server.URL(), "--measure").check(t, verdict.ExitPass, "wrote tokgate.hcl")
	took := time.Since(begin)
	must.Hold(t, took <= measureFor+10*time.Second, "it took %s", took)
	plan := read(t, "tokgate.hcl")
	// The lengths are drawn anew in each run.
	for _, want := range []string{`measured with 20 requests`, `measured with 80 requests`, `"mean < (3[7-9]|4\d)`, `measured 3[23]`, `"mean > 3`, `measured (39\d|40\d) tok/s, 15% to spare`} {
		must.Hold(t, regexp.MustCompile(want).MatchString(plan), "the plan does not hold %s:\n%s", want, plan)
	}
	tokgate(t, "run", "tokgate.hcl").check(t, verdict.ExitPass, "PASS")
	entries, _ := os.ReadDir(".")
	must.Hold(t, len(entries) == 3, "more than the plan, .gitignore and results was written: %v", entries)
}

// Each engine is recognised by its version page.
func TestInitDetects(t *testing.T) {
	for engine, pages := range map[string]map[string]string{
		"vllm":      {"/version": `{"version":"0.19.1"}`},
		"sglang":    {"/get_server_info": `{"version":"0.5.9"}`, "/version": `{"version":"x"}`},
		"llama.cpp": {"/props": `{"build_info":"b6000-abc"}`},
		"openai":    {},
	} {
		t.Run(engine, inVirtualTime(func(t *testing.T) {
			t.Chdir(t.TempDir())
			s := front(t, func(w http.ResponseWriter, r *http.Request) {
				page, ok := pages[r.URL.Path]
				if r.URL.Path == "/v1/models" {
					page, ok = `{"data":[{"id":"m","max_model_len":2048}]}`, true
				}
				if !ok {
					http.NotFound(w, r)
					return
				}
				_, _ = w.Write([]byte(page))
			})
			s.Start()
			tokgate(t, "init", "--url", strings.TrimPrefix(s.URL, "http://")).check(t, verdict.ExitPass, "found "+engine)
			for _, want := range []string{`engine = "` + engine + `"`, s.URL} {
				must.Hold(t, strings.Contains(read(t, "tokgate.hcl"), want), "the plan lacks %s", want)
			}
			// init refuses a use case whose prompts are longer than the server's context.
			tokgate(t, "init", "--force", "--url", s.URL, "--use-case", "rag").check(t, verdict.ExitPlan, "the server has only 2048")
		}))
	}
}

// A server that lists no model, as SGLang's router does whose workers tell none, or several, needs the
// model's name.
func TestInitAsksForTheModel(t *testing.T) {
	for _, tt := range []struct{ listed, said, served string }{
		{`{"id":"unknown","owned_by":"local"}`, "lists no model", "served_as = \"chat-large\""},
		{``, "lists no model", "served_as = \"chat-large\""},
		{`{"id":"chat-large"},{"id":"unknown"},{"id":"b"}`, "lists chat-large, b", ""},
	} {
		t.Run(tt.said, inVirtualTime(func(t *testing.T) {
			t.Chdir(t.TempDir())
			backend := startSim(t, sim.Options{Listen: memory.Listen, Model: "chat-large"})
			s := front(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/models" {
					_, _ = w.Write([]byte(`{"data":[` + tt.listed + `]}`))
					return
				}
				backend.ServeHTTP(w, r)
			})
			s.Start()
			tokgate(t, "init", "--url", s.URL).check(t, verdict.ExitPlan, tt.said, "--model")
			entries, _ := os.ReadDir(".")
			must.Hold(t, len(entries) == 0, "something was written: %v", entries)
			tokgate(t, "init", "--url", s.URL, "--model", "chat-large").check(t, verdict.ExitPass, "wrote tokgate.hcl")
			plan := read(t, "tokgate.hcl")
			must.Hold(t, strings.Contains(plan, `model  = "chat-large"`) && strings.Contains(plan, tt.served) && (tt.served != "") == strings.Contains(plan, "served_as"), "%s", plan)
			tokgate(t, "run", "tokgate.hcl").check(t, verdict.ExitPass, "PASS")
			if tt.served != "" {
				without := strings.NewReplacer(tt.served, "", `model  = "chat-large"`, "").Replace(plan)
				tokgate(t, "run", writePlan(t, without)).check(t, verdict.ExitError, "the server lists none; set served_as")
			}
		}))
	}
}

// A plan from `init --upgrade` can be planned and simulated without a base branch. The 24 starts
// are at most 12 rounds with one start of each of the two servers.
func TestLongInitUpgradeIsPlanned(t *testing.T) {
	t.Chdir(t.TempDir())
	tokgate(t, "init", "--image", "vllm/vllm-openai:v0.19.1", "--model", "Qwen/Qwen3-8B", "--use-case", "code_completion", "--upgrade").check(t, verdict.ExitPass,
		"tokgate run --simulate --base . tokgate.hcl", "tokgate run --base DIR tokgate.hcl")
	r := tokgate(t, "validate", "tokgate.hcl")
	must.Hold(t, !strings.Contains(r.out+r.err, "often inconclusive"), "tokgate calls its own plan hopeless:\n%s", r.out+r.err)
	tokgate(t, "plan", "tokgate.hcl").check(t, verdict.ExitPass, "24 starts, each assumed: a minute, and 16 GB of weights", "What this gate would notice")
	tokgate(t, "run", "--simulate", "--base", ".", "tokgate.hcl").check(t, verdict.ExitPass, "PASS", "nothing changed")
}
