package direct

import (
	"io"
	"net"
	"runtime"
	"testing"
)

// Bytes that wait in a socket are seen, with and without a poller, and they stay there.
func TestPendingOnSockets(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, keep := range []func(net.Conn) net.Conn{unpolled, func(c net.Conn) net.Conn { return c }} {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		conn = keep(conn)
		if Pending(conn) {
			t.Errorf("%T: bytes wait before any was sent", conn)
		}
		if _, err := io.WriteString(server, "x"); err != nil {
			t.Fatal(err)
		}
		for !Pending(conn) {
			runtime.Gosched()
		}
		if n, err := conn.Read(make([]byte, 2)); n != 1 || err != nil || Pending(conn) {
			t.Errorf("%T: read %d bytes, %v, then %v", conn, n, err, Pending(conn))
		}
		server.Close()
		for !Pending(conn) {
			runtime.Gosched()
		}
		conn.Close()
	}
}
