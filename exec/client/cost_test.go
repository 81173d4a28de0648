//go:build unix

package client

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/sim"
)

// This file tests how much memory the reading of a stream takes. Its benchmarks compare the
// processor time and the delay with those of a bare reader in the same run.

const (
	ordinaryChunk = `data: {"id":"chatcmpl-5f0c2a4be6f74a5d8a1b","object":"chat.completion.chunk","created":1795178385,"model":"m","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}],"usage":{"prompt_tokens":1024,"total_tokens":1100,"completion_tokens":76}}` + "\n\n"
	answerHead    = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)

// perRead is an answer of n ordinary chunks. Each read returns one chunk.
type perRead struct{ n, i int }

func (p *perRead) Read(b []byte) (int, error) {
	switch p.i++; {
	case p.i <= p.n:
		return copy(b, ordinaryChunk), nil
	case p.i == p.n+1:
		return copy(b, answerTail), nil
	}
	return 0, io.EOF
}

func (p *perRead) Close() error { return nil }

// Reading a chunk allocates no memory: a long answer allocates as much as a short one.
func TestLongNoAllocationPerChunk(t *testing.T) {
	h := dial(t, Config{}, "http://127.0.0.1:1")
	allocations := func(chunks int) float64 {
		return testing.AllocsPerRun(8, func() {
			s := &metric.Sample{OutputAsked: 100_000}
			s.Gaps = make(metric.Gaps, 0, 6000)
			r := chatRequest()
			r.Output = chunks
			c := h.newCall(t.Context(), r, NewAnswer(s, nil))
			c.resp = &http.Response{Body: &perRead{n: chunks}}
			if c.end(c.read()); s.Failure != nil || s.Chunks != chunks {
				t.Fatalf("%d chunks, failure %+v", s.Chunks, s.Failure)
			}
		})
	}
	// The long answer has eleven times as many chunks. It may allocate a little more, because a
	// garbage collection may empty a pool.
	short, long := allocations(100), allocations(1100)
	must.Hold(t, long <= short+3, "%v allocations for 100 chunks, %v for 1,100", short, long)
}

// streamServer accepts connections on loopback. It sends only the head of an answer; the test sends
// the chunks. A stream takes almost no memory in the server.
type streamServer struct {
	l net.Listener
}

func startStreams(t testing.TB) *streamServer {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	return &streamServer{l}
}

func (s *streamServer) url() string { return "http://" + s.l.Addr().String() }

// accept takes one connection, reads the request, and sends the head of the answer.
func (s *streamServer) accept(buffer []byte) (net.Conn, error) {
	conn, err := s.l.Accept()
	if err != nil {
		return nil, err
	}
	n := 0
	for !bytes.HasSuffix(buffer[:n], []byte("}}")) && !bytes.HasSuffix(buffer[:n], []byte("}")) {
		m, err := conn.Read(buffer[n:])
		if err != nil {
			return nil, err
		}
		n += m
	}
	_, err = io.WriteString(conn, answerHead)
	return conn, err
}

// 1,000 streams at once must need less than 100 MiB, including the test's own server. The test runs
// a quarter of the streams and requires a quarter of the memory.
func TestMemoryOfManyStreams(t *testing.T) {
	const streams = 250
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < 2*streams+100 {
		t.Skipf("%d file descriptors are too few: %v", limit.Cur, err)
	}
	server := startStreams(t)
	h := dial(t, Config{}, server.url())
	used := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	before := used()
	samples := make([]*metric.Sample, streams)
	var wg sync.WaitGroup
	conns := make([]net.Conn, 0, streams)
	buffer := make([]byte, 64<<10)
	for i := range samples {
		samples[i] = &metric.Sample{OutputAsked: 1024}
		wg.Add(1)
		r := chatRequest()
		r.Output = 1024
		h.Send(t.Context(), r, NewAnswer(samples[i], func(*metric.Sample) { wg.Done() }))
		conn := must.Get(server.accept(buffer))(t)
		conns = append(conns, conn)
	}
	chunk, tail := chunked(ordinaryChunk), chunked(answerTail)+"0\r\n\r\n"
	for range 5 {
		for _, conn := range conns {
			must.Get(io.WriteString(conn, chunk))(t)
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	most := m.HeapInuse + m.StackInuse
	for _, conn := range conns {
		must.Get(io.WriteString(conn, tail))(t)
	}
	wg.Wait()
	for _, conn := range conns {
		conn.Close()
	}
	for i, s := range samples {
		must.Need(t, s.Failure == nil && s.Chunks == 5, "stream %d: %d chunks, failure %+v", i, s.Chunks, s.Failure)
	}
	took := (float64(most) - float64(before)) / (1 << 20) // less than 0 if other garbage was freed
	t.Logf("%.1f MiB, %.1f KiB a stream", took, took*1024/streams)
	// Allow 0.1 MiB for each stream, because a stream needs several times as much memory under the
	// race detector. A buffer that is ten times too large is still found.
	must.Hold(t, took <= 0.1*streams, "%d streams took %.1f MiB", streams, took)
}

// benchServer is an environment variable that turns the test binary into a server of streams. The
// server runs in its own process, so that a benchmark counts only the processor time of the reader.
const benchServer = "TOKGATE_BENCH_STREAMS"

func TestMain(m *testing.M) {
	if spec := os.Getenv(benchServer); spec != "" {
		serveStreams(spec)
		return
	}
	os.Exit(m.Run())
}

// serveStreams serves streams until its input ends. The spec "250 20ms" means 250 chunks, 20 ms
// apart, from the start of each stream. With "steps 250 20ms", the chunks of all streams come at
// the same times.
func serveStreams(spec string) {
	spec, steps := strings.CutPrefix(spec, "steps ")
	count, gap, _ := strings.Cut(spec, " ")
	n, err := strconv.Atoi(count)
	if err != nil {
		panic(err)
	}
	every, err := time.ParseDuration(gap)
	if err != nil {
		panic(err)
	}
	if steps {
		go serveSteps(n, every)
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := &streamServer{l}
	fmt.Println(server.url())
	go func() {
		for {
			conn, err := server.accept(make([]byte, 4096))
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				chunk := []byte(chunked(ordinaryChunk))
				tick := time.NewTicker(every)
				for range n {
					<-tick.C
					if _, err := conn.Write(chunk); err != nil {
						return
					}
				}
				_, _ = io.WriteString(conn, chunked(answerTail)+"0\r\n\r\n")
			}()
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// startBenchServer starts a server in a process of its own. If TOKGATE_BENCH_CPU is set, it runs
// the server on that processor by means of taskset.
func startBenchServer(b *testing.B, spec string) string {
	cmd := exec.Command(os.Args[0])
	if cpu := os.Getenv("TOKGATE_BENCH_CPU"); cpu != "" {
		cmd = exec.Command("taskset", "-c", cpu, os.Args[0])
	}
	cmd.Env = append(os.Environ(), benchServer+"="+spec)
	in := must.Get(cmd.StdinPipe())(b)
	out := must.Get(cmd.StdoutPipe())(b)
	must.Do(b, cmd.Start())
	b.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	line := must.Get(bufio.NewReader(out).ReadString('\n'))(b)
	return strings.TrimSpace(line)
}

// bareStream is a reader that does as little as possible: it reads lines from a socket and stamps
// each data line. Benchmarks compare tokgate's reader with it.
func bareStream(address, body string, stamps []time.Duration, now func() time.Duration) (int, error) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		return 0, err
	}
	r := bufio.NewReader(conn)
	n := 0
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return n, err
		}
		if !bytes.HasPrefix(line, []byte("data: ")) {
			continue
		}
		at := now()
		if bytes.HasPrefix(line, []byte("data: [DONE]")) {
			return n - 2, nil // without the chunks of the finish reason and the usage
		}
		if n < len(stamps) {
			stamps[n] = at
		}
		n++
	}
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkChunkCPU measures the processor time that a chunk costs, with 64 streams of 50 chunks
// per second. tokgate's reader and a bare reader take turns on the same servers. The cost of the
// request itself is cancelled by comparing long with short streams.
func BenchmarkChunkCPU(b *testing.B) {
	const streams, short, long = 64, 10, 135
	urls := map[int]string{}
	for _, n := range []int{short, long} {
		urls[n] = startBenchServer(b, fmt.Sprint(n, " 20ms"))
	}
	now := realNow()
	request := chatRequest()
	body := must.Get(request.Body(engine.Dialect{}))(b)
	clients := map[int]*HTTP{}
	for n, url := range urls {
		clients[n] = dial(b, Config{Now: now, Engine: engine.Engine{Dialect: engine.Dialect{FreshConns: true}}}, url)
	}
	all := func(chunks int, one func() int) time.Duration {
		runtime.GC()
		before := cpuTime()
		var wg sync.WaitGroup
		for range streams {
			wg.Go(func() {
				n := one()
				must.Hold(b, n == chunks, "%d chunks, want %d", n, chunks)
			})
		}
		wg.Wait()
		return cpuTime() - before
	}
	bare := func(chunks int) time.Duration {
		return all(chunks, func() int {
			n, err := bareStream(urls[chunks], string(body), nil, now)
			must.Hold(b, err == nil, "%v", err)
			return n
		})
	}
	ours := func(chunks int) time.Duration {
		return all(chunks, func() int { return send(b, clients[chunks], request).Chunks })
	}
	var costs [2][]float64 // costs of the bare reader and of tokgate's reader, in µs per chunk
	var requests []float64
	for b.Loop() {
		for range 8 { // read in turns, so that other work on the machine affects both
			for i, read := range []func(int) time.Duration{bare, ours} {
				few := read(short)
				costs[i] = append(costs[i], float64(read(long)-few)/(streams*(long-short))/1e3)
				if i == 1 {
					requests = append(requests, float64(few)/streams/1e3)
				}
			}
		}
	}
	b.ReportMetric(median(costs[0]), "bare-µs/chunk")
	b.ReportMetric(median(costs[1]), "ours-µs/chunk")
	guard(b, "chunk", median(costs[1])/median(costs[0]))
	b.ReportMetric(median(requests), "ours-µs/short-request")
}

// BenchmarkStampDelay measures the time from the server's write of a chunk to the chunk's
// timestamp. It compares tokgate's reader with a bare reader, at 64 streams of 50 chunks per
// second. The server runs in the same process, so that both times come from one clock.
func BenchmarkStampDelay(b *testing.B) {
	const streams, chunks = 64, 50
	now := realNow()
	chunk, tail := []byte(chunked(ordinaryChunk)), chunked(answerTail)+"0\r\n\r\n"
	// round measures a reader. The function one reads one stream with this reader. The results are
	// the delays of the first chunk of each stream, and the delays of all chunks.
	round := func(one func(url string) []time.Duration) (first, rest []time.Duration) {
		for range 4 {
			server := startStreams(b)
			type stream struct{ wrote, read []time.Duration }
			got := make([]stream, streams)
			var wg sync.WaitGroup
			for i := range got {
				wg.Go(func() { got[i].read = one(server.url()) })
				conn := must.Get(server.accept(make([]byte, 4096)))(b)
				got[i].wrote = make([]time.Duration, chunks)
				wg.Go(func() {
					defer conn.Close()
					tick := time.NewTicker(20 * ms)
					for j := range chunks {
						<-tick.C
						got[i].wrote[j] = now()
						_, _ = conn.Write(chunk)
					}
					_, _ = io.WriteString(conn, tail)
				})
			}
			wg.Wait()
			server.l.Close()
			for _, s := range got {
				must.Need(b, len(s.read) == chunks, "%d chunks", len(s.read))
				for j := range s.read {
					rest = append(rest, s.read[j]-s.wrote[j])
				}
				first = append(first, rest[len(rest)-chunks])
			}
		}
		return first, rest
	}
	var bare, ours, bareFirst, oursFirst []time.Duration
	for b.Loop() {
		f, r := round(func(url string) []time.Duration {
			stamps := make([]time.Duration, chunks)
			_, _ = bareStream(url, "{}", stamps, now)
			return stamps
		})
		bareFirst, bare = append(bareFirst, f...), append(bare, r...)
		f, r = round(func(url string) []time.Duration {
			h := dial(b, Config{Now: now}, url)
			s := &stampStream{stamps: make([]time.Duration, 0, chunks), done: make(chan struct{})}
			h.Send(b.Context(), chatRequest(), s)
			<-s.done
			h.Close()
			return s.stamps
		})
		oursFirst, ours = append(oursFirst, f...), append(ours, r...)
	}
	p99 := func(d []time.Duration) float64 {
		slices.SortFunc(d, cmp.Compare[time.Duration])
		return float64(d[(len(d)*99+99)/100-1]) / 1e6
	}
	b.ReportMetric(p99(bare), "bare-p99-ms")
	b.ReportMetric(p99(ours), "ours-p99-ms")
	b.ReportMetric(p99(bareFirst), "bare-first-p99-ms")
	b.ReportMetric(p99(oursFirst), "ours-first-p99-ms")
	b.ReportMetric(p99(oursFirst)-p99(bareFirst), "first-above-bare-ms")
}

// BenchmarkTTFTError measures how late the first token is stamped after the built-in server emitted
// it. It compares tokgate's reader with a bare reader, at 64 streams of 50 tokens per second.
func BenchmarkTTFTError(b *testing.B) {
	const slots, requests, tokens = 64, 12, 25
	origin := time.Now()
	now := func() time.Duration { return time.Since(origin) + 1 }
	var mu sync.Mutex
	emitted := map[string]time.Duration{}
	server := must.Get(sim.New(sim.Options{
		Profile: &sim.Profile{
			Name: "steady", Model: "m", MaxModelLen: 1000, Policy: sim.Mixed, OverheadMS: 1,
			Prefill: sim.PrefillCost{USPerToken: 1}, Decode: sim.DecodeCost{BaseMS: 20}, Limits: sim.Limits{MaxBatchedTokens: 1000},
		},
		OnEmit: func(id string, chunk int, at time.Time) {
			if chunk == 0 {
				mu.Lock()
				emitted[id] = at.Sub(origin) + 1
				mu.Unlock()
			}
		},
	}))(b)
	must.Do(b, server.Start("127.0.0.1:0"))
	b.Cleanup(func() { server.Close() })
	request := &Request{API: "chat", Model: "m", Prompt: Prompt{Text: "hello"}, Output: tokens}
	body := must.Get(request.Body(engine.Of("vllm").Dialect))(b)
	runs := 0
	// measure returns how late the first token of each request was stamped. For each slot, reader
	// returns a function that sends a request and returns the time stamp of the first token.
	measure := func(reader func(id string) func() time.Duration) []time.Duration {
		runs++
		errors := make([][]time.Duration, slots)
		var wg sync.WaitGroup
		for slot := range slots {
			wg.Go(func() {
				id := fmt.Sprintf("%d-%d", runs, slot)
				first := reader(id)
				// Let the slots start at different times.
				time.Sleep(time.Duration(slot) * 8 * ms)
				for range requests {
					at := first()
					mu.Lock()
					wrote, ok := emitted["chatcmpl-"+id]
					delete(emitted, "chatcmpl-"+id)
					mu.Unlock()
					if !ok || at == 0 {
						b.Errorf("request %s: emitted %v, stamped %v", id, wrote, at)
						return
					}
					errors[slot] = append(errors[slot], at-wrote)
				}
			})
		}
		wg.Wait()
		return slices.Concat(errors...)
	}
	var bare, ours []time.Duration
	for b.Loop() {
		for range 2 {
			bare = append(bare, measure(func(id string) func() time.Duration {
				return func() time.Duration {
					at, err := bareFirst(server.URL(), id, string(body), now)
					must.Hold(b, err == nil, "%v", err)
					return at
				}
			})...)
			ours = append(ours, measure(func(id string) func() time.Duration {
				h := dial(b, Config{Now: now, Engine: engine.Of("vllm"), Headers: map[string]string{"X-Request-Id": id}}, server.URL())
				return func() time.Duration {
					s := send(b, h, request)
					must.Hold(b, s.Failure == nil, "%v", s.Failure)
					return s.First
				}
			})...)
		}
	}
	at := func(d []time.Duration, percent int) float64 {
		slices.Sort(d)
		return float64(d[(len(d)*percent+99)/100-1]) / 1e6
	}
	b.ReportMetric(at(bare, 50), "bare-p50-ms")
	b.ReportMetric(at(ours, 50), "ours-p50-ms")
	b.ReportMetric(at(bare, 99), "bare-p99-ms")
	b.ReportMetric(at(ours, 99), "ours-p99-ms")
	b.ReportMetric(at(ours, 99)-at(bare, 99), "above-bare-ms")
}

// bareFirst sends a request, reads the stream to its end, and returns the time at which the first
// chunk with content came.
func bareFirst(address, id, body string, now func() time.Duration) (time.Duration, error) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Request-Id: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", id, len(body), body); err != nil {
		return 0, err
	}
	r := bufio.NewReader(conn)
	first := time.Duration(0)
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return first, err
		}
		at := now()
		if !bytes.HasPrefix(line, []byte("data: ")) {
			continue
		}
		if bytes.HasPrefix(line, []byte("data: [DONE]")) {
			return first, nil
		}
		if first == 0 && bytes.Contains(line, []byte(`"content":"`)) && !bytes.Contains(line, []byte(`"content":""`)) {
			first = at
		}
	}
}

// stampStream is a stream that records the time of each event with content.
type stampStream struct {
	stamps []time.Duration
	done   chan struct{}
}

func (s *stampStream) Sent(time.Duration)         {}
func (s *stampStream) Headers(time.Duration, int) {}
func (s *stampStream) End(time.Duration, error)   { close(s.done) }
func (s *stampStream) Event(at time.Duration, e *Event) {
	if e.Content {
		s.stamps = append(s.stamps, at)
	}
}
