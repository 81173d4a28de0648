package client

import (
	"bytes"
	"errors"
)

// maxEvent is the largest size of one event of a stream, in bytes.
const maxEvent = 8 << 20

// maxWhole is the largest size of an answer that is one JSON object, in bytes.
const maxWhole = 64 << 20

// firstBuffer is the initial size of a stream's buffer: a few ordinary chunks.
const firstBuffer = 4 << 10

var errLongEvent = errors.New("an event is longer than 8 MiB")

// frameKind says what the splitter's method next found.
type frameKind int

const (
	frameNone  frameKind = iota // more bytes are needed
	frameData                   // an event's data
	frameError                  // the value of a line "error:", which older llama.cpp servers send
)

// splitter splits a byte stream into events by the rules for server-sent events in the HTML
// standard. A line ends in LF, CRLF or CR. A byte order mark and comments are skipped, data lines
// are joined, and a blank line ends an event. One rule differs: an event without its blank line at
// the end of the stream counts too, because some servers leave out the last blank line.
//
// The caller reads bytes into the memory that free returns, calls advance, and takes the frames
// from next. A frame is valid until the next call of free. The usual event has one data line and is
// never copied.
type splitter struct {
	buf  []byte
	w    int // bytes in buf
	keep int // start of the bytes still needed: the open event's data line, or the current line
	line int // start of the current line
	scan int // end of the bytes that were searched for the end of the current line

	dataStart, dataEnd int    // range in buf of the open event's only data line
	open               bool   // the open event has only one data line, dataStart to dataEnd
	joined             []byte // data of an open event with several data lines, joined
	joining            bool
	afterCR            bool   // the last line ended in CR: a following LF belongs to it
	notFirst           bool   // the first line of the stream was read
	most               int    // most bytes of an event, if it may be longer than maxEvent
	junk               []byte // first lines that cannot be part of an event stream; at most maxJunk bytes
}

const maxJunk = 1000

func (p *splitter) reset() {
	buf, joined, junk := p.buf, p.joined[:0], p.junk[:0]
	if cap(buf) > 16*firstBuffer { // do not keep the memory of a long event
		buf = nil
	}
	if cap(joined) > 16*firstBuffer {
		joined = nil
	}
	*p = splitter{buf: buf, joined: joined, junk: junk}
}

// free returns the memory for the next read. That memory is never empty unless there is an error.
func (p *splitter) free() ([]byte, error) {
	if p.buf == nil {
		p.buf = make([]byte, firstBuffer)
	}
	if p.keep == p.w {
		p.shift(p.w)
	}
	if p.w < len(p.buf) {
		return p.buf[p.w:], nil
	}
	if p.keep >= len(p.buf)/2 {
		p.shift(p.keep)
		return p.buf[p.w:], nil
	}
	if p.w-p.keep >= max(p.most, maxEvent) {
		return nil, errLongEvent
	}
	grown := make([]byte, 2*len(p.buf))
	copy(grown, p.buf[:p.w])
	p.buf = grown
	return p.buf[p.w:], nil
}

func (p *splitter) shift(n int) {
	copy(p.buf, p.buf[n:p.w])
	p.w -= n
	p.keep -= n
	p.line -= n
	p.scan -= n
	p.dataStart -= n
	p.dataEnd -= n
}

// advance records that n bytes were read into the memory that free returned.
func (p *splitter) advance(n int) { p.w += n }

// between reports whether nothing is buffered: the last event is over, and the next event has not
// begun.
func (p *splitter) between() bool {
	return p.keep == p.w && !p.open && !p.joining && !p.afterCR && len(p.junk) == 0
}

// next returns the next frame, such as an event. It fails only if an event is too long.
func (p *splitter) next() (frameKind, []byte, error) {
	for {
		if p.afterCR && p.line < p.w {
			p.afterCR = false
			if p.buf[p.line] == '\n' {
				p.line++
				p.scan = p.line
				if !p.open {
					p.keep = p.line
				}
			}
		}
		end := p.lineEnd()
		if end < 0 {
			return frameNone, nil, nil
		}
		line := p.buf[p.line:end]
		p.afterCR = p.buf[end] == '\r'
		start := p.line
		p.line = end + 1
		p.scan = p.line
		kind, frame, err := p.take(line, start)
		if !p.open {
			p.keep = p.line
		}
		if kind != frameNone || err != nil {
			return kind, frame, err
		}
	}
}

// lineEnd returns the end of the current line; -1 if the end has not been read.
func (p *splitter) lineEnd() int {
	rest := p.buf[p.scan:p.w]
	lf := bytes.IndexByte(rest, '\n')
	if lf >= 0 {
		rest = rest[:lf]
	}
	if cr := bytes.IndexByte(rest, '\r'); cr >= 0 {
		return p.scan + cr
	}
	if lf >= 0 {
		return p.scan + lf
	}
	p.scan = p.w
	return -1
}

var byteOrderMark = []byte("\xef\xbb\xbf")

func (p *splitter) take(line []byte, start int) (frameKind, []byte, error) {
	if !p.notFirst {
		p.notFirst = true
		if bytes.HasPrefix(line, byteOrderMark) {
			line, start = line[len(byteOrderMark):], start+len(byteOrderMark)
		}
	}
	if len(line) == 0 {
		if frame, ok := p.close(); ok {
			return frameData, frame, nil
		}
		return frameNone, nil, nil
	}
	name, value := line, line[len(line):]
	if colon := bytes.IndexByte(line, ':'); colon >= 0 {
		name, value = line[:colon], line[colon+1:]
		start += colon + 1
		if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
			start++
		}
	}
	switch string(name) {
	case "": // a comment
	case "data":
		return frameNone, nil, p.data(value, start)
	case "error":
		return frameError, value, nil
	case "event", "id", "retry":
	default:
		if room := maxJunk - len(p.junk); room > 0 {
			p.junk = append(append(p.junk, line[:min(len(line), room-1)]...), '\n')
		}
	}
	return frameNone, nil, nil
}

func (p *splitter) data(value []byte, start int) error {
	switch {
	case p.joining:
		p.joined = append(append(p.joined, '\n'), value...)
	case p.open:
		p.joined = append(append(append(p.joined[:0], p.buf[p.dataStart:p.dataEnd]...), '\n'), value...)
		p.open, p.joining = false, true
	default:
		p.open = true
		p.dataStart, p.dataEnd = start, start+len(value)
		return nil
	}
	if len(p.joined) > maxEvent {
		return errLongEvent
	}
	return nil
}

// close ends the open event and returns its data. It returns false if the event has no data.
func (p *splitter) close() ([]byte, bool) {
	switch {
	case p.joining:
		p.joining = false
		return p.joined, true
	case p.open:
		p.open = false
		return p.buf[p.dataStart:p.dataEnd], true
	}
	return nil, false
}

// finish returns the frame that the end of the stream cut off. Call it twice, because there may be
// two frames: an open event, and then an error line without an end.
func (p *splitter) finish() (frameKind, []byte, error) {
	if p.line < p.w {
		line, start := p.buf[p.line:p.w], p.line
		p.line, p.scan = p.w, p.w
		if p.afterCR && line[0] == '\n' {
			line, start = line[1:], start+1
		}
		if kind, frame, err := p.take(line, start); kind != frameNone || err != nil {
			return kind, frame, err
		}
	}
	if frame, ok := p.close(); ok {
		return frameData, frame, nil
	}
	return frameNone, nil, nil
}
