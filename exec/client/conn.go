package client

import (
	"crypto/tls"
	"net"
	"sync/atomic"
	"time"
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
}

// arm makes the connection record the time of the next write.
func (c *stampedConn) arm() {
	c.wrote.Store(0)
	c.armed.Store(true)
}

func (c *stampedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read.Store(int64(c.now()))
	return n, err
}

func (c *stampedConn) Write(b []byte) (int, error) {
	if c.armed.CompareAndSwap(true, false) {
		c.wrote.Store(int64(c.now()))
	}
	return c.Conn.Write(b)
}

// stamped returns the stampedConn inside conn; nil if there is none.
func stamped(conn net.Conn) *stampedConn {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	c, _ := conn.(*stampedConn)
	return c
}

// overHTTP2 reports whether the connection uses HTTP/2, and so carries many streams at once.
func overHTTP2(conn net.Conn) bool {
	t, ok := conn.(*tls.Conn)
	return ok && t.ConnectionState().NegotiatedProtocol == "h2"
}
