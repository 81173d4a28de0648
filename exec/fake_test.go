package exec_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// reply is the scripted answer to one request. The zero reply hangs until the request is cancelled.
type reply struct {
	text   string        // text of each token
	refuse error         // error of the connection
	status error         // error for an HTTP status with which the server refuses the request
	code   int           // HTTP status code that comes with the error status; 0 means 500
	ttft   time.Duration // time to the first token; 0 means that no token ever comes
	itl    time.Duration
	deaf   bool // the request does not end when its context is cancelled
}

// transport is a fake server. The function script decides how each request is answered. All times
// come from the run's clock.
type transport struct {
	clock  clock.Clock
	tick   time.Duration // time between two checks for cancelled contexts
	script func(n int, r *client.Request) reply

	mu       sync.Mutex
	requests []client.Request
	starts   []time.Duration
	inFlight int
	accepted int // requests that the server did not refuse
	most     int
	prompts  map[string]int

	flights  []*flight // checked at each tick
	watching bool      // a tick is due
}

// flight is a request in flight.
type flight struct {
	ctx  context.Context
	end  func(error)
	over bool
}

func (t *transport) Send(ctx context.Context, r *client.Request, s client.Stream) {
	t.mu.Lock()
	n := len(t.requests)
	t.requests = append(t.requests, *r)
	t.starts = append(t.starts, t.clock.Now())
	t.inFlight++
	t.most = max(t.most, t.inFlight)
	if t.prompts == nil {
		t.prompts = map[string]int{}
	}
	t.prompts[r.Prompt.Text]++
	t.mu.Unlock()

	a := t.script(n, r)
	taken := a.refuse == nil && a.status == nil
	if taken {
		t.accepted++
	}
	f := &flight{ctx: ctx}
	stop := func() bool { return false }
	end := func(err error) {
		if !f.over {
			f.over = true
			stop()
			t.mu.Lock()
			t.inFlight--
			if taken {
				t.accepted--
			}
			t.mu.Unlock()
			s.End(t.clock.Now(), err)
		}
	}
	if a.deaf {
		return
	}
	if a.refuse != nil {
		t.clock.Timer(t.clock.Now(), func() { end(a.refuse) })
		return
	}
	s.Sent(t.clock.Now())
	if r.Timeout > 0 {
		stop = t.clock.Timer(t.clock.Now()+r.Timeout, func() { end(context.DeadlineExceeded) })
	}
	if ctx.Err() != nil {
		end(ctx.Err())
		return
	}
	f.end = end
	t.flights = append(t.flights, f)
	if !t.watching {
		t.watching = true
		t.clock.Timer(t.clock.Now()+t.tick, t.watch)
	}
	if a.status != nil {
		t.clock.Timer(t.clock.Now()+time.Millisecond, func() { s.Headers(t.clock.Now(), cmp.Or(a.code, 500)); end(a.status) })
		return
	}
	if a.ttft == 0 {
		return
	}
	s.Headers(t.clock.Now(), 200)
	sent := 0
	var token func()
	token = func() {
		if f.over {
			return
		}
		sent++
		s.Event(t.clock.Now(), &client.Event{Content: true, Raw: []byte(a.text), Visible: []byte(a.text)})
		if sent < r.Output {
			t.clock.Timer(t.clock.Now()+a.itl, token)
			return
		}
		s.Event(t.clock.Now(), &client.Event{Finish: "length", Usage: &client.Usage{Input: r.Input, Output: sent, Cached: -1}})
		end(nil)
	}
	t.clock.Timer(t.clock.Now()+a.ttft, token)
}

// watch ends requests whose context was cancelled since the last tick. On a virtual clock no
// other goroutine may end them.
func (t *transport) watch() {
	flights := t.flights
	t.flights = nil // a request that ends may start new ones
	for _, f := range flights {
		if !f.over && f.ctx.Err() != nil {
			f.end(f.ctx.Err())
		}
		if !f.over {
			t.flights = append(t.flights, f)
		}
	}
	if t.watching = len(t.flights) > 0; t.watching {
		t.clock.Timer(t.clock.Now()+t.tick, t.watch)
	}
}

// prompts makes prompts with their own ids as text.
type prompts struct{ workload string }

func (p prompts) Exact() bool { return true }
func (p prompts) Prompt(id exec.PromptID) (client.Prompt, error) {
	if r := id.Recorded; r != nil {
		return client.Prompt{Text: fmt.Sprintf("%s %+v %+v", p.workload, id, *r), Tokens: r.Input}, nil
	}
	return client.Prompt{Text: fmt.Sprintf("%s %+v", p.workload, id)}, nil
}

// observer is an Observer that keeps its calls and checks their order.
type observer struct {
	t       *testing.T
	calls   []string
	samples []*metric.Sample
	started int
	onDone  func(*metric.Sample)
	fail    error // the next SampleDone returns this error
}

func (o *observer) say(format string, args ...any) error {
	o.calls = append(o.calls, fmt.Sprintf(format, args...))
	return nil
}
func (o *observer) Observe(e metric.Event) error {
	switch e := e.(type) {
	case metric.RunStarted:
		return o.say("run")
	case metric.ServerStarting:
		return o.say("starting %s: %s", e.Server, e.State)
	case metric.ServerReady:
		return o.say("ready %s", e.Server.Address)
	case metric.ServerDone:
		return o.say("done %s %q", e.Server.Address, e.Server.Error)
	case metric.LevelStarted:
		return o.say("level %s %s %s due %d", e.Level.Server, e.Level.Workload, e.Level.Name, e.Due)
	case metric.RequestStarted:
		o.started++
	case metric.SampleDone:
		o.samples = append(o.samples, e.Sample)
		if o.onDone != nil {
			o.onDone(e.Sample)
		}
		return o.fail
	case metric.RoundDone:
		return o.say("round %s %d complete %v", e.Level.Name, e.Round.Index, e.Round.Complete)
	case metric.LevelDone:
		return o.say("level done %s %q", e.Level.Name, e.Level.Skipped)
	case metric.CapacityDone:
		return o.say("capacity %s %s %s", e.Capacity.Server, e.Capacity.Workload, e.Capacity.Line)
	case metric.RunDone:
		return o.say("run done %q", e.Run.Stopped)
	}
	return nil
}

// bench has everything that a test needs for a run.
type bench struct {
	exec.Config
	*transport
	*observer
	target *exec.Target
	closed int
}

func newBench(t *testing.T, c clock.Clock, p *plan.Plan, script func(n int, r *client.Request) reply) *bench {
	b := &bench{transport: &transport{clock: c, tick: 100 * time.Millisecond, script: script}, observer: &observer{t: t}}
	b.target = &exec.Target{
		Transport:   b.transport,
		Model:       "fake",
		Fingerprint: metric.Fingerprint{"model": "fake"},
		Prompts: func(_ context.Context, w *plan.Workload, _ uint64) (exec.Prompts, error) {
			return prompts{w.Address()}, nil
		},
		Close: func() error { b.closed++; return nil },
	}
	b.Config = exec.Config{
		Plan: p, Clock: c, Observer: b.observer.Observe,
		Launch: func(_ context.Context, s *plan.Server, state func(string)) (*exec.Target, error) {
			state("at once")
			return b.target, nil
		},
	}
	return b
}

// onBoth runs the function f in real time and in virtual time. The test in real time runs in a
// synctest bubble, which proves that no goroutine remains.
func onBoth(t *testing.T, f func(t *testing.T, c clock.Clock)) {
	t.Run("real", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, clock.NewReal()) })
	})
	t.Run("virtual", func(t *testing.T) { f(t, clock.NewVirtual()) })
}

// planOf returns a plan of one workload on one server.
func planOf(output int, loads ...*plan.Load) *plan.Plan {
	s := &plan.Server{Name: "fake"}
	w := &plan.Workload{
		Name: "chat", Servers: []*plan.Server{s}, API: plan.Chat,
		Input: 100, Output: plan.Output{Mean: output}, Loads: loads,
	}
	return &plan.Plan{Servers: []*plan.Server{s}, Workloads: []*plan.Workload{w}}
}

// closedLoad returns a closed-loop load of one level.
func closedLoad(n, requests int, seeds ...int64) *plan.Load {
	return &plan.Load{
		Kind: metric.ClosedLoop, Seeds: seeds, Warmup: plan.WarmupAuto, Stagger: plan.StaggerAuto,
		Levels: []plan.Level{{Name: fmt.Sprint(n), N: n, Requests: requests, Rounds: max(len(seeds), 1)}},
	}
}

func steady(ttft, itl time.Duration) func(int, *client.Request) reply {
	return func(int, *client.Request) reply { return reply{ttft: ttft, itl: itl} }
}

var errRefused = &client.Error{Kind: metric.FailConnect, Message: "connection refused"}
var errBusy = &client.Error{Kind: metric.FailStatus, Status: 500, Message: "CUDA out of memory"}
var errDisk = errors.New("no space left on device")
