package fleet

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tokgate/tokgate/exec/clock"
)

const (
	lostAfter = 30 * time.Second // without a word, either side gives the other up
	redial    = 2 * time.Second  // for a worker whose link has broken
	lookEach  = 250 * time.Millisecond
)

// Host is where the workers of a run dial in.
type Host struct {
	*Fleet
	Fingerprint string // of its certificate: SHA-256, hexadecimal
	token       string
	version     string
	n           int
	server      *http.Server
	listener    net.Listener
	state       func(string)

	mu       sync.Mutex // guards what follows, and the members until all have joined
	sessions map[string]*session
	full     chan struct{} // closed when all have joined
}

// session is the link to one worker, over all its connections.
type session struct {
	*member
	out   *mail
	have  atomic.Int64 // lines that came
	dealt int          // lines that the loop has dealt with
	heard atomic.Int64 // when something came last
	ended atomic.Int64 // when the link broke; 0 if it holds

	mu  sync.Mutex         // held by the connection that carries the link
	end context.CancelFunc // ends it; guarded by Host.mu
}

// hello is what a worker says when it joins, and welcome the answer.
type hello struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type welcome struct {
	Session string `json:"session"`
	Name    string `json:"name"`
}

// Listen begins to wait for n workers that show a token. The version is of tokgate: all must have the same.
// state is called with what the run waits for.
func Listen(c clock.Clock, l net.Listener, n int, token, version string, state func(string)) (*Host, error) {
	cert, err := certificate()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(cert.Certificate[0])
	h := &Host{
		Fleet: newFleet(c), Fingerprint: hex.EncodeToString(sum[:]), token: token, version: version, n: n, state: state, listener: l,
		sessions: map[string]*session{}, full: make(chan struct{}),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /join", h.joins)
	mux.HandleFunc("GET /clock", h.tells)
	mux.HandleFunc("POST /link", h.links)
	h.server = &http.Server{
		Handler: h.admits(mux), TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13},
		ReadHeaderTimeout: lostAfter, ErrorLog: log.New(io.Discard, "", 0),
	}
	go func() { _ = h.server.ServeTLS(l, "", "") }() // it ends with Close
	return h, nil
}

// certificate makes the certificate of a run. Its names do not matter, because workers know its fingerprint.
func certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return tls.Certificate{}, err
	}
	of := &x509.Certificate{SerialNumber: serial, NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0)}
	raw, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, err
}

// admits lets in whoever has the token.
func (h *Host) admits(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want := []byte("Bearer " + h.token)
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			http.Error(w, "the token is not that of this run", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (h *Host) joins(w http.ResponseWriter, r *http.Request) {
	var said hello
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&said); err != nil {
		http.Error(w, "what you said cannot be read", http.StatusBadRequest)
		return
	}
	if said.Version != h.version {
		http.Error(w, fmt.Sprintf("this run is of tokgate %s and the worker is %s: use the same", h.version, said.Version), http.StatusConflict)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.members) == h.n {
		http.Error(w, fmt.Sprintf("all %d workers of this run have joined", h.n), http.StatusConflict)
		return
	}
	name := cmp.Or(said.Name, "worker")
	for _, m := range h.members {
		if m.name == name {
			name = fmt.Sprintf("%s-%d", cmp.Or(said.Name, "worker"), len(h.members))
		}
	}
	s := &session{out: newMail()}
	s.heard.Store(int64(h.loop.Now()))
	s.ended.Store(int64(h.loop.Now()))
	s.member = h.add(name, s.out)
	key := rand.Text()
	h.sessions[key] = s
	h.state(fmt.Sprintf("%s joined: %d of %d workers are there", name, len(h.members), h.n))
	if len(h.members) == h.n {
		close(h.full)
	}
	_ = json.NewEncoder(w).Encode(welcome{key, name}) // if it is lost, the worker will be too
}

// tells tells the time.
func (h *Host) tells(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, int64(h.loop.Now())) }

// links carries the lines of a session in both directions, over one request. A new one replaces the one before.
func (h *Host) links(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	s := h.sessions[r.URL.Query().Get("session")]
	if s == nil {
		h.mu.Unlock()
		http.Error(w, "this worker is not of this run", http.StatusGone)
		return
	}
	if s.end != nil {
		s.end()
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s.end = cancel
	h.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	c := http.NewResponseController(w)
	unread := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = c.SetReadDeadline(time.Unix(1, 0)) // ends the read
		close(unread)
	})
	defer func() {
		if !stop() {
			<-unread // the controller of the response must not be used after the handler
		}
	}()
	has, err := strconv.Atoi(r.URL.Query().Get("has"))
	if err == nil {
		err = s.out.from(has)
	}
	if err != nil {
		h.breaks(s, err)
		http.Error(w, "the link cannot go on: "+err.Error(), http.StatusGone)
		return
	}
	w.Header().Set("Tokgate-Has", strconv.FormatInt(s.have.Load(), 10))
	if err := errors.Join(c.EnableFullDuplex(), c.Flush()); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return
	}
	s.ended.Store(0)
	err = s.out.carry(ctx, r.Body, w, c.Flush, func() { h.hears(s) }, func(line []byte) error { return h.passes(s, line) })
	if _, ok := errors.AsType[*broken](err); ok {
		h.breaks(s, err)
	}
	s.ended.Store(int64(h.loop.Now()))
}

func (h *Host) breaks(s *session, err error) {
	h.loop.Post(func() { h.lose(s.member, err.Error()) })
}

// hears notes that something came, and that nothing came for long before.
func (h *Host) hears(s *session) {
	now := h.loop.Now()
	if last := time.Duration(s.heard.Swap(int64(now))); now-last > silence {
		h.loop.Post(func() { h.silent(s.member, last, now) })
	}
}

// passes hands a line on to the loop, and acknowledges it when the loop has dealt with it.
func (h *Host) passes(s *session, line []byte) error {
	do, err := s.opens(line)
	if err != nil {
		return &broken{err}
	}
	s.have.Add(1)
	h.loop.Post(func() {
		do(h.Fleet)
		h.loop.Post(func() { // after the run has recorded it
			s.dealt++
			s.out.dealt(s.dealt)
		})
	})
	return nil
}

// Wait waits until all workers have joined. It must run before the loop. If some do not join before ctx ends,
// the run is lost.
func (h *Host) Wait(ctx context.Context) {
	select {
	case <-h.full:
	case <-ctx.Done():
		h.mu.Lock()
		defer h.mu.Unlock()
		h.gone = fmt.Errorf("%d of %d workers joined in time. Without the share of the others there is no verdict", len(h.members), h.n)
		h.n = len(h.members) // nobody joins any more
	}
	h.watch()
}

// watch looks at all workers again and again.
func (h *Host) watch() {
	now := h.loop.Now()
	for _, s := range h.sessions {
		heard, ended := time.Duration(s.heard.Load()), time.Duration(s.ended.Load())
		switch {
		case now-heard > lostAfter:
			h.lose(s.member, fmt.Sprintf("nothing was heard from it for %v", lostAfter))
		case ended > 0 && ended-heard < silence && now-max(ended, heard) > redial: // it did not break for a cut
			h.lose(s.member, "its connection broke, and it did not dial again")
		case s.out.overflown():
			h.lose(s.member, "it does not read its orders")
		}
		s.out.live()
	}
	h.loop.Timer(now+lookEach, h.watch)
}

// End tells the workers that the run is over, or why it was stopped, waits a moment until they know, and
// leaves. It runs after the loop.
func (h *Host) End(ctx context.Context, failed error) {
	over, why := false, ""
	if failed != nil {
		why = failed.Error()
	}
	h.loop.Timer(h.loop.Now()+redial, func() { over = true })
	for _, m := range h.members {
		m.say(message{Kind: toEnd, Why: why})
	}
	all := func() bool {
		for _, s := range h.sessions {
			if !s.out.empty() && !s.lost {
				return false
			}
		}
		return true
	}
	for !over && !all() && h.loop.Wait(ctx) == nil { // the looks of watch wake it
	}
	_ = h.server.Close()
}
