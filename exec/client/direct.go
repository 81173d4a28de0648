package client

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// direct carries streams over HTTP/1.1 without net/http, because net/http costs more for many
// streams than reading them. net/http needs two goroutines for each connection and one for each
// request, with their buffers. direct writes a request at once, from bytes that were built
// beforehand, on an open connection. The goroutine that finds bytes of an answer reads them and
// passes them on; see watch.
//
// direct reads the same from an answer as net/http does. The parser of net/http reads the head, and
// frame decodes the body. The standard path reads an answer that is not a plain stream, such as a
// refusal, a compressed body or a redirect. It also carries what direct does not support; see
// newDirect.
type direct struct {
	h       *HTTP
	address string // host:port
	// heads holds the text of a request's head in two parts: before and after the value of
	// Content-Length. The key is the path, and whether the connection is closed after the request.
	heads map[headOf][2]string
	off   atomic.Bool // set after a redirect: net/http then sends all requests
	// opening is the head of an earlier answer of this server; nil if there is none.
	opening atomic.Pointer[opening]

	mu    sync.Mutex
	idle  []*line     // idle connections; the most recently used is last
	sweep *time.Timer // closes connections that were idle for too long; nil if none is idle
}

type headOf struct {
	path  string
	fresh bool
}

// newDirect returns the path that sends requests without net/http. If these requests need net/http,
// d is nil and why is the reason.
func newDirect(h *HTTP) (d *direct, why string) {
	u, err := url.Parse(h.base)
	if err != nil {
		return nil, err.Error()
	}
	switch proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u}); {
	case u.Scheme != "http":
		return nil, "TLS"
	case h.config.H2C:
		return nil, "HTTP/2"
	case proxy != nil || err != nil:
		return nil, "a proxy"
	case h.config.MaxConns > 0:
		return nil, "a bound on connections"
	}
	for name, value := range h.config.Headers {
		if !ordinary(name, value) {
			return nil, "the header " + strconv.Quote(name)
		}
	}
	for _, r := range u.Host {
		if r > 0x7f {
			return nil, "a host name that is not ASCII"
		}
	}
	d = &direct{h: h, address: u.Host, heads: map[headOf][2]string{}}
	if u.Port() == "" {
		d.address = net.JoinHostPort(u.Hostname(), "80")
	}
	for _, path := range []string{"/completions", "/chat/completions"} {
		for _, fresh := range []bool{false, true} {
			head, err := d.head(path, fresh, nil)
			if err != nil {
				return nil, err.Error()
			}
			d.heads[headOf{path, fresh}] = head
		}
	}
	return d, ""
}

// ordinary reports whether net/http accepts the header field, and the field does not change how the
// connection is used.
func ordinary(name, value string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Connection", "Content-Length", "Expect", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return false
	}
	for _, b := range []byte(name) {
		if b != '-' && b != '_' && !('0' <= b && b <= '9') && !('a' <= b|0x20 && b|0x20 <= 'z') {
			return false
		}
	}
	for _, b := range []byte(value) {
		if b < ' ' && b != '\t' || b == 0x7f {
			return false
		}
	}
	return name != ""
}

// allOrdinary reports whether all headers are ordinary.
func allOrdinary(headers map[string]string) bool {
	for name, value := range headers {
		if !ordinary(name, value) {
			return false
		}
	}
	return true
}

// head returns a request's head as net/http writes it, before and after the value of
// its Content-Length. The parameter own holds headers of this request alone.
func (d *direct) head(path string, fresh bool, own map[string]string) (around [2]string, err error) {
	r, err := http.NewRequest(http.MethodPost, d.h.base+path, strings.NewReader("x"))
	if err != nil {
		return around, err
	}
	streaming(r)
	d.h.dress(r, own)
	r.Close = fresh
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		return around, err
	}
	around[0], around[1], _ = strings.Cut(b.String(), "Content-Length: 1\r\n")
	around[1] = strings.TrimSuffix(around[1], "x")
	return around, nil
}

// wire returns the bytes of a whole request: the head and the body. The parameter own holds headers of
// this request alone.
func (d *direct) wire(path string, fresh bool, own map[string]string, body []byte) []byte {
	head := d.heads[headOf{path, fresh}]
	if len(own) > 0 {
		head, _ = d.head(path, fresh, own) // it cannot fail: without own it did not
	}
	b := make([]byte, 0, len(head[0])+len(head[1])+len(body)+40)
	b = append(append(b, head[0]...), "Content-Length: "...)
	b = append(strconv.AppendInt(b, int64(len(body)), 10), "\r\n"...)
	return append(append(b, head[1]...), body...)
}

// send starts a call. If the request's bytes are ready and a connection is idle, send writes them
// at once.
func (d *direct) send(c *call, r *Request) {
	c.stop = context.AfterFunc(c.ctx, func() {
		if l := c.line.Load(); l != nil {
			l.abort(c)
		}
	})
	fresh := d.h.freshOnly.Load()
	if ready := r.Prompt.Ready; ready.builtFor(r) && !fresh {
		c.body = ready.body
		for l := d.take(); l != nil; l = d.take() {
			if l.start(c, ready.wire, true) {
				l.look()
				return
			}
		}
	}
	go func() {
		var err error
		if c.body, err = d.h.body(r); err != nil {
			c.end(d.h.config.Now(), unbuilt(err))
			return
		}
		d.carry(c, fresh)
	}()
}

// Prepare implements Prepared.
func (h *HTTP) Prepare(r *Request) Prompt {
	p := r.Prompt
	p.Ready = nil
	if h.direct == nil || h.freshOnly.Load() || !allOrdinary(r.Headers) {
		return p
	}
	body, err := r.Body(h.config.Engine.Dialect)
	if err != nil {
		return p // sending the request will report this error
	}
	wire := h.direct.wire(r.path(), false, r.Headers, body)
	p.Ready = &Ready{wire, wire[len(wire)-len(body):], r.API, r.Model, r.Output, r.Natural, r.Headers}
	return p
}

// body returns the body of the request r. If the transport built the body beforehand, it returns
// those bytes.
func (h *HTTP) body(r *Request) ([]byte, error) {
	if r.Prompt.Ready.builtFor(r) {
		return r.Prompt.Ready.body, nil
	}
	return r.Body(h.config.Engine.Dialect)
}

// warmAtOnce is the number of connections that are opened at a time.
const warmAtOnce = 64

// Warm implements Prepared. It does nothing if the server closes connections after an answer: a
// server of this kind often has one worker for each connection, and idle connections would keep the
// workers busy.
func (h *HTTP) Warm(ctx context.Context, n int) {
	d := h.direct
	if d == nil || d.off.Load() || h.freshOnly.Load() {
		return
	}
	d.mu.Lock()
	n -= len(d.idle)
	d.mu.Unlock()
	var opening sync.WaitGroup
	slots := make(chan struct{}, warmAtOnce)
	for range n {
		slots <- struct{}{}
		opening.Go(func() {
			defer func() { <-slots }()
			if conn, err := d.dial(ctx); err == nil {
				l := &line{d: d, conn: unpolled(conn)}
				watch(l)
				d.keep(l)
			}
		})
	}
	opening.Wait()
}

// carry sends a call whose body is known. If fresh is set, it opens a connection for this call
// alone.
func (d *direct) carry(c *call, fresh bool) {
	wire := d.wire(c.path, fresh, c.headers, c.body)
	c.body = wire[len(wire)-len(c.body):] // once only
	for !fresh {
		l := d.take()
		if l == nil {
			break
		}
		if l.start(c, wire, true) {
			return
		}
	}
	conn, err := d.dial(c.ctx)
	if err != nil {
		c.began()
		c.end(d.h.config.Now(), c.failure(err))
		return
	}
	l := &line{d: d, conn: unpolled(conn), single: fresh}
	l.start(c, wire, false)
	watch(l)
}

func (d *direct) dial(ctx context.Context) (net.Conn, error) {
	if d.h.config.Dial != nil {
		return d.h.config.Dial(ctx, "tcp", d.address)
	}
	return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", d.address)
}

// take removes an idle connection from the list and returns it; nil if there is none.
func (d *direct) take() *line {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := len(d.idle) - 1
	if n < 0 {
		return nil
	}
	l := d.idle[n]
	d.idle[n] = nil
	d.idle = d.idle[:n]
	return l
}

// keep adds a connection to the idle connections.
func (d *direct) keep(l *line) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l.since = d.h.config.Now()
	d.idle = append(d.idle, l)
	if d.sweep == nil {
		d.sweep = time.AfterFunc(IdleTimeout, func() { d.closeIdle(IdleTimeout) })
	}
}

// drop forgets a connection that is closed.
func (d *direct) drop(l *line) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.idle, l); i >= 0 {
		d.idle = slices.Delete(d.idle, i, i+1)
	}
}

// closeIdle closes connections that have been idle for at least the given time.
func (d *direct) closeIdle(since time.Duration) {
	d.mu.Lock()
	before, n := d.h.config.Now()-since, 0
	for n < len(d.idle) && d.idle[n].since <= before {
		n++
	}
	old := slices.Clone(d.idle[:n])
	d.idle = slices.Delete(d.idle, 0, n)
	if d.sweep != nil && len(d.idle) == 0 {
		d.sweep.Stop()
		d.sweep = nil
	} else if d.sweep != nil {
		d.sweep.Reset(d.idle[0].since - before)
	}
	d.mu.Unlock()
	for _, l := range old {
		l.shut()
	}
}
