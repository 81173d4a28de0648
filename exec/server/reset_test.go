package server

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/sim"
)

func TestReset(t *testing.T) {
	for _, tt := range []struct {
		engine string
		busy   int32 // number of reset requests that the server refuses with status 400
		status int   // from then on
		asked  int32
		took   time.Duration
		fails  bool
	}{
		{"sglang", 0, 200, 1, 0, false},
		{"sglang", 2, 200, 3, 500 * time.Millisecond, false},
		{"sglang", 1000, 200, 40, 10 * time.Second, true}, // an attempt every 250 ms for 10 s
		{"vllm", 0, 404, 1, 0, false},                     // vllm has no reset page: no error
		{"llama.cpp", 0, 200, 0, 0, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, sim.Options{})
			var asked atomic.Int32
			w.instead = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if asked.Add(1) <= tt.busy {
					rw.WriteHeader(http.StatusBadRequest)
					return
				}
				rw.WriteHeader(tt.status)
			})
			r, err := w.reach(vllm(), w.state, client.Config{BaseURL: "http://server.test/v1", Engine: engine.Of(tt.engine)})
			must.Do(t, err)
			defer r.api.Close()
			err = r.reset(t.Context())
			if (err != nil) != tt.fails || asked.Load() != tt.asked || w.clock.Now() != tt.took {
				t.Errorf("%s: asked %d times in %v, %v; want %d in %v", tt.engine, asked.Load(), w.clock.Now(), err, tt.asked, tt.took)
			}
		})
	}
}

// tokgate resets only servers that it has started, because a server that was already running may
// have other users.
func TestWhoIsReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		target := must.Get(w.Launch(t.Context(), vllm(), w.state))(t)
		defer target.Close()
		must.Hold(t, target.Reset == nil, "an endpoint's caches would be emptied")
	})
	l := New(Options{Clock: clock.NewReal()})
	s := &plan.Server{Name: "demo", Engine: "openai", Ready: plan.Ready{Timeout: time.Minute}, Simulator: &plan.Simulator{Seed: 1}}
	target := must.Get(l.Launch(t.Context(), s, func(string) {}))(t)
	defer target.Close()
	must.Need(t, target.Reset != nil, "the built-in server's caches cannot be emptied")
	err := target.Reset(t.Context())
	must.Hold(t, err == nil, "%v", err)
}
