package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tokgate/tokgate/internal/must"
)

// side is one side of a link, with what came from the other.
type side struct {
	*mail
	got []string
}

func (s *side) carries(ctx context.Context, c net.Conn) error {
	return s.carry(ctx, c, func(f func()) { f() }, func() {}, func(line []byte) (func(), error) {
		text := string(line)
		return func() { s.got = append(s.got, text) }, nil
	})
}

// Whatever of a link is lost when it breaks, each line arrives once and in order, and is then forgotten.
func TestMailOverBrokenLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 1))
		a, b := &side{mail: newMail()}, &side{mail: newMail()}
		var want []string
		for i := range 200 {
			x, y := net.Pipe()
			cut := &cutting{Conn: x, left: rng.IntN(200)}
			if i == 199 {
				cut.left = 1 << 30
			}
			ctx, cancel := context.WithCancel(t.Context())
			must.Do(t, a.from(len(b.got)))
			must.Do(t, b.from(len(a.got)))
			over := make(chan struct{}, 2)
			go func() { _ = a.carries(ctx, cut); x.Close(); over <- struct{}{} }()
			go func() { _ = b.carries(ctx, y); y.Close(); over <- struct{}{} }()
			for range rng.IntN(4) {
				line := fmt.Sprintf("line %d", len(want))
				want = append(want, line)
				a.put([]byte(line), false)
				b.put([]byte(line), false)
			}
			synctest.Wait()
			a.live()
			b.live()
			synctest.Wait()
			cancel()
			x.Close()
			y.Close()
			<-over
			<-over
		}
		must.Same(t, "b got", want, b.got)
		must.Same(t, "a got", want, a.got)
		must.Hold(t, a.empty() && b.empty(), "lines are kept that arrived")
	})
}

// cutting is a connection that breaks after a number of written bytes.
type cutting struct {
	net.Conn
	left int
}

func (c *cutting) Write(p []byte) (int, error) {
	n := min(len(p), c.left)
	c.left -= n
	if n > 0 {
		if n, err := c.Conn.Write(p[:n]); err != nil {
			return n, err
		}
	}
	if n < len(p) {
		return n, io.ErrClosedPipe
	}
	return n, nil
}

// A line is acknowledged when the loop has dealt with it and the run has recorded it, which it posts.
func TestMailAcknowledgesLate(t *testing.T) {
	m, posted := newMail(), []func(){}
	_ = m.carry(t.Context(), heardOnly{strings.NewReader("one\nA0\ntwo\n")}, func(f func()) { posted = append(posted, f) }, func() {},
		func([]byte) (func(), error) { return func() {}, nil })
	var dealt []int
	for i := 0; i < len(posted); i++ {
		posted[i]()
		dealt = append(dealt, m.read)
	}
	must.Same(t, "lines that came", 2, m.has())
	must.Same(t, "lines that were acknowledged, by what the loop did", []int{0, 0, 1, 2}, dealt)
}

// What the other side cannot have is refused.
func TestMailRefuses(t *testing.T) {
	m := newMail()
	m.put([]byte("x"), false)
	must.Hold(t, m.from(2) != nil && m.from(-1) != nil, "it goes on from lines that there are not")
	err := m.carry(t.Context(), heardOnly{strings.NewReader("A2\n")}, nil, func() {}, nil)
	must.Hold(t, err != nil && strings.Contains(err.Error(), "not sent"), "an acknowledgement of nothing gave %v", err)
	err = m.carry(t.Context(), heardOnly{strings.NewReader(strings.Repeat("x", mostLine+1))}, nil, func() {}, nil)
	_, forever := errors.AsType[*broken](err)
	must.Hold(t, forever, "a line that is too long gave %v", err)
	for range 3 {
		m.put(bytes.Repeat([]byte("x"), mostKept/2), false)
	}
	must.Hold(t, m.overflown(), "everything is kept for a side that does not read")
	must.Hold(t, !slices.Contains([]bool{m.empty()}, true), "nothing is kept")
}

// heardOnly is a link that takes everything and brings what it reads.
type heardOnly struct{ io.Reader }

func (heardOnly) Write(b []byte) (int, error) { return len(b), nil }
func (heardOnly) Close() error                { return nil }
