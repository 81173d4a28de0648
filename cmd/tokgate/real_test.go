//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan/decode"
	"github.com/tokgate/tokgate/record"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/text"
)

var (
	realDir         = flag.String("real", "", "try the engines that plans/real/install.sh put into this `folder`")
	realEngines     = flag.String("engines", "vllm llama.cpp transformers litellm", "which of them, a `list` of words")
	realLeavingPage = flag.String("real-leaving-page", "", "put what engines keep of clients that leave into this `page`, docs/engines-tried.md")
	realPage        = flag.String("real-page", "", "put what came of it into this `page`, docs/engines-tried.md")
)

// TestReal runs the plans of plans/real on real engines, and writes the results. `make real` runs
// it. It takes minutes, and its figures depend on the machine.
func TestReal(t *testing.T) {
	if *realDir == "" {
		t.Skip("make real")
	}
	for _, engine := range strings.Fields(*realEngines) {
		r := newTrial(t, engine)
		switch engine {
		case "vllm":
			r.engine("tiny")
			r.kill("tiny", "EngineCore")
			r.expect("8 requests at a time against 2", "seqs.hcl", "tiny", 1)
			r.expect("prefix cache on against off", "cache.hcl", "tiny", 0, 3) // code 3: too busy
			r.expect("a KV cache of 20 blocks", "full.hcl", "tiny", 1)
			r.expect("80% of the prompts' tokens in the prefix cache", "hits.hcl", "tiny", 0)
			r.replays("a trace of 102 requests", "trace.hcl", "tiny", 128)
			r.figures()
		case "llama.cpp":
			r.engine("tiny.gguf")
			r.kill("tiny.gguf", "ld-linux")
		case "transformers":
			r.engine("tiny")
			r.interop.version = r.packaged("vllm", "transformers")
			r.kill("tiny", "transformers")
		case "litellm":
			r.gateway()
		default:
			t.Fatalf("engine %q is not known", engine)
		}
		r.write()
		left := r.running("")
		must.Hold(t, len(left) <= 0, "%s: left running: %v", engine, left)
	}
}

// TestRealLeaving lets 400 clients leave each engine, and writes what it keeps of them. `make
// real-leaving` runs it. Only the figures of time depend on the machine.
func TestRealLeaving(t *testing.T) {
	if *realLeavingPage == "" {
		t.Skip("make real-leaving")
	}
	page := read(t, *realLeavingPage)
	for _, engine := range strings.Fields(*realEngines) {
		r := newTrial(t, engine)
		model := "tiny"
		if engine == "llama.cpp" {
			model = "tiny.gguf"
		}
		cmd, out := r.command("clients that leave", engine+".hcl", r.model(model))
		cmd.Args = append(cmd.Args, "--only", "leaving")
		r.run("clients that leave", cmd, out, nil)
		var doc report.Document
		must.Do(t, json.Unmarshal([]byte(read(t, filepath.Join(out, "results.json"))), &doc))
		i := slices.IndexFunc(doc.Verdicts, func(v verdict.Verdict) bool { return v.Kind == verdict.KindResidue })
		j := slices.IndexFunc(doc.Cases, func(c report.Case) bool { return c.Departures != nil })
		if i < 0 || j < 0 {
			t.Errorf("%s: no verdict on what is left, or nobody left", engine)
			continue
		}
		v := doc.Verdicts[i]
		row := fmt.Sprintf("| %s | %d | %s: %s |\n", engine, doc.Cases[j].Departures.Left, v.Outcome, strings.Join(append([]string{v.Message}, v.NotesOf()...), "<br>"))
		old := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(engine) + ` \| \d+ \| .*\n`)
		if page = old.ReplaceAllLiteralString(page, ""); !strings.Contains(page, "<!-- /leaving -->") {
			t.Fatal("the page has no place for it")
		}
		page = strings.Replace(page, "<!-- /leaving -->", row+"<!-- /leaving -->", 1)
		must.Do(t, os.WriteFile(*realLeavingPage, []byte(page), 0o644))
	}
}

// trial is a series of runs with one engine.
type trial struct {
	t         *testing.T
	name      string
	dir, out  string // folder of the engines, and folder of the trial's runs
	program   string
	environ   []string
	served    int    // number of servers that the trial started itself
	load      string // load average of the machine before the trial
	started   time.Time
	interop   interopRow
	runs      []string
	witnessed []string  // rows of the table that compares clients with the server's counters
	recounts  []float64 // per level: the tokenizer's count of answer tokens, divided by the usage
}

func newTrial(t *testing.T, name string) *trial {
	abs := func(path string) string {
		path = must.Get(filepath.Abs(path))(t)
		return path
	}
	r := &trial{t: t, name: name, dir: abs(*realDir), program: abs(filepath.Join(repository, "bin", "tokgate")), started: time.Now()}
	r.out = abs(filepath.Join(repository, "results", "real", name))
	average, _ := os.ReadFile("/proc/loadavg")
	r.load, _, _ = strings.Cut(string(average), " ")
	r.environ = append(os.Environ(),
		"PATH="+filepath.Join(r.dir, "bin")+":"+os.Getenv("PATH"),
		// The engine downloads nothing, sends no usage reports, and writes only below r.dir.
		"HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1", "XDG_CACHE_HOME="+filepath.Join(r.dir, "cache"), "XDG_CONFIG_HOME="+filepath.Join(r.dir, "cache"),
		// These settings let vLLM run on a few shared cores.
		"VLLM_CPU_KVCACHE_SPACE=1", "VLLM_CPU_OMP_THREADS_BIND=nobind", "OMP_NUM_THREADS=1",
	)
	return r
}

// command returns a command that runs a plan in plans/real, and the run's folder. The parameter
// what is the name of the experiment and of the folder.
func (r *trial) command(what, plan string, vars ...string) (*osexec.Cmd, string) {
	out := r.folder(what)
	_ = os.RemoveAll(out)
	cmd := osexec.Command(r.program, "run", "--out", out, filepath.Join(repository, "plans", "real", plan))
	cmd.Env = append(slices.Clone(r.environ), vars...)
	cmd.Env = append(cmd.Env, "TOKGATE_STATE_DIR="+filepath.Join(r.dir, "state"))
	return cmd, out
}

// folder is the run folder of an experiment.
func (r *trial) folder(what string) string {
	return filepath.Join(r.out, strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(what), "-"), "-"))
}

func (r *trial) model(name string) string { return "TOKGATE_VAR_model=" + filepath.Join(r.dir, name) }

// run runs a command of tokgate and records its result. If the parameter line is not nil, it is
// called with each progress line.
func (r *trial) run(what string, cmd *osexec.Cmd, out string, line func(string)) int {
	start := time.Now()
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if line != nil {
			line(lines.Text())
		}
	}
	err = cmd.Wait()
	if exit, ok := errors.AsType[*osexec.ExitError](err); err != nil && !ok {
		r.t.Fatal(err)
	} else if ok && exit.ExitCode() < 0 {
		r.t.Errorf("%s: %v", what, err)
	}
	r.recounted(out)
	code, took := cmd.ProcessState.ExitCode(), time.Since(start).Round(time.Second)
	r.t.Logf("%s: exit %d after %s\n%s", what, code, took, &stdout)
	r.runs = append(r.runs, fmt.Sprintf("| %s | %s | %d | %s |", what, took, code, r.headline(out)))
	return code
}

// recounted records the ratio of two token counts for some answers of each level: by the server's
// tokenizer, and by its usage.
func (r *trial) recounted(out string) {
	run, _, err := record.Read(out)
	if err != nil {
		return // the method headline reports an unreadable run
	}
	for _, l := range run.Levels {
		claimed, tokens := 0, 0
		if l.Answers != nil {
			for _, c := range l.Answers.Recounts {
				claimed, tokens = claimed+c.Claimed, tokens+c.Tokens
			}
		}
		if claimed > 0 {
			r.recounts = append(r.recounts, float64(tokens)/float64(claimed))
		}
	}
}

// headline returns the headline of a run's report, and its capacities.
func (r *trial) headline(out string) string {
	raw, err := os.ReadFile(filepath.Join(out, "results.json"))
	if err != nil {
		return err.Error()
	}
	var doc report.Document
	if err := json.Unmarshal(raw, &doc); err != nil {
		return err.Error()
	}
	headline, _, _ := strings.Cut(doc.Headline(), " · exit")
	words := []string{doc.Word() + ": " + headline}
	for i := range doc.Run.Capacities {
		words = append(words, doc.Run.Capacities[i].Answer())
	}
	for _, v := range doc.Verdicts {
		if v.Outcome != verdict.Pass && v.Outcome != verdict.Skipped {
			words = append(words, fmt.Sprintf("%s: %s: %s", v.Outcome, v.Name, v.Message))
		}
	}
	for i, w := range words {
		words[i] = strings.ReplaceAll(text.Bytes(strings.ReplaceAll(w, r.dir+"/", ""), 240), "|", `\|`)
	}
	return strings.Join(words[:min(len(words), 4)], "<br>")
}

// expect runs a plan, and fails the test unless the exit code is in the list want.
func (r *trial) expect(what, plan, model string, want ...int) {
	cmd, out := r.command(what, plan, r.model(model))
	if code := r.run(what, cmd, out, nil); !slices.Contains(want, code) {
		r.t.Errorf("%s: exit %d, want one of %d", what, code, want)
	}
}

// replays runs a plan that replays a trace on a cache with blocks of the given size. It records how
// many tokens came from the cache.
func (r *trial) replays(what, plan, model string, block int) {
	cmd, out := r.command(what, plan, r.model(model))
	// Code 3 is inconclusive, which is likely with few requests.
	if code := r.run(what, cmd, out, nil); code != 0 && code != 3 {
		r.t.Errorf("%s: exit %d", what, code)
		return
	}
	lines := replayed(r.t, out, filepath.Join(repository, "plans", "real", plan), block, []decode.Input{{Var: "model=" + filepath.Join(r.dir, model)}})
	last := &r.runs[len(r.runs)-1]
	*last = strings.TrimSuffix(*last, " |") + "<br>" + strings.Join(lines, "<br>") + " |"
}

// engine runs the plan for one engine, which starts the server. The plan has the checks of
// plans/interop, a gate and a capacity search.
func (r *trial) engine(model string) {
	cmd, out := r.command("interop, gate, search", r.name+".hcl", r.model(model))
	r.run("interop, gate, search", cmd, out, nil)
	r.tried(r.name, out)
}

// tried records which features worked in the run in the folder out.
func (r *trial) tried(name, out string) {
	run, _, err := record.Read(out)
	if err != nil {
		r.t.Errorf("%s: %v", name, err)
		return
	}
	r.interop = interopOf(name, run)
}

// begins matches the progress line of a level that begins.
var begins = regexp.MustCompile(`\(\d+ of \d+\): \d+ requests`)

// kill runs a plan, and kills the server's processes with matching names under load.
func (r *trial) kill(model, process string) {
	what := "kill -9 of " + process
	cmd, out := r.command(what, r.name+".hcl", r.model(model))
	killed := false
	code := r.run(what, cmd, out, func(line string) {
		if killed || !begins.MatchString(line) {
			return
		}
		for _, pid := range r.running(process) {
			killed = syscall.Kill(pid, syscall.SIGKILL) == nil || killed
		}
	})
	if !killed || code != 4 {
		r.t.Errorf("%s: killed: %v, exit %d, want 4", what, killed, code)
	}
}

// running lists the processes that use a file of the engines' folder, and whose command line
// matches.
func (r *trial) running(process string) []int {
	var out []int
	paths, _ := filepath.Glob("/proc/[0-9]*/maps")
	for _, path := range paths {
		maps, _ := os.ReadFile(path)
		words, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if bytes.Contains(maps, []byte(r.dir+"/")) && regexp.MustCompile(process).Match(words) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			out = append(out, pid)
		}
	}
	return out
}

// serve starts a server that tokgate does not manage. In its command words, {port} stands for a
// free port. The function end ends the server.
func (r *trial) serve(health string, words ...string) (url string, end func()) {
	return r.serveAt(r.freePort(), health, words...)
}

func (r *trial) freePort() int {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(r.t)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (r *trial) serveAt(port int, health string, words ...string) (url string, end func()) {
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, "{port}", strconv.Itoa(port))
	}
	r.served++
	log, err := os.Create(filepath.Join(r.dir, fmt.Sprintf("%s-%d.log", filepath.Base(words[0]), r.served)))
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := osexec.Command(filepath.Join(r.dir, "bin", words[0]), words[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = r.environ, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait(); log.Close() }()
	end = func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	url = fmt.Sprintf("http://127.0.0.1:%d", port)
	for range 1800 {
		if resp, err := http.Get(url + health); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return url, end
			}
		}
		select {
		case err := <-ended:
			r.t.Fatalf("%s ended: %v; see %s", words[0], err, log.Name())
		case <-time.After(time.Second):
		}
	}
	end()
	r.t.Fatalf("%s is not ready after half an hour; see %s", words[0], log.Name())
	return "", nil
}

// gateway runs LiteLLM in front of llama.cpp's server.
func (r *trial) gateway() {
	model := filepath.Join(r.dir, "tiny.gguf")
	behind, end := r.serve("/health", "llama-server", "--host", "127.0.0.1", "--port", "{port}", "--model", model, "--alias", "tiny",
		"--parallel", "8", "--ctx-size", "131072", "--threads", "1", "--offline", "--metrics")
	defer end()
	// LiteLLM must not reuse connections of llama.cpp's server, which closes them although it
	// announces keep-alive.
	r.environ = append(r.environ, "AIOHTTP_KEEPALIVE_TIMEOUT=0")
	config := filepath.Join(r.dir, "litellm.yaml")
	const key = "sk-a-key-of-this-trial"
	if err := os.WriteFile(config, fmt.Appendf(nil, `model_list:
  - model_name: tiny
    litellm_params: { model: hosted_vllm/tiny, api_base: %s/v1, api_key: none }
general_settings: { master_key: %s }
`, behind, key), 0o600); err != nil {
		r.t.Fatal(err)
	}
	url, endGateway := r.serve("/health/liveliness", "litellm", "--config", config, "--host", "127.0.0.1", "--port", "{port}")
	defer endGateway()
	cmd, out := r.command("interop", "../interop/endpoint.hcl", "TOKGATE_VAR_url="+url, "TOKGATE_VAR_engine=llama.cpp", "TOKGATE_VAR_api_key="+key)
	r.run("interop", cmd, out, nil)
	r.tried("litellm before llama.cpp", out)
	r.interop.version = r.packaged("litellm", "litellm")
}

// packaged returns the version of a package in a Python folder; "" if it is not installed.
func (r *trial) packaged(folder, name string) (version string) {
	if found, _ := filepath.Glob(filepath.Join(r.dir, folder, "lib/python*/site-packages", name+"-*.dist-info")); len(found) > 0 {
		_, version, _ = strings.Cut(strings.TrimSuffix(filepath.Base(found[0]), ".dist-info"), "-")
	}
	return version
}

// figures compares the measurements of tokgate and of vLLM's own client with the server's counters.
func (r *trial) figures() {
	model := filepath.Join(r.dir, "tiny")
	url, end := r.serve("/health", "vllm", "serve", model, "--host", "127.0.0.1", "--port", "{port}",
		"--max-model-len", "4096", "--max-num-seqs", "8", "--enforce-eager")
	defer end()
	for _, load := range []struct{ inFlight, requests int }{{1, 60}, {4, 120}} {
		inFlight, requests := strconv.Itoa(load.inFlight), strconv.Itoa(load.requests)

		what := "figures at " + inFlight
		cmd, out := r.command(what, "figures.hcl", "TOKGATE_VAR_url="+url, "TOKGATE_VAR_in_flight="+inFlight, "TOKGATE_VAR_requests="+requests)
		var before map[string]float64
		over, after := make(chan bool), make(chan map[string]float64)
		go func() { after <- r.loaded(filepath.Join(out, record.File), url, over) }()
		r.run(what, cmd, out, func(line string) {
			if before == nil && begins.MatchString(line) {
				before = r.page(url)
			}
		})
		close(over)
		counted := <-after
		run, _, err := record.Read(out)
		if err != nil {
			r.t.Errorf("%s: %v", what, err)
			continue
		}
		r.witness("tokgate", load.inFlight, seen(run), before, counted)

		before = r.page(url)
		result := filepath.Join(r.out, "bench.json")
		bench := osexec.Command(filepath.Join(r.dir, "bin", "vllm"), "bench", "serve", "--backend", "openai-chat", "--base-url", url,
			"--endpoint", "/v1/chat/completions", "--model", model, "--dataset-name", "random", "--random-input-len", "256",
			"--random-output-len", "64", "--ignore-eos", "--num-prompts", requests, "--max-concurrency", inFlight,
			"--percentile-metrics", "ttft,tpot,e2el", "--save-result", "--result-filename", result, "--disable-tqdm")
		bench.Env = r.environ
		if words, err := bench.CombinedOutput(); err != nil {
			r.t.Errorf("vllm bench serve: %v\n%s", err, words)
			continue
		}
		r.witness("vllm bench serve", load.inFlight, benched(r.t, result), before, r.page(url))
	}
}

// loaded waits until the two rounds of the plan are over, and returns the values of the server's
// metrics page. Later requests examine answers, and would change the values.
func (r *trial) loaded(recording, url string, over <-chan bool) map[string]float64 {
	for {
		raw, _ := os.ReadFile(recording)
		if bytes.Count(raw, []byte(`"type":"round_done"`)) >= 2 {
			return r.page(url)
		}
		select {
		case <-over:
			return r.page(url)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// sides holds what one client measured: tokgate, or the client that it is compared with. Both send
// requests with the same numbers of tokens. Times are in seconds.
type sides struct {
	requests, tokens int
	cut              int     // tokens of requests that were cut off; not in the field tokens
	ttft, tpot, e2e  float64 // means
}

// seen returns what tokgate measured. It includes every completed request, also warm-up requests,
// because the server's counters include them.
func seen(run *metric.Run) sides {
	var s sides
	var per int
	for _, l := range run.Levels {
		for _, round := range l.Rounds {
			for _, x := range round.Samples {
				ttft, ok := x.Value("ttft")
				e2e, whole := x.Value("e2e")
				if !ok || !whole {
					s.cut += x.Chunks
					continue
				}
				s.requests++
				s.tokens += x.Usage.Output
				s.ttft += ttft
				s.e2e += e2e
				if tpot, ok := x.Value("tpot"); ok {
					per++
					s.tpot += tpot
				}
			}
		}
	}
	n := float64(s.requests)
	s.ttft, s.e2e, s.tpot = s.ttft/n, s.e2e/n, s.tpot/float64(per)
	return s
}

func benched(t *testing.T, path string) sides {
	var result struct {
		Completed int     `json:"completed"`
		Tokens    int     `json:"total_output_tokens"`
		TTFT      float64 `json:"mean_ttft_ms"`
		TPOT      float64 `json:"mean_tpot_ms"`
		E2E       float64 `json:"mean_e2el_ms"`
	}
	err := json.Unmarshal([]byte(read(t, path)), &result)
	must.Hold(t, err == nil, "%v", err)
	return sides{requests: result.Completed, tokens: result.Tokens, ttft: result.TTFT / 1e3, tpot: result.TPOT / 1e3, e2e: result.E2E / 1e3}
}

// page returns the values of the server's metrics page. The values of a metric are added up over
// its label sets.
func (r *trial) page(url string) map[string]float64 {
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		r.t.Error(err)
		return nil
	}
	defer resp.Body.Close()
	out := map[string]float64{}
	for lines := bufio.NewScanner(io.LimitReader(resp.Body, 1<<22)); lines.Scan(); {
		if m := series.FindStringSubmatch(lines.Text()); m != nil {
			v, _ := strconv.ParseFloat(m[2], 64)
			out[m[1]] += v
		}
	}
	return out
}

var series = regexp.MustCompile(`^(vllm:\w+)(?:\{.*\})? (\S+)$`)

// witness records the figures of a client next to those of the server's counters for the same time.
func (r *trial) witness(client string, inFlight int, ours sides, before, after map[string]float64) {
	d := func(name string) float64 { return after["vllm:"+name] - before["vllm:"+name] }
	mean := func(name string) float64 { return d(name+"_sum") / d(name+"_count") }
	theirs := sides{
		requests: int(d("e2e_request_latency_seconds_count")), tokens: int(d("generation_tokens_total")),
		ttft: mean("time_to_first_token_seconds"), tpot: mean("inter_token_latency_seconds"), e2e: mean("e2e_request_latency_seconds"),
	}
	tokens := strconv.Itoa(ours.tokens)
	if ours.cut > 0 {
		tokens += fmt.Sprintf(" + %d", ours.cut)
	}
	both := func(a, b float64) string {
		return fmt.Sprintf("%.1f / %.1f ms (%+.1f%%)", 1e3*a, 1e3*b, 100*(a/b-1))
	}
	r.witnessed = append(r.witnessed, fmt.Sprintf("| %s | %d | %d / %d | %s / %d | %s | %s | %s |", client, inFlight, ours.requests, theirs.requests,
		tokens, theirs.tokens, both(ours.ttft, theirs.ttft), both(ours.tpot, theirs.tpot), both(ours.e2e, theirs.e2e)))
}

// write replaces the tables of an earlier trial in the documentation.
func (r *trial) write() {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d cores with a load average of %s before it began; all of it took %s.\n",
		r.started.Format("2 January 2006"), runtime.NumCPU(), r.load, time.Since(r.started).Round(time.Second))
	if len(r.runs) > 0 {
		b.WriteString("\n| run | took | exit | what it said first |\n|---|---|---|---|\n" + strings.Join(r.runs, "\n") + "\n")
	}
	if len(r.witnessed) > 0 {
		b.WriteString("\n| client | in flight | requests, client / server | output tokens | TTFT mean | TPOT mean | E2E mean |\n|---|---|---|---|---|---|---|\n" +
			strings.Join(r.witnessed, "\n") + "\n")
	}
	if len(r.recounts) > 0 {
		fmt.Fprintf(&b, "\nOf the text of answers its own tokenizer made %.2f to %.2f times the tokens that its usage told, in %d levels.\n",
			slices.Min(r.recounts), slices.Max(r.recounts), len(r.recounts))
	}
	row := interopTable([]interopRow{r.interop})
	fmt.Print("\n" + row + "\n" + b.String() + "\n")
	if *realPage == "" {
		return
	}
	page := read(r.t, *realPage)
	row = row[strings.LastIndex(strings.TrimSpace(row), "\n")+1:]
	name, _, _ := strings.Cut(row[2:], " |")
	if old := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(name) + ` \|.*\n`); old.MatchString(page) {
		page = old.ReplaceAllLiteralString(page, row)
	} else {
		page = strings.Replace(page, "<!-- /interop -->", row+"<!-- /interop -->", 1)
	}
	begin, end := "<!-- real "+r.name+" -->\n", "<!-- /real -->"
	before, rest, ok := strings.Cut(page, begin)
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended || !strings.Contains(page, row) {
		r.t.Fatalf("%s has no place for %s", *realPage, r.name)
	}
	page = before + begin + b.String() + end + after
	if err := os.WriteFile(*realPage, []byte(page), 0o644); err != nil {
		r.t.Error(err)
	}
}
