package direct

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

// line is a connection, which carries one exchange at a time. Its watcher reads the bytes that arrive.
// The lock mu protects the current exchange.
type line struct {
	p      *Pool
	conn   net.Conn
	single bool          // the connection can carry only one answer
	since  time.Duration // time at which the connection became idle; the pool's lock protects it

	mu   sync.Mutex
	x    *Exchange // current exchange; nil if none uses the connection
	buf  Buffer    // nil if no answer is being read
	mid  bool      // the body goes on between two events, in another Buffer
	used bool      // an earlier exchange was answered on this connection
	gone bool
	// early is set if bytes were there before the current request was written.
	early bool
	// asked is the time at which the last write of the current request began; 0 while a part of the
	// request is left for a later write.
	asked atomic.Int64
	// aside reads an answer that is not a plain stream. It replaces the goroutine that watches the
	// connection. It is nil if no such answer is being read.
	aside func()

	watched // state for the poller, if one reads this connection
}

// start sends a request on this connection, which is new or was idle. It returns false if the
// connection is closed, or if the server sent something while it was idle; then the caller can use
// another one.
func (l *line) start(x *Exchange, wire []byte, idle bool) bool {
	l.mu.Lock()
	early := !l.gone && Pending(l.conn)
	if early && idle {
		l.close()
	}
	if l.gone {
		l.mu.Unlock()
		return false
	}
	l.x, l.early, l.mid = x, early, false
	l.asked.Store(0)
	x.line.Store(l)
	x.Conns++
	x.Reused, x.Interim, x.head, x.tried = l.used, false, nil, 0
	x.First.Store(0)
	if x.Sent == 0 {
		x.Sent = l.p.Now()
	}
	stopped := x.Ctx.Err() != nil
	l.mu.Unlock()
	if stopped { // cancelled before it got a connection
		l.abort(x)
		return true
	}
	if _, never := l.conn.(interruptible); never || len(wire) <= MostInline {
		l.write(wire)
	} else {
		go l.write(wire)
	}
	return true
}

// MostInline is the largest piece of a request, in bytes, that is written at once. It is also the
// longest request that the sending goroutine writes itself. It may have to wait until the server
// reads, so another goroutine writes longer requests.
const MostInline = 64 << 10

// write sends a request in pieces. An error is ignored. It may mean that the server refused the
// request before it had read all of it, and then the server's answer says why.
func (l *line) write(wire []byte) {
	for len(wire) > 0 {
		if len(wire) <= MostInline {
			l.asked.Store(max(int64(l.p.Now()), 1))
		}
		n, err := l.conn.Write(wire[:min(len(wire), MostInline)])
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
	if l.buf == nil {
		l.use(l.p.Buffers.Get().(Buffer))
	}
	room, _ := l.buf.Room() // the method body always leaves a few free bytes
	return room
}

func (l *line) use(b Buffer) {
	b.Reset(l.mid)
	l.buf = b
}

// arrived handles the bytes b, which were read from the connection. The caller holds the lock.
func (l *line) arrived(b []byte, at time.Duration, err error) {
	switch x := l.x; {
	case l.gone:
	case x == nil: // without a request, the server sent bytes or closed
		l.p.drop(l)
		l.close()
	case x.resp == nil:
		l.head(x, b, at, err)
	default:
		l.body(x, b, at, err)
	}
}

const maxHead = 10 << 20

// errMore means that the rest of an answer's head has not arrived yet.
var errMore = errors.New("more to come")

// head reads the head of an answer from the bytes b. The bytes after it belong to the body.
func (l *line) head(x *Exchange, b []byte, at time.Duration, err error) {
	if len(b) > 0 {
		x.First.CompareAndSwap(0, max(int64(at), 1))
	}
	if x.First.Load() == 0 {
		l.fail(x, err)
		return
	}
	had := len(x.head)
	x.head = append(x.head, b...)
	started := bytes.IndexByte(x.head, '\n') >= had // the first line is whole, and may be wrong
	if err == nil && !started && len(x.head) < min(2*x.tried, maxHead) && !headEnds(x.head[max(had-3, 0):]) {
		return
	}
	known := l.p.last.Load()
	if known == nil || !bytes.HasPrefix(x.head, known.wire) {
		resp, n, failed := x.parse(err)
		switch {
		case failed != nil && len(x.head) >= maxHead:
			failed = fmt.Errorf("net/http: server response headers exceeded %d bytes; aborted", maxHead)
		case failed == errMore:
			x.tried = len(x.head)
			return
		}
		if failed != nil {
			l.fail(x, fmt.Errorf("net/http: HTTP/1.x transport connection broken: %w", failed))
			return
		}
		if whole := x.head; !plainStream(resp) {
			l.aside = func() { l.read(x, whole, at) }
			return
		}
		known = &Head{resp, x.head[:n:n], frameFor(resp)}
		resp.Body = http.NoBody // the parsed head is kept, its body is not
		l.p.last.Store(known)
	}
	rest := x.head[len(known.wire):]
	x.head, x.resp, x.frame = nil, known, known.frame
	if err := x.To.Head(known); err != nil {
		l.finish(false)
		x.To.End(at, err)
		return
	}
	for l.x == x {
		room := l.room()
		n := copy(room, rest)
		if rest = rest[n:]; len(rest) > 0 {
			l.body(x, room[:n], at, nil)
			continue
		}
		l.body(x, room[:n], at, err)
		break
	}
}

// Head is the head of a plain stream, parsed. Servers often repeat a head exactly, because its date
// counts only whole seconds, so it is parsed only once, and several exchanges share it.
type Head struct {
	*http.Response // without a body
	wire           []byte
	frame          frame
}

func headEnds(b []byte) bool {
	return bytes.Contains(b, []byte("\n\n")) || bytes.Contains(b, []byte("\n\r\n"))
}

func plainStream(r *http.Response) bool {
	encoding := strings.ToLower(r.Header.Get("Content-Encoding"))
	return r.StatusCode >= 200 && r.StatusCode < 300 && (encoding == "" || encoding == "identity")
}

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
func (x *Exchange) parse(end error) (resp *http.Response, n int, err error) {
	r := headReaders.Get().(*headReader)
	defer headReaders.Put(r)
	for r.end = end; ; {
		here := x.head
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
		x.head, x.Interim = x.head[n:], true
	}
}

// body handles the bytes b of an answer's body. The bytes are in the memory that the method room
// returned.
func (l *line) body(x *Exchange, b []byte, at time.Duration, err error) {
	n, used, broken := x.frame.strip(b)
	l.buf.Advance(n)
	over := x.frame.kind == frameOver
	switch {
	case broken != nil:
		err = broken
	case over:
		err = io.EOF
	case err != nil:
		err = x.frame.cut(err)
	}
	end, done, failed := x.To.Body(l.buf, at, err)
	if !done {
		if _, full := l.buf.Room(); full != nil {
			end, done, failed = at, true, full
		}
	}
	if done {
		l.finish(over && used == len(b) && !x.resp.Close && broken == nil)
		x.To.End(end, failed)
	}
}

// finish ends the current exchange. If its answer was read to the end, the connection may carry
// another one. Otherwise it is closed.
func (l *line) finish(whole bool) {
	l.x, l.used = nil, true
	if l.buf != nil {
		l.buf.Reset(false)
	}
	if !whole || l.asked.Load() == 0 || l.single || l.p.Fresh.Load() {
		l.close()
		return
	}
	l.rest()
	l.p.keep(l)
}

// fail ends an exchange without an answer. But if it used a kept-alive connection that was dead
// already, fail sends the request again on a fresh one.
func (l *line) fail(x *Exchange, err error) {
	l.x = nil
	l.close()
	if x.Reused && x.First.Load() == 0 && x.Ctx.Err() == nil {
		go l.p.Carry(x, true)
		return
	}
	x.To.Fail(err)
}

// abort ends an exchange whose context ended.
func (l *line) abort(x *Exchange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.x != x:
	case l.aside != nil:
		if s, ok := l.conn.(interruptible); ok {
			s.interrupt()
		} else {
			l.conn.Close()
		}
	case x.resp == nil:
		l.fail(x, x.Ctx.Err())
	default:
		if l.buf == nil { // between two events, or the answer has no bytes yet
			l.room()
		}
		end, _, err := x.To.Body(l.buf, l.p.Now(), x.Ctx.Err())
		l.finish(false)
		x.To.End(end, err)
	}
}

func (l *line) close() {
	if !l.gone {
		l.gone = true
		l.unwatch()
		l.conn.Close()
		l.rest()
	}
}

func (l *line) shut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.x == nil {
		l.close()
	}
}

// read has an answer that is not a plain stream read. The parameter here holds the bytes that were
// already read. The caller must not hold the lock.
func (l *line) read(x *Exchange, here []byte, at time.Duration) {
	from, err := waiting(l.conn)
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.aside = nil
		l.fail(x, err)
		return
	}
	if from != l.conn {
		defer from.Close()
	}
	whole, end := x.To.Aside(from, here, at)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.aside = nil
	l.finish(whole)
	if end != nil {
		end()
	}
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
		at := l.p.Now()
		l.mu.Lock()
		l.arrived(room[:n], at, err)
		if aside := l.aside; aside != nil {
			l.mu.Unlock()
			aside()
			l.mu.Lock()
		}
	}
	if l.buf != nil { // a closed connection no longer needs its buffer
		l.p.Buffers.Put(l.buf)
	}
}
