package client

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// answerTail ends a streamed answer.
const answerTail = `data: {"choices":[{"delta":{},"finish_reason":"length"}]}` + "\n\n" +
	`data: {"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":8}}` + "\n\ndata: [DONE]\n\n"

// chunked returns s as a chunk of an HTTP body.
func chunked(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

// realNow returns a monotonic clock that starts above zero.
func realNow() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) + 1 }
}

// serve starts a server and a Transport to it.
func serve(t testing.TB, c Config, handler http.HandlerFunc) *HTTP {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return dial(t, c, server.URL)
}

func dial(t testing.TB, c Config, url string) *HTTP {
	t.Helper()
	if c.BaseURL = url; c.Now == nil {
		c.Now = realNow()
	}
	h := must.Get(New(c))(t)
	t.Cleanup(h.Close)
	return h
}

// send sends one request and returns its sample.
func send(t testing.TB, tr Transport, r *Request) *metric.Sample {
	t.Helper()
	return sendContext(t.Context(), tr, r)
}

func sendContext(ctx context.Context, tr Transport, r *Request) *metric.Sample {
	s, _ := complete(ctx, tr, r)
	return s
}

// chatRequest is a small ordinary request.
func chatRequest() *Request {
	return &Request{API: "chat", Model: "m", Prompt: Prompt{Text: "hello"}, Input: 11, Output: 8}
}

// recorded lists the answers in testdata: what servers sent, or send by their documentation.
func recorded(t testing.TB) []string {
	files, err := filepath.Glob("testdata/streams/*.[sj]s*")
	must.Need(t, err == nil && len(files) >= 30, "%d streams: %v", len(files), err)
	return files
}

// apiOf returns the API of a recorded answer, which its name holds.
func apiOf(file string) engine.API {
	for _, api := range engine.APIs {
		if strings.Contains(filepath.Base(file), api) {
			return engine.API(api)
		}
	}
	return engine.Chat
}

// requestTo is a request through an API. It has two inputs if it is one for embeddings.
func requestTo(api engine.API) *Request {
	r := chatRequest()
	if r.API = api; api.Embeds() {
		r.Prompt.More = []string{"world"}
	}
	return r
}

// good writes a complete streamed answer of n tokens.
func good(w http.ResponseWriter, n int) {
	w.Header().Set("Content-Type", "text/event-stream")
	for range n {
		_, _ = w.Write([]byte(`data: {"choices":[{"delta":{"content":" word"}}]}` + "\n\n"))
	}
	_, _ = w.Write([]byte(`data: {"choices":[{"delta":{},"finish_reason":"length"}]}` + "\n\n" +
		`data: {"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":8}}` + "\n\n" + "data: [DONE]\n\n"))
}

// tally counts names, and is safe for several goroutines.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) add(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[name]++
	return c.n[name]
}

func (c *tally) get(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[name]
}
