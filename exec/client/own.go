package client

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec/direct"
)

// own carries streams with package direct instead of net/http.
type own struct {
	*direct.Pool
	h  *HTTP
	mu sync.Mutex
	// heads holds the text of a request's head, once it was needed, in two parts: before and after the
	// value of Content-Length. The key is the API, and whether the connection is closed after the request.
	heads map[headOf][2]string
}

type headOf struct {
	api   engine.API
	fresh bool
}

// detourOf returns why the requests of this client need net/http; "" if they do not.
func (h *HTTP) detourOf() string {
	u, err := url.Parse(h.base)
	if err != nil {
		return err.Error()
	}
	switch proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u}); {
	case h.config.Standard:
		return "--transport"
	case u.Scheme != "http":
		return "TLS"
	case h.config.H2C:
		return "HTTP/2"
	case proxy != nil || err != nil:
		return "a proxy"
	case h.config.MaxConns > 0:
		return "a bound on connections"
	}
	for name, value := range h.config.Headers {
		if !ordinary(name, value) {
			return "the header " + strconv.Quote(name)
		}
	}
	for _, r := range u.Host {
		if r > 0x7f {
			return "a host name that is not ASCII"
		}
	}
	return ""
}

// newOwn returns the path without net/http. If the requests need net/http, it returns nil and the reason.
func newOwn(h *HTTP) (o *own, why string) {
	if why := h.detourOf(); why != "" {
		return nil, why
	}
	u, _ := url.Parse(h.base) // detourOf has parsed it
	address := u.Host
	if u.Port() == "" {
		address = net.JoinHostPort(u.Hostname(), "80")
	}
	o = &own{h: h, heads: map[headOf][2]string{}, Pool: direct.New(direct.Config{
		Dial:        func(ctx context.Context) (net.Conn, error) { return h.dial(ctx, "tcp", address) },
		Now:         h.config.Now,
		IdleTimeout: IdleTimeout,
		Pollers:     h.config.Pollers,
		Fresh:       &h.freshOnly,
		Buffers:     &readers,
	})}
	head, err := o.head(engine.Chat, false, nil)
	if err != nil {
		return nil, err.Error()
	}
	o.heads[headOf{engine.Chat, false}] = head
	return o, ""
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

func allOrdinary(headers map[string]string) bool {
	for name, value := range headers {
		if !ordinary(name, value) {
			return false
		}
	}
	return true
}

// head returns a request's head as net/http writes it, before and after the value of
// its Content-Length. The parameter headers holds headers of this request alone.
func (o *own) head(api engine.API, fresh bool, headers map[string]string) (around [2]string, err error) {
	r, err := http.NewRequest(http.MethodPost, o.h.base+api.Path(), strings.NewReader("x"))
	if err != nil {
		return around, err
	}
	accepting(r, api)
	o.h.dress(r, headers)
	r.Close = fresh
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		return around, err
	}
	around[0], around[1], _ = strings.Cut(b.String(), "Content-Length: 1\r\n")
	around[1] = strings.TrimSuffix(around[1], "x")
	return around, nil
}

// shared returns the head of the requests that have no headers of their own. It is built once.
func (o *own) shared(api engine.API, fresh bool) [2]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	of := headOf{api, fresh}
	if _, known := o.heads[of]; !known {
		o.heads[of], _ = o.head(api, fresh, nil) // it cannot fail: that of newOwn did not
	}
	return o.heads[of]
}

// wire returns the bytes of a whole request: the head and the body. The parameter headers holds
// headers of this request alone.
func (o *own) wire(api engine.API, fresh bool, headers map[string]string, body []byte) []byte {
	head := o.shared(api, fresh)
	if len(headers) > 0 {
		head, _ = o.head(api, fresh, headers)
	}
	b := make([]byte, 0, len(head[0])+len(head[1])+len(body)+40)
	b = append(append(b, head[0]...), "Content-Length: "...)
	b = append(strconv.AppendInt(b, int64(len(body)), 10), "\r\n"...)
	return append(append(b, head[1]...), body...)
}

// send starts a call. If the request's bytes are ready and a connection is idle, send writes them
// at once.
func (o *own) send(c *call, r *Request) {
	c.own, c.To = o, c
	c.stop = context.AfterFunc(c.Ctx, c.Abort)
	fresh := o.h.freshOnly.Load()
	if ready := r.Prompt.Ready; ready.builtFor(r) && !fresh {
		if c.body = ready.body; o.Start(&c.Exchange, ready.wire) {
			return
		}
	}
	go func() {
		var err error
		if c.body, err = o.h.body(r); err != nil {
			c.end(o.h.config.Now(), unbuilt(err))
			return
		}
		o.Carry(&c.Exchange, fresh)
	}()
}

// Prepare implements Prepared.
func (h *HTTP) Prepare(r *Request) Prompt {
	p := r.Prompt
	p.Ready = nil
	if h.own == nil || h.freshOnly.Load() || !allOrdinary(r.Headers) {
		return p
	}
	body, err := r.Body(h.config.Engine.Dialect)
	if err != nil {
		return p // sending the request will report this error
	}
	wire := h.own.wire(r.API, false, r.Headers, body)
	p.Ready = &Ready{wire, wire[len(wire)-len(body):], r.API, r.Model, r.Output, r.Natural, r.Headers, h}
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

// Warm implements Prepared. It does nothing if the server closes connections after an answer: a
// server of this kind often has one worker for each connection, and idle connections would keep the
// workers busy.
func (h *HTTP) Warm(ctx context.Context, n int) {
	if h.own != nil && !h.redirecting.Load() && !h.freshOnly.Load() {
		h.own.Warm(ctx, n)
	}
}

func (c *call) Wire(fresh bool) []byte {
	wire := c.own.wire(c.api, fresh, c.headers, c.body)
	c.body = wire[len(wire)-len(c.body):] // once only
	return wire
}

func (c *call) Head(head *direct.Head) error {
	c.h.noteGateway(head.Header)
	c.resp = head.Response
	c.began()
	return c.answers()
}

func (c *call) Body(b direct.Buffer, at time.Duration, read error) (time.Duration, bool, error) {
	return c.take(b.(*reader), at, read)
}

func (c *call) End(at time.Duration, err error) { c.end(at, err) }

func (c *call) Fail(err error) {
	c.began()
	c.end(c.h.config.Now(), c.failure(err))
}

// Aside implements direct.Taker. It uses net/http's parser.
func (c *call) Aside(from net.Conn, here []byte, at time.Duration) (whole bool, end func()) {
	c.conn = &stampedConn{Conn: from, now: c.h.config.Now}
	c.conn.read.Store(int64(at))
	br := bufio.NewReader(io.MultiReader(bytes.NewReader(here), c.conn))
	resp, err := http.ReadResponse(br, nil)
	if err == nil && resp.StatusCode/100 == 3 {
		// net/http follows redirects, so it gets this call, with the redirect that was read, and all
		// later calls.
		c.h.redirecting.Store(true)
		c.moved = resp
		c.standard()
		return false, nil
	}
	var body *ending
	if err == nil {
		c.h.noteGateway(resp.Header)
		body = &ending{ReadCloser: resp.Body}
		resp.Body = body
		if c.resp = resp; resp.StatusCode >= 400 {
			if err = limit(resp, maxWords); err == nil {
				err = refused(resp)
			}
		}
	}
	over, err := c.answered(err)
	whole = body != nil && body.over && !resp.Close && resp.StatusCode >= 200 && br.Buffered() == 0 && c.Ctx.Err() == nil
	return whole, func() { c.end(over, err) }
}

// ending is the body of an answer. It remembers whether it was read to its end.
type ending struct {
	io.ReadCloser
	over bool
}

func (e *ending) Read(b []byte) (int, error) {
	n, err := e.ReadCloser.Read(b)
	e.over = e.over || err == io.EOF
	return n, err
}
