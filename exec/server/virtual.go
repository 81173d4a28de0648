package server

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/exec/telemetry"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/sim"
)

// Virtual starts simulators, in virtual time, in place of the plan's servers. A simulator's events
// go directly to the client's state machine, without sockets, goroutines or text.
//
// A simulator serves every model. It is not checked against what the plan expects of its server.
type Virtual struct {
	Clock *clock.Virtual
	began map[string]bool // servers that have started
	// Dir is the plan's folder. Relative paths of profiles begin there.
	Dir string
	// Change edits the profile of each server before the server starts; nil changes nothing.
	Change func(*plan.Server, *sim.Profile)
	// Salt is the run's salt. Each salt draws other noise, starts and faults; 0 keeps the seed that
	// the plan sets.
	Salt uint64
	// Seldom is the shortest interval between two readings of the servers' metrics. 0 means the
	// interval in the plan. A longer interval saves time, because readings are half of the work of
	// a simulation.
	Seldom time.Duration
}

// Launch is an exec.Launch.
func (l *Virtual) Launch(ctx context.Context, s *plan.Server, state func(string)) (*exec.Target, error) {
	if s.Simulator == nil {
		return nil, fmt.Errorf("%s has no simulator block to run in its place", s.Address())
	}
	profile, err := sim.LoadProfile(s.Simulator.Profile, l.Dir)
	if err != nil {
		return nil, err
	}
	if l.Change != nil {
		l.Change(s, profile)
	}
	seed := load.Salted(s.Simulator.Seed, l.Salt)
	engine, err := sim.NewVirtual(sim.Options{Profile: profile, Seed: seed, Engine: s.Engine}, l.Clock.Now())
	if err != nil {
		return nil, err
	}
	v := newVirtual(l.Clock, engine)
	found := metric.Fingerprint{
		"served_as":     engine.Model(),
		"model":         engine.Model(),
		"max_model_len": strconv.Itoa(profile.MaxModelLen),
		"version":       sim.Version,
		"engine":        "simulator",
		"profile":       profile.Name,
		"simulated":     "in virtual time",
	}
	inside := l.openWatch(v, s, profile)
	leave := l.Clock.Settled(v.settle)
	closing := func() error {
		v.stop()
		leave()
		return nil
	}
	first, err := v.ready(ctx, s, state)
	if err != nil {
		return nil, errors.Join(err, closing())
	}
	begun, ended := cold(first)
	return &exec.Target{
		Start:       metric.Start{Cold: begun, ColdEnd: ended, Kind: l.kind(s.Address())},
		Transport:   v,
		Model:       engine.Model(),
		Context:     profile.MaxModelLen,
		Fingerprint: found,
		Prompts:     virtualPrompts{profile.MaxModelLen, blockOf(profile), newDatasets()}.prompts,
		Scorer:      v,
		Check:       v.check,
		Reset: func(context.Context) error {
			engine.ResetPrefixCache()
			return nil
		},
		Inside: inside,
		Close:  closing,
	}, nil
}

// blockOf returns the tokens of a block of the prefix cache; 0 if there is none.
func blockOf(p *sim.Profile) int {
	if p.PrefixCache == nil {
		return 0
	}
	return p.PrefixCache.BlockTokens
}

// kind returns the kind of a server's start: only its first is cold.
func (l *Virtual) kind(server string) metric.StartKind {
	if l.began[server] {
		return metric.StartWarm
	}
	if l.began == nil {
		l.began = map[string]bool{}
	}
	l.began[server] = true
	return metric.StartCold
}

func (v *virtual) check(context.Context) error {
	if !v.server.Alive() {
		return errors.New("the server no longer answers: connection refused")
	}
	return nil
}

// openWatch returns a reader of the server's own metrics and of its GPU. The page of metrics has
// the same text as over HTTP. If the profile has no GPU, nothing is read about GPUs.
func (l *Virtual) openWatch(v *virtual, s *plan.Server, profile *sim.Profile) *telemetry.Watch {
	w := &telemetry.Watch{
		Clock: v.Clock, Interval: max(s.Telemetry.Interval, l.Seldom),
		NoServer: "telemetry is off in the plan", NoGPU: "the run is simulated",
	}
	for _, d := range s.Telemetry.Prometheus.Defs() {
		w.Queried = append(w.Queried, d.Name)
	}
	if s.Telemetry.Off {
		return w
	}
	v.server.KeepMetrics()
	w.GPU = gpuOf(profile, v.Clock, v.server.State)
	w.Server = telemetry.Direct(func() (*telemetry.Reading, error) {
		page, err := v.server.Metrics(v.Clock.Now())
		if err != nil {
			return nil, fmt.Errorf("its metrics could not be read: %s", text(err.Error()))
		}
		return telemetry.ParsePage(page, v.server.Model())
	})
	return w
}

// virtual is the Transport to one server in virtual time.
type virtual struct {
	Clock   *clock.Virtual
	server  *sim.Virtual
	flights []*virtualFlight // requests in flight, in order of start
	ended   bool             // at least one request of the list has ended
	step    func()           // takes the engine's next step
	stop    func() bool      // stops the timer for the engine's next step
	next    time.Duration    // time at which the engine's next step is due
	armed   bool
	event   client.Event // the latest event; all events use its memory
	usage   client.Usage
}

func newVirtual(c *clock.Virtual, s *sim.Virtual) *virtual {
	v := &virtual{Clock: c, server: s, stop: func() bool { return false }}
	v.step = func() {
		v.armed = false
		v.advance()
	}
	return v
}

// virtualFlight is one request in flight. As a sim.Listener it receives the events of the request
// and passes them to a client.Stream.
type virtualFlight struct {
	v      *virtual
	ctx    context.Context
	stream client.Stream
	call   *sim.Call
	status int
	expire func() bool // stops the timer for the time-out of the request
	over   bool
}

func (v *virtual) Send(ctx context.Context, r *client.Request, s client.Stream) {
	now := v.Clock.Now()
	f := &virtualFlight{v: v, ctx: ctx, stream: s}
	ask := askOf(r)
	if v.server.Alive() {
		s.Sent(now)
	}
	f.call = v.server.Send(now, ask, f)
	if f.over {
		return
	}
	if r.Timeout > 0 {
		f.expire = v.Clock.Timer(now+r.Timeout, func() {
			v.giveUp(f, &client.Error{Kind: metric.FailTimeout, Message: fmt.Sprintf("no end within %v", r.Timeout)})
		})
	}
	v.flights = append(v.flights, f)
}

// askOf converts a request for the built-in server.
func askOf(r *client.Request) sim.Ask {
	ask := sim.Ask{
		API: r.API, Input: r.Input, Output: r.Output, Natural: r.Natural, Stop: r.Stop,
		Greedy: r.Natural && r.Temperature != nil && *r.Temperature == 0,
		Key:    keyOf(r.Prompt.Text), Spoken: r.Natural, Fields: r.Further(), Text: r.Prompt.Text, Parts: r.Prompt.Parts,
	}
	if r.API.Embeds() {
		ask.Keys = []uint64{ask.Key}
		for _, text := range r.Prompt.More {
			ask.Keys = append(ask.Keys, keyOf(text))
		}
	}
	return ask
}

// Score takes the time that the server needs to process the prompt and the answer as one new prompt,
// of which nothing is in the cache.
func (v *virtual) Score(ctx context.Context, r *client.Request, said, salt string, done func([]float64, error)) {
	values := v.server.Logprobs(askOf(r), said)
	whole := client.Request{API: r.API, Input: r.Input + len(values), Output: 1, Timeout: r.Timeout, Prompt: client.Prompt{Text: salt}}
	v.Send(ctx, &whole, client.NewAnswer(&metric.Sample{OutputAsked: 1}, func(s *metric.Sample) {
		if s.Failure != nil {
			done(nil, errors.New(s.Failure.Message))
			return
		}
		done(values, nil)
	}))
}

func keyOf(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name)) // never fails
	return h.Sum64()
}

// giveUp cancels a request as the client would.
func (v *virtual) giveUp(f *virtualFlight, err error) {
	if f.over {
		return
	}
	now := v.Clock.Now()
	v.server.Cancel(now, f.call)
	if !f.over { // an event before now may already have ended the request
		f.end(now, err)
	}
}

// settle runs at the end of each instant of virtual time. It first ends the cancelled requests.
// Then it gives the engine all requests that were sent at this instant together.
func (v *virtual) settle() {
	for _, f := range v.flights {
		if !f.over && f.ctx.Err() != nil {
			v.giveUp(f, &client.Error{Kind: metric.FailCanceled, Message: "the run was stopped"})
		}
	}
	if v.ended {
		v.flights = slices.DeleteFunc(v.flights, func(f *virtualFlight) bool { return f.over })
		v.ended = false
	}
	v.advance()
}

// advance lets the engine work up to the current time. Then it sets the timer for the engine's next
// step.
func (v *virtual) advance() {
	next, busy := v.server.Advance(v.Clock.Now())
	if v.armed && busy && next == v.next {
		return
	}
	v.stop()
	if v.armed, v.next = busy, next; busy {
		v.stop = v.Clock.Timer(next, v.step)
	}
}

// ready waits until the server has completed one request.
func (v *virtual) ready(ctx context.Context, s *plan.Server, state func(string)) (*metric.Sample, error) {
	begin := v.Clock.Now()
	for {
		state("waiting for the simulator: one completion")
		answer := new(metric.Sample)
		over := false
		one := &client.Request{API: "chat", Input: 16, Output: 1, Timeout: s.Ready.Timeout}
		v.Send(ctx, one, client.NewAnswer(answer, func(*metric.Sample) {
			v.Clock.Post(func() { over = true })
		}))
		if err := clock.Until(context.WithoutCancel(ctx), v.Clock, func() bool { return over }); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		f := answer.Failure
		if f == nil {
			return answer, nil
		}
		last := &client.Error{Kind: f.Kind, Status: answer.Status, Message: f.Message}
		if hopeless(last) {
			return nil, fmt.Errorf("the simulator cannot be used: %w", last)
		}
		if timeout := s.Ready.Timeout; timeout > 0 && v.Clock.Now()-begin+again > timeout {
			return nil, fmt.Errorf("the simulator was not ready after %v: %w", timeout, last)
		}
		state("waiting for the simulator: " + last.Error())
		if err := clock.Sleep(ctx, v.Clock, again); err != nil {
			return nil, err
		}
	}
}

func (f *virtualFlight) Headers(at time.Duration, status int) {
	f.status = status
	f.stream.Headers(at, status)
}

func (f *virtualFlight) Chunk(at time.Duration, c *sim.Chunk) {
	// Set each field separately. The event is large, and a simulation makes one for each token.
	// Text, Several, Tokens and Made are never set in virtual time.
	e := &f.v.event
	e.Content, e.Reasoning, e.ToolCall, e.Finish, e.Err, e.Done = c.Content, c.Reasoning, c.ToolCall, c.Finish, text(c.Err), c.Done
	e.Raw, e.Visible, e.Calls, e.Usage = nil, nil, e.Calls[:0], nil
	if e.Vectors, e.Embedded = c.Inputs, nil; c.Inputs > 0 {
		vectors := c.Vectors
		e.Embedded = func() ([][]float32, error) { return vectors, nil }
	}
	switch {
	case c.Text == nil && c.Tool == "":
	case c.ToolCall:
		e.Calls = append(e.Calls, client.CallPart{Name: []byte(c.Tool), Arguments: c.Text})
	default:
		if e.Raw = c.Text; c.Content {
			e.Visible = c.Text
		}
	}
	if c.Usage != nil {
		f.v.usage = client.Usage{Input: c.Usage.Input, Output: c.Usage.Output, Cached: c.Usage.Cached}
		e.Usage = &f.v.usage
	}
	f.stream.Event(at, e)
}

// End implements sim.Listener. It reports the end of a request as package client does over HTTP.
func (f *virtualFlight) End(at time.Duration, how sim.Ending, words string) {
	words = text(words)
	switch how {
	case sim.Refused:
		f.end(at, &client.Error{Kind: metric.FailConnect, Message: "the server closed the connection before it answered: " + words})
	case sim.Rejected:
		refused := &client.Error{Kind: metric.FailStatus, Message: words}
		if f.status == http.StatusTooManyRequests {
			refused.RetryAfter = time.Second // as over HTTP
		}
		f.end(at, refused)
	case sim.Broken:
		f.end(at, &client.Error{Kind: metric.FailTruncated, Message: "the connection broke in the middle of the answer: " + words})
	case sim.NotStream:
		f.end(at, &client.Error{Kind: metric.FailProtocol, Message: "the answer is not an event stream: " + words})
	default:
		f.end(at, nil)
	}
}

// text replaces invalid UTF-8 by the replacement character, as JSON over HTTP does.
func text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

func (f *virtualFlight) end(at time.Duration, err error) {
	f.over, f.v.ended = true, true
	if f.expire != nil {
		f.expire()
	}
	f.stream.End(at, err)
}
