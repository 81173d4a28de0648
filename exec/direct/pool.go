package direct

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Config describes how a Pool reaches its server.
type Config struct {
	// Dial opens a connection.
	Dial func(ctx context.Context) (net.Conn, error)
	// Now returns the run's monotonic time. It is called from many goroutines.
	Now func() time.Duration
	// IdleTimeout is how long an unused connection stays open.
	IdleTimeout time.Duration
	// Pollers is the number of pollers over which connections are spread (Linux). 0 means one for each
	// 512 connections of the process, but at most one for each core.
	Pollers int
	// Fresh is set if each request gets a connection of its own.
	Fresh *atomic.Bool
	// Buffers holds the unused Buffers.
	Buffers *sync.Pool
}

// Buffer is the memory for what is read from a connection. After Reset and before the first Advance
// it may hold bytes of a head, which Room then overwrites.
type Buffer interface {
	// Reset prepares the Buffer for another body. If mid is set, it goes on with a body between two
	// events.
	Reset(mid bool)
	// Room returns memory for the next bytes of the body. It is never empty, unless there is an error.
	Room() ([]byte, error)
	// Advance adds the first n bytes of Room to the body.
	Advance(n int)
	// Between reports whether the body is between two events, so that the Buffer holds nothing that
	// is needed.
	Between() bool
}

// Taker receives the answer of one Exchange. Its methods are called from one goroutine at a time.
type Taker interface {
	// Wire returns the bytes of the request. If fresh is set, they ask the server to close the
	// connection.
	Wire(fresh bool) []byte
	// Head takes the head of a plain stream. If it returns an error, the exchange ends with it.
	Head(h *Head) error
	// Body takes the bytes that were added to the Buffer at the given time. The argument read is the
	// error of that read. If the answer is over, over is true, end is the time of its end, and err is
	// the reason or nil.
	Body(b Buffer, at time.Duration, read error) (end time.Duration, over bool, err error)
	// Aside reads an answer that is not a plain stream. The bytes here of it were read at the given
	// time; the rest comes from conn. It returns whether the connection can carry another request,
	// and a function that ends the exchange; nil if nothing is left to do.
	Aside(conn net.Conn, here []byte, at time.Duration) (whole bool, end func())
	// End is called last. The argument err is the one that Head or Body returned.
	End(at time.Duration, err error)
	// Fail is called last, instead of End, if there is no answer to read.
	Fail(err error)
}

// Exchange is one request and its answer. It may need several attempts, because a kept-alive
// connection may turn out to be dead.
type Exchange struct {
	Ctx context.Context
	To  Taker

	// Sent is the time of the first byte of the first attempt; 0 if none was written.
	Sent time.Duration
	// Conns counts the attempts that got a connection.
	Conns int

	// The next fields belong to the current attempt. Interim means that an interim answer (status
	// 1xx) came first. First is its time, or else that of the answer's first byte; 0 before.
	Reused, Interim bool
	First           atomic.Int64

	line  atomic.Pointer[line]
	head  []byte // head of the answer, as far as it was read
	tried int    // number of bytes of head that were already parsed
	resp  *Head  // nil until the head was read
	frame frame
}

// Written returns when the last write of the request began, 0 if a part of it was not written yet.
// early is set if bytes of an answer were there before the first write.
func (x *Exchange) Written() (at time.Duration, early bool) {
	if l := x.line.Load(); l != nil {
		return time.Duration(l.asked.Load()), l.early
	}
	return 0, false
}

// Abort ends the exchange because its context ended.
func (x *Exchange) Abort() {
	if l := x.line.Load(); l != nil {
		l.abort(x)
	}
}

// Pool holds the connections to one server.
type Pool struct {
	Config
	last atomic.Pointer[Head] // head of an earlier answer; nil if there is none

	mu    sync.Mutex
	idle  []*line     // idle connections; the most recently used is last
	sweep *time.Timer // closes connections that were idle for too long; nil if none is idle
}

// New returns a Pool without connections.
func New(c Config) *Pool { return &Pool{Config: c} }

// Start writes a request on an idle connection. It returns false if there is none.
func (p *Pool) Start(x *Exchange, wire []byte) bool {
	for l := p.take(); l != nil; l = p.take() {
		if l.start(x, wire, true) {
			l.look()
			return true
		}
	}
	return false
}

// Carry sends a request. If no connection is idle, or fresh is set, it opens one and waits for it.
func (p *Pool) Carry(x *Exchange, fresh bool) {
	wire := x.To.Wire(fresh)
	for !fresh {
		l := p.take()
		if l == nil {
			break
		}
		if l.start(x, wire, true) {
			return
		}
	}
	conn, err := p.Dial(x.Ctx)
	if err != nil {
		x.To.Fail(err)
		return
	}
	l := &line{p: p, conn: unpolled(conn), single: fresh}
	l.start(x, wire, false)
	watch(l)
}

// warmAtOnce is the number of connections that are opened at a time.
const warmAtOnce = 64

// Warm opens connections until n are idle.
func (p *Pool) Warm(ctx context.Context, n int) {
	n -= p.Idle()
	var opening sync.WaitGroup
	slots := make(chan struct{}, warmAtOnce)
	for range n {
		slots <- struct{}{}
		opening.Go(func() {
			defer func() { <-slots }()
			if conn, err := p.Dial(ctx); err == nil {
				l := &line{p: p, conn: unpolled(conn)}
				watch(l)
				p.keep(l)
			}
		})
	}
	opening.Wait()
}

// Idle returns the number of idle connections.
func (p *Pool) Idle() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}

// Close closes the idle connections.
func (p *Pool) Close() { p.closeIdle(0) }

func (p *Pool) take() *line {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle) - 1
	if n < 0 {
		return nil
	}
	l := p.idle[n]
	p.idle[n] = nil
	p.idle = p.idle[:n]
	return l
}

func (p *Pool) keep(l *line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.since = p.Now()
	p.idle = append(p.idle, l)
	if p.sweep == nil {
		p.sweep = time.AfterFunc(p.IdleTimeout, func() { p.closeIdle(p.IdleTimeout) })
	}
}

func (p *Pool) drop(l *line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.idle, l); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
	}
}

// closeIdle closes connections that have been idle for at least the given time.
func (p *Pool) closeIdle(since time.Duration) {
	p.mu.Lock()
	before, n := p.Now()-since, 0
	for n < len(p.idle) && p.idle[n].since <= before {
		n++
	}
	old := slices.Clone(p.idle[:n])
	p.idle = slices.Delete(p.idle, 0, n)
	if p.sweep != nil && len(p.idle) == 0 {
		p.sweep.Stop()
		p.sweep = nil
	} else if p.sweep != nil {
		p.sweep.Reset(p.idle[0].since - before)
	}
	p.mu.Unlock()
	for _, l := range old {
		l.shut()
	}
}
