package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/server/lease"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/internal/studies/memnet"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/sim"
	"github.com/tokgate/tokgate/traffic"
)

// world is a built-in server on a network in memory, and a launcher that can reach it. A test uses
// it in a synctest bubble, where time is virtual.
type world struct {
	*Launcher
	clock    *clock.Real
	listener *memnet.Listener
	handler  atomic.Pointer[sim.Server]
	instead  http.Handler // answers in place of handler, if set before the first request
	states   []string
}

func newWorld(t *testing.T, o sim.Options) *world {
	t.Helper()
	w := &world{clock: clock.NewReal(), listener: memnet.Listen()}
	w.Launcher = New(Options{Clock: w.clock})
	w.Dial = w.listener.DialContext
	w.serve(t, o)
	front := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.instead != nil {
			w.instead.ServeHTTP(rw, r)
			return
		}
		w.handler.Load().ServeHTTP(rw, r)
	})}
	ended := make(chan struct{})
	go func() { defer close(ended); front.Serve(w.listener) }()
	t.Cleanup(func() {
		front.Close()
		<-ended
	})
	return w
}

// serve replaces the server of the world by a new server with the options o.
func (w *world) serve(t *testing.T, o sim.Options) {
	t.Helper()
	s := must.Get(sim.New(o))(t)
	w.handler.Store(s)
	t.Cleanup(func() { s.Close() })
}

func (w *world) state(s string) { w.states = append(w.states, s) }

func vllm() *plan.Server {
	return &plan.Server{
		Name: "vllm", Engine: "vllm", Ready: plan.Ready{Timeout: 30 * time.Second},
		Endpoint: &plan.Endpoint{URL: "http://server.test/v1"},
	}
}

func TestEndpointIsReadyWhenItCompletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		profile := sim.DefaultProfile()
		profile.LoadMS = 3200
		w := newWorld(t, sim.Options{Profile: profile})
		target := must.Get(w.Launch(t.Context(), vllm(), w.state))(t)
		// The server is ready after 3.2 s. The launcher asks every 0.5 s, so it notices this at 3.5
		// s.
		now := w.clock.Now()
		must.Hold(t, now >= 3500*time.Millisecond && now <= 4*time.Second, "ready at %v, want soon after 3.5s", now)
		must.Hold(t, len(w.states) >= 7 && strings.Contains(w.states[1], "loading"), "states %q, want the server's own words", w.states)
		want := metric.Fingerprint{
			"engine": "vllm", "model": "tokgate-sim", "served_as": "tokgate-sim",
			"version": sim.Version, "max_model_len": "32768",
		}
		must.Same(t, "fingerprint (-want +got)", want, target.Fingerprint)
		must.Hold(t, target.Model == "tokgate-sim", "model %q", target.Model)
		if err := target.Check(t.Context()); !errors.Is(err, exec.ErrIdentityUnknown) { // the server does not report its start time
			t.Errorf("the same server is taken for another: %v", err)
		}
		w.serve(t, sim.Options{Model: "other"})
		err := target.Check(t.Context())
		must.Hold(t, err != nil && strings.Contains(err.Error(), `"tokgate-sim" and is "other"`), "another model gave %v", err)
		if err := target.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A server that has embeddings alone refuses chats and completions, each engine with a status of its
// own, and is ready when it has answered with a vector.
func TestServerOfEmbeddingsIsReady(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented} {
		synctest.Test(t, func(t *testing.T) {
			profile := sim.DefaultProfile()
			profile.LoadMS = 700 // it refuses embeddings until then, and chats for ever
			w := newWorld(t, sim.Options{Profile: profile})
			var asked []string
			w.instead = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/v1/") {
					asked = append(asked, r.URL.Path)
					if r.URL.Path != "/v1/embeddings" {
						http.Error(rw, "The model does not support it", status)
						return
					}
				}
				w.handler.Load().ServeHTTP(rw, r)
			})
			target, err := w.Launch(t.Context(), vllm(), w.state)
			must.Need(t, err == nil, "HTTP %d: %v", status, err)
			each := []string{"/v1/chat/completions", "/v1/completions", "/v1/embeddings"}
			must.Same(t, "asked", slices.Concat(each, each, each), asked)
			must.Do(t, target.Close())
		})
	}
}

func TestEndpointIsNotReady(t *testing.T) {
	slow := sim.DefaultProfile()
	slow.LoadMS = 60_000
	stuck := sim.DefaultProfile()
	stuck.Decode.BaseMS = 3_600_000
	for _, tt := range []struct {
		name    string
		options sim.Options
		change  func(*world, *plan.Server)
		want    []string
		at      time.Duration
	}{
		{"loading for too long", sim.Options{Profile: slow}, nil,
			[]string{"was not ready after 30s", "loading"}, 30 * time.Second},
		{"nobody there", sim.Options{}, func(w *world, _ *plan.Server) { w.listener.Close() },
			[]string{"was not ready after 30s", "refused"}, 30 * time.Second},
		{"no key", sim.Options{APIKey: "sk-1234"}, nil,
			[]string{"cannot be used", "Unauthorized"}, 0},
		{"never completes", sim.Options{Profile: stuck}, nil,
			[]string{"was not ready after 30s", "its first completion did not end"}, 30 * time.Second},
		{"another model", sim.Options{}, func(_ *world, s *plan.Server) { s.Endpoint.ServedAs = "llama" },
			[]string{"cannot be used", `served_as is "llama"; the server lists tokgate-sim`}, 0},
		{"expected another version", sim.Options{}, func(_ *world, s *plan.Server) { s.Expect = map[string]string{"version": "0.19.1"} },
			[]string{"not the declared server", `version = "0.19.1" was expected, but "tokgate-sim-1" was found`}, 0},
		{"expected what cannot be told", sim.Options{}, func(_ *world, s *plan.Server) { s.Expect = map[string]string{"gpu": "1 x H100", "model": "x"} },
			[]string{`model = "x" was expected, but "tokgate-sim" was found`}, 0},
		{"no certificate authority", sim.Options{}, func(_ *world, s *plan.Server) { s.Endpoint.CAFile = "/nowhere/ca.pem" },
			[]string{"certificate authority", "/nowhere/ca.pem"}, 0},
		{"no URL", sim.Options{}, func(_ *world, s *plan.Server) { s.Endpoint.URL = "ftp://x" },
			[]string{"ftp://x"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, tt.options)
				s := vllm()
				if tt.change != nil {
					tt.change(w, s)
				}
				_, err := w.Launch(t.Context(), s, w.state)
				for _, want := range tt.want {
					must.Hold(t, err != nil && strings.Contains(err.Error(), want), "error %v, want %q in it", err, want)
				}
				now := w.clock.Now()
				must.Hold(t, now >= tt.at && now <= tt.at+time.Second, "given up at %v, want %v", now, tt.at)
			})
		})
	}
}

// If url names a page, the error has the URL that was asked and the base URL that was meant.
func TestPageForBaseURL(t *testing.T) {
	for _, tt := range []struct{ url, model, want string }{
		{"http://server.test/v1/chat/completions", "", "asking for its models: HTTP 404: 404 page not found (it was asked below http://server.test/v1/chat/completions/v1; url is the server's base URL, without a page: http://server.test/v1)"},
		{"http://server.test/v1/models/", "", "(it was asked below http://server.test/v1/models/v1; url is the server's base URL, without a page: http://server.test/v1)"},
		{"http://server.test/api", "", "HTTP 404: 404 page not found (it was asked below http://server.test/api/v1; url is the server's base URL: is it http://server.test?)"},
		{"http://server.test/chat/completions", "tokgate-sim", "HTTP 404: 404 page not found (it was asked below http://server.test/chat/completions/v1; url is the server's base URL, without a page: http://server.test)"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, sim.Options{})
			s := vllm()
			s.Endpoint.URL, s.Model = tt.url, tt.model
			_, err := w.Launch(t.Context(), s, w.state)
			must.Hold(t, err != nil && strings.HasSuffix(err.Error(), tt.want), "%s: error %v, want %q at its end", tt.url, err, tt.want)
		})
	}
	must.Same(t, "a base URL gets the hint", "", baseHint("http://server.test/v1", "")+baseHint("http://server.test", ""))
}

// Servers behind one URL must be alike. They are asked on new connections, at the start and after each
// round. A server that does not answer is left out.
func TestUnlikeServersBehindOneURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		other, err := sim.New(sim.Options{Model: "other"})
		must.Do(t, err)
		defer other.Close()
		var n atomic.Int32
		turns := func(unlike http.Handler) http.Handler {
			return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/models" && n.Add(1)%2 == 0 {
					unlike.ServeHTTP(rw, r)
					return
				}
				w.handler.Load().ServeHTTP(rw, r)
			})
		}
		w.instead = turns(other)
		_, err = w.Launch(t.Context(), vllm(), w.state)
		want := `several servers answer at http://server.test/v1, and they differ: model is "tokgate-sim" or "other"`
		must.Hold(t, err != nil && strings.HasPrefix(err.Error(), want), "at the start: error %v, want %q", err, want)

		n.Store(0)
		w.instead = turns(http.NotFoundHandler())
		target, err := w.Launch(t.Context(), vllm(), w.state)
		must.Do(t, err)
		if err := target.Same(t.Context()); err != nil {
			t.Errorf("one server, which does not always answer: %v", err)
		}
		w.instead = other
		if err := target.Same(t.Context()); err == nil || !strings.Contains(err.Error(), `model is "tokgate-sim" or "other"`) {
			t.Errorf("after a round: error %v", err)
		}
		if err := target.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A gateway may hide facts that the plan expects. Such a fact is unknown, but this is no error.
func TestExpectedOfAnEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		s := vllm()
		s.Expect = map[string]string{"gpu": "1 x H100", "version": sim.Version}
		target := must.Get(w.Launch(t.Context(), s, w.state))(t)
		defer target.Close()
		got := target.Fingerprint["gpu"]
		must.Hold(t, got == metric.Unknown, "gpu is %q, want unknown", got)
	})
}

// A server that restarts under the load reports a new start time. Behind one URL there may be
// several servers with different start times, and any of them may answer.
func TestEndpointIsStartedAgain(t *testing.T) {
	for _, tt := range []struct {
		name string
		// The server reports these start times in turn, and the last one again and again. At
		// "hangs" it sends no answer.
		starts []string
		want   string // expected text in the error; "" if no error is expected
	}{
		{"the same", []string{"100"}, ""},
		{"another", []string{"100", "200"}, "restarted under the load"},
		{"one of two", []string{"100", "200", "200", "100"}, ""},
		{"never told", []string{""}, "but not when it was started"},
		{"no longer told", []string{"100", ""}, "it is not known whether the server was the same at the end"},
		{"no answer", []string{"100", "hangs"}, "it is not known whether the server was the same at the end"},
		{"no answer from the first", []string{"hangs"}, "but not when it was started"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.Options{})
				var told atomic.Int32
				w.instead = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/metrics" {
						w.handler.Load().ServeHTTP(rw, r)
						return
					}
					at := tt.starts[min(int(told.Add(1)), len(tt.starts))-1]
					if at == "hangs" {
						<-r.Context().Done()
						return
					}
					if at != "" {
						fmt.Fprintf(rw, "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %s\n", at)
					}
				})
				target, err := w.Launch(t.Context(), vllm(), w.state)
				must.Do(t, err)
				defer target.Close()
				before := w.clock.Now()
				err = target.Check(t.Context())
				must.Hold(t, (err != nil) == (tt.want != "") && (err == nil || strings.Contains(err.Error(), tt.want)), "error %v, want %q", err, tt.want)
				took := w.clock.Now() - before
				must.Hold(t, took <= lastLook, "it took %v", took)
			})
		})
	}
}

// If the server's certificate is not accepted, the error comes at once. Waiting would not help.
func TestUntrustedCertificate(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	s := vllm()
	s.Endpoint.URL = server.URL
	c := clock.NewReal()
	_, err := New(Options{Clock: c}).Launch(t.Context(), s, func(string) {})
	if err == nil || !strings.Contains(err.Error(), "cannot be used") || !strings.Contains(err.Error(), "the server's certificate is not accepted") {
		t.Errorf("error %v", err)
	}
}

// The server's list of models may lack the model that the plan names.
func TestUnlisted(t *testing.T) {
	status := func(code int) error { return &client.Error{Kind: metric.FailStatus, Status: code} }
	for _, tt := range []struct {
		servedAs, model string
		err             error
		want            string
		ok              bool
	}{
		{"id", "real/name", status(500), "id", true}, // the server cannot list its models
		{"id", "", status(403), "id", true},          // the server refuses to list its models
		{"", "real/name", status(404), "real/name", true},
		{"", "real/name", status(500), "", false}, // perhaps still loading
		{"", "", status(404), "", false},          // the plan names no model to ask for
		{"id", "", &client.Error{Kind: metric.FailConnect}, "", false},
		{"id", "", context.Canceled, "", false},
	} {
		r := &reached{server: &plan.Server{Model: tt.model}, servedAs: tt.servedAs}
		got, ok := r.unlisted(tt.err)
		must.Hold(t, ok == tt.ok && (!ok || got == tt.want), "unlisted(%v) of served_as %q, model %q: %q, %v", tt.err, tt.servedAs, tt.model, got, ok)
	}
}

func TestLaunchIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := sim.DefaultProfile()
		slow.LoadMS = 3_600_000
		w := newWorld(t, sim.Options{Profile: slow})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		s := vllm()
		s.Ready.Timeout = time.Hour
		_, err := w.Launch(ctx, s, w.state)
		must.Hold(t, errors.Is(err, context.DeadlineExceeded), "error %v, want the context's", err)
		now := w.clock.Now()
		must.Hold(t, now <= 6*time.Second, "given up at %v, want 5s", now)
	})
}

// TestMinutesOverHTTP runs a whole plan over HTTP, with 16 streams that last for minutes. The
// built-in server is on a network in memory.
func TestMinutesOverHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		profile := sim.DefaultProfile()
		profile.OverheadMS = 0
		profile.Prefill = sim.PrefillCost{USPerToken: 1}
		profile.Decode = sim.DecodeCost{BaseMS: 20_000} // 20 s a token
		profile.Noise = sim.Noise{}
		profile.Limits = sim.Limits{MaxBatchedTokens: 1 << 20}
		w := newWorld(t, sim.Options{Profile: profile})
		s := vllm()
		s.Ready.Timeout = time.Hour
		p := &plan.Plan{
			Servers: []*plan.Server{s},
			Workloads: []*plan.Workload{{
				Name: "chat", Servers: []*plan.Server{s}, API: plan.Chat, Input: 200, Output: plan.Output{Mean: 3},
				Loads: []*plan.Load{{
					Kind: metric.ClosedLoop, Seeds: []int64{1}, Warmup: plan.WarmupAuto, Stagger: plan.StaggerAuto,
					Levels: []plan.Level{{Name: "16", N: 16, Requests: 16 * 5, Rounds: 1}},
				}},
			}},
		}
		samples := 0
		counts := func(e metric.Event) error {
			if _, ok := e.(metric.SampleDone); ok {
				samples++
			}
			return nil
		}
		run := must.Get(exec.Run(t.Context(), exec.Config{Plan: p, Clock: w.clock, Launch: w.Launch, Observer: counts, Run: metric.Run{Salt: 7}}))(t)
		must.Need(t, run.Servers[0].Error == "", "%v", run.Servers[0].Error)
		r := run.Levels[0].Rounds[0]
		if !r.Complete || !run.Levels[0].Exact || r.Busy < 0.999 {
			t.Errorf("complete %v (%s), exact %v, busy %v", r.Complete, r.Stopped, run.Levels[0].Exact, r.Busy)
		}
		// Five waves of three steps of 20 s take 5 min. At the start of each wave a request may
		// wait for the end of a step, at most 20 s.
		took := r.End - r.Start
		must.Hold(t, took >= 5*time.Minute && took <= 8*time.Minute, "the round took %v, want five minutes and a bit", took)
		for _, m := range r.MeasuredSamples() {
			tpot, ok := m.Value("tpot")
			if m.Failure != nil || m.Usage == nil || m.Usage.Input != 200 || m.Usage.Output != 3 || !ok {
				t.Fatalf("%v: failure %+v, usage %+v", m, m.Failure, m.Usage)
			}
			// A step takes 20 s, and slightly longer if it also prefills a prompt.
			must.Need(t, tpot >= 20 && tpot <= 20.1, "%v: tpot %v, want 20 s", m, tpot)
		}
		must.Hold(t, samples >= 16*5, "%d samples were handed on", samples)
	})
}

func TestPromptsDoNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		target, err := w.Launch(t.Context(), vllm(), w.state)
		must.Do(t, err)
		defer target.Close()
		_, err = target.Prompts(t.Context(), &plan.Workload{API: plan.Chat, Input: 32768, Output: plan.Output{Mean: 1}}, 1)
		must.Hold(t, err != nil && strings.Contains(err.Error(), "do not fit the server's context of 32768"), "error %v", err)
	})
}

// If a row of a data set does not fit the context, the error names the row.
//
// The built-in server counts words and the spaces between them, so a prompt of 16,350 words has
// 2·16,350 + 12 tokens. It fits a context of 32,768 tokens, but not together with an answer of 100
// tokens.
func TestRowsDoNotFit(t *testing.T) {
	row := func(line, words, answer int) traffic.Row {
		return traffic.Row{Line: line, Prompt: strings.Repeat("word ", words), MaxTokens: answer}
	}
	for _, tt := range []struct {
		rows []traffic.Row
		want string // "": they fit
	}{
		{[]traffic.Row{row(1, 100, 0), row(3, 17000, 0)}, "a.jsonl:3: "},
		{[]traffic.Row{row(1, 16000, 0), row(2, 16350, 100), row(3, 17000, 0)}, "a.jsonl:2: "},
		{[]traffic.Row{row(1, 16000, 0), row(2, 16350, 0)}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, sim.Options{})
			target, err := w.Launch(t.Context(), vllm(), w.state)
			must.Do(t, err)
			defer target.Close()
			data := &plan.Workload{API: plan.Chat, Output: plan.Output{Mean: 1}, Prompt: plan.Prompt{Dataset: &traffic.Dataset{Path: "a.jsonl", Rows: tt.rows}}}
			_, err = target.Prompts(t.Context(), data, 1)
			_, virtual := virtualPrompts{32768, 0, newDatasets()}.prompts(t.Context(), data, 1)
			for _, err := range []error{err, virtual} {
				switch {
				case tt.want == "" && err != nil, tt.want != "" && err == nil:
					t.Errorf("error %v, want %q", err, tt.want)
				case err != nil && (!strings.HasPrefix(err.Error(), tt.want) || !strings.HasSuffix(err.Error(), "do not fit the server's context of 32768")):
					t.Errorf("error %v, want %q", err, tt.want)
				}
			}
		})
	}
}

func TestPromptsAreLearntOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		target := must.Get(w.Launch(t.Context(), vllm(), w.state))(t)
		defer target.Close()
		before := len(w.states)
		texts := map[string]bool{}
		for _, name := range []string{"a", "b"} {
			p := must.Get(target.Prompts(t.Context(), &plan.Workload{Name: name, API: plan.Chat, Input: 100, Output: plan.Output{Mean: 1}}, 1))(t)
			for order := range 3 {
				made := must.Get(p.Prompt(exec.PromptID{Level: "1", Seed: 1, Phase: metric.Measured, Order: order}))(t)
				texts[made.Text] = true
			}
		}
		learnt := len(w.states) - before
		must.Hold(t, learnt == 1, "the server was asked %d times how it counts, want once", learnt)
		must.Hold(t, len(texts) == 6, "%d different prompts of 6", len(texts))
	})
}

// silent observes nothing.
func silent(metric.Event) error { return nil }

func TestPick(t *testing.T) {
	a, b := client.Model{Context: 8}, client.Model{}
	a.ID, a.Root, b.ID = "a", "org/A", "b"
	for _, tt := range []struct {
		models         []client.Model
		servedAs, name string
		want           string // "": an error
	}{
		{[]client.Model{a}, "", "", "a"},
		{[]client.Model{a}, "", "another name", "a"}, // the only one
		{[]client.Model{a, b}, "", "", ""},
		{[]client.Model{a, b}, "", "b", "b"},
		{[]client.Model{a, b}, "", "org/A", "a"}, // name matches Root, the name of the loaded model
		{[]client.Model{a, b}, "b", "org/A", "b"},
		{[]client.Model{a, b}, "lora", "", "lora"}, // not listed; only a completion can show it
		{nil, "", "", ""},
		{nil, "", "org/A", ""},
		{nil, "x", "", "x"},
	} {
		got, err := pick(tt.models, tt.servedAs, tt.name)
		if got.ID != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("pick(%v, %q, %q) = %q, %v, want %q", tt.models, tt.servedAs, tt.name, got.ID, err, tt.want)
		}
	}
}

func TestHopeless(t *testing.T) {
	for status, want := range map[int]bool{400: true, 401: true, 404: true, 408: false, 422: true, 425: false, 429: false, 500: false, 503: false, 0: false} {
		err := fmt.Errorf("asking: %w", &client.Error{Kind: metric.FailStatus, Status: status})
		must.Same(t, fmt.Sprintf("status %d: hopeless", status), want, hopeless(err))
	}
}

func TestLaunchNothing(t *testing.T) {
	_, err := New(Options{Clock: clock.NewReal()}).Launch(t.Context(), &plan.Server{Name: "x"}, func(string) {})
	must.Hold(t, err != nil, "a server without a way to start it was launched")
}

// The tests below use real sockets, but their results do not depend on time.

func TestSimulator(t *testing.T) {
	l := New(Options{Clock: clock.NewReal()})
	s := &plan.Server{Name: "demo", Engine: "openai", Ready: plan.Ready{Timeout: time.Minute}, Simulator: &plan.Simulator{Seed: 1}}
	target := must.Get(l.Launch(t.Context(), s, func(string) {}))(t)
	must.Hold(t, target.Fingerprint["engine"] == "simulator" && target.Fingerprint["profile"] == "default", "fingerprint %v", target.Fingerprint)
	err := target.Check(t.Context())
	must.Hold(t, err == nil, "%v", err)
	if err := target.Close(); err != nil {
		t.Error(err)
	}
	if err := target.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "no longer answers") {
		t.Errorf("a closed server gave %v", err)
	}
	s.Simulator.Profile = "nosuch"
	if _, err := l.Launch(t.Context(), s, func(string) {}); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("an unknown profile gave %v", err)
	}
}

func TestCalibrate(t *testing.T) {
	c := clock.NewReal()
	got := must.Get(New(Options{Clock: c, Origin: c.Origin()}).Calibrate(t.Context()))(t)
	must.Hold(t, got.Streams == calibrationStreams && got.Rate > 0 && got.Delay50 > 0 && got.Delay99 >= got.Delay50 && got.Took > 0, "calibration %+v", got)
	_, err := New(Options{Clock: c}).Calibrate(t.Context())
	must.Hold(t, err != nil, "calibrated without knowing the clock's origin")
	if boot() == "" {
		return // the machine has no id for its current start, so no calibration is kept
	}
	// A stored calibration is used again until the machine restarts.
	l := New(Options{Clock: c, State: lease.Folder(t.TempDir())})
	l.State.Remember(lease.Calibrations, calibrationKey(), got)
	if again, err := l.Calibrate(t.Context()); err != nil || *again != *got {
		t.Errorf("%+v, %v", again, err)
	}
}

// A saturation repeats the last quarter of the rows of a data set. Measured requests come to these rows
// last.
func TestSaturationHasRowsOfItsOwn(t *testing.T) {
	data := &traffic.Dataset{Path: "a.jsonl"}
	for i := range 8 {
		data.Rows = append(data.Rows, traffic.Row{Line: i + 1, Prompt: fmt.Sprint("question ", i)})
	}
	p := newDatasets().begin(&plan.Workload{Prompt: plan.Prompt{Dataset: data}})
	rows := func(level string, phase metric.Phase, n int) map[int]bool {
		seen := map[int]bool{}
		for i := range n {
			seen[must.Get(p.Prompt(exec.PromptID{Level: level, Phase: phase, Order: i}))(t).Row] = true
		}
		return seen
	}
	saturation, measured := rows(metric.SaturationName, metric.Filler, 100), rows("4 req/s", metric.Measured, 6)
	must.Same(t, "of the saturation", map[int]bool{7: true, 8: true}, saturation)
	must.Same(t, "measured", map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true, 6: true}, measured)
}
