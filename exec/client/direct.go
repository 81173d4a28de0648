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

// direct carries streams over HTTP/1.1 without net/http: that takes two goroutines a
// connection and one a request, and its buffers, which at many streams costs more than
// what is measured. A request is one write of bytes that were put together before, on a
// connection that is open by then; what comes back is read by whoever finds it there
// (see watch), and handed on from there.
//
// What it reads of an answer is what net/http reads of it: the head is parsed by
// net/http's own parser, the framing of the body is frame's, and every answer but a
// plain stream (a refusal, a compressed one, a redirect) is left to the code of the
// standard path. That path carries what direct cannot at all: see newDirect.
type direct struct {
	h       *HTTP
	address string // host:port
	// heads are the fields of a request around its Content-Length, by path and
	// whether its connection is closed after it.
	heads map[headOf][2]string
	off   atomic.Bool // the server redirects, which net/http follows
	// opening is how an answer began that was read before; nil: there was none.
	opening atomic.Pointer[opening]

	mu    sync.Mutex
	idle  []*line     // the one used last at the end
	sweep *time.Timer // closes those that nobody used for long; nil: none is idle
}

type headOf struct {
	path  string
	fresh bool
}

// newDirect is nil, and says why, where the standard path is needed.
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
			head, err := d.head(path, fresh)
			if err != nil {
				return nil, err.Error()
			}
			d.heads[headOf{path, fresh}] = head
		}
	}
	return d, ""
}

// ordinary reports whether a field of a request is one that means nothing to the
// connection, and that net/http would not refuse.
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

// head is a request's head as net/http writes it, around its Content-Length.
func (d *direct) head(path string, fresh bool) (around [2]string, err error) {
	r, err := http.NewRequest(http.MethodPost, d.h.base+path, strings.NewReader("x"))
	if err != nil {
		return around, err
	}
	streaming(r)
	d.h.dress(r)
	r.Close = fresh
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		return around, err
	}
	around[0], around[1], _ = strings.Cut(b.String(), "Content-Length: 1\r\n")
	around[1] = strings.TrimSuffix(around[1], "x")
	return around, nil
}

// wire is a whole request; the body is the end of it.
func (d *direct) wire(path string, fresh bool, body []byte) []byte {
	head := d.heads[headOf{path, fresh}]
	b := make([]byte, 0, len(head[0])+len(head[1])+len(body)+40)
	b = append(append(b, head[0]...), "Content-Length: "...)
	b = append(strconv.AppendInt(b, int64(len(body)), 10), "\r\n"...)
	return append(append(b, head[1]...), body...)
}

// send starts a call: at once where its bytes are ready and a connection is.
func (d *direct) send(c *call, r *Request) {
	c.stop = context.AfterFunc(c.ctx, func() {
		if l := c.line.Load(); l != nil {
			l.abort(c)
		}
	})
	fresh := d.h.freshOnly.Load()
	if ready := r.Prompt.Ready; ready.of(r) && !fresh {
		c.body = ready.body
		for l := d.take(); l != nil; l = d.take() {
			if l.start(c, ready.wire) {
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
	if h.direct == nil || h.freshOnly.Load() {
		return p
	}
	body, err := r.Body(h.config.Engine.Dialect)
	if err != nil {
		return p // it is said when the request is sent
	}
	wire := h.direct.wire(r.path(), false, body)
	p.Ready = &Ready{wire, wire[len(wire)-len(body):], r.API, r.Model, r.Output, r.Natural}
	return p
}

// body is r's body, which may be ready.
func (h *HTTP) body(r *Request) ([]byte, error) {
	if r.Prompt.Ready.of(r) {
		return r.Prompt.Ready.body, nil
	}
	return r.Body(h.config.Engine.Dialect)
}

// warmAtOnce is how many connections are opened at a time.
const warmAtOnce = 64

// Warm implements Prepared. It opens none to a server that gives each connection a
// worker of its own and closes it after an answer: idle connections would keep its
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

// carry sends a call whose body is known, on a connection of its own where fresh.
func (d *direct) carry(c *call, fresh bool) {
	wire := d.wire(c.path, fresh, c.body)
	c.body = wire[len(wire)-len(c.body):] // once only
	for !fresh {
		l := d.take()
		if l == nil {
			break
		}
		if l.start(c, wire) {
			return
		}
	}
	conn, err := d.dial(c.ctx)
	if err != nil {
		c.began()
		c.end(d.h.config.Now(), c.failure(err))
		return
	}
	l := &line{d: d, conn: unpolled(conn), once: fresh}
	l.start(c, wire)
	watch(l)
}

func (d *direct) dial(ctx context.Context) (net.Conn, error) {
	if d.h.config.Dial != nil {
		return d.h.config.Dial(ctx, "tcp", d.address)
	}
	return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", d.address)
}

// take takes an idle connection; nil if there is none.
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

// keep has a connection wait for the next request.
func (d *direct) keep(l *line) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l.since = d.h.config.Now()
	d.idle = append(d.idle, l)
	if d.sweep == nil {
		d.sweep = time.AfterFunc(IdleTimeout, func() { d.closeIdle(IdleTimeout) })
	}
}

// drop forgets a connection that is gone.
func (d *direct) drop(l *line) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.idle, l); i >= 0 {
		d.idle = slices.Delete(d.idle, i, i+1)
	}
}

// closeIdle closes connections that have been idle for so long.
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
