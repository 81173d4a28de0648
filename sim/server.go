package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Version is the version that the server reports at /version.
const Version = "tokgate-sim-1"

// Options configures a Server. The zero value means the default profile without faults.
type Options struct {
	Profile *Profile // nil: DefaultProfile
	Seed    int64    // of everything random
	Model   string   // id of the model to serve; "" means the profile's model
	Engine  string   // "sglang" for SGLang's metric names at /metrics, else vLLM's names
	APIKey  string   // key that requests below /v1 must send as a bearer token; "": no key is required
	Faults  Script   // faults besides those of the profile
	// OnEmit is called right before the server writes a chunk with tokens. Several goroutines may
	// call it at once. chunk is the number of the chunk, from 0. id is the id in the chunks of the
	// answer, such as "chatcmpl-…". It ends in the request's X-Request-Id, if there is one.
	OnEmit func(id string, chunk int, at time.Time)
	// OnServed is called after every completion request whose body could be parsed. Several
	// goroutines may call it at once.
	OnServed func(Served)
	Clock    Clock // nil means package time, which a synctest bubble replaces
	// Listen is the function that Start uses; nil means net.Listen.
	Listen func(network, address string) (net.Listener, error)
}

// Served describes one completion request. Its times are from the server's own clock.
type Served struct {
	ID      string    `json:"id"` // id of the answer, which OnEmit gets too
	Arrived time.Time `json:"arrived"`
	First   time.Time `json:"first,omitzero"` // right before the first token was written; zero: no token
	Last    time.Time `json:"last,omitzero"`  // right before the last token was written
	Tokens  int       `json:"tokens"`         // tokens written; 0 if the answer was not streamed
}

// Clock has the functions of package time that the server uses.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

type wallClock struct{}

func (wallClock) Now() time.Time                         { return time.Now() }
func (wallClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// Server is an OpenAI-compatible server that runs an Engine in real time. It is an http.Handler,
// and can also listen by itself (Start, Serve). It has no goroutine while no request is in flight.
type Server struct {
	options Options
	profile *Profile
	model   string
	clock   Clock
	origin  time.Time // the engine's zero
	ready   time.Time
	faults  *director
	mux     *http.ServeMux
	ids     atomic.Uint64

	answered sync.Map // seeds of the prompts that were received, for the fault replay

	done chan struct{} // closed by Close

	mu      sync.Mutex // of all below
	engine  *Engine
	runs    map[uint64]*run
	looping bool
	metrics *metrics
	web     *http.Server
	url     string
	closing map[net.Conn]bool // connections to close as soon as they are idle
	closed  bool
}

// New returns a server. The server's loading time and its clock begin now.
func New(o Options) (*Server, error) {
	if o.Profile == nil {
		o.Profile = DefaultProfile()
	}
	if err := o.Profile.Validate(); err != nil {
		return nil, err
	}
	if err := o.Faults.Validate(); err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = wallClock{}
	}
	if o.Listen == nil {
		o.Listen = net.Listen
	}
	s := &Server{
		options: o,
		profile: o.Profile,
		model:   cmp.Or(o.Model, o.Profile.Model),
		clock:   o.Clock,
		origin:  o.Clock.Now(),
		faults:  newDirector(slices.Concat(o.Profile.Faults, o.Faults), o.Seed),
		done:    make(chan struct{}),
		engine:  NewEngine(o.Profile, o.Seed),
		runs:    make(map[uint64]*run),
		metrics: newMetrics(o.Engine),
		closing: make(map[net.Conn]bool),
	}
	s.ready = s.origin.Add(max(ms(o.Profile.LoadMS), s.faults.loading()))
	s.mux = http.NewServeMux()
	s.mux.HandleFunc("POST "+pathChat, s.serveChat)
	s.mux.HandleFunc("POST "+pathCompletions, s.serveCompletions)
	s.mux.HandleFunc("GET /v1/models", s.serveModels)
	s.mux.HandleFunc("GET /health", s.serveHealth)
	s.mux.HandleFunc("GET /ping", s.serveHealth)
	s.mux.HandleFunc("GET /version", s.serveVersion)
	s.mux.HandleFunc("POST /tokenize", s.serveTokenize)
	s.mux.HandleFunc("POST /detokenize", s.serveDetokenize)
	s.mux.HandleFunc("POST /reset_prefix_cache", s.serveReset)
	s.mux.HandleFunc("GET /metrics", s.serveMetrics)
	if o.Engine == sglang {
		s.mux.HandleFunc("GET /server_info", s.serveVersion)
		s.mux.HandleFunc("POST /flush_cache", s.serveReset)
	}
	return s, nil
}

// Start listens on the address addr, and serves in the background until Close. With "127.0.0.1:0"
// it chooses a free port. After Start, URL returns the address of the server.
func (s *Server) Start(addr string) error {
	l, err := s.options.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("could not start the built-in server: %w", err)
	}
	h, err := s.listen(l)
	if err != nil {
		l.Close()
		return err
	}
	go h.Serve(l)
	return nil
}

// Serve serves on the listener l until Close is called. It always returns an error, which is
// http.ErrServerClosed after Close.
func (s *Server) Serve(l net.Listener) error {
	h, err := s.listen(l)
	if err != nil {
		return err
	}
	return h.Serve(l)
}

type connKey struct{}

func (s *Server) listen(l net.Listener) (*http.Server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, http.ErrServerClosed
	}
	if s.web != nil {
		return nil, errors.New("the server is serving already")
	}
	s.url = "http://" + l.Addr().String()
	s.web = &http.Server{
		Handler:     s,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ConnState:   s.connState,
	}
	return s.web, nil
}

// connState closes a connection after its answer if a fault requires that. The answer said that the
// connection would stay open.
func (s *Server) connState(c net.Conn, state http.ConnState) {
	if state != http.StateIdle && state != http.StateClosed {
		return
	}
	s.mu.Lock()
	marked := s.closing[c]
	delete(s.closing, c)
	s.mu.Unlock()
	if marked && state == http.StateIdle {
		c.Close()
	}
}

// URL returns the address of the server, such as "http://127.0.0.1:40123". Before Start or Serve it
// returns "".
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url
}

// Model returns the id of the served model.
func (s *Server) Model() string { return s.model }

// State returns the engine's state.
func (s *Server) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.engine.State(s.now())
}

// Close ends everything at once, including answers that are being sent. It may be called again.
func (s *Server) Close() error {
	s.mu.Lock()
	h := s.web
	if !s.closed {
		s.closed = true
		close(s.done)
	}
	s.mu.Unlock()
	if h == nil {
		return nil
	}
	return h.Close()
}

// Done returns a channel that is closed after Close, or when a fault has ended the server.
func (s *Server) Done() <-chan struct{} { return s.done }

func (s *Server) now() time.Duration { return s.clock.Now().Sub(s.origin) }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fx := s.faults.next(r.URL.Path)
	switch {
	case fx.die:
		go s.Close()
		panic(http.ErrAbortHandler)
	case fx.hang:
		s.pause(r, -1)
		panic(http.ErrAbortHandler)
	case fx.redirect && r.URL.Query().Get("redirected") == "":
		http.Redirect(w, r, r.URL.Path+"?redirected=1", http.StatusTemporaryRedirect)
		return
	}
	if fx.close {
		w.Header().Set("Connection", "close")
	}
	if fx.closeAfter {
		if c, ok := r.Context().Value(connKey{}).(net.Conn); ok {
			w.Header().Set("Keep-Alive", "timeout=5, max=100")
			s.mu.Lock()
			s.closing[c] = true
			s.mu.Unlock()
		}
	}
	if fx.gzip {
		var finish func()
		w, finish = compress(w, r)
		defer finish()
	}
	if fx.bytewise {
		w = bytewise{w}
	}
	if fx.status != 0 {
		if fx.status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		writeError(w, fx.status, "", fx.message)
		return
	}
	// The server requires the key only below /v1, as vLLM does.
	if s.options.APIKey != "" && strings.HasPrefix(r.URL.Path, "/v1/") &&
		r.Header.Get("Authorization") != "Bearer "+s.options.APIKey {
		writeError(w, http.StatusUnauthorized, "", "Unauthorized")
		return
	}
	s.mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), effectKey{}, fx)))
}

type effectKey struct{}

func effectOf(r *http.Request) *effect {
	if fx, ok := r.Context().Value(effectKey{}).(*effect); ok {
		return fx
	}
	return new(effect)
}

// pause waits for the time d, or for ever if d is negative. It returns false if the client or the
// server has gone.
func (s *Server) pause(r *http.Request, d time.Duration) bool {
	var over <-chan time.Time
	if d >= 0 {
		over = s.clock.After(d)
	}
	select {
	case <-over:
		return true
	case <-r.Context().Done():
		return false
	case <-s.done:
		return false
	}
}

// loading reports whether the server is not ready yet.
func (s *Server) loading() bool { return s.clock.Now().Before(s.ready) }

// run is one job of the engine, with its emissions (new tokens) that the handler has not taken yet.
type run struct {
	id   uint64
	wake chan struct{} // holds a value if emissions wait for the handler

	mu      sync.Mutex
	pending []Emission
	times   Times

	stored metricsState // protected by the server's mutex mu
}

// submit gives a job to the engine, and starts the loop if it is not running.
func (s *Server) submit(j Job, finish string) (*run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, http.ErrServerClosed
	}
	if err := s.engine.Submit(s.now(), j); err != nil {
		return nil, err
	}
	r := &run{id: j.ID, stored: metricsState{finish: finish}, wake: make(chan struct{}, 1)}
	s.runs[j.ID] = r
	if !s.looping {
		s.looping = true
		go s.loop()
	}
	return r, nil
}

// loop runs the engine until it is idle. It may sleep until the end of the current step, because a
// new job cannot start before that.
func (s *Server) loop() {
	for {
		s.mu.Lock()
		now := s.now()
		emitted, next, busy := s.engine.Advance(now)
		s.deliver(emitted)
		if !busy || s.closed {
			s.looping = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		select {
		case <-s.clock.After(next - now):
		case <-s.done:
		}
	}
}

// deliver passes emissions to the requests that wait for them. The caller must hold the server's
// lock.
func (s *Server) deliver(emitted []Emission) {
	for i := range emitted {
		e := &emitted[i]
		r := s.runs[e.ID]
		if r == nil {
			continue
		}
		s.metrics.emission(e, &r.stored)
		r.mu.Lock()
		r.times = *e.Times
		r.pending = append(r.pending, *e)
		r.pending[len(r.pending)-1].Times = nil // Times may be used only during this call
		r.mu.Unlock()
		select {
		case r.wake <- struct{}{}:
		default: // the handler of the request was already woken
		}
	}
}

// take waits for emissions of r, its new tokens. It returns the list into with the emissions
// appended, or false if the client has gone or the server was closed.
func (s *Server) take(ctx context.Context, r *run, into []Emission) ([]Emission, bool) {
	select {
	case <-r.wake:
	case <-ctx.Done():
		return into, false
	case <-s.done:
		return into, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	into = append(into, r.pending...)
	r.pending = r.pending[:0]
	return into, true
}

// release removes a run, and cancels its job if it is not finished.
func (s *Server) release(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, r.id)
	emitted, _, _ := s.engine.Advance(s.now())
	s.deliver(emitted)
	if s.engine.Cancel(r.id) {
		s.metrics.finished["abort"]++
	}
}
