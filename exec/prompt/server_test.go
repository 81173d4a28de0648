package prompt

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/internal/studies/memnet"
	"github.com/tokgate/tokgate/sim"
)

// builtIn starts the simulated server on an in-memory network. It returns the server and a client
// of it. Both stop at the end of the test's synctest bubble.
func builtIn(t *testing.T, e engine.Engine) (*sim.Server, *client.HTTP) {
	t.Helper()
	l := memnet.Listen()
	server := must.Get(sim.New(sim.Options{Seed: 1}))(t)
	served := make(chan error)
	go func() { served <- server.Serve(l) }()
	start := time.Now()
	h := must.Get(client.New(client.Config{
		BaseURL: "http://memory.test", Dial: l.DialContext, Engine: e,
		Now: func() time.Duration { return time.Since(start) + 1 },
	}))(t)
	t.Cleanup(func() {
		h.Close()
		server.Close()
		<-served
	})
	return server, h
}

// The simulated server must count as many tokens in a prompt as the prompt was made for. It
// imitates each engine in turn. No token of a prompt may come from the prefix cache.
func TestAgainstServer(t *testing.T) {
	for _, tt := range []struct {
		engine string
		api    engine.API
		ids    bool
		exact  bool
	}{
		{"vllm", "chat", false, true},
		{"vllm", "completions", false, true},
		{"vllm", "completions", true, true},
		{"sglang", "chat", false, true}, // SGLang's tokenizer cannot count chat messages
		{"openai", "chat", false, true}, // calibration finds what the tokenizer accepts
		{"none", "chat", false, false},
	} {
		t.Run(tt.engine+" "+string(tt.api), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := engine.Of(tt.engine)
				if tt.engine == "none" {
					e = engine.Engine{}
				}
				server, h := builtIn(t, e)
				target := Target{HTTP: h, API: tt.api, Model: server.Model(), Timeout: time.Minute}
				var asked atomic.Int64
				o := numbered(target.Options(99), &asked)
				o.AsIDs = tt.ids
				begin := time.Now()
				m := must.Get(Calibrate(t.Context(), o))(t)
				must.Hold(t, m.Exact() == tt.exact, "exact %v", m.Exact())
				// Calibration of a new server takes at most 8 requests, and 150 ms of virtual time.
				n, took := asked.Load(), time.Since(begin)
				must.Hold(t, !tt.exact || n <= 8 && took <= 150*time.Millisecond, "%d questions in %v, want at most 8 in 150 ms", n, took)
				asked.Store(0)
				o.Known = m.Known()
				again, err := Calibrate(t.Context(), o)
				must.Hold(t, err == nil && asked.Load() == 2 && again.Exact() == tt.exact, "met before: %d questions, %v", asked.Load(), err)
				for i, n := range []int{16, 17, 64, 100, 1000, 4096} {
					p := must.Get(m.Make(Key{Seed: 42, Level: "1", Order: i}, n))(t)
					s := must.Get(h.Complete(t.Context(), &client.Request{API: tt.api, Model: server.Model(), Prompt: p, Input: n, Output: 4, Timeout: time.Hour}))(t)
					must.Hold(t, s.Usage != nil && s.Usage.Input == n && s.Usage.Cached <= 0, "%d tokens were charged as %+v", n, s.Usage)
				}
			})
		})
	}
}

// numbered returns the options o with counters of tokens that add the number of their calls to
// asked.
func numbered(o Options, asked *atomic.Int64) Options {
	counted := func(c Counter) Counter {
		return func(ctx context.Context, p client.Prompt) (int, error) {
			asked.Add(1)
			return c(ctx, p)
		}
	}
	ids := o.IDs
	o.Tokenizer, o.Usage = counted(o.Tokenizer), counted(o.Usage)
	o.IDs = func(ctx context.Context, text string) ([]int, error) {
		asked.Add(1)
		return ids(ctx, text)
	}
	return o
}
