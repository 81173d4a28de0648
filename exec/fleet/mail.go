package fleet

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/tokgate/tokgate/exec/clock"
)

// mail is the lines from one side of a link to the other. They are numbered, and kept until the other side
// has acknowledged them, so that a link that breaks can be replaced. It is safe for concurrent use.
type mail struct {
	mu    sync.Mutex
	lines [][]byte // not acknowledged
	first int      // number of the first of them
	next  int      // number of the line to write next
	size  int      // bytes
	came  int      // lines of the other side
	read  int      // those of them that were dealt with
	told  int      // the last of these that was acknowledged
	alive bool
	full  bool
	wake  chan struct{} // holds a value if there may be something to write
}

const (
	mostKept = 256 << 20 // bytes of lines that are not acknowledged
	mostLine = 64 << 20
)

func newMail() *mail { return &mail{wake: make(chan struct{}, 1)} }

// put adds a line, which it keeps. A line that is patient goes with the next that is not, or when flush is called.
func (m *mail) put(line []byte, patient bool) {
	m.mu.Lock()
	if m.size += len(line); m.size > mostKept {
		m.full = true // nobody reads
	} else {
		m.lines = append(m.lines, line)
	}
	m.mu.Unlock()
	if !patient {
		m.rouse()
	}
}

// flushEach is how long a patient line waits. So one write, which costs more than the line, carries many.
const flushEach = 50 * time.Millisecond

// bundling calls flush a while after a patient line was put. The zero value is ready.
type bundling struct{ armed bool }

func (b *bundling) after(c clock.Clock, flush func()) {
	if b.armed {
		return
	}
	b.armed = true
	c.Timer(c.Now()+flushEach, func() {
		b.armed = false
		flush()
	})
}

func (m *mail) rouse() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// live makes the other side hear of this one, even if there is nothing to say.
func (m *mail) live() {
	m.mu.Lock()
	m.alive = true
	m.mu.Unlock()
	m.rouse()
}

// has returns how many lines of the other side came.
func (m *mail) has() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.came
}

// dealt acknowledges one more line of the other side, with what is written next.
func (m *mail) dealt() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.read++
}

// from begins a new link, on which the other side has n lines.
func (m *mail) from(n int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n < m.first || n > m.first+len(m.lines) {
		return fmt.Errorf("it has %d lines, and lines %d to %d are kept", n, m.first, m.first+len(m.lines))
	}
	m.drop(n)
	m.next, m.alive = n, true
	m.rouse()
	return nil
}

func (m *mail) drop(n int) {
	for ; m.first < n && len(m.lines) > 0; m.first++ {
		m.size -= len(m.lines[0])
		m.lines = m.lines[1:]
	}
}

// overflown reports whether lines were dropped, because the other side does not read.
func (m *mail) overflown() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.full
}

// empty reports whether the other side has acknowledged everything.
func (m *mail) empty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.lines) == 0
}

// write writes what is new. A line that begins with "A" acknowledges, and has no number.
func (m *mail) write(to *bytes.Buffer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.alive || m.read > m.told {
		m.alive, m.told = false, m.read
		fmt.Fprintf(to, "A%d\n", m.read)
	}
	for ; m.next < m.first+len(m.lines); m.next++ {
		to.Write(m.lines[m.next-m.first])
		to.WriteByte('\n')
	}
}

// carry carries the lines of both sides over a link until it breaks or ctx ends, and closes it. It calls heard
// whenever a line came, and opens with each line of the other side. What opens returns is posted to the loop. The line
// is acknowledged once the run has recorded it.
func (m *mail) carry(ctx context.Context, link io.ReadWriteCloser, post func(func()), heard func(), opens opener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var writer sync.WaitGroup
	defer writer.Wait()
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { _ = link.Close() })()
	defer link.Close()
	writer.Go(func() {
		for b := new(bytes.Buffer); ; b.Reset() {
			select {
			case <-ctx.Done():
				return
			case <-m.wake:
			}
			if m.write(b); b.Len() == 0 {
				continue
			}
			if _, err := link.Write(b.Bytes()); err != nil {
				cancel(err)
				return
			}
		}
	})
	err := m.reads(link, post, heard, opens)
	if _, ok := errors.AsType[*broken](err); ok {
		return err
	}
	return cmp.Or(context.Cause(ctx), err, errors.New("the other side closed it"))
}

// reads reads the lines of the other side until the link breaks.
func (m *mail) reads(link io.Reader, post func(func()), heard func(), opens opener) error {
	in := bufio.NewScanner(link)
	in.Buffer(make([]byte, 0, 64<<10), mostLine)
	in.Split(wholeLine)
	for in.Scan() {
		heard()
		line := in.Bytes()
		if bytes.HasPrefix(line, []byte{'A'}) {
			if err := m.acknowledged(string(line[1:])); err != nil {
				return &broken{err}
			}
			continue
		}
		do, err := opens(line)
		if err != nil {
			return &broken{err}
		}
		m.mu.Lock()
		m.came++
		m.mu.Unlock()
		post(func() {
			do()
			post(m.dealt) // after the run has recorded it
		})
	}
	if errors.Is(in.Err(), bufio.ErrTooLong) {
		return &broken{fmt.Errorf("it sent a line of more than %d MiB", mostLine>>20)} // and would again
	}
	return in.Err()
}

// acknowledged forgets the lines up to a number, which the other side has dealt with.
func (m *mail) acknowledged(number string) error {
	n, err := strconv.Atoi(number)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil || n > m.next {
		return errors.New("it acknowledged what was not sent")
	}
	m.drop(n)
	return nil
}

// wholeLine splits into lines. The part of a line after which a link breaks is none: it comes again.
func wholeLine(data []byte, end bool) (advance int, line []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if end {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

// opener returns what a line means. It returns an error if the line is none of the other side.
type opener func(line []byte) (func(), error)

// broken is an error of the other side, after which the two cannot go on. Any other error is of the link.
type broken struct{ error }
