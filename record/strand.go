package record

import (
	"errors"

	"github.com/tokgate/tokgate/metric"
)

// Strand is the samples that one process sends to another, as lines of a recording. The checksum of
// each line covers all lines before it, so none can be lost, added or moved unnoticed. A Strand
// either seals or opens, and is not safe for concurrent use.
type Strand struct {
	chain    chain
	requests requestLine
	decoder  *decoder
}

// NewStrand returns a Strand before its first line.
func NewStrand() *Strand {
	return &Strand{requests: requestLine{words: map[string]string{}}, decoder: newDecoder()}
}

// Seal returns the line of a sample, without a line feed. The next call overwrites it.
func (s *Strand) Seal(x *metric.Sample) ([]byte, error) {
	raw, err := s.requests.encode(x)
	if err != nil {
		return nil, err
	}
	return s.chain.seal(raw), nil
}

// Open returns the sample of a line. It returns an error if the line is damaged, is not the next one,
// or describes a request that cannot have happened.
func (s *Strand) Open(raw []byte) (*metric.Sample, error) {
	if err := s.chain.open(raw); err != nil {
		return nil, err
	}
	l, err := s.decoder.decode(raw)
	switch {
	case err != nil:
		return nil, err
	case l.Sample == nil:
		return nil, errors.New("it is not the line of a request")
	}
	return l.Sample, possible(l.Sample)
}
