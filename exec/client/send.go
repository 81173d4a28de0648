package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec/direct"
	"github.com/tokgate/tokgate/metric"
)

// Send starts the request r; see Transport.
//
// The sample's Sent is the time of the first byte that the client wrote in its first attempt. If a
// kept-alive connection turns out to be dead, the lost time comes after Sent, and Retried reports
// the new connection.
func (h *HTTP) Send(ctx context.Context, r *Request, s Stream) {
	c := h.newCall(ctx, r, s)
	if h.own != nil && !h.redirecting.Load() && allOrdinary(r.Headers) {
		h.own.send(c, r)
		return
	}
	go func() {
		var err error
		if c.body, err = h.body(r); err != nil {
			c.end(h.config.Now(), unbuilt(err))
			return
		}
		c.standard()
	}()
}

func unbuilt(err error) error {
	return &Error{Kind: metric.FailProtocol, Message: "could not build the request: " + err.Error()}
}

// errTimeout is the cause of a context that ended after r.Timeout. errLinger is the cause if the
// answer was complete and the server kept its connection open.
var (
	errTimeout = errors.New("time-out")
	errLinger  = errors.New("nothing after the end")
)

// linger is how long the connection may stay open after an answer said [DONE]. Usually the end of
// the stream comes in the same packet.
const linger = 100 * time.Millisecond

// newCall prepares the call that sends the request r. The method end must be called to end it.
func (h *HTTP) newCall(ctx context.Context, r *Request, s Stream) *call {
	c := &call{h: h, s: s, timeout: r.Timeout, api: r.API, inputs: r.Prompt.inputs(), headers: r.Headers, most: r.mostTexts()}
	c.stop = func() bool { return true }
	c.Ctx, c.cancel = context.WithCancelCause(ctx)
	if r.Timeout > 0 {
		c.Ctx, c.untimed = context.WithTimeoutCause(c.Ctx, r.Timeout, errTimeout)
	}
	return c
}

func (c *call) end(at time.Duration, err error) {
	c.stop()
	if c.lingers != nil {
		c.lingers.Stop()
	}
	if c.untimed != nil {
		c.untimed()
	}
	c.cancel(nil)
	c.s.End(at, err)
}

// standard sends the request through net/http and reads its answer.
func (c *call) standard() {
	c.own = nil
	err := c.post(httptrace.WithClientTrace(context.WithValue(c.Ctx, callKey{}, c), c.trace()))
	c.end(c.answered(err))
}

// answered reads the body of the answer and returns the time of its end. If err is not nil, there
// is no body: it returns the error and the present time.
func (c *call) answered(err error) (time.Duration, error) {
	c.began()
	if err != nil {
		err = c.failure(err)
		at := c.h.config.Now()
		if e, ok := errors.AsType[*Error](err); ok && e.Status > 0 {
			c.s.Headers(max(time.Duration(c.First.Load()), 1), e.Status)
		}
		return at, err
	}
	defer c.resp.Body.Close()
	if err := c.answers(); err != nil {
		return c.stamp(), err
	}
	return c.read()
}

// post sends the request. It returns an error if the server refuses the request. It does not use
// the client of go-openai, which rejects some model names.
func (c *call) post(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.h.base+c.api.Path(), nil)
	if err != nil {
		return err
	}
	accepting(r, c.api)
	resp, err := doer{c.h}.Do(r)
	if err != nil || resp.StatusCode < 400 {
		return err
	}
	return refused(resp)
}

// accepting sets the headers with which a request of the API says what it sends and takes.
func accepting(r *http.Request, api engine.API) {
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	switch api {
	case engine.Embeddings:
		r.Header.Set("Accept", "application/json")
	case engine.Messages:
		r.Header.Set("Anthropic-Version", messagesVersion)
	}
	r.Header.Set("Cache-Control", "no-cache")
}

// call is one request under way.
type call struct {
	direct.Exchange // on either path, what is known of the attempts

	h       *HTTP
	s       Stream
	api     engine.API
	inputs  int               // texts of a request for embeddings
	headers map[string]string // of this request alone
	timeout time.Duration
	ends
	body   []byte // body of the request; dropped when the answer begins
	resp   *http.Response
	frames int           // number of frames read of the answer
	texts  int           // number of events with text in the answer
	most   int           // largest number of them; see Request.mostTexts
	ended  time.Duration // time of [DONE] or of an error event; 0 before that

	own   *own           // carries the call; nil once net/http does
	moved *http.Response // a redirect that was read, which net/http follows; nil if there is none
	attempt

	redirects int // each adds one to Conns
}

// ends is what ends a call, or is released at its end.
type ends struct {
	cancel  context.CancelCauseFunc
	untimed context.CancelFunc // releases the timer; nil if the request has no time-out
	lingers *time.Timer        // cancels the call some time after its answer has ended; nil before
	stop    func() bool        // stops watching for the end of the context
}

// attempt is the current attempt of net/http. Goroutines other than the sender use only wrote.
type attempt struct {
	conn  *stampedConn // nil over HTTP/2
	wrote atomic.Int64 // over HTTP/2, the time at which the request's head was written
	short bool         // the request's body fits into one piece; see asked
	asked atomic.Int64 // the time at which the last piece of a longer body was read
}

type callKey struct{}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

func (c *call) trace() *httptrace.ClientTrace {
	now := c.h.config.Now
	return &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			c.noteSent()
			if c.conn == nil || !c.conn.unasked() {
				c.Conns++
			}
			c.Reused, c.Interim, c.short = info.Reused, false, len(c.body) <= direct.MostInline
			c.asked.Store(0)
			if c.conn = stamped(info.Conn); c.h.config.H2C || overHTTP2(info.Conn) {
				c.conn = nil
			}
			if c.conn != nil {
				c.conn.arm(info)
			}
		},
		Got1xxResponse: func(int, textproto.MIMEHeader) error {
			c.Interim = true
			return nil
		},
		WroteHeaders: func() { c.wrote.CompareAndSwap(0, int64(now())) },
		GotFirstResponseByte: func() {
			at := now()
			if c.conn != nil {
				at = time.Duration(c.conn.read.Load())
			}
			c.First.Store(int64(at))
		},
	}
}

func (c *call) noteSent() {
	if c.Sent != 0 || c.Conns == 0 {
		return
	}
	if c.conn != nil {
		c.Sent = time.Duration(c.conn.wrote.Load())
	} else {
		c.Sent = time.Duration(c.wrote.Load())
	}
}

// do sends the request r. If a kept-alive connection turns out to be dead before any byte of an
// answer, it sends r again on a fresh connection.
func (c *call) do(h *HTTP, r *http.Request) (*http.Response, error) {
	client := h.pick()
	if c.moved != nil {
		then := *client
		then.Transport = &inHand{c.moved, client.Transport}
		client, c.moved = &then, nil
	}
	resp, err := client.Do(r)
	if err != nil && c.Reused && c.First.Load() == 0 && r.Context().Err() == nil {
		if _, ours := errors.AsType[*Error](err); !ours {
			r.Body = c.payload()
			resp, err = h.fresh.Do(r)
		}
	}
	return resp, err
}

// began passes on the reconnects, the time of sending and the head. It is called when the head of
// an answer was read or the request failed.
func (c *call) began() {
	c.body = nil
	c.noteSent()
	if n := c.Conns - 1 - c.redirects; n > 0 {
		if s, ok := c.s.(Retried); ok {
			for range n {
				s.Reconnect()
			}
		}
		// Over HTTP/2 a server may ask for a new connection at any time. That is no reason to use a
		// new connection for each request.
		if (c.conn != nil || c.own != nil) && !c.h.freshOnly.Swap(true) && c.h.config.OnFresh != nil {
			c.h.config.OnFresh("the server closed a kept-alive connection that was about to be used again; from now on each request gets a connection of its own")
		}
	}
	if c.Sent != 0 {
		c.s.Sent(c.Sent)
	}
}

// answers passes on the status of an answer that succeeded. It returns an error if the answer began
// before the last piece of its request was written: then it cannot be the answer to this request.
func (c *call) answers() error {
	first, asked := c.First.Load(), c.asked.Load()
	early := false
	if c.own != nil {
		at, before := c.Written()
		early, asked = before, int64(at)
	} else if c.conn != nil {
		if early = c.conn.early.Load(); c.short {
			asked = c.conn.wrote.Load()
		}
	}
	c.s.Headers(max(time.Duration(first), c.Sent), c.resp.StatusCode)
	// Over HTTP/2 a frame names its request. After an interim answer, the time at which the answer
	// itself began is not known.
	if http2 := c.own == nil && c.conn == nil; c.resp.StatusCode/100 != 2 || c.Interim || http2 {
		return nil
	}
	if early || asked == 0 || first < asked {
		return errEarly
	}
	return nil
}

var errEarly = &Error{Kind: metric.FailProtocol, Message: "the answer began before its request was sent, so it belongs to another request: something between tokgate and the server mixes up answers"}

// inHand is a transport that has its first answer already. A client that uses it follows a redirect
// without asking for the redirect again.
type inHand struct {
	resp *http.Response // nil after the first answer
	then http.RoundTripper
}

func (t *inHand) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.resp == nil {
		return t.then.RoundTrip(r)
	}
	resp := t.resp
	t.resp, resp.Request = nil, r
	return resp, r.Body.Close()
}

func (c *call) give(r *http.Request) {
	r.ContentLength = int64(len(c.body))
	r.Body = c.payload()
	r.GetBody = func() (io.ReadCloser, error) { return c.payload(), nil }
}

// payload is a request body that frees its bytes when it has been sent. So a long prompt does not
// stay in memory until its answer comes. It has a lock because HTTP/2 may close a body in one
// goroutine while another goroutine reads it.
type payload struct {
	c    *call
	mu   sync.Mutex
	rest bytes.Reader
}

func (c *call) payload() *payload {
	p := &payload{c: c}
	p.rest.Reset(c.body)
	return p
}

func (p *payload) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if left := p.rest.Len(); left > 0 && left <= direct.MostInline {
		p.c.asked.CompareAndSwap(0, max(int64(p.c.h.config.Now()), 1))
	}
	return p.rest.Read(b)
}

func (p *payload) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest.Reset(nil)
	return nil
}

// read reads the body of the answer to its end, and returns the time of the end.
func (c *call) read() (time.Duration, error) {
	rd := readers.Get().(*reader)
	defer readers.Put(rd)
	rd.Reset(false)
	body, err := plainBody(c.resp)
	if e, ok := errors.AsType[*Error](err); ok {
		return c.stamp(), e
	} else if err != nil {
		return c.stamp(), c.broken(err)
	}
	for {
		room, err := rd.Room()
		if err != nil {
			return c.stamp(), err
		}
		n, err := body.Read(room)
		at := c.stamp()
		rd.split.advance(n)
		if at, over, err := c.take(rd, at, err); over {
			return at, err
		}
	}
}

// take passes on what has come so far of the answer, like the method events.
func (c *call) take(rd *reader, at time.Duration, readErr error) (end time.Duration, over bool, err error) {
	if c.api.Embeds() {
		return c.whole(rd, at, readErr)
	}
	return c.events(rd, at, readErr)
}

// events passes on the events that have come so far. The argument readErr is the error of the last
// read. If the answer is over, over is true, end is the time of its end, and err is the reason or
// nil.
func (c *call) events(rd *reader, at time.Duration, readErr error) (end time.Duration, over bool, err error) {
	for c.ended == 0 {
		kind, data, cut, err := rd.next(readErr == io.EOF)
		if err != nil {
			return at, true, &Error{Kind: metric.FailProtocol, Message: err.Error()}
		}
		if kind == frameNone {
			break
		}
		c.frames++
		if err := rd.parse(c.api, kind, data); err != nil && cut {
			return at, true, &Error{Kind: metric.FailTruncated, Message: "the stream ended in the middle of an event"}
		} else if err != nil {
			return at, true, err
		}
		if e := &rd.event; e.Content || e.Reasoning || e.ToolCall {
			if c.texts++; c.texts > c.most {
				return at, true, c.endless()
			}
		}
		c.s.Event(at, &rd.event)
		if rd.event.Done || rd.event.Err != "" {
			c.ended = at
		}
	}
	switch {
	case readErr == nil:
		// After the end of the answer, ignore further bytes, and wait only a short time for the
		// close.
		if c.ended != 0 {
			rd.split.reset()
			if c.lingers == nil {
				c.lingers = time.AfterFunc(linger, func() { c.cancel(errLinger) })
			}
		}
		return 0, false, nil
	case c.ended != 0:
		return c.ended, true, nil
	case readErr == io.EOF:
		if c.frames == 0 && len(rd.split.junk) > 0 {
			return at, true, rd.notStream()
		}
		// If the client gave up, the server may still end the stream in order. So ask for the
		// client's own error.
		return at, true, c.stopped()
	}
	// Return the present time, because the time of the last read is too early if nothing was read.
	return c.h.config.Now(), true, c.broken(readErr)
}

// whole is like events, for an answer that is one JSON object. It is over at the end of the body.
func (c *call) whole(rd *reader, at time.Duration, readErr error) (end time.Duration, over bool, err error) {
	switch {
	case readErr == nil:
		rd.split.most = maxWhole
		return 0, false, nil
	case readErr != io.EOF:
		return c.h.config.Now(), true, c.broken(readErr)
	}
	if err := c.stopped(); err != nil {
		return at, true, err
	}
	body := rd.split.buf[:rd.split.w]
	if err := rd.parse(c.api, frameData, body); err != nil {
		return at, true, err
	}
	if why := rd.event.vectorless(c.inputs); why != "" {
		return at, true, &Error{Kind: metric.FailProtocol, Message: why}
	}
	rd.event.Embedded = func() ([][]float32, error) { return vectorsOf(body) }
	c.s.Event(at, &rd.event)
	return at, true, nil
}

func (c *call) endless() error {
	return &Error{Kind: metric.FailProtocol, Message: fmt.Sprintf(
		"the answer has more than %d events with text, far more than the tokens that were asked for, so tokgate stopped reading it", c.most)}
}

func (c *call) stamp() time.Duration {
	if c.conn != nil {
		return time.Duration(c.conn.read.Load())
	}
	return c.h.config.Now()
}

// broken returns the error of a call whose answer could not be read to the end.
func (c *call) broken(err error) error {
	if e := c.stopped(); e != nil {
		return e
	}
	return &Error{Kind: metric.FailTruncated, Message: "the connection broke in the middle of the answer: " + err.Error()}
}

// stopped returns an error if the client itself ended the request, because its time limit was over
// or its context was cancelled. It returns nil otherwise.
func (c *call) stopped() error {
	switch {
	case context.Cause(c.Ctx) == errTimeout:
		return &Error{Kind: metric.FailTimeout, Message: fmt.Sprintf("no end within %v", c.timeout)}
	case c.Ctx.Err() != nil:
		return &Error{Kind: metric.FailCanceled, Message: "the run was stopped"}
	}
	return nil
}

// failure returns the error of a call that has no answer to read.
func (c *call) failure(err error) error {
	if e := c.stopped(); e != nil {
		return e
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return unreached(err, c.Conns)
}
