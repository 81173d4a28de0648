package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// line is a connection of the direct path, which carries one call at a time. Its watcher reads the
// bytes that arrive. The lock mu protects the current call.
type line struct {
	d      *direct
	conn   net.Conn
	single bool          // the connection can carry only one answer
	since  time.Duration // time at which the connection became idle; direct's lock protects it

	mu   sync.Mutex
	call *call   // current call; nil if no call uses the connection
	rd   *reader // parser of the current answer; nil if no answer is being read
	used bool    // an earlier call was answered on this connection
	gone bool
	// early is set if bytes were there before the current call's request was written.
	early bool
	// asked is the time at which the last write of the current call's request began; 0 while a part
	// of the request is left for a later write.
	asked atomic.Int64
	// aside reads an answer that is not a plain stream. It replaces the goroutine that watches the
	// connection. It is nil if no such answer is being read.
	aside func()

	watched // state for the poller, if one reads this connection
}

// start sends a call on this connection, which is new or was idle. It returns false if the connection
// is closed, or if the server sent something while it was idle; then the caller can use another one.
func (l *line) start(c *call, wire []byte, idle bool) bool {
	l.mu.Lock()
	early := !l.gone && pending(l.conn)
	if early && idle {
		l.close()
	}
	if l.gone {
		l.mu.Unlock()
		return false
	}
	l.call, l.early = c, early
	l.asked.Store(0)
	c.line.Store(l)
	c.conns++
	c.reused, c.head, c.tried, c.interim = l.used, nil, 0, false
	c.firstByte.Store(0)
	if c.sent == 0 {
		c.sent = l.d.h.config.Now()
	}
	stopped := c.ctx.Err() != nil
	l.mu.Unlock()
	if stopped { // cancelled before it got a connection
		l.abort(c)
		return true
	}
	if _, never := l.conn.(interruptible); never || len(wire) <= mostInline {
		l.write(wire)
	} else {
		go l.write(wire)
	}
	return true
}

// mostInline is the largest piece of a request, in bytes, that is written at once. It is also the
// longest request that the sending goroutine writes itself. It may have to wait until the server
// reads, so another goroutine writes longer requests.
const mostInline = 64 << 10

// write sends a request in pieces. An error is ignored. It may mean that the server refused the
// request before it had read all of it, and then the server's answer says why.
func (l *line) write(wire []byte) {
	for len(wire) > 0 {
		if len(wire) <= mostInline {
			l.asked.Store(max(int64(l.d.h.config.Now()), 1))
		}
		n, err := l.conn.Write(wire[:min(len(wire), mostInline)])
		wire = wire[n:]
		switch {
		case err == errFull:
			l.asked.Store(0)
			go func() {
				time.Sleep(time.Millisecond)
				l.write(wire)
			}()
			return
		case err != nil:
			return
		}
	}
}

// interruptible is a connection whose Read and Write never block. A goroutine may wait for its
// data, and interrupt ends that wait. If the kernel takes no more bytes, Write returns errFull.
type interruptible interface{ interrupt() }

var errFull = errors.New("the server reads slowly")

// room returns the memory for the next read. Only the goroutine that watches the connection calls
// it, and it holds the lock.
func (l *line) room() []byte {
	if l.rd == nil {
		l.use(readers.Get().(*reader))
	}
	room, _ := l.rd.split.free() // the method body always leaves a few free bytes
	return room
}

// use makes the parser rd read what arrives on the connection. The next byte begins an event.
func (l *line) use(rd *reader) {
	rd.split.reset()
	rd.split.notFirst = l.call != nil && l.call.frames > 0
	l.rd = rd
}

// arrived handles the bytes b, which were read from the connection. The caller holds the lock.
func (l *line) arrived(b []byte, at time.Duration, err error) {
	switch c := l.call; {
	case l.gone:
	case c == nil: // without a request, the server sent bytes or closed
		l.d.drop(l)
		l.close()
	case c.resp == nil:
		l.head(c, b, at, err)
	default:
		l.body(c, b, at, err)
	}
}

// maxHead is the largest size of an answer's head in bytes, as in net/http.
const maxHead = 10 << 20

// errMore means that the rest of an answer's head has not arrived yet.
var errMore = errors.New("more to come")

// head reads the head of an answer from the bytes b. The bytes after it belong to the body.
func (l *line) head(c *call, b []byte, at time.Duration, err error) {
	if len(b) > 0 {
		c.firstByte.CompareAndSwap(0, max(int64(at), 1))
	}
	if c.firstByte.Load() == 0 {
		l.fail(c, err)
		return
	}
	c.head = append(c.head, b...)
	if err == nil && len(c.head) < min(2*c.tried, maxHead) && !headEnds(c.head[max(len(c.head)-len(b)-3, 0):]) {
		return
	}
	known := l.d.opening.Load()
	if known == nil || !bytes.HasPrefix(c.head, known.wire) {
		resp, n, failed := l.parse(c, err)
		switch {
		case failed != nil && len(c.head) >= maxHead:
			failed = fmt.Errorf("net/http: server response headers exceeded %d bytes; aborted", maxHead)
		case failed == errMore:
			c.tried = len(c.head)
			return
		}
		if failed != nil {
			l.fail(c, fmt.Errorf("net/http: HTTP/1.x transport connection broken: %w", failed))
			return
		}
		if whole := c.head; !plainStream(resp) {
			l.aside = func() { l.read(c, whole, at) }
			return
		}
		known = &opening{c.head[:n:n], resp, frameFor(resp)}
		resp.Body = http.NoBody // the parsed head is kept, its body is not
		l.d.opening.Store(known)
		l.d.h.noteGateway(resp.Header)
	}
	rest := c.head[len(known.wire):]
	c.head, c.resp, c.frame = nil, known.resp, known.frame
	c.began()
	if err := c.answers(); err != nil {
		l.finish(c, false)
		c.end(at, err)
		return
	}
	for l.call == c {
		room := l.room()
		n := copy(room, rest)
		if rest = rest[n:]; len(rest) > 0 {
			l.body(c, room[:n], at, nil)
			continue
		}
		l.body(c, room[:n], at, err)
		break
	}
}

// opening is the head of a plain stream, parsed. Servers often repeat a head exactly, because its
// date counts only whole seconds, so it is parsed only once.
type opening struct {
	wire  []byte
	resp  *http.Response
	frame frame
}

// headEnds reports whether b contains an empty line, which ends the head of an answer.
func headEnds(b []byte) bool {
	return bytes.Contains(b, []byte("\n\n")) || bytes.Contains(b, []byte("\n\r\n"))
}

// plainStream reports whether an answer succeeded and its body is not compressed.
func plainStream(r *http.Response) bool {
	encoding := strings.ToLower(r.Header.Get("Content-Encoding"))
	return r.StatusCode >= 200 && r.StatusCode < 300 && (encoding == "" || encoding == "identity")
}

// headReader reads the head of an answer from memory.
type headReader struct {
	bytes.Reader
	end error // error to return after the last byte in memory
	br  *bufio.Reader
}

func (r *headReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err == io.EOF {
		err = r.end
	}
	return n, err
}

var headReaders = sync.Pool{New: func() any {
	r := new(headReader)
	r.br = bufio.NewReader(r)
	return r
}}

// parse parses the head of an answer as far as it has arrived. If the head is complete, n is its
// length in bytes; if not, the error is errMore. It skips interim answers (status 1xx).
func (l *line) parse(c *call, end error) (resp *http.Response, n int, err error) {
	r := headReaders.Get().(*headReader)
	defer headReaders.Put(r)
	for r.end = end; ; {
		here := c.head
		// Parse only whole lines: the parser takes the end of its input for a line's end.
		if end == nil {
			here, r.end = here[:bytes.LastIndexByte(here, '\n')+1], errMore
		}
		r.Reset(here)
		r.br.Reset(r)
		resp, err = http.ReadResponse(r.br, nil)
		n = len(here) - r.Len() - r.br.Buffered()
		if err != nil || resp.StatusCode < 100 || resp.StatusCode > 199 || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, n, err
		}
		c.head, c.interim = c.head[n:], true
	}
}

// body handles the bytes b of an answer's body. The bytes are in the memory that the method room
// returned.
func (l *line) body(c *call, b []byte, at time.Duration, err error) {
	n, used, broken := c.frame.strip(b)
	l.rd.split.advance(n)
	over := c.frame.kind == frameOver
	switch {
	case broken != nil:
		err = broken
	case over:
		err = io.EOF
	case err != nil:
		err = c.frame.cut(err)
	}
	end, done, failed := c.take(l.rd, at, err)
	if !done {
		if _, full := l.rd.room(); full != nil {
			end, done, failed = at, true, full
		}
	}
	if done {
		l.finish(c, over && used == len(b) && !c.resp.Close && broken == nil)
		c.end(end, failed)
	}
}

// finish ends the call c. If its answer was read to the end, the connection may carry another call.
// Otherwise it is closed.
func (l *line) finish(c *call, whole bool) {
	l.call, l.used = nil, true
	if l.rd != nil {
		l.rd.split.reset()
	}
	if !whole || l.asked.Load() == 0 || l.single || l.d.h.freshOnly.Load() {
		l.close()
		return
	}
	l.rest()
	l.d.keep(l)
}

// fail ends a call that got no answer. But if it used a kept-alive connection that was dead
// already, fail sends the request again on a fresh one.
func (l *line) fail(c *call, err error) {
	l.call = nil
	l.close()
	if c.reused && c.firstByte.Load() == 0 && c.ctx.Err() == nil {
		go l.d.carry(c, true)
		return
	}
	c.began()
	c.end(l.d.h.config.Now(), c.failure(err))
}

// abort ends a call whose context ended.
func (l *line) abort(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.call != c:
	case l.aside != nil:
		if s, ok := l.conn.(interruptible); ok {
			s.interrupt()
		} else {
			l.conn.Close()
		}
	case c.resp == nil:
		l.fail(c, c.ctx.Err())
	default:
		if l.rd == nil { // the answer has no bytes yet, so there is no reader
			l.room()
		}
		end, _, err := c.take(l.rd, l.d.h.config.Now(), c.ctx.Err())
		l.finish(c, false)
		c.end(end, err)
	}
}

// close closes the connection for good. The caller holds the lock.
func (l *line) close() {
	if !l.gone {
		l.gone = true
		l.unwatch()
		l.conn.Close()
		l.rest()
	}
}

// shut closes the connection if it carries no call.
func (l *line) shut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.call == nil {
		l.close()
	}
}

// read reads an answer that is not a plain stream, with net/http's parser. The parameter here holds
// the bytes that were already read. The caller must not hold the lock.
func (l *line) read(c *call, here []byte, at time.Duration) {
	from, err := waiting(l.conn)
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.aside = nil
		l.fail(c, err)
		return
	}
	if from != l.conn {
		defer from.Close()
	}
	conn := &stampedConn{Conn: from, now: l.d.h.config.Now}
	conn.read.Store(int64(at))
	br := bufio.NewReader(io.MultiReader(bytes.NewReader(here), conn))
	resp, err := http.ReadResponse(br, nil)
	var body *ending
	c.conn = conn
	if err == nil && resp.StatusCode/100 == 3 {
		l.redirected(c, resp)
		return
	}
	if err == nil {
		l.d.h.noteGateway(resp.Header)
		body = &ending{ReadCloser: resp.Body}
		resp.Body = body
		if c.resp = resp; resp.StatusCode >= 400 {
			if err = limit(resp, maxWords); err == nil {
				err = refused(resp)
			}
		}
	}
	end, err := c.answered(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.aside = nil
	l.finish(c, body != nil && body.over && !resp.Close && resp.StatusCode >= 200 && br.Buffered() == 0 && c.ctx.Err() == nil)
	c.end(end, err)
}

// redirected hands this call, with the redirect that was read, and all later calls to net/http,
// because it follows redirects.
func (l *line) redirected(c *call, resp *http.Response) {
	l.d.off.Store(true)
	c.moved = resp
	c.standard()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.call, l.aside = nil, nil
	l.close()
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

// watch starts to wait for bytes on the connection. If possible the poller waits, which watches
// many kernel sockets at once. Otherwise a goroutine reads.
func watch(l *line) {
	if !l.poll() {
		go l.watch()
	}
}

// watch reads bytes from the connection until it is closed.
func (l *line) watch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.gone {
		room := l.room()
		l.mu.Unlock()
		n, err := l.conn.Read(room)
		at := l.d.h.config.Now()
		l.mu.Lock()
		l.arrived(room[:n], at, err)
		if aside := l.aside; aside != nil {
			l.mu.Unlock()
			aside()
			l.mu.Lock()
		}
	}
	if l.rd != nil { // a closed connection no longer needs its reader
		readers.Put(l.rd)
	}
}
