//go:build linux

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record"
	"github.com/tokgate/tokgate/sim"
)

var (
	peersDir  = flag.String("peers", "", "measure the load generators that plans/real/install.sh put into this `folder`")
	peersPage = flag.String("peers-page", "", "put the table into this `page`, docs/performance.md")
	peersOnly = flag.String("peers-only", "", "only this one of them, by `name`")
)

// peer is a load generator.
type peer struct {
	name, program string
	version       string // name of the package in PyPI; "" for this repository's generator
	command       func(l peerLoad) []string
	// times reads the TTFTs of the completed requests from the generator's results, in seconds.
	times func(folder string) ([]float64, error)
}

// peerLoad is the load that each generator sends.
type peerLoad struct {
	url, tokenizer, folder string
	inFlight, requests     int
}

const (
	peerInput, peerOutput = 200, 64 // prompt tokens of a request, and tokens of its answer
	peerModel             = "tokgate-sim"
)

var peers = []peer{
	{name: "tokgate", program: "tokgate", times: tokgateTimes, command: func(l peerLoad) []string {
		only := "steady"
		if l.inFlight == l.requests {
			only = "burst"
		}
		return []string{"run", "--out", l.folder, "--only", only, "--var", "url=" + l.url, "--var", fmt.Sprintf("requests=%d", l.requests),
			filepath.Join(repository, "plans", "real", "peers.hcl")}
	}},
	{name: "vllm bench serve", program: "vllm", version: "vllm", times: vllmTimes, command: func(l peerLoad) []string {
		return []string{"bench", "serve", "--backend", "openai-chat", "--base-url", l.url, "--endpoint", "/v1/chat/completions", "--model", peerModel,
			"--tokenizer", l.tokenizer, "--dataset-name", "random", "--random-input-len", strconv.Itoa(peerInput), "--random-output-len", strconv.Itoa(peerOutput),
			"--ignore-eos", "--num-prompts", strconv.Itoa(l.requests), "--max-concurrency", strconv.Itoa(l.inFlight), "--save-result", "--save-detailed",
			"--result-filename", filepath.Join(l.folder, "bench.json"), "--disable-tqdm"}
	}},
	{name: "guidellm", program: "guidellm", version: "guidellm", times: guidellmTimes, command: func(l peerLoad) []string {
		return []string{"run", "--backend", "kind=openai_http,target=" + l.url + ",model=" + peerModel, "--tokenizer", "kind=hf_auto,model=" + l.tokenizer,
			"--profile", fmt.Sprintf("kind=concurrent,streams=%d", l.inFlight), "--constraint", fmt.Sprintf("kind=max_requests,count=%d", l.requests),
			"--data", fmt.Sprintf("kind=synthetic_text,prompt_tokens=%d,output_tokens=%d", peerInput, peerOutput),
			"--output", "kind=json,path=" + filepath.Join(l.folder, "benchmarks.json"), "--disable-console"}
	}},
	{name: "AIPerf", program: "aiperf", version: "aiperf", times: aiperfTimes, command: func(l peerLoad) []string {
		return []string{"profile", "--model", peerModel, "--tokenizer", l.tokenizer, "--url", l.url, "--endpoint-type", "chat", "--streaming",
			"--concurrency", strconv.Itoa(l.inFlight), "--request-count", strconv.Itoa(l.requests),
			"--synthetic-input-tokens-mean", strconv.Itoa(peerInput), "--synthetic-input-tokens-stddev", "0",
			"--output-tokens-mean", strconv.Itoa(peerOutput), "--output-tokens-stddev", "0", "--extra-inputs", "ignore_eos:true",
			"--artifact-dir", l.folder, "--ui", "none"}
	}},
	{name: "inference-perf", program: "inference-perf", version: "inference_perf", times: inferencePerfTimes, command: func(l peerLoad) []string {
		length := func(n int) string {
			return fmt.Sprintf("{min: %d, max: %d, mean: %d, std_dev: 0, total_count: %d}", n, n, n, l.requests)
		}
		config := filepath.Join(l.folder, "config.yml")
		_ = os.WriteFile(config, fmt.Appendf(nil, `api: {type: chat, streaming: true}
data: {type: random, input_distribution: %s, output_distribution: %s}
load: {type: concurrent, num_workers: 1, stages: [{num_requests: %d, concurrency_level: %d}]}
server: {type: vllm, model_name: %s, base_url: "%s", ignore_eos: true}
tokenizer: {pretrained_model_name_or_path: %s}
report: {request_lifecycle: {summary: true, per_stage: false, per_request: true}}
storage: {local_storage: {path: %s}}
`, length(peerInput), length(peerOutput), l.requests, l.inFlight, peerModel, l.url, l.tokenizer, l.folder), 0o644)
		return []string{"--config_file", config}
	}},
}

// peerRun holds the cost of a generator's run, and what the server saw of the run.
type peerRun struct {
	cpu            time.Duration // CPU time of the generator and its child processes
	memory         int64         // largest memory of the generator with its child processes, in bytes
	chunks         int           // number of chunks that the server sent
	first, servers []float64     // TTFTs in seconds, from the generator's results and from the server's log
}

// TestPeers measures load generators with the same load on the built-in server. With two cores or
// more, the generator and the server have one core each. `make peers` calls it.
func TestPeers(t *testing.T) {
	if *peersDir == "" {
		t.Skip("make peers")
	}
	dir := must.Get(filepath.Abs(*peersDir))(t)
	var table strings.Builder
	table.WriteString("| | CPU a chunk | CPU beside them | memory | TTFT beside the server's log, p50, p99 | completed | 512 at once: TTFT, p50, p99 | completed |\n|---|---|---|---|---|---|---|---|\n")
	for _, p := range peers {
		if *peersOnly == "" || *peersOnly == p.name {
			row := p.row(t, dir)
			t.Log(row)
			table.WriteString(row)
		}
	}
	average, _ := os.ReadFile("/proc/loadavg")
	minutes, _, _ := strings.Cut(string(average), " ")
	fmt.Fprintf(&table, "\nMeasured on %s on %d cores, with a load average of %s at the end.\n", time.Now().Format("2 January 2006"), runtime.NumCPU(), minutes)
	fmt.Print("\n" + table.String())
	if *peersPage == "" {
		return
	}
	begin, end := "<!-- peers -->\n", "<!-- end of peers -->"
	before, rest, ok := strings.Cut(read(t, *peersPage), begin)
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no place for the table", *peersPage)
	}
	err := os.WriteFile(*peersPage, []byte(before+begin+table.String()+end+after), 0o644)
	must.Hold(t, err == nil, "%v", err)
}

// row measures a generator in a short and a long closed loop, and in a burst. The long loop has
// longer answers, so the difference in CPU time is the cost of the additional chunks.
func (p *peer) row(t *testing.T, dir string) string {
	name := p.name
	if p.version != "" {
		found, _ := filepath.Glob(filepath.Join(dir, "*", "lib", "python3*", "site-packages", p.version+"-*.dist-info"))
		if _, err := os.Stat(filepath.Join(dir, "bin", p.program)); err != nil || len(found) == 0 {
			return fmt.Sprintf("| %s | could not be installed |\n", name)
		}
		name += " " + strings.TrimSuffix(strings.TrimPrefix(filepath.Base(found[0]), p.version+"-"), ".dist-info")
	}
	short, err1 := p.run(t, dir, 64, 128)
	long, err2 := p.run(t, dir, 64, 640)
	burst, err3 := p.run(t, dir, 512, 512)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Errorf("%s: %v", name, err)
		return fmt.Sprintf("| %s | did not run |\n", name)
	}
	chunk := (long.cpu - short.cpu) / time.Duration(long.chunks-short.chunks)
	return fmt.Sprintf("| %s | %.1f µs | %.1f s | %d MB | %s | %d of 640 | %s | %d of 512 |\n", name,
		float64(chunk)/1e3, (long.cpu - chunk*time.Duration(long.chunks)).Seconds(), long.memory>>20, long.excessTTFT(), len(long.first), burst.excessTTFT(), len(burst.first))
}

// excessTTFT writes how much longer the generator's TTFT is than the server's own TTFT, at p50 and
// p99.
func (r *peerRun) excessTTFT() string {
	at := func(share float64) string {
		mine, its := quantile(r.first, share), quantile(r.servers, share)
		return fmt.Sprintf("%+.2f ms", 1e3*(mine-its))
	}
	return at(0.5) + ", " + at(0.99)
}

func quantile(list []float64, share float64) float64 {
	slices.Sort(list)
	return list[int(share*float64(len(list)-1))]
}

// run starts a server and makes the generator send it a load.
func (p *peer) run(t *testing.T, dir string, inFlight, requests int) (*peerRun, error) {
	folder := filepath.Join(dir, "peers", p.program, fmt.Sprintf("%d-of-%d", inFlight, requests))
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return nil, err
	}
	log := filepath.Join(folder, "server.jsonl")
	url, stop, err := peerServer(log)
	if err != nil {
		return nil, err
	}
	defer stop()
	program := filepath.Join(dir, "bin", p.program)
	if p.version == "" {
		program, _ = filepath.Abs(filepath.Join(repository, "bin", p.program))
	}
	said, err := os.Create(filepath.Join(folder, "said.txt"))
	if err != nil {
		return nil, err
	}
	defer said.Close()
	cmd := onCore(0, program, p.command(peerLoad{url, filepath.Join(dir, "tiny"), folder, inFlight, requests})...)
	cmd.Stdout, cmd.Stderr = said, said
	cmd.Env = append(os.Environ(), "VLLM_NO_USAGE_STATS=1", "TOKGATE_STATE_DIR="+filepath.Join(dir, "state"),
		"XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "HF_HOME="+filepath.Join(dir, "cache"), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r, over := new(peerRun), make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	limit := time.After(10 * time.Minute)
	for waiting := true; waiting; {
		select {
		case err = <-over:
			waiting = false
		case <-limit:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		case <-time.After(500 * time.Millisecond):
			r.memory = max(r.memory, treeMemory(cmd.Process.Pid))
		}
	}
	stop()
	// Ignore the exit code of tokgate itself, because its gate may fail.
	if _, exited := errors.AsType[*osexec.ExitError](err); err != nil && (!exited || p.version != "") {
		return nil, fmt.Errorf("%w, see %s", err, said.Name())
	}
	r.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if r.first, err = p.times(folder); err != nil || len(r.first) == 0 {
		return nil, cmp.Or(err, fmt.Errorf("no request completed, see %s", said.Name()))
	}
	var served []sim.Served
	for _, x := range readServed(t, log) {
		r.chunks += x.Tokens
		if x.Tokens == peerOutput {
			served = append(served, x)
		}
	}
	for _, x := range served[max(len(served)-len(r.first), 0):] { // leave out the warm-up requests
		r.servers = append(r.servers, x.First.Sub(x.Arrived).Seconds())
	}
	if len(r.servers) == 0 {
		return nil, fmt.Errorf("the server logged no answer of %d tokens", peerOutput)
	}
	return r, nil
}

// peerServer starts the built-in server. It returns when the server listens.
func peerServer(log string) (url string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	address := l.Addr().String()
	l.Close()
	program, err := filepath.Abs(filepath.Join(repository, "bin", "tokgate"))
	if err != nil {
		return "", nil, err
	}
	cmd := onCore(1, program, "sim", "--listen", address, "--log", log, "--profile", filepath.Join(repository, "plans", "real", "peers.json"))
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	ended := false
	stop = func() {
		if !ended {
			ended = true
			_ = cmd.Process.Signal(os.Interrupt)
			_ = cmd.Wait()
		}
	}
	for range 100 {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return "http://" + address, stop, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	return "", nil, fmt.Errorf("the server does not listen on %s", address)
}

// onCore returns a command that runs on one core, by the program taskset. Without taskset, or with
// only one core, the command may run anywhere.
func onCore(core int, program string, args ...string) *osexec.Cmd {
	if taskset, err := osexec.LookPath("taskset"); err == nil && runtime.NumCPU() > 1 {
		return osexec.Command(taskset, append([]string{"-c", strconv.Itoa(core), program}, args...)...)
	}
	return osexec.Command(program, args...)
}

// treeMemory returns the memory of a process and all its descendants, in bytes. Shared memory
// counts once.
func treeMemory(root int) (sum int64) {
	parents := map[int]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		raw, _ := os.ReadFile(path)
		_, rest, _ := strings.Cut(string(raw), ") ")
		if f := strings.Fields(rest); len(f) > 1 {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			parents[pid], _ = strconv.Atoi(f[1])
		}
	}
	for pid := range parents {
		at := pid
		for at != root && at > 1 {
			at = parents[at]
		}
		if at != root {
			continue
		}
		rollup, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		_, pss, _ := strings.Cut(string(rollup), "\nPss:")
		if f := strings.Fields(pss); len(f) > 0 {
			kib, _ := strconv.ParseInt(f[0], 10, 64)
			sum += kib << 10
		}
	}
	return sum
}

func tokgateTimes(folder string) ([]float64, error) {
	run, _, err := record.Read(folder)
	if err != nil {
		return nil, err
	}
	var out []float64
	for _, l := range run.Levels {
		for _, r := range l.Rounds {
			for _, s := range r.Samples {
				if s.Phase == metric.Measured && s.Completed() {
					out = append(out, (s.First - s.Sent).Seconds())
				}
			}
		}
	}
	return out, nil
}

func vllmTimes(folder string) ([]float64, error) {
	var result struct {
		TTFTs []float64 `json:"ttfts"`
	}
	err := readJSON(filepath.Join(folder, "bench.json"), &result)
	return slices.DeleteFunc(result.TTFTs, func(s float64) bool { return s <= 0 }), err
}

func guidellmTimes(folder string) ([]float64, error) {
	var result struct {
		Benchmarks []struct {
			Requests struct {
				Successful []struct {
					TTFT float64 `json:"time_to_first_token_ms"`
				} `json:"successful"`
			} `json:"requests"`
		} `json:"benchmarks"`
	}
	if err := readJSON(filepath.Join(folder, "benchmarks.json"), &result); err != nil || len(result.Benchmarks) == 0 {
		return nil, err
	}
	var out []float64
	for _, r := range result.Benchmarks[0].Requests.Successful {
		out = append(out, r.TTFT/1e3)
	}
	return out, nil
}

func aiperfTimes(folder string) (out []float64, err error) {
	path, err := findFile(folder, "profile_export.jsonl")
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for lines := json.NewDecoder(file); ; {
		var r struct {
			Metrics struct {
				TTFT struct {
					Value float64 `json:"value"`
				} `json:"time_to_first_token"`
			} `json:"metrics"`
		}
		if err := lines.Decode(&r); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		if ms := r.Metrics.TTFT.Value; ms > 0 {
			out = append(out, ms/1e3)
		}
	}
}

func inferencePerfTimes(folder string) ([]float64, error) {
	path, err := findFile(folder, "per_request_lifecycle_metrics.json")
	if err != nil {
		return nil, err
	}
	var result []struct {
		Start float64 `json:"start_time"`
		Error any     `json:"error"`
		Info  struct {
			Tokens []float64 `json:"output_token_times"`
		} `json:"info"`
	}
	if err := readJSON(path, &result); err != nil {
		return nil, err
	}
	var out []float64
	for _, r := range result {
		if r.Error == nil && len(r.Info.Tokens) > 0 {
			out = append(out, r.Info.Tokens[0]-r.Start)
		}
	}
	return out, nil
}

// findFile returns the path of the file with the given name in a folder or below it.
func findFile(folder, name string) (found string, err error) {
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == name {
			found = path
		}
		return err
	})
	if err == nil && found == "" {
		err = fmt.Errorf("no %s in %s", name, folder)
	}
	return found, err
}

func readJSON(path string, v any) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, v)
}
