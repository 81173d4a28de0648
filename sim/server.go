package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tokgate/tokgate/engine"
)

// Server is an OpenAI-compatible server: a Virtual in real time, over HTTP. It is an http.Handler,
// and can also listen by itself (Start, Serve). It has no goroutine while no request is in flight.
type Server struct {
	options Options
	profile *Profile
	model   string
	origin  time.Time // the core's zero
	faults  *director // the core's
	mux     *http.ServeMux
	ids     atomic.Uint64

	done   chan struct{} // closed by Close
	sooner chan struct{} // holds a value if the loop must look again when its next step is due

	mu      sync.Mutex // of all below
	core    *Virtual   // its fields model, ready and faults need no lock
	looping bool
	web     *http.Server
	url     string
	closing map[net.Conn]bool // connections to close as soon as they are idle
	closed  bool
}

// New returns a server. The server's loading time and its clock begin now.
func New(o Options) (*Server, error) {
	core, err := NewVirtual(o, 0)
	if err != nil {
		return nil, err
	}
	core.KeepMetrics()
	if o.Listen == nil {
		o.Listen = net.Listen
	}
	s := &Server{
		options: o,
		profile: core.profile,
		model:   core.model,
		origin:  time.Now(),
		faults:  core.faults,
		done:    make(chan struct{}),
		sooner:  make(chan struct{}, 1),
		core:    core,
		closing: make(map[net.Conn]bool),
	}
	s.mux = http.NewServeMux()
	for _, name := range engine.APIs {
		api := engine.API(name)
		s.mux.HandleFunc("POST "+root+api.Path(), func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, api) })
	}
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
	return s.core.State(s.now())
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

func (s *Server) now() time.Duration { return time.Since(s.origin) }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fx := s.faults.next(r.URL.Path)
	switch {
	case fx.is("die"):
		go s.Close()
		panic(http.ErrAbortHandler)
	case fx.is("hang"):
		s.pause(r, -1)
		panic(http.ErrAbortHandler)
	case fx.is("redirect") && r.URL.Query().Get("redirected") == "":
		http.Redirect(w, r, r.URL.Path+"?redirected=1", http.StatusTemporaryRedirect)
		return
	}
	if fx.is("conn-close") {
		w.Header().Set("Connection", "close")
	}
	if fx.is("close-after") {
		if c, ok := r.Context().Value(connKey{}).(net.Conn); ok {
			w.Header().Set("Keep-Alive", "timeout=5, max=100")
			s.mu.Lock()
			s.closing[c] = true
			s.mu.Unlock()
		}
	}
	if fx.is("gzip") {
		var finish func()
		w, finish = compress(w, r)
		defer finish()
	}
	if fx.is("byte-by-byte") {
		w = bytewise{w}
	}
	if status, message := fx.status(); status != 0 {
		if status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		writeError(w, status, "", message)
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

func effectOf(r *http.Request) effect {
	fx, _ := r.Context().Value(effectKey{}).(effect)
	return fx
}

// pause waits for the time d, or for ever if d is negative. It returns false if the client or the
// server has gone.
func (s *Server) pause(r *http.Request, d time.Duration) bool {
	var over <-chan time.Time
	if d >= 0 {
		over = time.After(d)
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

func (s *Server) loading() bool { return s.now() < s.core.ready }

// enter passes a call to the core, and makes sure that the loop works on it.
func (s *Server) enter(c *Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.core.begin(c, s.now())
	if s.closed {
		return
	}
	if !s.looping {
		s.looping = true
		go s.loop()
		return
	}
	select {
	case s.sooner <- struct{}{}: // the call may be due before the next step
	default:
	}
}

// leave ends a call whose client has gone. It does nothing if the answer was sent.
func (s *Server) leave(c *Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.core.Cancel(s.now(), c); !s.core.Alive() {
		go s.Close() // what fails with die-on-abort
	}
}

func (s *Server) loop() {
	for {
		s.mu.Lock()
		now := s.now()
		next, busy := s.core.Advance(now)
		if !busy || s.closed {
			s.looping = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		select {
		case <-time.After(next - now):
		case <-s.sooner:
		case <-s.done:
		}
	}
}

// parts is the Listener of a call. It keeps the parts of the answer until the handler writes them.
type parts struct {
	wake chan struct{} // holds a value if parts wait for the handler

	mu   sync.Mutex
	list []part
}

// part is what the handler needs of a chunk, or of the head or the end of an answer. It is small,
// because a fast engine makes many.
type part struct {
	kind     chunkKind
	how      Ending
	from, to int    // tokens in the chunk
	used     Usage  // of the chunk
	words    string // of an error; in the last chunk, the finish reason
}

// The kinds of parts that are no chunks.
const (
	partHead chunkKind = -1 - iota
	partEnd
)

func (p *parts) add(x part) {
	p.mu.Lock()
	p.list = append(p.list, x)
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default: // the handler was already woken
	}
}

func (p *parts) Headers(time.Duration, int) { p.add(part{kind: partHead}) }

func (p *parts) Chunk(_ time.Duration, c *Chunk) {
	x := part{kind: c.kind, from: c.from, to: c.to, words: c.Finish}
	if c.Usage != nil {
		x.used = *c.Usage
	}
	p.add(x)
}

func (p *parts) End(_ time.Duration, how Ending, words string) {
	p.add(part{kind: partEnd, how: how, words: words})
}

// take waits for parts of an answer, and leaves the list done for the next ones. It returns false if the
// client has gone or the server was closed.
func (s *Server) take(ctx context.Context, p *parts, done []part) ([]part, bool) {
	select {
	case <-p.wake:
	case <-ctx.Done():
		return nil, false
	case <-s.done:
		return nil, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.list
	p.list = done[:0]
	return list, true
}
