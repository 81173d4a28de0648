package direct

import (
	"io"
	"net"
	"runtime"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// Bytes that wait in a socket are seen, with and without a poller, and they stay there.
func TestPendingOnSockets(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	for _, keep := range []func(net.Conn) net.Conn{unpolled, func(c net.Conn) net.Conn { return c }} {
		conn := must.Get(net.Dial("tcp", l.Addr().String()))(t)
		server := must.Get(l.Accept())(t)
		conn = keep(conn)
		must.Hold(t, !Pending(conn), "%T: bytes wait before any was sent", conn)
		must.Get(io.WriteString(server, "x"))(t)
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
