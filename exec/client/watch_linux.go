package client

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// poller watches connections of the kernel's by one epoll instance, from one goroutine:
// a chunk then costs the read of it, and no switch to a goroutine that waited for
// it nor a second read that finds nothing. The runtime's own poller waits for the
// instance to be ready.
type poller struct {
	ep    int
	mu    sync.Mutex // of a turn
	sends atomic.Int64

	events []syscall.EpollEvent
	found  []finding

	lines struct {
		sync.Mutex
		by map[int32]*line // by descriptor
	}
}

// finding is what a turn read from a line, whose lock it holds.
type finding struct {
	l   *line
	b   []byte
	at  time.Duration
	err error
}

// watched is what a line knows of its watcher; the zero value: a goroutine of its own.
type watched struct {
	by   *poller
	raw  syscall.RawConn
	fd   int32
	get  func(fd uintptr) bool // reads into into
	into []byte
	n    int
	err  error
}

var (
	onlyPoller *poller // nil: the system has none for us
	oncePoller sync.Once
)

// polling is the poller of this process.
func polling() *poller {
	oncePoller.Do(func() { onlyPoller = newPoller() })
	return onlyPoller
}

// newPoller is nil where the system refuses.
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
	p.lines.by = map[int32]*line{}
	go func() {
		_ = waits.Read(func(uintptr) bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			for p.turn() {
			}
			return false // until something comes
		})
	}()
	return p
}

// poll has the poller watch a line.
func (l *line) poll() bool {
	conn, ok := l.conn.(*net.TCPConn)
	if !ok {
		return false
	}
	p := polling()
	if p == nil {
		return false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return true
	}
	l.by, l.raw = p, raw
	l.get = func(fd uintptr) bool {
		for {
			if l.n, l.err = syscall.Read(int(fd), l.into); l.err != syscall.EINTR {
				return true
			}
		}
	}
	if l.again() != nil {
		l.by = nil
		return false
	}
	return true
}

// again has the poller look at the line, from now on or again.
func (l *line) again() (err error) {
	p := l.by
	failed := l.raw.Control(func(fd uintptr) {
		l.fd = int32(fd)
		p.lines.Lock()
		p.lines.by[l.fd] = l
		p.lines.Unlock()
		err = syscall.EpollCtl(p.ep, syscall.EPOLL_CTL_ADD, int(fd), &syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLRDHUP, Fd: int32(fd)})
	})
	if failed != nil {
		return failed
	}
	return err
}

// unwatch has the poller forget the line.
func (l *line) unwatch() {
	p := l.by
	if p == nil {
		return
	}
	_ = l.raw.Control(func(fd uintptr) {
		_ = syscall.EpollCtl(p.ep, syscall.EPOLL_CTL_DEL, int(fd), nil)
	})
	p.lines.Lock()
	if p.lines.by[l.fd] == l {
		delete(p.lines.by, l.fd)
	}
	p.lines.Unlock()
}

// rest lets go of the buffer: nothing is read until something comes.
func (l *line) rest() {
	if l.by != nil && l.rd != nil {
		readers.Put(l.rd)
		l.rd = nil
	}
}

// turn reads once from every line that has something, then hands it on: what came
// first does not make the next one look late. It says whether there was anything.
func (p *poller) turn() bool {
	n, err := syscall.EpollWait(p.ep, p.events, 0)
	if err != nil || n <= 0 {
		return err == syscall.EINTR
	}
	for _, e := range p.events[:n] {
		p.lines.Lock()
		l := p.lines.by[e.Fd]
		p.lines.Unlock()
		if l == nil {
			continue
		}
		l.mu.Lock()
		if l.gone || l.aside != nil {
			l.mu.Unlock()
			continue
		}
		l.into = l.room()
		if err := l.raw.Read(l.get); err != nil {
			l.n, l.err = 0, err
		}
		at := l.d.h.config.Now()
		if l.err == syscall.EAGAIN {
			l.mu.Unlock()
			continue
		}
		f := finding{l: l, at: at, err: l.err}
		switch {
		case l.n > 0:
			f.b = l.into[:l.n]
		case l.err == nil:
			f.err = io.EOF
		default:
			f.err = &net.OpError{Op: "read", Net: "tcp", Source: l.conn.LocalAddr(), Addr: l.conn.RemoteAddr(), Err: os.NewSyscallError("read", l.err)}
		}
		p.found = append(p.found, f)
	}
	for i, f := range p.found {
		f.l.arrived(f.b, f.at, f.err)
		if aside := f.l.aside; aside != nil {
			f.l.unwatch()
			go func() {
				aside()
				f.l.mu.Lock()
				defer f.l.mu.Unlock()
				if !f.l.gone && f.l.again() != nil {
					f.l.d.drop(f.l)
					f.l.close()
				}
			}()
		}
		f.l.mu.Unlock()
		p.found[i] = finding{}
	}
	p.found = p.found[:0]
	return true
}

// look has whoever sends many requests one after the other look, now and then, for
// what has come meanwhile.
func (l *line) look() {
	p := l.by
	if p == nil || p.sends.Add(1)%8 != 0 || !p.mu.TryLock() {
		return
	}
	defer p.mu.Unlock()
	p.turn()
}
