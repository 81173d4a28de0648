package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/tokgate/tokgate/metric"
)

// Send starts r; see Transport.
//
// Sent is when the first byte of the first attempt was written: a new
// connection is set up before it, the time that a dead kept-alive connection
// cost lies after it and is announced by Retried.
func (h *HTTP) Send(ctx context.Context, r *Request, s Stream) {
	go h.send(ctx, r, s)
}

// errTimeout is the cause of a context that r.Timeout ended, errLinger that of
// one whose answer was complete while its connection stayed open.
var (
	errTimeout = errors.New("time-out")
	errLinger  = errors.New("nothing after the end")
)

// linger is how long an answer that said [DONE] may keep its connection open;
// usually the end comes in the same packet.
const linger = 100 * time.Millisecond

func (h *HTTP) send(ctx context.Context, r *Request, s Stream) {
	c := &call{h: h, s: s, timeout: r.Timeout}
	ctx, c.cancel = context.WithCancelCause(ctx)
	defer c.cancel(nil)
	if r.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, r.Timeout, errTimeout)
		defer stop()
	}
	var err error
	if c.body, err = r.Body(h.config.Engine.Dialect); err != nil {
		s.End(h.config.Now(), &Error{Kind: metric.FailProtocol, Message: "could not build the request: " + err.Error()})
		return
	}
	traced := httptrace.WithClientTrace(context.WithValue(ctx, callKey{}, c), c.trace())
	err = c.post(traced, r.API)
	c.began()
	if err != nil {
		err = c.failure(ctx, err)
		at := h.config.Now()
		if e, ok := errors.AsType[*Error](err); ok && e.Status > 0 {
			s.Headers(max(time.Duration(c.firstByte.Load()), 1), e.Status)
		}
		s.End(at, err)
		return
	}
	s.Headers(time.Duration(c.firstByte.Load()), c.resp.StatusCode)
	at, err := c.read(ctx)
	c.resp.Body.Close()
	s.End(at, err)
}

// post sends the request and keeps the answer, unless that is a refusal. It
// does not go through go-openai's client, which refuses some names of models.
func (c *call) post(ctx context.Context, api string) error {
	url := c.h.base + "/completions"
	if api == "chat" {
		url = c.h.base + "/chat/completions"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Cache-Control", "no-cache")
	resp, err := doer{c.h}.Do(r)
	if err != nil || resp.StatusCode < 400 {
		return err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	refused := refusal(resp.StatusCode, resp.Status, said(raw))
	refused.RetryAfter = retryAfter(resp)
	return refused
}

// said is what a refusal says: OpenAI's error as go-openai reads it, what other
// servers write in its place, or the whole body.
func said(raw []byte) string {
	var told openai.ErrorResponse
	if json.Unmarshal(raw, &told) == nil && told.Error != nil && told.Error.Message != "" {
		return told.Error.Message
	}
	var event Event
	var usage Usage
	if walk(raw, &event, &usage) == nil && event.Err != "" {
		return event.Err
	}
	return string(bytes.TrimSpace(raw))
}

// call is one request on its way through net/http.
type call struct {
	h       *HTTP
	s       Stream
	timeout time.Duration
	cancel  context.CancelCauseFunc
	body    []byte // dropped when the answer begins
	resp    *http.Response

	// Of the attempt under way. All but firstByte and wrote belong to the
	// goroutine that sends.
	conn      *stampedConn // nil over HTTP/2
	reused    bool
	firstByte atomic.Int64
	wrote     atomic.Int64 // over HTTP/2: when the request's head was written

	sent      time.Duration // of the first attempt; 0: nothing was written
	conns     int           // attempts that got a connection, redirects included
	redirects int
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
			c.conns++
			c.reused = info.Reused
			if c.conn = stamped(info.Conn); c.h.config.H2C || overHTTP2(info.Conn) {
				c.conn = nil
			}
			if c.conn != nil {
				c.conn.arm()
			}
		},
		WroteHeaders: func() { c.wrote.CompareAndSwap(0, int64(now())) },
		GotFirstResponseByte: func() {
			at := now()
			if c.conn != nil {
				at = time.Duration(c.conn.read.Load())
			}
			c.firstByte.Store(int64(at))
		},
	}
}

// noteSent keeps the stamp of the first attempt that wrote something.
func (c *call) noteSent() {
	if c.sent != 0 || c.conns == 0 {
		return
	}
	if c.conn != nil {
		c.sent = time.Duration(c.conn.wrote.Load())
	} else {
		c.sent = time.Duration(c.wrote.Load())
	}
}

// do sends r, once more on a fresh connection when a kept-alive one turns out
// to be dead before any byte of an answer. net/http retries some of these
// itself; the trace counts both.
func (c *call) do(h *HTTP, r *http.Request) (*http.Response, error) {
	resp, err := h.pick().Do(r)
	if err != nil && c.reused && c.firstByte.Load() == 0 && r.Context().Err() == nil {
		if _, ours := errors.AsType[*Error](err); !ours {
			r.Body = c.payload()
			resp, err = h.fresh.Do(r)
		}
	}
	return resp, err
}

// began tells the stream what is known once an answer's head was read or the
// request failed.
func (c *call) began() {
	c.body = nil
	c.noteSent()
	if n := c.conns - 1 - c.redirects; n > 0 {
		if s, ok := c.s.(Retried); ok {
			for range n {
				s.Reconnect()
			}
		}
		// Over HTTP/2 a server may ask for a new connection at any time; that
		// is no reason to give up sharing one.
		if c.conn != nil && !c.h.freshOnly.Swap(true) && c.h.config.OnFresh != nil {
			c.h.config.OnFresh("the server closed a kept-alive connection that was about to be used again; from now on each request gets a connection of its own")
		}
	}
	if c.sent != 0 {
		c.s.Sent(c.sent)
	}
}

// give puts the prebuilt body into r.
func (c *call) give(r *http.Request) {
	r.ContentLength = int64(len(c.body))
	r.Body = c.payload()
	r.GetBody = func() (io.ReadCloser, error) { return c.payload(), nil }
}

// payload is a request body that lets go of its bytes when it was sent: a long
// prompt need not wait in memory for its answer. HTTP/2 may close a body from
// one goroutine while it reads it in another.
type payload struct {
	mu   sync.Mutex
	rest bytes.Reader
}

func (c *call) payload() *payload {
	p := new(payload)
	p.rest.Reset(c.body)
	return p
}

func (p *payload) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rest.Read(b)
}

func (p *payload) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest.Reset(nil)
	return nil
}

// reader is what reading one stream needs; it is used again and again.
type reader struct {
	split splitter
	event Event
	usage Usage
}

var readers = sync.Pool{New: func() any { return new(reader) }}

// read reads the answer's body to its end and returns when that was.
func (c *call) read(ctx context.Context) (time.Duration, error) {
	rd := readers.Get().(*reader)
	defer readers.Put(rd)
	rd.split.reset()
	body, err := plain(c.resp)
	if e, ok := errors.AsType[*Error](err); ok {
		return c.stamp(), e
	} else if err != nil {
		return c.stamp(), c.broken(ctx, err)
	}
	frames := 0
	ended := time.Duration(0) // when [DONE] or an error event came
	for {
		room, err := rd.split.free()
		if err != nil {
			return c.stamp(), &Error{Kind: metric.FailProtocol, Message: err.Error()}
		}
		n, readErr := body.Read(room)
		at := c.stamp()
		rd.split.advance(n)
		for ended == 0 {
			kind, data, cut, err := rd.next(readErr == io.EOF)
			if err != nil {
				return at, &Error{Kind: metric.FailProtocol, Message: err.Error()}
			}
			if kind == frameNone {
				break
			}
			frames++
			if err := rd.parse(kind, data); err != nil && cut {
				return at, &Error{Kind: metric.FailTruncated, Message: "the stream ended in the middle of an event"}
			} else if err != nil {
				return at, err
			}
			c.s.Event(at, &rd.event)
			if rd.event.Done || rd.event.Err != "" {
				ended = at
				defer c.linger(ctx)()
			}
		}
		switch {
		case readErr == nil:
			if ended != 0 { // what follows is of no interest
				rd.split.reset()
			}
		case ended != 0:
			return ended, nil
		case readErr == io.EOF:
			if frames == 0 && len(rd.split.junk) > 0 {
				return at, rd.notStream()
			}
			// A server that sees its client give up may still end the stream in
			// order, and that may be read first.
			return at, c.ended(ctx)
		default: // perhaps without a read, whose stamp would be an old one
			return c.h.config.Now(), c.broken(ctx, readErr)
		}
	}
}

// next is the next frame; where the stream is over, also one that its end cut.
func (rd *reader) next(over bool) (kind frameKind, data []byte, cut bool, err error) {
	kind, data, err = rd.split.next()
	if cut = kind == frameNone && err == nil && over; cut {
		kind, data, err = rd.split.finish()
	}
	return kind, data, cut, err
}

// linger bounds how long the rest of an answer that ended is waited for, until
// stop.
func (c *call) linger(ctx context.Context) (stop func()) {
	rest, stop := context.WithTimeout(ctx, linger)
	context.AfterFunc(rest, func() { c.cancel(errLinger) })
	return stop
}

// stamp is when the bytes read last arrived.
func (c *call) stamp() time.Duration {
	if c.conn != nil {
		return time.Duration(c.conn.read.Load())
	}
	return c.h.config.Now()
}

var doneMark = []byte("[DONE]")

// parse reads one frame into rd.event.
func (rd *reader) parse(kind frameKind, data []byte) error {
	rd.event = Event{}
	data = bytes.TrimSpace(data)
	switch {
	case kind == frameError:
		w := walker{scanner: scanner{b: data}, e: &rd.event, u: &rd.usage}
		if err := w.failure(); err != nil || rd.event.Err == "" {
			rd.event.Err = bounded(string(data))
		}
		if rd.event.Err == "" {
			rd.event.Err = "an error without a message"
		}
	case bytes.Equal(data, doneMark):
		rd.event.Done = true
	case len(data) > 0:
		if err := walk(data, &rd.event, &rd.usage); err != nil {
			return &Error{Kind: metric.FailProtocol, Message: fmt.Sprintf("an event is %v: %s", err, data[:min(len(data), 300)])}
		}
	}
	return nil
}

// notStream is what to say of a body that held no event: the error in it, if
// it is one.
func (rd *reader) notStream() error {
	junk := bytes.TrimSpace(rd.split.junk)
	if walk(junk, &rd.event, &rd.usage) == nil && rd.event.Err != "" {
		return &Error{Kind: metric.FailStream, Message: rd.event.Err}
	}
	return &Error{Kind: metric.FailProtocol, Message: "the answer is not an event stream: " + string(junk)}
}

// broken is why a body could not be read to its end.
func (c *call) broken(ctx context.Context, err error) error {
	if e := c.ended(ctx); e != nil {
		return e
	}
	return &Error{Kind: metric.FailTruncated, Message: "the connection broke in the middle of the answer: " + err.Error()}
}

// ended is the error of a request that our side ended, else nil.
func (c *call) ended(ctx context.Context) error {
	switch {
	case context.Cause(ctx) == errTimeout:
		return &Error{Kind: metric.FailTimeout, Message: fmt.Sprintf("no end within %v", c.timeout)}
	case ctx.Err() != nil:
		return &Error{Kind: metric.FailCanceled, Message: "the run was stopped"}
	}
	return nil
}

// failure is why there was no answer to read.
func (c *call) failure(ctx context.Context, err error) error {
	if e := c.ended(ctx); e != nil {
		return e
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return unreached(err, c.conns)
}

// markup and title find what a page says that a proxy, or a server of another
// kind, answered with.
var (
	markup = regexp.MustCompile(`(?is)^\s*(<!doctype html|<html)`)
	title  = regexp.MustCompile(`(?is)<title[^>]*>([^<]*)</title>`)
	tag    = regexp.MustCompile(`(?s)<[^>]*>`)
)

// retryAfter is how long a refusal asks to wait: in seconds, or until a date, as
// RFC 9110, section 10.2.3, has it.
func retryAfter(resp *http.Response) time.Duration {
	text := resp.Header.Get("Retry-After")
	if s, err := strconv.Atoi(text); err == nil {
		return time.Duration(min(max(s, 0), int(metric.MaxRetryAfter/time.Second))) * time.Second
	}
	until, err := http.ParseTime(text)
	now, err2 := http.ParseTime(resp.Header.Get("Date")) // by the server's clock
	if err != nil || err2 != nil {
		return 0
	}
	return min(max(until.Sub(now), 0), metric.MaxRetryAfter)
}

// refusal is an HTTP status that is no success, in the server's words.
func refusal(code int, status, words string) *Error {
	if words = strings.TrimSpace(words); words == "" {
		words = status
	}
	if markup.MatchString(words) {
		said := tag.ReplaceAllString(words, " ")
		if m := title.FindStringSubmatch(words); m != nil && strings.TrimSpace(m[1]) != "" {
			said = m[1]
		}
		words = "an HTML page: " + cmp.Or(strings.Join(strings.Fields(html.UnescapeString(said)), " "), status)
	}
	return &Error{Kind: metric.FailStatus, Status: code, Message: bounded(words)}
}

// unreached is why no answer came over the network. conns says how many
// connections were had.
func unreached(err error, conns int) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the method and the URL, which may be long
	}
	words := err.Error()
	kind := metric.FailLocal
	switch {
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EADDRINUSE):
		words = "this machine ran out of local ports, which is not the server's fault: " + words
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		words = "this machine ran out of file descriptors, which is not the server's fault (raise ulimit -n): " + words
	case errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.ENOMEM):
		words = "this machine ran out of socket memory, which is not the server's fault: " + words
	case untrusted(err):
		kind = metric.FailConnect
		words = "the server's certificate is not accepted: " + strings.TrimPrefix(words, "tls: failed to verify certificate: ")
	case conns > 0:
		kind = metric.FailConnect
		words = "the server closed the connection before it answered: " + words
	default:
		kind = metric.FailConnect
	}
	return &Error{Kind: kind, Message: bounded(words), Err: err}
}

// untrusted says whether a server's certificate did not do.
func untrusted(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}
