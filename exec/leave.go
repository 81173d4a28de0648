package exec

import (
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/plan"
)

// leaves makes the client of a request leave, by calling leave on the loop. It returns the stream of
// the request, and a function that stops the timer, if there is one.
func leaves(c *plan.Cancel, loop clock.Clock, s client.Elsewhere, leave func()) (of client.Elsewhere, stays func() bool) {
	if c.AfterTokens > 0 {
		return &impatient{Elsewhere: s, left: c.AfterTokens, leave: func() { loop.Post(leave) }}, nil
	}
	return s, loop.Timer(loop.Now()+c.After, leave)
}

// impatient is the stream of a client that leaves after a number of chunks with tokens.
type impatient struct {
	client.Elsewhere
	left  int
	leave func()
}

// Event implements client.Stream.
func (s *impatient) Event(at time.Duration, e *client.Event) {
	s.Elsewhere.Event(at, e)
	if e.Content || e.Reasoning || e.ToolCall {
		if s.left--; s.left == 0 {
			s.leave()
		}
	}
}

// Reconnect implements client.Retried.
func (s *impatient) Reconnect() {
	if r, ok := s.Elsewhere.(client.Retried); ok {
		r.Reconnect()
	}
}

// Leaves implements client.Leaving.
func (s *impatient) Leaves() int { return s.left }
