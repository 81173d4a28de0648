//go:build linux

package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/sim"
)

func init() {
	listenShared = func(address string) (net.Listener, error) {
		const reusePort = 15 // SO_REUSEPORT, which package syscall lacks for some processors
		c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
			_ = raw.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, reusePort, 1) })
			return err
		}}
		return c.Listen(context.Background(), "tcp", address)
	}
}

// A program that takes the server's port is not measured. It may come while the server starts and
// does not listen, or later, if both share the port.
func TestAnotherProgramListens(t *testing.T) {
	another := func(t *testing.T, listen func(address string) (net.Listener, error), port int) {
		t.Helper()
		listener := must.Get(listen(net.JoinHostPort("127.0.0.1", strconv.Itoa(port))))(t)
		s := must.Get(sim.New(sim.Options{}))(t)
		front := &http.Server{Handler: s}
		go front.Serve(listener)
		t.Cleanup(func() { front.Close(); s.Close() })
	}
	want := func(port int) string {
		return fmt.Sprintf("another program listens on port %d: %s (pid %d), which tokgate did not start", port, nameOf(os.Getpid()), os.Getpid())
	}
	plain := func(address string) (net.Listener, error) { return net.Listen("tcp", address) }

	l := childLauncher(t)
	s := childServer(t, "sleep")
	_, err := l.Launch(t.Context(), s, func(state string) {
		if _, on, ok := strings.Cut(state, "on port "); ok && s.Process.Port == 0 {
			s.Process.Port, _ = strconv.Atoi(on)
			another(t, plain, s.Process.Port)
		}
	})
	if err == nil || !strings.Contains(err.Error(), want(s.Process.Port)) {
		t.Errorf("at the start: error %v, want %q", err, want(s.Process.Port))
	}
	nothingHeld(t, l)

	port := 0
	target, err := l.Launch(t.Context(), childServer(t, "shared"), func(state string) {
		if _, on, ok := strings.Cut(state, "on port "); ok {
			port, _ = strconv.Atoi(on)
		}
	})
	must.Do(t, err)
	fact, ok := target.Fingerprint["listener"]
	must.Hold(t, !ok, "the server's own socket is %q", fact)
	if err := target.Check(t.Context()); err != nil {
		t.Error(err)
	}
	another(t, listenShared, port)
	if err := target.Check(t.Context()); err == nil || !strings.Contains(err.Error(), want(port)) {
		t.Errorf("at the end: error %v, want %q", err, want(port))
	}
	if err := target.Close(); err != nil {
		t.Error(err)
	}
}

func TestWhose(t *testing.T) {
	ours, alien := owner{7, "vllm", true}, owner{8, "nginx", false}
	for _, tt := range []struct {
		name       string
		sockets    []socket
		fact, err_ string // beginnings
	}{
		{"the server", []socket{{"1", []owner{ours}}}, "", ""},
		{"the server's workers", []socket{{"1", []owner{ours}}, {"2", []owner{ours, ours}}}, "", ""},
		{"a socket that the system gave to the server", []socket{{"1", []owner{{1, "systemd", false}, ours}}}, "", ""},
		{"another program", []socket{{"1", []owner{alien}}}, "", "another program listens on port 80: nginx (pid 8), which"},
		{"another beside the server", []socket{{"1", []owner{ours}}, {"2", []owner{alien}}}, "", "another program listens on port 80: nginx (pid 8), which"},
		{"another user's", []socket{{"1", nil}}, "not known: the program that listens cannot be seen", ""},
		{"another user's beside another", []socket{{"1", nil}, {"2", []owner{alien}}}, "", "another program"},
		{"a container's", []socket{{"1", []owner{{9, "docker-proxy", false}}}}, "docker-proxy forwards the port to a container", ""},
		{"nobody", nil, "not known: no socket on this machine listens on port 80", ""},
	} {
		fact, err := whose(80, tt.sockets)
		must.Hold(t, strings.HasPrefix(fact, tt.fact) && (fact == "") == (tt.fact == ""), "%s: fact %q, want %q", tt.name, fact, tt.fact)
		must.Hold(t, (err == nil) == (tt.err_ == "") && (err == nil || strings.HasPrefix(err.Error(), tt.err_)), "%s: error %v, want %q", tt.name, err, tt.err_)
	}
}

// The tables are those of the kernel. Only sockets at which a connection to 127.0.0.1 may arrive
// count.
func TestListeners(t *testing.T) {
	line := func(n int, address, state string) string {
		return fmt.Sprintf("   %d: %s:1F90 %s:0000 %s 00000000:00000000 00:00000000 00000000  1000        0 %d 1 0000 100 0 0 10 0\n", n, address, strings.Repeat("0", len(address)), state, 100+n)
	}
	table := "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n" +
		line(0, loopback, "0A") + line(1, "00000000", "0A") + line(2, "0501A8C0", "0A") + line(3, loopback, "01") +
		line(4, strings.Repeat("0", 32), "0A") + line(5, mapped+loopback, "0A") + line(6, strings.Repeat("0", 24)+"01000000", "0A") + "cut off"
	must.Same(t, "", []string{"100", "101", "104", "105"}, listeners(table, 0x1F90))
	got := listeners(table, 80)
	must.Hold(t, got == nil, "on another port: %v", got)
}

// A connection to another container's port does not reach the container that was started.
func TestPublished(t *testing.T) {
	d := newDock(t, "serve")
	d.put(t, "ports", `{"8000/tcp":null,"9000/tcp":[{"HostIp":"127.0.0.1","HostPort":"1"}]}`)
	_, err := childLauncher(t).Launch(t.Context(), containerServer(), func(string) {})
	must.Hold(t, err != nil && strings.Contains(err.Error(), "does not publish its port 8000 there"), "error %v", err)
	d = newDock(t, "serve")
	d.put(t, "ports", "no JSON")
	target := must.Get(childLauncher(t).Launch(t.Context(), containerServer(), func(string) {}))(t)
	fact := target.Fingerprint["listener"]
	must.Hold(t, strings.HasPrefix(fact, "not known: docker inspect did not write"), "fact %q", fact)
	if err := target.Close(); err != nil {
		t.Error(err)
	}
	host := &container{network: "host"}
	if fact, err := host.listens(t.Context()); err != nil || fact != "not known: the container shares the network of this machine" {
		t.Errorf("fact %q, error %v", fact, err)
	}
}
