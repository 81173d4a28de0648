package client

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/metric"
)

// reader holds the buffers for reading one stream. A reader is reused for later streams.
type reader struct {
	split splitter
	event Event
	usage Usage
}

var readers = sync.Pool{New: func() any { return new(reader) }}

func (rd *reader) Reset(mid bool) {
	rd.split.reset()
	rd.split.notFirst = mid
}

func (rd *reader) Advance(n int) { rd.split.advance(n) }

func (rd *reader) Between() bool { return rd.split.between() && rd.split.notFirst }

func (rd *reader) Room() ([]byte, error) {
	room, err := rd.split.free()
	if err != nil {
		return nil, &Error{Kind: metric.FailProtocol, Message: err.Error()}
	}
	return room, nil
}

// next returns the next frame. If over is true, the stream has ended. Then next also returns an
// incomplete last frame, with cut set.
func (rd *reader) next(over bool) (kind frameKind, data []byte, cut bool, err error) {
	kind, data, err = rd.split.next()
	if cut = kind == frameNone && err == nil && over; cut {
		kind, data, err = rd.split.finish()
	}
	return kind, data, cut, err
}

var doneMark = []byte("[DONE]")

func (rd *reader) parse(api engine.API, kind frameKind, data []byte) error {
	rd.event = Event{}
	data = bytes.TrimSpace(data)
	switch {
	case kind == frameError:
		w := walker{scanner: scanner{b: data}, e: &rd.event, u: &rd.usage}
		if err := w.failure(); err != nil || rd.event.Err == "" {
			rd.event.Err = bounded(string(data))
		}
		if rd.event.Err == "" {
			rd.event.Err = "an error without a message"
		}
	case bytes.Equal(data, doneMark):
		rd.event.Done = true
	case len(data) > 0:
		if err := walkAs(api, data, &rd.event, &rd.usage); err != nil {
			return &Error{Kind: metric.FailProtocol, Message: fmt.Sprintf("an event is %v: %s", err, data[:min(len(data), 300)])}
		}
	}
	return nil
}

// notStream returns the error for a body that has no event. It includes the error message in the
// body, if there is one.
func (rd *reader) notStream() error {
	junk := bytes.TrimSpace(rd.split.junk)
	if walk(junk, &rd.event, &rd.usage) == nil && rd.event.Err != "" {
		return &Error{Kind: metric.FailStream, Message: rd.event.Err}
	}
	return &Error{Kind: metric.FailProtocol, Message: "the answer is not an event stream: " + string(junk)}
}
