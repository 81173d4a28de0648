package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/internal/studies/memnet"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/sim"
)

// sending is one request that the test sends at a given time.
type sending struct {
	at      time.Duration
	api     engine.API
	words   int // of the prompt
	output  int
	natural bool
	timeout time.Duration
	cancel  time.Duration // time of the cancellation; 0: never
}

func (s sending) request() *client.Request {
	return &client.Request{
		API: s.api, Model: "tokgate-sim", Prompt: client.Prompt{Text: strings.Repeat(" cat", s.words)},
		Output: s.output, Natural: s.natural, Timeout: s.timeout,
	}
}

// played sends the requests of a script over a transport, and returns the client's samples.
func played(t *testing.T, c clock.Clock, transport client.Transport, script []sending, input func(int) int) []*metric.Sample {
	t.Helper()
	samples := make([]*metric.Sample, len(script))
	left := len(script)
	for i, s := range script {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c.Timer(s.at, func() {
			r := s.request()
			r.Input = input(i)
			samples[i] = &metric.Sample{Order: i, OutputAsked: s.output}
			transport.Send(ctx, r, client.NewAnswer(samples[i], func(*metric.Sample) { c.Post(func() { left-- }) }))
		})
		if s.cancel > 0 {
			c.Timer(s.cancel, cancel)
		}
	}
	err := clock.Until(t.Context(), c, func() bool { return left == 0 })
	must.Need(t, err == nil, "%d requests did not end: %v", left, err)
	return samples
}

// overSockets runs a script over HTTP with the real clock. It runs in a synctest bubble, where
// times are exact.
func overSockets(t *testing.T, o sim.Options, script []sending) (samples []*metric.Sample) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewReal()
		s := must.Get(sim.New(o))(t)
		l := memnet.Listen()
		go s.Serve(l)
		h := must.Get(client.New(client.Config{BaseURL: "http://memory.test", Engine: engine.Of("vllm"), Now: c.Now, Dial: l.DialContext}))(t)
		samples = played(t, c, h, script, func(int) int { return 0 })
		h.Close()
		s.Close()
		synctest.Wait()
	})
	return samples
}

// inVirtualTime runs the script without HTTP. Its prompts have the lengths that the server counted
// over HTTP.
func inVirtualTime(t *testing.T, o sim.Options, script []sending) []*metric.Sample {
	c := clock.NewVirtual()
	server := must.Get(sim.NewVirtual(o, 0))(t)
	v := newVirtual(c, server)
	defer c.Settled(v.settle)()
	return played(t, c, v, script, func(i int) int {
		n := len(sim.Tokenize(nil, script[i].request().Prompt.Text))
		if script[i].api.Chats() {
			n += 11 // tokens of the chat template
		}
		return n
	})
}

var (
	both = []engine.API{engine.Completions, engine.Chat}
	rest = []engine.API{engine.Responses, engine.Messages, engine.Embeddings}
)

// busy returns a script of n requests, through the APIs in turn. They overlap, and some wait in a queue.
func busy(n int, apis ...engine.API) []sending {
	var script []sending
	for i := range n {
		s := sending{
			at: time.Second + time.Duration(i)*37*time.Millisecond, api: apis[i%len(apis)],
			words: 50 + 331*i%900, output: 2 + 17*i%40,
		}
		script = append(script, s)
	}
	return script
}

// The client measures the same samples over HTTP and in virtual time, to the nanosecond.
func TestBothPathsGiveEqualSamples(t *testing.T) {
	profiles := map[string]func(*sim.Profile){
		"default":            func(*sim.Profile) {},
		"prefill first":      func(p *sim.Profile) { p.Policy = sim.PrefillFirst },
		"a serial front end": func(p *sim.Profile) { p.FrontMSPerRequest, p.FrontUSPerToken = 20, 10 },
		"held back":          func(p *sim.Profile) { p.FirstVisibleToken = 9 },
		"speculation": func(p *sim.Profile) {
			p.Speculation = &sim.Speculation{Accept: []float64{0.8, 0.5, 0.2}, Spread: 0.3}
		},
		"one at a time": func(p *sim.Profile) { p.Limits.MaxSeqs = 1 },
		"prefix cache":  func(p *sim.Profile) { p.PrefixCache = &sim.PrefixCache{BlockTokens: 1 << 14, CapacityTokens: 1 << 16} },
	}
	for name, change := range profiles {
		t.Run(name, func(t *testing.T) {
			o := sim.Options{Profile: sim.DefaultProfile(), Seed: 7}
			change(o.Profile)
			script := busy(60, append(slices.Clone(rest), both...)...)
			script[10].cancel = script[10].at + 80*time.Millisecond
			script[11].cancel = script[11].at + time.Millisecond // cancelled before it is in the queue
			script[12].timeout = 40 * time.Millisecond
			script[13].timeout = time.Millisecond
			want := overSockets(t, o, script)
			got := inVirtualTime(t, o, script)
			must.Same(t, "(-over HTTP +in virtual time)", want, got, cmp.Comparer(sameSample))
			must.Hold(t, want[20].Failure == nil && (len(want[20].Gaps) != 0 || o.Profile.FirstVisibleToken != 0), "the script measures nothing: %+v", want[20])
		})
	}
}

// sameSample reports whether two samples are equal. It ignores the requested lengths, which only
// one sample has, and the size of the text, which is 0 in virtual time.
func sameSample(a, b *metric.Sample) bool {
	x, y := *a, *b
	x.InputAsked, y.InputAsked = 0, 0
	x.Text, y.Text = 0, 0
	return cmp.Equal(x, y)
}

// A fault has the same effect on the client in virtual time as over HTTP. The test leaves out
// faults of the connection, because virtual time has no connections.
func TestFaultsInVirtualTime(t *testing.T) {
	// words lists the faults whose messages differ between HTTP and virtual time. Each value is the
	// reason.
	words := map[string]string{
		"not-sse": "the object itself is quoted over HTTP",
		"die":     "over HTTP the words are those of the network",
	}
	for _, f := range sim.Faults() {
		t.Run(f.Name, func(t *testing.T) {
			o := sim.Options{Profile: sim.DefaultProfile(), Seed: 7, Faults: sim.Script{{Fault: f.Name, Every: 2, From: 1, DelayMS: 50}}}
			switch f.Name {
			case "die":
				o.Faults[0] = sim.Rule{Fault: "die", From: 6}
			case "loading":
				o.Faults[0] = sim.Rule{Fault: "loading", DelayMS: 1200}
			}
			apis := append(slices.Clone(rest), both...)
			if belowTheStream[f.Name] == ofNatural {
				apis = slices.DeleteFunc(apis, func(api engine.API) bool { return api == engine.Messages }) // whose answers are always natural
			}
			script := busy(15, apis...)
			for i := range script {
				script[i].timeout = 5 * time.Second
			}
			want := overSockets(t, o, script)
			got := inVirtualTime(t, o, script)
			plain := inVirtualTime(t, sim.Options{Profile: sim.DefaultProfile(), Seed: 7}, script)
			same := true
			for i := range want {
				a, b := *want[i], *got[i]
				a.Reconnects, b.Reconnects = 0, 0 // of the connection
				if words[f.Name] != "" && a.Failure != nil && b.Failure != nil {
					a.Failure.Message, b.Failure.Message = "", ""
				}
				if f.Name == "die" {
					deadNetwork(&a, &b)
				}
				must.Hold(t, sameSample(&a, &b), "request %d (-over HTTP +in virtual time):\n%s", i, cmp.Diff(a, b))
				same = same && sameSample(plain[i], got[i])
			}
			_, nothing := belowTheStream[f.Name]
			must.Hold(t, nothing == same, "the fault changes nothing: %t; below the stream of events: %t", same, nothing)
		})
	}
}

// Faults of several kinds together have the same effect in virtual time as over HTTP.
func TestFaultsTogetherInVirtualTime(t *testing.T) {
	tests := map[string]sim.Script{
		"all in flight when the server dies": {
			{Fault: "hang", Every: 3}, {Fault: "never-ends", From: 1, Every: 3}, {Fault: "die", From: 11},
		},
		"an object and an error":        {{Fault: "not-sse"}, {Fault: "error-event", Every: 2}},
		"chunks, reasoning and a cut":   {{Fault: "multi-token"}, {Fault: "reasoning", Tokens: 6}, {Fault: "cut", Tokens: 9, Every: 2}},
		"late, without usage, unended":  {{Fault: "early-role", DelayMS: 70}, {Fault: "late-headers", Every: 2}, {Fault: "no-usage", Every: 3}, {Fault: "no-done"}},
		"an early end, and the metrics": {{Fault: "early-stop", Tokens: 5}, {Fault: "http-500", Path: "/metrics"}},
	}
	for name, faults := range tests {
		t.Run(name, func(t *testing.T) {
			o := sim.Options{Profile: sim.DefaultProfile(), Seed: 7, Faults: faults}
			script := busy(12, append(slices.Clone(rest), both...)...)
			for i := range script {
				script[i].timeout = 5 * time.Second
			}
			want, got := overSockets(t, o, script), inVirtualTime(t, o, script)
			for i := range want {
				a, b := *want[i], *got[i]
				if a.Failure != nil && b.Failure != nil {
					a.Failure.Message, b.Failure.Message = "", "" // see TestFaultsInVirtualTime
				}
				deadNetwork(&a, &b)
				must.Hold(t, sameSample(&a, &b), "request %d (-over HTTP +in virtual time):\n%s", i, cmp.Diff(a, b))
			}
		})
	}
}

// A prompt that comes again gets its whole answer at once from a server that caches answers, in virtual
// time as over HTTP.
func TestReplayInVirtualTime(t *testing.T) {
	o := sim.Options{Profile: sim.DefaultProfile(), Seed: 7, Faults: sim.Script{{Fault: "replay"}}}
	script := busy(8, both...)
	for i, s := range script {
		script[i].words, script[i].output = script[i%4].words, script[i%4].output
		script[i].at = s.at + time.Duration(i/4)*time.Minute
	}
	want, got := overSockets(t, o, script), inVirtualTime(t, o, script)
	must.Same(t, "(-over HTTP +in virtual time)", want, got, cmp.Comparer(sameSample))
	for i, s := range got {
		if again := i >= 4; s.Failure != nil || (s.End == s.Sent) != again {
			t.Errorf("request %d took %v: %+v", i, s.End-s.Sent, s.Failure)
		}
	}
}

// deadNetwork removes what is random in samples over HTTP when a server dies. A request may have
// been written or not, and a stream without a token may end with or without an error.
func deadNetwork(samples ...*metric.Sample) {
	for _, s := range samples {
		if s.Failure == nil {
			continue
		}
		f := *s.Failure
		if f.Kind == metric.FailConnect {
			s.Sent = 0
		}
		if f.Kind == metric.FailEmpty || f.Kind == metric.FailTruncated && s.Chunks == 0 {
			f.Kind = metric.FailTruncated
		}
		s.Failure = &f
	}
}

// belowTheStream lists the faults that do not change what a client measures. Each value is the
// reason.
var belowTheStream = map[string]string{
	"redirect": "is followed", "conn-close": "a connection's", "close-after": "a connection's",
	"byte-by-byte": "one packet in no time", "gzip": "is unpacked", "crlf": "bytes", "bom": "bytes", "no-space": "bytes",
	"comments": "bytes", "big-event": "bytes", "hostile-text": "an answer's text is not kept", "hostile-model": "nor its model",
	"empty-delta": "no token", "no-done": "the end of the stream is as good",
	"usage-in-finish": "a place of the same usage",
	"canned":          "an answer's text is not kept", "replay": "no prompt comes twice",
	"other-answer": "an answer's text is not kept", "circle": ofNatural, "garble": ofNatural, "broken-character": ofNatural,
	"blank": ofNatural, "endless": ofNatural, "swap-tokens": ofNatural, "half-context": ofNatural,
	"wrong-word": ofNatural, "bad-sampler": ofNatural, "noisy-vectors": "numbers that are not kept",
	"leak-slot": ofLeaving, "leak-blocks": ofLeaving, "die-on-abort": ofLeaving, "ignore-abort": ofLeaving,
}

const (
	ofNatural = "of natural answers, which these are not"
	ofLeaving = "of clients that leave, and none leaves here"
)

// The same plan and seed give the same measurements over HTTP and in virtual time, relative to the
// start of each round. The profile has no noise. Otherwise the calibration of prompts over HTTP
// would use up random numbers.
func TestRunsAgree(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "steady.json")
	must.Do(t, os.WriteFile(path, []byte(`{"base": "default", "noise": {"step_cv": 0}}`), 0o644))
	profile := must.Get(sim.LoadProfile(path, ""))(t)
	agreed := func(s *plan.Server) *plan.Plan {
		return &plan.Plan{
			Servers: []*plan.Server{s},
			Workloads: []*plan.Workload{{
				Name: "chat", Servers: []*plan.Server{s}, API: plan.Chat, Input: 200, Output: plan.Output{Mean: 30, Jitter: 0.3},
				Loads: []*plan.Load{
					{
						Kind: metric.ClosedLoop, Seeds: []int64{42, 123}, Warmup: plan.WarmupAuto, Stagger: plan.StaggerAuto,
						Levels: []plan.Level{{Name: "1", N: 1, Requests: 10, Rounds: 2}, {Name: "5", N: 5, Requests: 60, Rounds: 2}},
					},
					{
						Kind: metric.ClosedLoop, Seeds: []int64{1}, Warmup: 3, Stagger: 30 * time.Millisecond, Pause: time.Second,
						Levels: []plan.Level{{Name: "paused", N: 3, Requests: 12, Rounds: 1}},
					},
					{
						// Over sockets, the requests of a burst arrive in random order. This has no
						// effect here, because all of them fit into one step.
						Kind: metric.Burst, Seeds: []int64{1, 2}, Warmup: plan.WarmupAuto,
						Levels: []plan.Level{{Name: "burst 10", N: 10, Requests: 30, Rounds: 3}},
					},
				},
			}},
		}
	}
	var over *metric.Run
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{Profile: profile, Seed: 1})
		var err error
		over, err = exec.Run(t.Context(), exec.Config{Plan: agreed(vllm()), Clock: w.clock, Launch: w.Launch, Observer: silent, Run: metric.Run{Salt: 7}})
		must.Do(t, err)
	})
	c := clock.NewVirtual()
	s := vllm()
	s.Simulator = &plan.Simulator{Profile: path, Seed: 1}
	virtual := must.Get(exec.Run(t.Context(), exec.Config{Plan: agreed(s), Clock: c, Launch: (&Virtual{Clock: c}).Launch, Observer: silent, Run: metric.Run{Salt: 7}}))(t)
	for i, l := range over.Levels {
		for j, r := range l.Rounds {
			want, got := timings(r), timings(virtual.Levels[i].Rounds[j])
			must.Need(t, len(want) == r.Due, "level %s, round %d: %d requests, want %d", l.Name, j, len(want), r.Due)
			must.Same(t, fmt.Sprintf("level %s, round %d (-over HTTP +in virtual time)", l.Name, j), want, got, cmpopts.IgnoreFields(metric.Sample{}, "Text"))
			// Compare sums with a tolerance. The requests before this round differ, which changes
			// the sums in the last digit.
			must.Same(t, fmt.Sprintf("level %s, round %d, the server's own metrics (-over HTTP +in virtual time)", l.Name, j), serverMetrics(r), serverMetrics(virtual.Levels[i].Rounds[j]), cmpopts.EquateApprox(1e-9, 1e-9))
		}
	}
}

// timing holds the values of a measured request that verdicts use. Times are from the start of the
// round.
type timing struct {
	Scheduled, Sent, First, Last, End time.Duration
	Usage                             metric.Usage
	Gaps                              metric.Gaps
	Failed                            bool
}

func timings(r *metric.Round) []timing {
	var out []timing
	for _, s := range r.MeasuredSamples() {
		from := r.Start
		out = append(out, timing{s.Scheduled - from, s.Sent - from, s.First - from, s.Last - from, s.End - from, *s.Usage, s.Gaps, s.Failure != nil})
	}
	return out
}

// serverMetrics returns the server's own metrics, without times and reasons.
func serverMetrics(r *metric.Round) metric.Telemetry {
	t := r.Telemetry
	return metric.Telemetry{Reads: t.Reads, Failed: t.Failed, Added: t.Added, Histograms: t.Histograms, Gauges: t.Gauges}
}

func TestVirtualLaunch(t *testing.T) {
	tests := map[string]struct {
		server plan.Server
		faults string // of the profile
		ready  time.Duration
		err    string
	}{
		"alone": {ready: 30500 * time.Microsecond},
		"in the place of another": {
			server: plan.Server{Endpoint: &plan.Endpoint{URL: "http://gpu:8000"}, Expect: map[string]string{"version": "0.19.1"}},
			ready:  30500 * time.Microsecond,
		},
		"loads for a while": {faults: `{"fault": "loading", "delay_ms": 7200000}`, ready: 2*time.Hour + 30500*time.Microsecond},
		"loads for ever":    {server: plan.Server{Ready: plan.Ready{Timeout: time.Minute}}, faults: `{"fault": "loading", "delay_ms": 7200000}`, err: "not ready after 1m0s: HTTP 503: The model is loading."},
		"refuses":           {faults: `{"fault": "reject-unknown"}`, err: "cannot be used: HTTP 422"},
		"hangs":             {server: plan.Server{Ready: plan.Ready{Timeout: time.Minute}}, faults: `{"fault": "hang"}`, err: "not ready after 1m0s: no end within 1m0s"},
		"dies":              {server: plan.Server{Ready: plan.Ready{Timeout: time.Minute}}, faults: `{"fault": "die"}`, err: "not ready after 1m0s"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			src := `{"base": "default", "noise": {"step_cv": 0}, "faults": [` + tt.faults + `]}`
			must.Do(t, os.WriteFile(filepath.Join(dir, "p.json"), []byte(src), 0o644))
			c := clock.NewVirtual()
			tt.server.Simulator = &plan.Simulator{Profile: "./p.json"}
			target, err := (&Virtual{Clock: c, Dir: dir}).Launch(t.Context(), &tt.server, func(string) {})
			if tt.err != "" {
				must.Need(t, err != nil && strings.Contains(err.Error(), tt.err), "error %v, want %q", err, tt.err)
				return
			}
			must.Do(t, err)
			// A start takes as long as one request, and tokgate checks every half second whether
			// the server is ready.
			took := c.Now()
			must.Hold(t, took >= tt.ready-20*time.Millisecond && took <= tt.ready+500*time.Millisecond, "ready after %v, want about %v", took, tt.ready)
			if err := target.Close(); err != nil {
				t.Error(err)
			}
			if err := c.Wait(t.Context()); err != clock.ErrIdle {
				t.Errorf("after Close the clock has something to do: %v", err)
			}
		})
	}
}
