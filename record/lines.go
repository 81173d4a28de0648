package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tokgate/tokgate/metric"
)

type lines struct {
	minor int // of the recording's schema
	chain chain
	torn  int // line number of an incomplete last line; 0 if the last line is complete
	count int
}

type decoded struct {
	line
	at  int64  // where the line begins in the recording
	raw []byte // the line with its line feed; valid until the next line is read
}

func (ls *lines) read(r io.Reader, take func(n int, d *decoded) error) error {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 64<<10), maxLine)
	in.Split(wholeLines)
	decoder := newDecoder()
	for at := int64(0); in.Scan(); at += int64(len(in.Bytes())) {
		raw, whole := bytes.CutSuffix(in.Bytes(), []byte("\n"))
		if ls.count++; !whole {
			if ls.count > 1 {
				ls.torn = ls.count
			}
			break
		}
		err := ls.check(raw)
		if err == nil && ls.count > 1 {
			d := decoded{at: at, raw: in.Bytes()}
			if d.line, err = decoder.decode(raw); err == nil {
				err = take(ls.count, &d)
			}
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", ls.count, err)
		}
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("line %d: %w", ls.count+1, err)
	}
	if ls.count == 0 {
		return errors.New("it is empty: there is no header")
	}
	return nil
}

func (ls *lines) check(raw []byte) (err error) {
	if ls.count == 1 {
		if ls.minor, err = samplesSchema.parse(raw); err != nil {
			return err
		}
	}
	if ls.minor >= chainMinor {
		return ls.chain.open(raw)
	}
	return nil
}

// decoder decodes lines. The lines of requests, which are nearly all, take a shorter way.
type decoder struct{ requests requestLine }

func newDecoder() *decoder { return &decoder{requestLine{reading: true, words: map[string]string{}}} }

func (dec *decoder) decode(raw []byte) (line, error) {
	room := new(struct {
		sample metric.Sample
		usage  metric.Usage
	})
	if dec.requests.decode(raw, &room.sample, &room.usage) {
		return line{Type: typeSample, Sample: &room.sample}, nil
	}
	var l line
	err := json.Unmarshal(raw, &l)
	return l, err
}
