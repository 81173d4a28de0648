package client

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// reader holds the buffers for reading one stream. A reader is reused for later streams.
type reader struct {
	split splitter
	event Event
	usage Usage
}

var readers = sync.Pool{New: func() any { return new(reader) }}

// read reads the body of the answer to its end, and returns the time of the end.
func (c *call) read() (time.Duration, error) {
	rd := readers.Get().(*reader)
	defer readers.Put(rd)
	rd.split.reset()
	body, err := plainBody(c.resp)
	if e, ok := errors.AsType[*Error](err); ok {
		return c.stamp(), e
	} else if err != nil {
		return c.stamp(), c.broken(err)
	}
	for {
		room, err := rd.room()
		if err != nil {
			return c.stamp(), err
		}
		n, err := body.Read(room)
		at := c.stamp()
		rd.split.advance(n)
		if at, over, err := c.take(rd, at, err); over {
			return at, err
		}
	}
}

// room returns the memory for the next bytes of a body.
func (rd *reader) room() ([]byte, error) {
	room, err := rd.split.free()
	if err != nil {
		return nil, &Error{Kind: metric.FailProtocol, Message: err.Error()}
	}
	return room, nil
}

// take passes on the events that have come so far. The argument readErr is the error of the last
// read. If the answer is over, over is true, end is the time of its end, and err is the reason or
// nil.
func (c *call) take(rd *reader, at time.Duration, readErr error) (end time.Duration, over bool, err error) {
	for c.ended == 0 {
		kind, data, cut, err := rd.next(readErr == io.EOF)
		if err != nil {
			return at, true, &Error{Kind: metric.FailProtocol, Message: err.Error()}
		}
		if kind == frameNone {
			break
		}
		c.frames++
		if err := rd.parse(kind, data); err != nil && cut {
			return at, true, &Error{Kind: metric.FailTruncated, Message: "the stream ended in the middle of an event"}
		} else if err != nil {
			return at, true, err
		}
		if e := &rd.event; e.Content || e.Reasoning || e.ToolCall {
			if c.texts++; c.texts > c.most {
				return at, true, c.endless()
			}
		}
		c.s.Event(at, &rd.event)
		if rd.event.Done || rd.event.Err != "" {
			c.ended = at
		}
	}
	switch {
	case readErr == nil:
		// After the end of the answer, ignore further bytes, and wait only a short time for the
		// close.
		if c.ended != 0 {
			rd.split.reset()
			if c.lingers == nil {
				c.lingers = time.AfterFunc(linger, func() { c.cancel(errLinger) })
			}
		}
		return 0, false, nil
	case c.ended != 0:
		return c.ended, true, nil
	case readErr == io.EOF:
		if c.frames == 0 && len(rd.split.junk) > 0 {
			return at, true, rd.notStream()
		}
		// If the client gave up, the server may still end the stream in order. So ask for the
		// client's own error.
		return at, true, c.stopped()
	}
	// Return the present time, because the time of the last read is too early if nothing was read.
	return c.h.config.Now(), true, c.broken(readErr)
}

// endless returns the error of an answer that has more events than its request can have caused.
func (c *call) endless() error {
	return &Error{Kind: metric.FailProtocol, Message: fmt.Sprintf(
		"the answer has more than %d events with text, far more than the tokens that were asked for, so tokgate stopped reading it", c.most)}
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

// stamp returns the time at which the last bytes arrived.
func (c *call) stamp() time.Duration {
	if c.conn != nil {
		return time.Duration(c.conn.read.Load())
	}
	return c.h.config.Now()
}

var doneMark = []byte("[DONE]")

// parse reads the data of one frame into rd.event.
func (rd *reader) parse(kind frameKind, data []byte) error {
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
		if err := walk(data, &rd.event, &rd.usage); err != nil {
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
