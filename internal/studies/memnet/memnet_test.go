package memnet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tokgate/tokgate/internal/must"
)

func TestPipeKeepsBytesAndOrder(t *testing.T) {
	a, b := pipe()
	want := bytes.Repeat([]byte("0123456789"), window/4) // more than fits: writes must wait
	go func() {
		for rest := want; len(rest) > 0; {
			n := min(len(rest), 7919)
			a.Write(rest[:n])
			rest = rest[n:]
		}
		a.Close()
	}()
	got, err := io.ReadAll(b)
	must.Hold(t, err == nil && bytes.Equal(got, want), "read %d bytes, %v; want %d", len(got), err, len(want))
	if _, err := b.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("write to a closed peer: %v, want EPIPE", err)
	}
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read after Close: %v, want ErrClosed", err)
	}
}

func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipe()
		defer a.Close()
		defer b.Close()
		start := time.Now()
		b.SetReadDeadline(start.Add(time.Hour))
		_, err := b.Read(make([]byte, 1))
		must.Hold(t, errors.Is(err, os.ErrDeadlineExceeded), "read: %v, want a deadline error", err)
		must.Same(t, "the read ended after", time.Hour, time.Since(start))
		b.SetReadDeadline(time.Time{}) // the deadline has passed; remove it
		a.Write([]byte("x"))
		if n, err := b.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Errorf("read after the deadline was lifted: %d, %v", n, err)
		}
		a.SetWriteDeadline(time.Now().Add(time.Second))
		if n, err := a.Write(make([]byte, 2*window)); n != window || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write to nobody: %d, %v; want %d and a deadline error", n, err, window)
		}
		b.SetReadDeadline(time.Now().Add(-1)) // as net/http does to stop a read
		if _, err := b.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read past its deadline: %v", err)
		}
	})
}

func TestRefused(t *testing.T) {
	l := Listen()
	l.Close()
	_, err := l.DialContext(context.Background(), "", "")
	must.Hold(t, errors.Is(err, syscall.ECONNREFUSED), "dial: %v, want a refused connection", err)
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept: %v, want ErrClosed", err)
	}
}

// Two listeners on a network have different addresses. A connection to the address of a closed
// listener is refused.
func TestNetwork(t *testing.T) {
	var n Network
	a, err := n.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	b, err := n.Listen("tcp", "127.0.0.1:0")
	if err != nil || a.Addr().String() == b.Addr().String() {
		t.Fatalf("%v and %v, %v", a.Addr(), b.Addr(), err)
	}
	if _, err := n.Listen("tcp", a.Addr().String()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("listen where another does: %v", err)
	}
	go func() {
		c, err := b.Accept()
		if err == nil {
			c.Write([]byte("b"))
			c.Close()
		}
	}()
	c, err := n.DialContext(t.Context(), "tcp", b.Addr().String())
	must.Do(t, err)
	if got, err := io.ReadAll(c); string(got) != "b" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	a.Close()
	for _, address := range []string{a.Addr().String(), "127.0.0.1:1"} {
		if _, err := n.DialContext(t.Context(), "tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial %s: %v, want a refused connection", address, err)
		}
	}
}

// A client and a server of net/http talk in a synctest bubble, in which an hour passes at once.
func TestHTTPInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Listen()
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			time.Sleep(time.Hour)
			w.Write(body)
		})}
		go server.Serve(l)
		transport := &http.Transport{DialContext: l.DialContext}
		client := &http.Client{Transport: transport}
		start := time.Now()
		for range 3 { // the connection is reused
			r, err := client.Post("http://"+l.Addr().String(), "text/plain", bytes.NewReader([]byte("hello")))
			must.Do(t, err)
			got, err := io.ReadAll(r.Body)
			r.Body.Close()
			must.Hold(t, string(got) == "hello" && err == nil, "answer %q, %v", got, err)
		}
		must.Same(t, "three answers took", 3*time.Hour, time.Since(start))
		transport.CloseIdleConnections()
		server.Close()
	})
}

// A side of a pipe that has finished sending may still receive.
func TestCloseWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipe()
		defer b.Close()
		a.Write([]byte("all"))
		must.Do(t, a.(interface{ CloseWrite() error }).CloseWrite())
		got, err := io.ReadAll(b)
		must.Hold(t, string(got) == "all" && err == nil, "read %q, %v", got, err)
		if _, err := a.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write after CloseWrite: %v, want ErrClosed", err)
		}
		if n, err := b.Write(nil); n != 0 || err != nil {
			t.Errorf("write of nothing: %d, %v", n, err)
		}
		b.Write([]byte("x"))
		if n, err := a.Read(nil); n != 0 || err != nil {
			t.Errorf("read of nothing: %d, %v", n, err)
		}
		if n, err := a.Read(make([]byte, 2)); n != 1 || err != nil {
			t.Errorf("read after CloseWrite: %d, %v", n, err)
		}
		a.SetDeadline(time.Now().Add(time.Hour)) // applies to both directions
		start := time.Now()
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Hour {
			t.Errorf("read: %v after %v, want a deadline error after 1h", err, time.Since(start))
		}
		a.Close()
	})
}

// A dial waits until the listener accepts it. It stops waiting if its context ends or the listener
// closes.
func TestDialWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Listen()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := l.DialContext(ctx, "", "")
		must.Hold(t, errors.Is(err, context.DeadlineExceeded), "dial: %v, want what ended its context", err)
		time.AfterFunc(time.Minute, func() { l.Close() })
		if _, err := l.DialContext(t.Context(), "", ""); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial until it closed: %v, want a refused connection", err)
		}
	})
}
