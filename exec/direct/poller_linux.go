package direct

import (
	"cmp"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// poller reads the sockets of many connections in one goroutine, with one epoll instance. A chunk
// costs only one read, and no switch to a waiting goroutine. Many connections are spread over several
// pollers, so that several cores read.
//
// While no socket has bytes, the runtime's own poller waits for the epoll instance.
type poller struct {
	ep    int
	mu    sync.Mutex // locked while the poller handles events; also protects watched.found
	sends atomic.Int64

	events []syscall.EpollEvent
	found  []finding
	spare  []Buffer // unused buffers; few, because few streams are within an event at once

	lines struct {
		sync.Mutex
		by []*line // by descriptor
		n  int     // those that are not nil
	}
}

// finding holds the bytes of one read of a line. The poller keeps the line locked until it has
// passed the finding on.
type finding struct {
	l   *line
	b   []byte
	at  time.Duration
	err error
}

// watched is the part of a connection's state that its poller needs. In the zero value there is no
// poller, and the connection's own goroutine reads it.
type watched struct {
	by    *poller
	found bool // the poller has yet to pass bytes of this connection on; only the poller uses it
}

// socket is a connection that the runtime's poller does not watch. So a packet does not wake that
// poller too. Reads and writes of a socket do not block.
type socket struct {
	mu            sync.RWMutex // protects closed; locked for reading while fd is used
	fd            int
	closed        bool
	local, remote net.Addr
}

// unpolled removes a TCP connection from the runtime's poller. It returns any other connection
// unchanged.
func unpolled(conn net.Conn) net.Conn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok || choose(1) == nil {
		return conn
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return conn
	}
	s := &socket{local: conn.LocalAddr(), remote: conn.RemoteAddr()}
	var failed syscall.Errno
	err = raw.Control(func(fd uintptr) {
		copied, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_DUPFD_CLOEXEC, 0)
		s.fd, failed = int(copied), errno
	})
	if err != nil || failed != 0 {
		return conn
	}
	conn.Close()
	return s
}

// do calls f if the socket is open. It calls f again if a signal interrupts it.
func (s *socket) do(op string, f func() (int, error)) (n int, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return 0, net.ErrClosed
	}
	for n, err = f(); err == syscall.EINTR; {
		n, err = f()
	}
	if err != nil {
		return 0, s.failed(op, err)
	}
	return n, nil
}

func (s *socket) failed(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: s.local, Addr: s.remote, Err: os.NewSyscallError(op, err)}
}

// Read reads without waiting. It returns EAGAIN if no bytes are waiting.
func (s *socket) Read(b []byte) (int, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return 0, net.ErrClosed
	}
	return s.read(b)
}

// read reads without waiting. The caller must hold the lock of the line, because the socket is
// closed only under that lock.
func (s *socket) read(b []byte) (int, error) {
	n, err := readNow(s.fd, b)
	for err == syscall.EINTR {
		n, err = readNow(s.fd, b)
	}
	switch {
	case err == nil && n == 0:
		return 0, io.EOF
	case err != nil && err != syscall.EAGAIN:
		err = s.failed("read", err)
	}
	return n, err
}

// Write writes what the kernel accepts at once, and returns errFull if that is not all.
func (s *socket) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var some int
		some, err = s.do("write", func() (int, error) { return writeNow(s.fd, b[n:]) })
		n += some
	}
	if errors.Is(err, syscall.EAGAIN) {
		err = errFull
	}
	return n, err
}

// Pending reports whether bytes wait to be read, or the end of the connection.
func (s *socket) Pending() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return !s.closed && peekNow(s.fd)
}

func (s *socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return syscall.Close(s.fd)
}

// interrupt shuts the connection down. Even a goroutine that reads from a copy of the socket then
// stops.
func (s *socket) interrupt() {
	_, _ = s.do("shutdown", func() (int, error) { return 0, syscall.Shutdown(s.fd, syscall.SHUT_RDWR) })
}

func (s *socket) LocalAddr() net.Addr              { return s.local }
func (s *socket) RemoteAddr() net.Addr             { return s.remote }
func (s *socket) SetDeadline(time.Time) error      { return errors.ErrUnsupported }
func (s *socket) SetReadDeadline(time.Time) error  { return errors.ErrUnsupported }
func (s *socket) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }

// waiting returns a copy of the connection on which reads wait for bytes.
func waiting(conn net.Conn) (net.Conn, error) {
	s, ok := conn.(*socket)
	if !ok {
		return conn, nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, net.ErrClosed
	}
	copied, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(s.fd), syscall.F_DUPFD_CLOEXEC, 0)
	if errno != 0 {
		return nil, os.NewSyscallError("fcntl", errno)
	}
	file := os.NewFile(copied, "socket")
	defer file.Close()
	return net.FileConn(file)
}

var pollers struct {
	sync.Mutex
	list []*poller
}

// enough is the number of connections for which one poller is enough: at 50 chunks a second each they
// take about a quarter of a core. Fewer connections on more pollers would only cost more wake-ups.
const enough = 512

// choose returns the poller for another connection, which it reads as long as the connection lives. The
// parameter n is Config.Pollers. It returns nil if the system does not allow a poller.
func choose(n int) *poller {
	pollers.Lock()
	defer pollers.Unlock()
	var least *poller
	most, lowest := cmp.Or(n, runtime.GOMAXPROCS(0)), 0
	for _, p := range pollers.list[:min(most, len(pollers.list))] {
		load := p.load()
		if n == 0 && load < enough {
			return p
		}
		if least == nil || load < lowest {
			least, lowest = p, load
		}
	}
	if len(pollers.list) < most {
		if p := newPoller(); p != nil {
			pollers.list = append(pollers.list, p)
			return p
		}
	}
	return least
}

func (p *poller) load() int {
	p.lines.Lock()
	defer p.lines.Unlock()
	return p.lines.n
}

func newPoller() *poller {
	ep, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil || syscall.SetNonblock(ep, true) != nil {
		return nil
	}
	waits, err := os.NewFile(uintptr(ep), "epoll").SyscallConn()
	if err != nil {
		return nil
	}
	p := &poller{ep: ep, events: make([]syscall.EpollEvent, 256)}
	go func() {
		_ = waits.Read(func(uintptr) bool {
			for {
				p.mu.Lock()
				more := p.turn()
				p.mu.Unlock()
				if !more {
					return false // until something comes
				}
				runtime.Gosched() // the raw system calls do not let other goroutines run
			}
		})
	}()
	return p
}

// poll hands the line to the poller. It returns false if the poller cannot watch this kind of
// connection.
func (l *line) poll() bool {
	if _, ok := l.conn.(*socket); !ok {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by = choose(l.p.Pollers); !l.gone && l.rewatch() != nil {
		// The poller has no memory to watch the line, so fail the call as on a dead connection.
		l.conn.(*socket).interrupt()
		l.arrived(nil, l.p.Now(), io.ErrUnexpectedEOF)
	}
	return true
}

// rewatch makes the poller watch the line, whether it watched the line before or not.
func (l *line) rewatch() error {
	s := l.conn.(*socket)
	l.by.lines.Lock()
	if n := s.fd + 1 - len(l.by.lines.by); n > 0 {
		l.by.lines.by = append(l.by.lines.by, make([]*line, n)...)
	}
	l.by.lines.by[s.fd] = l
	l.by.lines.n++
	l.by.lines.Unlock()
	_, err := s.do("epoll_ctl", func() (int, error) {
		event := &syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLRDHUP, Fd: int32(s.fd)}
		return 0, syscall.EpollCtl(l.by.ep, syscall.EPOLL_CTL_ADD, s.fd, event)
	})
	return err
}

func (l *line) unwatch() {
	if l.by == nil {
		return
	}
	s := l.conn.(*socket)
	_, _ = s.do("epoll_ctl", func() (int, error) { return 0, syscall.EpollCtl(l.by.ep, syscall.EPOLL_CTL_DEL, s.fd, nil) })
	l.by.lines.Lock()
	defer l.by.lines.Unlock()
	if l.by.lines.by[s.fd] == l {
		l.by.lines.by[s.fd] = nil
		l.by.lines.n--
	}
}

// rest gives the line's read buffer back while the line waits for bytes.
func (l *line) rest() {
	if l.by != nil && l.buf != nil {
		l.p.Buffers.Put(l.buf)
		l.buf = nil
	}
}

// A finding is what one read of a line brought. A turn of the poller reads no more lines once it
// has mostFound findings. It looks for new bytes each time it has passed on readAgain findings.
const (
	mostFound = 1024
	readAgain = 16
)

// turn reads all waiting bytes before it passes any on. So the work on one chunk does not delay the
// timestamp of the next.
//
// If more is true, bytes may be left. turn must then be called again without waiting for an event,
// because the runtime's poller announces only bytes that arrive later.
func (p *poller) turn() (more bool) {
	more = p.find()
	for i := 0; i < len(p.found); i++ {
		if i%readAgain == readAgain-1 && p.find() {
			more = true
		}
		f := p.found[i]
		p.found[i] = finding{}
		f.l.found = false
		f.l.arrived(f.b, f.at, f.err)
		if f.l.x != nil && f.l.buf != nil && f.l.buf.Between() {
			p.spare, f.l.buf, f.l.mid = append(p.spare, f.l.buf), nil, true
		}
		if aside := f.l.aside; aside != nil {
			f.l.unwatch()
			go f.l.handOver(aside)
		}
		f.l.mu.Unlock()
	}
	p.found = p.found[:0]
	return more
}

// find reads once from every line that has bytes. It skips a line whose earlier bytes have not been
// passed on yet.
func (p *poller) find() (more bool) {
	if len(p.found) >= mostFound {
		return true
	}
	n, err := readyNow(p.ep, p.events)
	if err != nil || n <= 0 {
		return err == syscall.EINTR
	}
	more = n == len(p.events)
	for _, e := range p.events[:n] {
		p.lines.Lock()
		l := p.lines.by[e.Fd]
		p.lines.Unlock()
		switch {
		case l == nil:
		case l.found:
			more = true
		default:
			more = p.read(l, e.Events) || more
		}
	}
	return more
}

// read reads once from a line. It keeps the line locked until the result has been passed on.
func (p *poller) read(l *line, ready uint32) (more bool) {
	l.mu.Lock()
	if l.gone || l.aside != nil {
		l.mu.Unlock()
		return false
	}
	if n := len(p.spare) - 1; n >= 0 && l.buf == nil {
		l.use(p.spare[n])
		p.spare = p.spare[:n]
	}
	room := l.room()
	n, err := l.conn.(*socket).read(room)
	at := l.p.Now()
	if err == syscall.EAGAIN {
		l.mu.Unlock()
		return false
	}
	l.found = true
	p.found = append(p.found, finding{l: l, b: room[:n], at: at, err: err})
	return n == len(room) || ready&^syscall.EPOLLIN != 0 && err == nil
}

// handOver calls the function aside, which reads an answer that is not a plain stream. Then it
// gives the line back to the poller.
func (l *line) handOver(aside func()) {
	aside()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.gone && l.rewatch() != nil {
		l.p.drop(l)
		l.close()
	}
}

// look reads waiting bytes at every eighth call. Calls come between sends that follow one another,
// so bytes need not wait until all sends are done.
func (l *line) look() {
	p := l.by
	if p == nil || p.sends.Add(1)%8 != 0 || !p.mu.TryLock() {
		return
	}
	defer p.mu.Unlock()
	p.turn()
}
