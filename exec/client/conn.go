package client

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/tokgate/tokgate/exec/direct"
)

// stampedConn records when bytes were read and written, as close to the system call as possible.
// Otherwise the time that tokgate itself spends in buffers, TLS and HTTP would count as the
// server's.
//
// The times are not used over HTTP/2, because many streams then share a connection.
type stampedConn struct {
	net.Conn
	now   func() time.Duration
	read  atomic.Int64 // time at which the last read returned
	wrote atomic.Int64 // time of the first write after the call of arm; 0 if there was none
	armed atomic.Bool

	plain, kept bool        // no TLS; carried an answer before. arm sets them for the request
	early       atomic.Bool // bytes of an answer were there before the request was written
}

// arm prepares the connection for a request: it records the time of the next write, and looks whether
// bytes of an answer are there before it.
func (c *stampedConn) arm(info httptrace.GotConnInfo) {
	_, secure := info.Conn.(*tls.Conn) // its session tickets may wait
	c.plain, c.kept = !secure, info.Reused
	c.early.Store(false)
	c.wrote.Store(0)
	c.armed.Store(true)
}

// errUnasked is the error of a write to a kept-alive connection on which bytes wait. net/http then
// sends the request on another connection, because nothing of it was written.
var errUnasked = errors.New("the server sent something before it was asked")

// unasked reports whether the connection was closed unused, with errUnasked.
func (c *stampedConn) unasked() bool { return c.kept && c.early.Load() }

func (c *stampedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read.Store(int64(c.now()))
	return n, err
}

func (c *stampedConn) Write(b []byte) (int, error) {
	if c.armed.CompareAndSwap(true, false) {
		if c.plain && direct.Pending(c.Conn) {
			if c.early.Store(true); c.kept {
				return 0, errUnasked
			}
		}
		c.wrote.Store(max(int64(c.now()), 1))
	}
	return c.Conn.Write(b)
}

func stamped(conn net.Conn) *stampedConn {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	c, _ := conn.(*stampedConn)
	return c
}

func overHTTP2(conn net.Conn) bool {
	t, ok := conn.(*tls.Conn)
	return ok && t.ConnectionState().NegotiatedProtocol == "h2"
}
