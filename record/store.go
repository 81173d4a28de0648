package record

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"sync"

	"github.com/tokgate/tokgate/metric"
)

// Lost is the panic value when a long recording cannot be read again. It is a panic, because no
// caller can continue without the requests.
type Lost struct{ error }

// Unwrap returns the underlying error.
func (l Lost) Unwrap() error { return l.error }

func (l Lost) Error() string { return "could not read requests again: " + l.error.Error() }

// store reads the requests of a long recording again when they are needed. It keeps the latest used
// rounds in memory. Its file stays open as long as the run is in use.
type store struct {
	file io.ReaderAt

	mu     sync.Mutex
	recent []*stored
	weight int // total bytes of the rounds in recent
}

const (
	spanSize   = 256 << 10 // bytes that are read at once; more only if a single line is longer
	mostRecent = 32 << 20  // most bytes of requests in memory, besides the last round
)

type span struct {
	at   int64
	size int
	sum  uint32
}

// stored is where the requests of a round lie in the recording.
type stored struct {
	store   *store
	n, gaps int
	spans   []span
	samples []*metric.Sample // nil unless the round is in the store's recent
}

func (p *stored) add(d *decoded) {
	p.n, p.gaps = p.n+1, p.gaps+len(d.Sample.Gaps)
	if n := len(p.spans); n == 0 || p.spans[n-1].size >= spanSize || p.spans[n-1].at+int64(p.spans[n-1].size) != d.at {
		p.spans = append(p.spans, span{at: d.at})
	}
	last := &p.spans[len(p.spans)-1]
	last.size, last.sum = last.size+len(d.raw), crc32.Update(last.sum, crc32.IEEETable, d.raw)
}

// all returns the requests of the round, in the order in which they were added. Several goroutines
// may call it at once.
func (p *stored) all() []*metric.Sample {
	st := p.store
	st.mu.Lock()
	samples := p.samples
	st.mu.Unlock()
	if samples != nil {
		return samples
	}
	// Two callers may read the samples at the same time. This is harmless.
	samples, err := p.read()
	if err != nil {
		panic(Lost{err})
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if p.samples != nil {
		return p.samples
	}
	p.samples = samples
	st.recent, st.weight = append(st.recent, p), st.weight+p.weight()
	for st.weight > mostRecent && len(st.recent) > 1 {
		oldest := st.recent[0]
		oldest.samples = nil
		st.recent, st.weight = st.recent[1:], st.weight-oldest.weight()
	}
	return samples
}

func (p *stored) weight() int { return p.n*480 + p.gaps*4 }

func (p *stored) read() ([]*metric.Sample, error) {
	samples, decoder := make([]*metric.Sample, 0, p.n), newDecoder()
	var raw []byte
	for _, s := range p.spans {
		if raw = raw[:0]; cap(raw) < s.size {
			raw = make([]byte, 0, s.size)
		}
		raw = raw[:s.size]
		if _, err := p.store.file.ReadAt(raw, s.at); err != nil {
			return nil, err
		}
		if crc32.ChecksumIEEE(raw) != s.sum {
			return nil, errors.New("the recording has changed since it was read")
		}
		for line := range bytes.Lines(raw) {
			l, err := decoder.decode(bytes.TrimSuffix(line, []byte("\n")))
			if err != nil {
				return nil, err
			}
			samples = append(samples, l.Sample)
		}
	}
	return samples, nil
}
