package main

import (
	"bytes"
	"context"
	"fmt"

	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tokgate/tokgate/exec/server"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record"
)

// everyShape has a workload for each shape of load, and what else travels with a request: rows of a data set,
// conversations, shared prefixes, natural answers and clients that leave.
const everyShape = `gate {
  decide = "estimate"
}

server "s" {
  engine = "vllm"
  endpoint { url = "http://%s" }
  simulator {}
}

workload "closed" {
  input_tokens  = 64
  output_tokens = { mean = 12, jitter = "%d%%" }
  load {
    concurrency = [1, 6]
    requests    = 60
  }
  sla { ttft = "p95 < 1s" }
}

workload "burst" {
  input_tokens  = 64
  output_tokens = 8
  cancel {
    share        = "20%%"
    after_tokens = 3
  }
  load {
    burst  = 5
    bursts = 3
  }
  sla { ttft = "p95 < 1s" }
}

workload "rate" {
  input_tokens  = 64
  output_tokens = 8
  load {
    rate     = "20 req/s"
    requests = 100
    saturate = %v
  }
  sla { ttft = "p95 < 1s" }
}

workload "stages" {
  input_tokens  = 64
  output_tokens = 8
  load {
    stage "calm" {
      rate     = "5 req/s"
      duration = "4s"
    }
    stage "spike" {
      rate     = "20 req/s"
      duration = "4s"
    }
  }
  sla {
    at   = ["calm"]
    ttft = "p95 < 1s"
  }
}

workload "trace" {
  load {
    trace = "trace.jsonl"
  }
  sla { ttft = "p95 < 1s" }
}

workload "users" {
  input_tokens  = 64
  output_tokens = 8
  prompt { turns = 3 }
  load {
    users      = 5
    think_time = "1s"
    duration   = "30s"
  }
  sla { ttft = "p95 < 1s" }
}
`

// shapes writes everyShape and its trace, for a server at an address.
func shapes(t *testing.T, address string, jitter int, saturate bool) string {
	t.Helper()
	path := writePlan(t, fmt.Sprintf(everyShape, address, jitter, saturate))
	var trace strings.Builder
	for i := range 40 {
		fmt.Fprintf(&trace, `{"timestamp": %d, "input_length": %d, "output_length": 6, "hash_ids": [1, %d]}`+"\n", 250*i, 600+10*(i%4), 2+i%5)
	}
	must.Do(t, os.WriteFile(filepath.Join(filepath.Dir(path), "trace.jsonl"), []byte(trace.String()), 0o644))
	return path
}

// In virtual time a run has the same results without workers, with one and with four, but for the folder and
// the recording's identity. Orders and samples take their whole way, but for the network.
func TestWorkersDoNotChangeResults(t *testing.T) {
	path := shapes(t, "127.0.0.1:1", 50, true)
	var want map[string]string
	for _, n := range []string{"0", "1", "4"} {
		out := t.TempDir()
		r := tokgate(t, "run", path, "--simulate", "--workers", n, "--out", out, "-q")
		must.Need(t, r.code == 0 || r.code == 1 || r.code == 3, "exit %d\n%s\n%s", r.code, r.out, r.err)
		got := map[string]string{}
		for _, name := range []string{"results.json", "samples.jsonl"} {
			got[name] = string(must.Get(os.ReadFile(filepath.Join(out, name)))(t))
		}
		got["results.json"] = regexp.MustCompile(`"(folder|sum)": ".*"`).ReplaceAllString(got["results.json"], "")
		if want == nil {
			want = got
		}
		must.Same(t, "with "+n+" workers", want, got)
	}
	must.Hold(t, strings.Count(want["samples.jsonl"], `"type":"sample"`) > 500, "there are few samples")
}

// spoken is an output whose lines can be awaited.
type spoken struct {
	mu    sync.Mutex
	text  bytes.Buffer
	wants map[string]chan string
}

func (o *spoken) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	for want, found := range o.wants {
		if _, after, ok := strings.Cut(o.text.String(), want); ok && strings.ContainsAny(after, " \n") {
			delete(o.wants, want)
			found <- after
		}
	}
	return len(p), nil
}

// after waits until words were written and returns what follows them.
func (o *spoken) after(words string) string {
	found := make(chan string, 1)
	o.mu.Lock()
	o.wants[words] = found
	o.mu.Unlock()
	_, _ = o.Write(nil)
	return <-found
}

func (o *spoken) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// workerProcess is one command line that runs in a goroutine of its own.
type workerProcess struct {
	spoken
	end  context.CancelFunc
	code chan int
}

func startProcess(t *testing.T, network server.Network, args ...string) *workerProcess {
	p := &workerProcess{spoken: spoken{wants: map[string]chan string{}}, code: make(chan int, 1)}
	var ctx context.Context
	ctx, p.end = context.WithCancel(t.Context())
	dir := t.TempDir()
	a := &app{
		Streams: Streams{In: strings.NewReader(""), Out: p, Err: p}, environ: []string{"TOKGATE_STATE_DIR=" + dir}, network: network,
		salts: saltsOf(t, dir),
		meter: func() func() metric.Health { return func() metric.Health { return metric.Health{} } },
	}
	go func() { p.code <- a.main(ctx, args) }()
	return p
}

// crew is a run and its workers, on the network in memory.
type crew struct {
	*workerProcess
	workers []*workerProcess
	out     string
}

// beginCrew begins a run with workers, of which each has a network of its own.
func beginCrew(t *testing.T, plan string, networks []server.Network, args ...string) *crew {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	c := &crew{out: t.TempDir()}
	c.workerProcess = startProcess(t, inMemory, append([]string{"run", plan, "--workers", fmt.Sprint(len(networks)), "--token-file", token,
		"--listen", "127.0.0.1:0", "--out", c.out}, args...)...)
	url, _, _ := strings.Cut(c.after("tokgate worker --join "), " ")
	fingerprint := strings.Fields(c.after("--fingerprint "))[0]
	for i, network := range networks {
		c.workers = append(c.workers, startProcess(t, network, "worker", "--join", url, "--token-file", token,
			"--fingerprint", fingerprint, "--name", fmt.Sprintf("w%d", i)))
	}
	return c
}

// ends waits for the exit codes: of the run, and of its workers.
func (c *crew) ends() []int {
	codes := []int{<-c.code}
	for _, w := range c.workers {
		codes = append(codes, <-w.code)
	}
	return codes
}

func (c *crew) say(t *testing.T) {
	if t.Failed() {
		t.Logf("the run:\n%s", c)
		for _, w := range c.workers {
			t.Logf("a worker:\n%s", w)
		}
	}
}

// Over HTTPS two workers send the requests that a run without workers sends.
func TestWorkersSendTheSameRequests(t *testing.T) {
	inVirtualTime(func(t *testing.T) {
		s := simServer(t)
		path := shapes(t, strings.TrimPrefix(s.URL(), "http://"), 0, false) // lengths are drawn by the salt
		alone := t.TempDir()
		r := tokgate(t, "run", path, "--out", alone, "-q")
		must.Need(t, r.code == 0 || r.code == 1 || r.code == 3, "exit %d\n%s\n%s", r.code, r.out, r.err)
		c := beginCrew(t, path, []server.Network{inMemory, inMemory})
		must.Same(t, "exit codes", []int{r.code, 0, 0}, c.ends())
		must.Same(t, "requests", requestsIn(t, alone), requestsIn(t, c.out))
		run := readRun(t, c.out)
		for _, w := range run.Workers {
			must.Hold(t, w.Requests > 100 && w.Offset < time.Millisecond, "a worker sent %+v", w)
		}
		must.Hold(t, len(run.Workers) == 2, "the recording has %d workers", len(run.Workers))
		for _, l := range run.Levels { // a request with a time of its own is with its worker before
			for _, x := range l.MeasuredSamples() {
				if lag := x.Sent - x.Scheduled; x.FromDue && lag > time.Millisecond {
					t.Fatalf("a request of %s was sent %v late", x.Workload, lag)
				}
			}
		}
		c.say(t)
	})(t)
}

// requestsIn lists the measured requests of a recording: everything that was known of them before they were sent.
func requestsIn(t *testing.T, dir string) (out []string) {
	t.Helper()
	run := readRun(t, dir)
	for _, l := range run.Levels {
		for _, x := range l.MeasuredSamples() {
			if l.Probe == nil {
				out = append(out, fmt.Sprint(x.Workload, x.Level, x.Round, x.Order, x.Turn, x.InputAsked, x.OutputAsked, x.Row, x.Shared))
			}
		}
	}
	slices.Sort(out)
	return out
}

func readRun(t *testing.T, dir string) *metric.Run {
	t.Helper()
	run, _, err := record.Read(dir)
	must.Do(t, err)
	return run
}

// wire is the network of one worker. It can be cut: then nothing comes or goes on it, and no connection breaks.
type wire struct {
	mu    sync.Mutex
	cut   chan struct{} // closed when the cut is over; nil if there is none
	conns []*wired
}

func (w *wire) network() server.Network {
	return server.Network{Listen: memory.Listen, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if cut := w.isCut(); cut != nil {
			select {
			case <-cut:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		c, err := memory.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		x := &wired{Conn: c, wire: w}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.conns = append(w.conns, x)
		return x, nil
	}}
}

func (w *wire) isCut() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut
}

func (w *wire) cutFor(d time.Duration) {
	over := make(chan struct{})
	w.mu.Lock()
	w.cut = over
	w.mu.Unlock()
	time.Sleep(d)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = nil
	for _, c := range w.conns {
		if _, _ = c.Conn.Write(c.kept); c.closed {
			c.Conn.Close()
		}
		c.kept = nil
	}
	close(over)
}

// wired is a connection over a wire. What is written on a cut goes out when it is over.
type wired struct {
	net.Conn
	*wire
	kept   []byte
	closed bool
}

func (c *wired) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed = true; c.cut != nil {
		_ = c.Conn.SetReadDeadline(time.Unix(1, 0)) // on this side it is closed
		return nil
	}
	return c.Conn.Close()
}

func (c *wired) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if cut := c.isCut(); cut != nil {
		<-cut
	}
	return n, err
}

func (c *wired) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut != nil {
		c.kept = append(c.kept, p...)
		return len(p), nil
	}
	return c.Conn.Write(p)
}

const steadyPlan = `gate {
  decide = "estimate"
}

server "s" {
  engine = "vllm"
  endpoint { url = "http://%s" }
}

workload "w" {
  input_tokens  = 64
  output_tokens = 8
  load {
    concurrency = 6
    duration    = "60s"
  }
  sla { ttft = "p95 < 1s" }
}
`

// What happens to a worker or to its network decides how the run ends: never with a verdict of the others alone.
func TestLongLostWorkers(t *testing.T) {
	for name, x := range map[string]struct {
		harm  func(c *crew, w *wire)
		codes []int    // of the run, the worker that was harmed, and the other
		words []string // of the run
	}{
		"told to end":        {func(c *crew, _ *wire) { c.workers[0].end() }, []int{4, 130, 4}, []string{"worker w0 was lost: it was told to end"}},
		"cut for 10 s":       {func(_ *crew, w *wire) { w.cutFor(10 * time.Second) }, []int{0, 0, 0}, []string{"stood still"}},
		"cut for 25 s":       {func(_ *crew, w *wire) { w.cutFor(25 * time.Second) }, []int{0, 0, 0}, []string{"stood still"}},
		"cut for 60 s":       {func(_ *crew, w *wire) { w.cutFor(60 * time.Second) }, []int{4, 4, 4}, []string{"worker w0 was lost: nothing was heard from it for 30s"}},
		"the run is stopped": {func(c *crew, _ *wire) { c.end() }, []int{130, 4, 4}, nil},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			s := simServer(t)
			path := writePlan(t, fmt.Sprintf(steadyPlan, strings.TrimPrefix(s.URL(), "http://")))
			w := new(wire)
			c := beginCrew(t, path, []server.Network{w.network(), inMemory})
			c.after("w at 6 on s ")
			time.Sleep(20 * time.Second)
			x.harm(c, w)
			must.Same(t, "exit codes", x.codes, c.ends())
			for _, words := range x.words {
				must.Hold(t, strings.Contains(c.String(), words), "nothing says %q", words)
			}
			junit, _ := os.ReadFile(filepath.Join(c.out, "junit.xml"))
			if green := !bytes.Contains(junit, []byte("<error")) && !bytes.Contains(junit, []byte("<failure")); x.codes[0] != 0 {
				must.Hold(t, !green, "junit.xml is green:\n%s", junit)
				must.Hold(t, len(readRun(t, c.out).Levels) > 0, "nothing of the run was recorded")
			}
			c.say(t)
		}))
	}
}
