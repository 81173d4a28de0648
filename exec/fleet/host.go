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
	protocol  = "tokgate" // of a link, which upgrades its request
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
}

// session is the link to one worker, over all its connections.
type session struct {
	*member
	out   *mail
	heard atomic.Int64 // when something came last
	ended atomic.Int64 // when the link broke; 0 if it holds

	carried chan struct{}      // holds a value while a connection carries the link
	end     context.CancelFunc // ends that; guarded by Host.mu
	links   int                // number of the last link; guarded by Host.mu
}

// hello is what a worker says when it joins, again if it got no answer, and welcome the answer.
type hello struct {
	Session string `json:"session"` // drawn by the worker
	Name    string `json:"name"`
	Version string `json:"version"`
}

type welcome struct {
	Name string `json:"name"`
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
		sessions: map[string]*session{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /join", h.joins)
	mux.HandleFunc("GET /clock", h.tells)
	mux.HandleFunc("GET /link", h.links)
	h.server = &http.Server{
		Handler: h.admits(mux), TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13},
		ReadHeaderTimeout: lostAfter, ErrorLog: log.New(io.Discard, "", 0), Protocols: new(http.Protocols),
	}
	h.server.Protocols.SetHTTP1(true)                // a link takes over its connection
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
	if s := h.sessions[said.Session]; s != nil {
		_ = json.NewEncoder(w).Encode(welcome{s.name}) // the answer before was lost
		return
	}
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
	s := &session{out: newMail(), carried: make(chan struct{}, 1)}
	s.heard.Store(int64(h.loop.Now()))
	s.member = h.add(name, s.out)
	h.sessions[said.Session] = s
	h.state(fmt.Sprintf("%s joined: %d of %d workers are there", name, len(h.members), h.n))
	_ = json.NewEncoder(w).Encode(welcome{name}) // if it is lost, the worker asks again
}

// tells tells the time.
func (h *Host) tells(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, int64(h.loop.Now())) }

// opening returns the session of a link, and a context that ends when a newer link replaces this one. A link
// that the network has kept back until a newer one was there is refused: what it says is out of date.
func (h *Host) opening(ctx context.Context, key string, number int) (*session, context.Context, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[key]
	if s == nil {
		return nil, nil, errors.New("this worker is not of this run")
	}
	if number <= s.links {
		return nil, nil, errors.New("a newer link has replaced this one")
	}
	if s.links = number; s.end != nil {
		s.end()
	}
	ctx, s.end = context.WithCancel(ctx)
	return s, ctx, nil
}

// links carries the lines of a session in both directions, over the connection of one request. A new one replaces
// the one before.
func (h *Host) links(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	number, err := strconv.Atoi(q.Get("link"))
	s, ctx, refused := h.opening(r.Context(), q.Get("session"), number)
	if err = errors.Join(err, refused); err != nil {
		http.Error(w, err.Error(), http.StatusGone)
		return
	}
	select {
	case s.carried <- struct{}{}:
		defer func() { <-s.carried }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return // a newer link came while this one waited
	}
	has, err := strconv.Atoi(q.Get("has"))
	if err == nil {
		err = s.out.from(has)
	}
	if err != nil {
		h.breaks(s, err)
		http.Error(w, "the link cannot go on: "+err.Error(), http.StatusGone)
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "the link cannot take over its connection: "+err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\nTokgate-Has: %d\r\n\r\n", protocol, s.out.has())
	s.ended.Store(0)
	err = s.out.carry(ctx, conn, h.loop.Post, func() { h.hears(s) }, func(line []byte) (func(), error) {
		do, err := s.opens(line)
		return func() { do(h.Fleet) }, err
	})
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

// Wait runs the loop until all workers have joined, a worker was lost, or ctx ends. If some do not join within a
// time, the run is lost.
func (h *Host) Wait(ctx context.Context, within time.Duration) {
	h.watch()
	err := h.until(ctx, within, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.members) == h.n
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone == nil && errors.Is(err, context.DeadlineExceeded) {
		h.gone = fmt.Errorf("%d of %d workers joined within %v. Without the share of the others there is no verdict", len(h.members), h.n, within)
	}
	h.n = len(h.members) // nobody joins any more
}

// watch looks at all workers again and again.
func (h *Host) watch() {
	h.mu.Lock()
	defer h.mu.Unlock()
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
	h.close()
}

// close leaves, with all links.
func (h *Host) close() {
	_ = h.server.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.sessions {
		if s.end != nil {
			s.end()
		}
	}
}
