// Package memnet is a network in memory. It has a listener and buffered connections that a server
// and a client share without a socket. In a testing/synctest bubble, a goroutine that waits for a
// socket would stop the clock. Here every waiting goroutine is durably blocked, so the clock goes
// on. Create a listener and its connections in the same bubble.
//
// The package stands in for loopback and not for a real network. It has no latency, loss or
// reordering. The reader's buffers decide how a write is cut into reads.
package memnet

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Failed connections return the errors of a kernel, so that callers can test with errors.Is.
var (
	errRefused error = syscall.ECONNREFUSED
	errBroken  error = syscall.EPIPE
)

// window is the size of the buffer for one direction of a connection, in bytes. A write waits if
// the buffer is full, as with a socket.
const window = 256 << 10

// Network is a loopback interface in memory, with listeners by address. The zero Network has no
// listener. Each synctest bubble needs listeners of its own, but bubbles may share a Network.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*Listener
	taken     int // ports
}

// Listen works like net.Listen. For port 0 it chooses a port that was never used before.
func (n *Network) Listen(_, address string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if host, ok := strings.CutSuffix(address, ":0"); ok {
		n.taken++
		address = fmt.Sprintf("%s:%d", host, 10_000+n.taken)
	}
	if n.listeners[address] != nil {
		return nil, &net.OpError{Op: "listen", Net: "memory", Addr: addr(address), Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}
	}
	if n.listeners == nil {
		n.listeners = map[string]*Listener{}
	}
	l := Listen()
	l.addr = addr(address)
	l.leave = func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.listeners, address)
	}
	n.listeners[address] = l
	return l, nil
}

// DialContext connects to the listener with the given address. The connection is refused if no
// listener has the address.
func (n *Network) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[address]
	n.mu.Unlock()
	if l == nil {
		return nil, refused(addr(address))
	}
	return l.DialContext(ctx, network, address)
}

// Listener is a net.Listener with connections in memory.
type Listener struct {
	addr  addr
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
	leave func() // removes the listener from its network; nil if it has none
}

// Listen returns a listener that belongs to no Network.
func Listen() *Listener {
	return &Listener{addr: "memory.test:80", conns: make(chan net.Conn), done: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. It does not close the connections.
func (l *Listener) Close() error {
	l.once.Do(func() {
		close(l.done)
		if l.leave != nil {
			l.leave()
		}
	})
	return nil
}

// Addr implements net.Listener. The address exists only for DialContext of this listener or of its
// network.
func (l *Listener) Addr() net.Addr { return l.addr }

type addr string

func (addr) Network() string  { return "memory" }
func (a addr) String() string { return string(a) }

func refused(a addr) error {
	return &net.OpError{Op: "dial", Net: "memory", Addr: a, Err: os.NewSyscallError("connect", errRefused)}
}

// DialContext connects to the listener, with any address. Its signature is that of
// http.Transport.DialContext. After the listener is closed, the connection is refused.
func (l *Listener) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := pipe()
	select {
	case <-l.done:
		return nil, refused(l.addr)
	default:
	}
	select {
	case l.conns <- server:
		return client, nil
	case <-l.done:
		return nil, refused(l.addr)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pipe returns the two ends of a buffered connection. A write waits for the reader only if the
// window is full; a write to net.Pipe always waits.
func pipe() (net.Conn, net.Conn) {
	a, b := newHalf(), newHalf()
	return &conn{in: a, out: b}, &conn{in: b, out: a}
}

// conn is one end of a connection. It reads from in and writes to out, the two directions of the
// connection.
type conn struct{ in, out *half }

func (c *conn) Read(b []byte) (int, error)  { return c.in.read(b) }
func (c *conn) Write(b []byte) (int, error) { return c.out.write(b) }

// Close ends both directions of the connection. The peer can read the buffered bytes and then gets
// io.EOF, but can no longer write.
func (c *conn) Close() error {
	c.out.closeWrite()
	c.in.closeRead()
	return nil
}

// Pending reports whether a read would return at once.
func (c *conn) Pending() bool {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	return len(c.in.data) > c.in.start || c.in.ended
}

// CloseWrite ends the sending direction. The peer then reads EOF.
func (c *conn) CloseWrite() error {
	c.out.closeWrite()
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return addr("memory") }
func (c *conn) RemoteAddr() net.Addr { return addr("memory") }

func (c *conn) SetDeadline(t time.Time) error {
	c.in.reading.set(c.in, t)
	c.out.writing.set(c.out, t)
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.reading.set(c.in, t)
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.out.writing.set(c.out, t)
	return nil
}

// half is one direction.
type half struct {
	mu      sync.Mutex
	changed *sync.Cond // anything below did
	data    []byte
	start   int  // data[:start] is read
	ended   bool // the writer is done
	gone    bool // the reader is

	reading, writing deadline
}

func newHalf() *half {
	h := new(half)
	h.changed = sync.NewCond(&h.mu)
	return h
}

func (h *half) read(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.gone:
			return 0, net.ErrClosed
		case h.reading.expired:
			return 0, os.ErrDeadlineExceeded
		case len(b) == 0:
			return 0, nil
		case len(h.data) > h.start:
			n := copy(b, h.data[h.start:])
			h.start += n
			if h.start == len(h.data) {
				h.data, h.start = h.data[:0], 0
			}
			h.changed.Broadcast()
			return n, nil
		case h.ended:
			return 0, io.EOF
		}
		h.changed.Wait()
	}
}

func (h *half) write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	written := 0
	for {
		room := window - (len(h.data) - h.start)
		switch {
		case h.ended:
			return written, net.ErrClosed
		case h.gone:
			return written, errBroken
		case h.writing.expired:
			return written, os.ErrDeadlineExceeded
		case len(b) == 0:
			return written, nil
		case room > 0:
			if h.start > 0 && len(h.data)+len(b) > cap(h.data) {
				h.data = h.data[:copy(h.data, h.data[h.start:])]
				h.start = 0
			}
			n := min(room, len(b))
			h.data = append(h.data, b[:n]...)
			b, written = b[n:], written+n
			h.changed.Broadcast()
			continue
		}
		h.changed.Wait()
	}
}

func (h *half) closeWrite() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	h.writing.stop()
	h.changed.Broadcast()
}

func (h *half) closeRead() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone = true
	h.reading.stop()
	h.changed.Broadcast()
}

// deadline is a time after which a read or a write fails.
type deadline struct {
	timer   *time.Timer
	expired bool
	changes int // number of calls of the method set; tells an old timer that it is out of date
}

// set changes the deadline of h. The zero time removes the deadline.
func (d *deadline) set(h *half, t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d.stop()
	d.changes++
	d.expired = false
	if t.IsZero() {
		return
	}
	wait := time.Until(t)
	if wait <= 0 {
		d.expired = true
		h.changed.Broadcast()
		return
	}
	change := d.changes
	d.timer = time.AfterFunc(wait, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if d.changes == change {
			d.expired = true
			h.changed.Broadcast()
		}
	})
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}
