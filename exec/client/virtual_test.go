package client

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/internal/studies/memnet"
	"github.com/tokgate/tokgate/metric"
)

// inMemory runs the function test against the handler in virtual time, so that all times are exact.
func inMemory(t *testing.T, handler http.HandlerFunc, test func(t *testing.T, h *HTTP)) {
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen()
		// A WaitGroup cannot count handlers: one may begin while the test waits for the end.
		var handlers atomic.Int64
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handlers.Add(1)
			defer handlers.Add(-1)
			_, _ = io.Copy(io.Discard, r.Body)
			handler(w, r)
		})}
		go func() { _ = server.Serve(l) }()
		start := time.Now()
		h := must.Get(New(Config{
			BaseURL: "http://memory.test",
			Dial:    l.DialContext,
			Now:     func() time.Duration { return time.Since(start) + time.Second },
		}))(t)
		test(t, h)
		h.Close()
		_ = server.Close()
		for synctest.Wait(); handlers.Load() > 0; synctest.Wait() {
			time.Sleep(time.Second)
		}
	})
}

func write(w http.ResponseWriter, events ...string) {
	for _, e := range events {
		_, _ = fmt.Fprintf(w, "data: %s\n\n", e)
	}
	w.(http.Flusher).Flush()
}

const (
	roleEvent      = `{"choices":[{"delta":{"role":"assistant","content":""}}]}`
	reasoningEvent = `{"choices":[{"delta":{"reasoning":"hm"}}]}`
	contentEvent   = `{"choices":[{"delta":{"content":"word"}}]}`
	finishEvent    = `{"choices":[{"delta":{},"finish_reason":"length"}]}`
	usageEvent     = `{"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":61}}`
)

// TestExactTimes serves a stream for which load tools report TTFTs that differ by a factor of ten.
// The role comes at 0.1 s, and the first reasoning token at 1 s. Chunks of several tokens follow at
// exact times.
func TestExactTimes(t *testing.T) {
	inMemory(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(50 * ms)
		w.(http.Flusher).Flush() // the head, alone
		time.Sleep(50 * ms)
		write(w, roleEvent)
		time.Sleep(900 * ms)
		write(w, reasoningEvent)
		for i := range 20 {
			time.Sleep(60 * ms)
			if i < 5 {
				write(w, reasoningEvent)
			} else {
				write(w, contentEvent)
			}
		}
		time.Sleep(20 * ms)
		write(w, finishEvent, usageEvent, "[DONE]")
	}, func(t *testing.T, h *HTTP) {
		s := send(t, h, chatRequest())
		want := &metric.Sample{
			Sent: 1000 * ms, Headers: 1050 * ms, First: 2000 * ms,
			FirstAnswer: 2360 * ms, // 2000 + 6·60
			Last:        3200 * ms, // 2000 + 20·60
			End:         3220 * ms,
			Chunks:      21, Text: 72, // 6 × "hm" and 15 × "word": 21 chunks, 72 bytes
			InputAsked: 11, OutputAsked: 8,
			Usage:  &metric.Usage{Input: 11, Output: 61, Cached: -1},
			Finish: "length", Status: 200,
		}
		for range 20 {
			want.Gaps = append(want.Gaps, 60000)
		}
		must.Same(t, "(-want +got)", want, s)
		for name, want := range map[string]float64{
			"ttft": 1, "ttfa": 1.36, "e2e": 2.2,
			"tpot":  1.2 / 60, // 20 ms: 1.2 s after the first token, for the other 60 tokens
			"speed": 50,
		} {
			got, ok := s.Value(name)
			must.Hold(t, ok && got >= want-1e-9 && got <= want+1e-9, "%s is %v, %v; want %v", name, got, ok, want)
		}
	})
}

// A request ends at its time-out if the server sends one byte per minute, or nothing.
func TestGivenUpOnTime(t *testing.T) {
	for name, pause := range map[string]time.Duration{"a byte a minute": time.Minute, "nothing": time.Hour} {
		inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			for _, b := range "data: " + contentEvent {
				select {
				case <-time.After(pause):
				case <-r.Context().Done():
					return
				}
				if _, err := fmt.Fprintf(w, "%c", b); err != nil {
					return
				}
				w.(http.Flusher).Flush()
			}
		}, func(t *testing.T, h *HTTP) {
			r := chatRequest()
			r.Timeout = 10 * time.Minute
			s := send(t, h, r)
			must.Hold(t, s.Failure != nil && s.Failure.Kind == metric.FailTimeout && s.Failure.Message == "no end within 10m0s", "%s: failure %+v", name, s.Failure)
			must.Hold(t, s.End >= 600*time.Second && s.End <= 601*time.Second && s.Sent == time.Second, "%s: sent %v, end %v", name, s.Sent, s.End)
		})
	}
}

// After a time-out, the sample keeps what came of the answer before the time-out.
func TestTimeoutMidway(t *testing.T) {
	inMemory(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(400 * ms)
		write(w, contentEvent)
		<-r.Context().Done()
	}, func(t *testing.T, h *HTTP) {
		r := chatRequest()
		r.Timeout = 3 * time.Second
		s := send(t, h, r)
		want := &metric.Failure{Kind: metric.FailTimeout, Message: "no end within 3s"}
		must.Same(t, "", want, s.Failure)
		if s.First != 1400*ms || s.Chunks != 1 || s.Status != 200 || s.End != 4*time.Second {
			t.Errorf("first %v, %d chunks, status %d, end %v", s.First, s.Chunks, s.Status, s.End)
		}
		_, ok := s.Value("e2e")
		must.Hold(t, !ok, "a request that was given up has an e2e")
	})
}

// The test runs one hour of streams, and every measured time is exact.
func TestManyExactTimes(t *testing.T) {
	inMemory(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(350 * ms)
		for range 100 {
			write(w, contentEvent)
			time.Sleep(25 * ms)
		}
		write(w, finishEvent, usageEvent, "[DONE]")
	}, func(t *testing.T, h *HTTP) {
		for i := range 12 {
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					s := send(t, h, chatRequest())
					if s.Failure != nil || s.First-s.Sent != 350*ms || s.Last-s.First != 99*25*ms || len(s.Gaps) != 99 {
						t.Errorf("after %d times 5 min: failure %+v, ttft %v, %d gaps", i, s.Failure, s.First-s.Sent, len(s.Gaps))
					}
					for _, g := range s.Gaps {
						must.Hold(t, g == 25000, "a gap of %d µs", g)
					}
				})
			}
			wg.Wait()
			time.Sleep(297 * time.Second)
		}
	})
}
