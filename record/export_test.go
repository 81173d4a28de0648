package record

import (
	"bytes"
	"io"
	"strings"

	"github.com/tokgate/tokgate/metric"
)

// ReadFrom and ReadAnswers read from an io.Reader and not from a folder.
func ReadFrom(r io.Reader) (*metric.Run, Problems, error) { return readAll(r, nil) }

var ReadAnswers = readAnswers

// ReadStored does the same as ReadFrom, but reads the requests again when they are needed, as those
// of a long recording.
func ReadStored(raw []byte, again io.ReaderAt) (*metric.Run, Problems, error) {
	return readAll(bytes.NewReader(raw), &store{file: again})
}

// DecodeFast reads the line of a request with the fast decoder. It returns false if only
// encoding/json can read the line.
func DecodeFast(line []byte) (*metric.Sample, bool) {
	l := requestLine{reading: true, words: map[string]string{}}
	s := new(metric.Sample)
	return s, l.decode(line, s, new(metric.Usage))
}

// Encoder returns a function that writes the line of a request. The next call overwrites the line.
func Encoder() func(*metric.Sample) ([]byte, error) {
	l := requestLine{words: map[string]string{}}
	return l.encode
}

// Reseal does what Seal does, for lines that already have checks. It replaces the checks.
func Reseal(lines string) string {
	var bare strings.Builder
	for l := range strings.Lines(lines) {
		l, _, _ = strings.Cut(strings.TrimSuffix(l, "\n"), checkHead)
		if l = strings.TrimSuffix(l, "}"); l != "" {
			bare.WriteString(l + "}\n")
		}
	}
	return Seal(bare.String())
}

// Seal adds checks to lines without checks, and so makes a recording.
func Seal(lines string) string {
	var c chain
	var out strings.Builder
	for l := range strings.Lines(lines) {
		out.Write(c.seal([]byte(strings.TrimSuffix(l, "\n"))))
		out.WriteByte('\n')
	}
	return out.String()
}
