package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/tokgate/tokgate/metric"
)

// A recording is read on all cores. One goroutine splits it into lines and verifies the chain,
// which must be done in sequence. Other goroutines decode batches of lines, and the caller takes
// the batches in order.

// batchSize is the usual number of bytes in a batch. A batch is longer only if a single line is
// longer.
const batchSize = 128 << 10

// batch is a group of lines that are decoded together.
type batch struct {
	first int    // number of the batch's first line
	raw   []byte // bytes of the lines, without the line feeds
	ends  []int
	ready chan struct{} // closed when the lines are decoded
	lines []decoded
	rooms []*room // memory for the requests of the lines; a later batch may use it again
	err   error   // error that ended the reading after the batch's last line
}

// decoded is a line that was read, or the error err. The error impossible says that the line was
// read, but that its request cannot have happened.
type decoded struct {
	line
	err, impossible error
}

// room is the memory for one request that is read.
type room struct {
	sample metric.Sample
	usage  metric.Usage
}

// lines reads the lines of a recording.
type lines struct {
	minor  int // of the recording's schema
	chain  chain
	torn   int  // line number of an incomplete last line; 0 if the last line is complete
	reused bool // the memory of a batch is used again, so its reader must copy

	count int
	order chan *batch // of the lines
	work  chan *batch
	free  chan *batch
	stop  chan struct{}
}

// read calls the function take for each line after the first, in order. It stops at the first
// error.
func (ls *lines) read(r io.Reader, take func(n int, d *decoded) error) error {
	workers := runtime.GOMAXPROCS(0)
	ls.order, ls.work, ls.free = make(chan *batch, 2*workers), make(chan *batch, 2*workers), make(chan *batch, 4*workers)
	ls.stop = make(chan struct{})
	var done sync.WaitGroup
	defer done.Wait()
	defer close(ls.stop)
	done.Go(func() { ls.split(r) })
	for range workers {
		done.Go(func() {
			requests := requestLine{reading: true, words: map[string]string{}}
			for b := range ls.work {
				b.decode(&requests, ls.reused)
				close(b.ready)
			}
		})
	}
	for b := range ls.order {
		<-b.ready
		for i := range b.lines {
			n := b.first + i
			err := b.lines[i].err
			if err == nil {
				err = take(n, &b.lines[i])
			}
			if err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		}
		if b.err != nil {
			return b.err
		}
		select {
		case ls.free <- b:
		default:
		}
	}
	if ls.count == 0 {
		return errors.New("it is empty: there is no header")
	}
	return nil
}

// split cuts the recording into lines, and groups the lines into batches. It stops at the end, at
// an incomplete line or at the first error.
func (ls *lines) split(r io.Reader) {
	defer close(ls.order)
	defer close(ls.work)
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 64<<10), maxLine)
	in.Split(wholeLines)
	b := ls.batch()
	for b.err == nil && in.Scan() {
		raw, whole := bytes.CutSuffix(in.Bytes(), []byte("\n"))
		if ls.count++; !whole {
			if ls.count > 1 {
				ls.torn = ls.count
			}
			break
		}
		if err := ls.check(raw); err != nil {
			b.err = fmt.Errorf("line %d: %w", ls.count, err)
		} else if ls.count > 1 {
			b.raw = append(b.raw, raw...)
			b.ends = append(b.ends, len(b.raw))
		}
		if len(b.raw) >= batchSize && b.err == nil {
			if !ls.hand(b) {
				return
			}
			b = ls.batch()
		}
	}
	if err := in.Err(); err != nil && b.err == nil {
		b.err = fmt.Errorf("line %d: %w", ls.count+1, err)
	}
	ls.hand(b)
}

// check verifies that a line continues the chain of checksums.
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

// batch returns a batch without lines.
func (ls *lines) batch() *batch {
	var b *batch
	select {
	case b = <-ls.free:
	default:
		b = new(batch)
	}
	*b = batch{first: max(ls.count+1, 2), raw: b.raw[:0], ends: b.ends[:0], ready: make(chan struct{}), lines: b.lines[:0], rooms: b.rooms}
	return b
}

// hand passes a batch to the goroutines that decode, and to the reader that takes batches in order.
// It returns false if the reader has stopped.
func (ls *lines) hand(b *batch) bool {
	for _, to := range []chan *batch{ls.work, ls.order} {
		select {
		case to <- b:
		case <-ls.stop:
			return false
		}
	}
	return true
}

// decode reads the lines of the batch.
func (b *batch) decode(requests *requestLine, reused bool) {
	begin := 0
	for i, end := range b.ends {
		raw, x := b.raw[begin:end], b.room(i, reused)
		begin = end
		d := decoded{line: line{Type: typeSample, Sample: &x.sample}}
		if !requests.decode(raw, &x.sample, &x.usage) {
			d.line = line{}
			d.err = json.Unmarshal(raw, &d.line)
		}
		if d.err == nil && d.Sample != nil {
			d.impossible = possible(d.Sample)
		}
		b.lines = append(b.lines, d)
	}
}

// room returns empty memory for line i of the batch. If reused is true, it clears and returns the
// memory of line i of an earlier batch.
func (b *batch) room(i int, reused bool) *room {
	if !reused {
		return new(room)
	}
	if i == len(b.rooms) {
		b.rooms = append(b.rooms, new(room))
	}
	x := b.rooms[i]
	gaps := x.sample.Gaps[:0]
	*x = room{}
	x.sample.Gaps = gaps
	return x
}
