package exec

import (
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/metric"
)

// leaves makes the client of a request leave, if it is one that does. It returns the stream of the
// request.
func (rd *round) leaves(f *flight, s client.Stream) client.Stream {
	c := f.lot.workload.Cancel
	switch {
	case f.turn.Phase != metric.Left || c == nil:
		return s
	case c.AfterTokens > 0:
		return &impatient{Stream: s, left: c.AfterTokens, leave: func() { rd.Clock.Post(f.cancel) }}
	}
	f.stays = rd.Clock.Timer(rd.Clock.Now()+c.After, f.cancel)
	return s
}

// impatient is the stream of a client that leaves after a number of chunks with tokens.
type impatient struct {
	client.Stream
	left  int
	leave func()
}

// Event implements client.Stream.
func (s *impatient) Event(at time.Duration, e *client.Event) {
	s.Stream.Event(at, e)
	if e.Content || e.Reasoning || e.ToolCall {
		if s.left--; s.left == 0 {
			s.leave()
		}
	}
}

// Reconnect implements client.Retried.
func (s *impatient) Reconnect() {
	if r, ok := s.Stream.(client.Retried); ok {
		r.Reconnect()
	}
}
