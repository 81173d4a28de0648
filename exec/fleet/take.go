package fleet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/metric"
)

// opens reads a line of the worker. It returns what the line means to the fleet, to be called in the
// loop. opens itself may be called elsewhere, for one line of a worker after the other.
func (m *member) opens(line []byte) (func(*Fleet), error) {
	if len(line) > 0 && line[0] == '{' {
		var x message
		if err := json.Unmarshal(line, &x); err != nil {
			return nil, fmt.Errorf("what it sent cannot be read: %w", err)
		}
		return func(f *Fleet) { f.told(m, &x) }, nil
	}
	number, sealed, _ := bytes.Cut(line, []byte{' '})
	id, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("what it sent cannot be read: %w", err)
	}
	s, err := m.strand.Open(sealed)
	if err != nil {
		return nil, fmt.Errorf("the line of a request that it sent cannot be used: %w", err)
	}
	return func(f *Fleet) { f.answered(m, id, s) }, nil
}

// answered ends a request with its sample.
func (f *Fleet) answered(m *member, id int64, s *metric.Sample) {
	fl := f.flights[id]
	if fl == nil || fl.member != m {
		return // given up on
	}
	f.heard(tokens{ID: id, N: s.Chunks - fl.chunks, At: s.Last})
	delete(f.flights, id)
	fl.stop()
	m.samples++
	if x := s.Failure; x != nil && m.local == nil && (x.Kind == metric.FailLocal || x.Kind == metric.FailConnect) {
		x.Message = "worker " + m.name + ": " + x.Message
	}
	if known := fl.stream.Sample(); !metric.SameRequest(known, s) {
		f.lose(m, fmt.Sprintf("it answered request %d with another one", id))
		fl.stream.End(f.loop.Now(), &client.Error{Kind: metric.FailLocal, Message: f.gone.Error()})
		return
	}
	fl.got.Sample = s
	fl.stream.Fill(&fl.got)
}

// told takes a message of a worker.
func (f *Fleet) told(m *member, x *message) {
	switch x.Kind {
	case hasTexts:
		if fl := f.flights[x.ID]; fl != nil && fl.member == m && x.Received != nil {
			fl.got = *x.Received
		}
	case hasTokens:
		for _, t := range x.Tokens {
			if fl := f.flights[t.ID]; fl != nil && fl.member == m {
				f.heard(t)
			}
		}
	case hasBeat:
		if x.Beat != nil {
			f.beats(m, *x.Beat)
		}
	case hasMet:
		f.meets.met(m, x)
	case hasReach:
		m.reached[x.N] = &x.Why
	case hasLeft:
		f.lose(m, x.Why)
	}
}
