//go:build unix

package client

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
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
)

// committed holds the accepted costs of tokgate's reader, as ratios to the bare reader (see
// docs/performance.md). A benchmark fails if a cost exceeds 1.5 times its ratio.
var committed = map[string]float64{
	"chunk":   0.95, // ratio of processor time per chunk, for 64 streams out of step
	"burst":   1.0,  // ratio of processor time per chunk, for 512 to 3,000 streams in step
	"request": 1.4,  // ratio of processor time per request on an open connection
	"memory":  0.9,  // ratio of memory per stream, with 10,000 streams open
	"pollers": 1.0,  // processor time per chunk with two pollers, beside that with one
}

// guard reports a cost as a ratio to that of a bare reader of bytes, and fails if it is too large.
func guard(b *testing.B, name string, ratio float64) {
	b.ReportMetric(ratio, name+"-ratio")
	if most := 1.5 * committed[name]; !(ratio <= most) {
		b.Errorf("%s costs %.2f times what the bare reader takes; %.2f is committed, and %.2f the bound", name, ratio, committed[name], most)
	}
}

// serveSteps serves streams in step, as an engine does. At each step every stream sends one chunk.
// The parameter every is the time between two steps. The first chunk of a stream contains the time
// at which it was written.
func serveSteps(chunks int, every time.Duration) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println("http://" + l.Addr().String())
	type stream struct {
		conn net.Conn
		sent int
		over chan struct{}
	}
	var mu sync.Mutex
	var streams []*stream
	go func() {
		chunk, tail := []byte(chunked(ordinaryChunk)), chunked(answerTail)+"0\r\n\r\n"
		const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
		for range time.Tick(every) {
			mu.Lock()
			running := slices.Clone(streams)
			mu.Unlock()
			for _, s := range running {
				switch s.sent++; {
				case s.sent <= 5: // the prefill
				case s.sent == 6:
					first := fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{"content":"%d"}}]}`+"\n\n", time.Now().UnixNano())
					_, _ = io.WriteString(s.conn, head+chunked(first))
				case s.sent < 6+chunks:
					_, _ = s.conn.Write(chunk)
				default:
					_, _ = io.WriteString(s.conn, tail)
					close(s.over)
				}
			}
			mu.Lock()
			streams = slices.DeleteFunc(streams, func(s *stream) bool { return s.sent >= 6+chunks })
			mu.Unlock()
		}
	}()
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			br := bufio.NewReader(conn)
			for {
				r, err := http.ReadRequest(br)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				s := &stream{conn: conn, over: make(chan struct{})}
				mu.Lock()
				streams = append(streams, s)
				mu.Unlock()
				<-s.over
			}
		}()
	}
}

// burst holds the results of many streams that begin at once. It says how late the first chunks
// were stamped, how much processor time was used, and how fast the streams were.
type burst struct {
	// late has, for each stream, the time from the write of its first chunk to the chunk's
	// timestamp.
	late []time.Duration
	cpu  time.Duration
	// waited is how long goroutines waited for locks, in seconds.
	waited float64
	speed  []float64 // chunks per second of each stream
}

func (b burst) p99() float64 {
	slices.Sort(b.late)
	return float64(b.late[(len(b.late)*99+99)/100-1]) / 1e6
}

// timed records the delay of a stream's first chunk, and when its first and last chunk came.
type timed struct {
	origin      time.Time
	late        time.Duration
	first, last time.Duration
	chunks      int
	err         error
	over        func()
}

func (s *timed) Sent(time.Duration)         {}
func (s *timed) Headers(time.Duration, int) {}
func (s *timed) End(_ time.Duration, err error) {
	s.err = err
	s.over()
}
func (s *timed) Event(at time.Duration, e *Event) {
	if !e.Content {
		return
	}
	if s.chunks++; s.chunks == 1 {
		s.first, s.late = at, readDelay(s.origin, at, e.Raw)
	}
	s.last = at
}

// readDelay returns how long after its write a chunk was stamped. The text wrote is the time of the
// write in nanoseconds since 1970. The timestamp at is an offset from origin.
func readDelay(origin time.Time, at time.Duration, wrote []byte) time.Duration {
	ns, err := strconv.ParseInt(string(wrote), 10, 64)
	if err != nil {
		return time.Hour
	}
	return time.Duration(origin.UnixNano() + int64(at) - ns)
}

func burstOfOurs(b *testing.B, url string, n, chunks int) burst { return burstOf(b, 0, url, n, chunks) }

// burstOf sends n requests at once with tokgate's client and the given number of pollers. The requests
// were built beforehand, and their connections are open.
func burstOf(b *testing.B, pollers int, url string, n, chunks int) burst {
	origin := time.Now()
	h := dial(b, Config{Pollers: pollers, Now: func() time.Duration { return time.Since(origin) + 1 }, Engine: engine.Of("vllm")}, url)
	defer h.Close()
	h.Warm(b.Context(), n)
	r := chatRequest()
	r.Prompt = h.Prepare(r)
	streams := make([]timed, n)
	runtime.GC()
	var wg sync.WaitGroup
	wg.Add(n)
	before, waited := cpuTime(), lockWaits()
	for i := range streams {
		streams[i] = timed{origin: origin, over: wg.Done}
		request := *r
		h.Send(b.Context(), &request, &streams[i])
	}
	wg.Wait()
	out := burst{cpu: cpuTime() - before, waited: lockWaits() - waited}
	for _, s := range streams {
		must.Need(b, s.err == nil && s.chunks == chunks, "%d chunks, want %d: %v", s.chunks, chunks, s.err)
		out.late = append(out.late, s.late)
		out.speed = append(out.speed, float64(chunks-1)/(s.last-s.first).Seconds())
	}
	return out
}

// burstOfBare sends n requests at once with bare readers. It is the counterpart of burstOfOurs.
func burstOfBare(b *testing.B, url string, n, chunks int) burst {
	origin := time.Now()
	conns := make([]net.Conn, n)
	for i := range conns {
		conn := must.Get(net.Dial("tcp", strings.TrimPrefix(url, "http://")))(b)
		defer conn.Close()
		conns[i] = conn
	}
	request := []byte("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
	out := burst{late: make([]time.Duration, n)}
	runtime.GC()
	var wg sync.WaitGroup
	before := cpuTime()
	for i, conn := range conns {
		wg.Go(func() {
			if _, err := conn.Write(request); err != nil {
				b.Error(err)
				return
			}
			r, got := bufio.NewReader(conn), 0
			for {
				line, err := r.ReadSlice('\n')
				if err != nil {
					b.Error(err)
					return
				}
				if !bytes.HasPrefix(line, []byte("data: ")) {
					continue
				}
				at := time.Since(origin)
				if bytes.HasPrefix(line, []byte("data: [DONE]")) {
					break
				}
				if got++; got == 1 {
					from := bytes.Index(line, []byte(`"content":"`)) + len(`"content":"`)
					out.late[i] = readDelay(origin, at, line[from:from+bytes.IndexByte(line[from:], '"')])
				}
			}
			if got -= 2; got != chunks { // the finish and the usage are no chunks of text
				b.Errorf("%d chunks, want %d", got, chunks)
			}
		})
	}
	wg.Wait()
	out.cpu = cpuTime() - before
	return out
}

// BenchmarkBurst sends many requests at once, with tokgate's client and with bare readers of bytes
// in turn. It measures how late each of them stamps the first chunk, and the processor time for a
// chunk and for a request.
func BenchmarkBurst(b *testing.B) {
	const short, long = 2, 27
	for _, n := range []int{512, 1500, 3000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			urls := map[int]string{}
			for _, chunks := range []int{short, long} {
				urls[chunks] = startBenchServer(b, fmt.Sprintf("steps %d 20ms", chunks))
			}
			var chunk, request, late [2][]float64 // of the bare reader (0) and of tokgate's (1)
			var speed []float64
			for b.Loop() {
				for range 3 {
					for i, send := range []func(*testing.B, string, int, int) burst{burstOfBare, burstOfOurs} {
						few, many := send(b, urls[short], n, short), send(b, urls[long], n, long)
						each := float64(many.cpu-few.cpu) / float64(n*(long-short))
						chunk[i] = append(chunk[i], each/1e3)
						request[i] = append(request[i], (float64(few.cpu)/float64(n)-each*short)/1e3)
						late[i] = append(late[i], few.p99(), many.p99())
						speed = append(speed, many.speed...)
					}
				}
			}
			for i, who := range []string{"bare", "ours"} {
				b.ReportMetric(median(late[i]), who+"-first-p99-ms")
				b.ReportMetric(median(chunk[i]), who+"-µs/chunk")
				b.ReportMetric(median(request[i]), who+"-µs/request")
			}
			b.ReportMetric(median(speed), "chunks/s")
			guard(b, "burst", median(chunk[1])/median(chunk[0]))
			guard(b, "request", median(request[1])/median(request[0]))
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkPollers sends many requests at once, with one poller and with two in turn, while the server
// uses the same cores. It measures the processor time of a chunk, how late the first chunks are
// stamped, the chunks per second of all streams, and how much of the time goroutines waited for locks.
func BenchmarkPollers(b *testing.B) {
	if runtime.GOMAXPROCS(0) < 2 {
		b.Skip("two pollers need two cores")
	}
	const short, long = 2, 52
	for _, n := range []int{512, 3000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			urls := map[int]string{}
			for _, chunks := range []int{short, long} {
				urls[chunks] = startBenchServer(b, fmt.Sprintf("steps %d 20ms", chunks))
			}
			var chunk, late, speed, waits [2][]float64
			for b.Loop() {
				for range 5 {
					for i := range chunk {
						few, many := burstOf(b, i+1, urls[short], n, short), burstOf(b, i+1, urls[long], n, long)
						chunk[i] = append(chunk[i], float64(many.cpu-few.cpu)/float64(n*(long-short))/1e3)
						late[i] = append(late[i], few.p99(), many.p99())
						speed[i] = append(speed[i], median(many.speed)*float64(n))
						waits[i] = append(waits[i], 100*many.waited/many.cpu.Seconds())
					}
				}
			}
			for i, who := range []string{"one", "two"} {
				b.ReportMetric(median(late[i]), who+"-first-p99-ms")
				b.ReportMetric(median(chunk[i]), who+"-µs/chunk")
				b.ReportMetric(median(speed[i]), who+"-chunks/s")
				b.ReportMetric(median(waits[i]), who+"-lock-%")
			}
			guard(b, "pollers", median(chunk[1])/median(chunk[0]))
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkLeaving keeps 512 requests in flight, once without clients that leave and once with a fifth
// of them closing their connection at the third chunk, in turn. It measures how late the first chunks
// of the others are stamped.
func BenchmarkLeaving(b *testing.B) {
	const slots, chunks, rounds = 512, 12, 6
	url := startBenchServer(b, fmt.Sprintf("steps %d 20ms", chunks))
	var late [2][]float64
	for b.Loop() {
		for range 5 {
			for i := range late {
				late[i] = append(late[i], burst{late: besideLeaving(b, url, slots, rounds, i == 1)}.p99())
			}
		}
	}
	for i, who := range []string{"without", "leaving"} {
		b.ReportMetric(median(late[i]), who+"-first-p99-ms")
	}
	b.ReportMetric(0, "ns/op")
}

// besideLeaving returns how late the first chunks were stamped of the requests that stay.
func besideLeaving(b *testing.B, url string, slots, rounds int, leave bool) []time.Duration {
	origin := time.Now()
	h := dial(b, Config{Now: func() time.Duration { return time.Since(origin) + 1 }, Engine: engine.Of("vllm")}, url)
	defer h.Close()
	h.Warm(b.Context(), slots)
	r := chatRequest()
	r.Prompt = h.Prepare(r)
	runtime.GC()
	late := make([][]time.Duration, slots)
	var wg sync.WaitGroup
	for slot := range slots {
		wg.Go(func() {
			for round := range rounds {
				ctx, cancel := context.WithCancel(b.Context())
				over := make(chan struct{})
				s := leaver{timed: timed{origin: origin, over: func() { close(over) }}}
				leaves := leave && (slot+round)%5 == 0
				if leaves {
					s.leave = cancel
				}
				request := *r
				h.Send(ctx, &request, &s)
				<-over
				cancel()
				if must.Hold(b, leaves == (s.err != nil), "leaves: %v, ended with %v", leaves, s.err); !leaves {
					late[slot] = append(late[slot], s.late)
				}
			}
		})
	}
	wg.Wait()
	return slices.Concat(late...)
}

// leaver closes its connection at the third chunk, unless leave is nil.
type leaver struct {
	timed
	leave func()
}

func (l *leaver) Event(at time.Duration, e *Event) {
	if l.timed.Event(at, e); l.chunks == 3 && l.leave != nil {
		l.leave()
	}
}

// lockWaits returns how long goroutines of this process have waited for locks, in seconds.
func lockWaits() float64 {
	s := []metrics.Sample{{Name: "/sync/mutex/wait/total:seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64()
}

// BenchmarkManyStreams measures the memory of 10,000 open streams, including their samples. It
// compares the memory with that of bare readers. It counts all memory that the process got from the
// system.
func BenchmarkManyStreams(b *testing.B) {
	const streams, chunks = 10_000, 3
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < streams+100 {
		b.Skipf("%d file descriptors are too few: %v", limit.Cur, err)
	}
	url := startBenchServer(b, fmt.Sprintf("steps %d 400ms", chunks))
	held := func() float64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.Sys - m.HeapReleased)
	}
	ours := func() {
		h := dial(b, Config{Engine: engine.Of("vllm")}, url)
		defer h.Close()
		h.Warm(b.Context(), streams)
		r := chatRequest()
		r.Prompt = h.Prepare(r)
		samples := make([]metric.Sample, streams)
		var wg sync.WaitGroup
		wg.Add(streams)
		for i := range samples {
			samples[i].OutputAsked = 1024
			h.Send(b.Context(), r, NewAnswer(&samples[i], func(*metric.Sample) { wg.Done() }))
		}
		wg.Wait()
		for _, s := range samples {
			must.Need(b, s.Failure == nil && s.Chunks == chunks, "%d chunks, want %d: %v", s.Chunks, chunks, s.Failure)
		}
	}
	var each [2]float64 // largest memory per stream, in KiB: with bare readers, then with tokgate
	for b.Loop() {
		for i, open := range []func(){func() { burstOfBare(b, url, streams, chunks) }, ours} {
			debug.FreeOSMemory()
			before := held()
			open()
			each[i] = max(each[i], (held()-before)/streams/1024)
		}
	}
	b.ReportMetric(each[0], "bare-KiB/stream")
	b.ReportMetric(each[1], "ours-KiB/stream")
	b.ReportMetric(each[1]*streams/1024, "ours-MiB")
	guard(b, "memory", each[1]/each[0])
	b.ReportMetric(0, "ns/op")
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
