package record

import (
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record/disk"
)

// Lost is the panic value when a long recording cannot be read again. It is a panic, because no
// caller can continue without the requests.
type Lost struct{ error }

// Unwrap returns the underlying error.
func (l Lost) Unwrap() error { return l.error }

func (l Lost) Error() string { return "could not read requests again: " + l.error.Error() }

// store keeps the requests of a long recording in packed form. It uses an unnamed file, or memory
// if it cannot create a file. It also keeps the latest used rounds unpacked.
type store struct {
	words words
	file  *disk.File
	size  int64
	room  []byte // reused memory for packed requests

	mu     sync.Mutex
	recent []*packed
	weight int // total bytes of the rounds in recent
}

const (
	partSize   = 256 << 10 // bytes in one write to the file
	mostRecent = 32 << 20  // most bytes of unpacked requests in memory, besides the last round
)

func newStore() *store {
	st := &store{words: words{index: map[string]int{}}}
	file, err := disk.CreateTemp("", "tokgate-samples-*")
	if err != nil {
		return st
	}
	// Some systems cannot remove the name of a file while the file is open.
	if disk.Remove(file.Name()) != nil {
		_ = file.Close()
		_ = disk.Remove(file.Name())
		return st
	}
	st.file = file
	return st
}

// keep stores a part.
func (st *store) keep(raw []byte) part {
	p := part{at: st.size, size: len(raw), sum: crc32.ChecksumIEEE(raw)}
	if st.file != nil {
		if _, err := st.file.WriteAt(raw, st.size); err == nil {
			st.size += int64(len(raw))
			return p
		}
	}
	p.raw = append([]byte(nil), raw...)
	return p
}

// read returns the bytes of a part. It uses the memory of the slice room if that is large enough.
func (st *store) read(p part, room []byte) ([]byte, error) {
	if p.raw != nil {
		return p.raw, nil
	}
	if cap(room) < p.size {
		room = make([]byte, p.size)
	}
	room = room[:p.size]
	if _, err := st.file.ReadAt(room, p.at); err != nil {
		return nil, err
	}
	if crc32.ChecksumIEEE(room) != p.sum {
		return nil, fmt.Errorf("what was kept of the recording in %s has changed", st.file.Name())
	}
	return room, nil
}

// part is a sequence of packed requests of one round.
type part struct {
	at   int64
	size int
	sum  uint32
	raw  []byte // packed bytes that could not be written to the temporary file
}

// packed holds the packed requests of a round.
type packed struct {
	store   *store
	n, gaps int
	parts   []part
	open    []byte // packed requests that are not yet in a part
	samples []*metric.Sample
}

// add packs the request. The caller may then reuse the request's memory.
func (p *packed) add(s *metric.Sample) error {
	if p.open == nil {
		p.open, p.store.room = p.store.room, nil
	}
	c := packing{raw: p.open, words: &p.store.words}
	c.sample(s)
	p.n, p.gaps, p.open = p.n+1, p.gaps+len(s.Gaps), c.raw
	if len(p.open) >= partSize {
		p.flush()
	}
	return c.err
}

func (p *packed) flush() {
	if len(p.open) > 0 {
		p.parts = append(p.parts, p.store.keep(p.open))
		p.store.room, p.open = p.open[:0], nil
	}
}

// all returns the requests of the round, in the order in which they were added. Several goroutines
// may call it at once.
func (p *packed) all() []*metric.Sample {
	st := p.store
	st.mu.Lock()
	samples := p.samples
	st.mu.Unlock()
	if samples != nil {
		return samples
	}
	// Two callers may unpack the samples at the same time. This is harmless.
	samples = p.unpack()
	st.mu.Lock()
	defer st.mu.Unlock()
	if p.samples != nil {
		return p.samples
	}
	p.samples = samples
	st.recent, st.weight = append(st.recent, p), st.weight+p.weight()
	for st.weight > mostRecent && len(st.recent) > 1 {
		oldest := st.recent[0]
		if oldest == p {
			break
		}
		oldest.samples = nil
		st.recent, st.weight = st.recent[1:], st.weight-oldest.weight()
	}
	return p.samples
}

// weight estimates how many bytes the unpacked requests take in memory.
func (p *packed) weight() int { return p.n*480 + p.gaps*4 }

func (p *packed) unpack() []*metric.Sample {
	rooms, gaps := make([]room, p.n), make(metric.Gaps, 0, p.gaps)
	samples := make([]*metric.Sample, 0, p.n)
	var buffer []byte
	for _, part := range p.parts {
		raw, err := p.store.read(part, buffer)
		if err != nil {
			panic(Lost{err})
		}
		if part.raw == nil {
			buffer = raw
		}
		c := packing{raw: raw, reading: true, words: &p.store.words, room: gaps}
		for len(c.raw) > 0 && c.err == nil && len(samples) < p.n {
			x := &rooms[len(samples)]
			c.usage = &x.usage
			c.sample(&x.sample)
			samples = append(samples, &x.sample)
		}
		if gaps = c.room; c.err != nil {
			panic(Lost{c.err})
		}
	}
	if len(samples) != p.n {
		panic(Lost{fmt.Errorf("of %d requests of a round %d are left", p.n, len(samples))})
	}
	return samples
}
