package direct

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/textproto"
)

// frame removes the framing of HTTP/1.1 from a body that arrives in reads of any size. It accepts
// and refuses the same bodies as net/http. See RFC 9112, sections 6 and 7.1.
type frame struct {
	kind frameOf
	left uint64 // number of bytes still to come of the body, or of its current chunk
	line []byte // incomplete line of framing: the size of a chunk, or a trailer
	// excess counts bytes of framing that the data did not need, such as long chunk headers.
	excess int64
}

type frameOf int

const (
	untilClose frameOf = iota // the body ends when the connection ends
	byLength
	chunkSize // the next bytes are the size of a chunk, in a chunked body
	chunkData
	chunkEnd
	chunkTrailer
	frameOver
)

// The constants are the largest accepted sizes of framing, in bytes. net/http has the same limits.
const (
	maxChunkLine = 4096
	maxExcess    = 16 << 10
	maxTrailer   = 4096
)

var (
	errChunkLine    = errors.New("header line too long")
	errChunkEnd     = errors.New("malformed chunked encoding")
	errChunkExcess  = errors.New("chunked encoding contains too much non-data")
	errTrailerEnd   = errors.New("http: unexpected EOF reading trailer")
	errTrailerLong  = errors.New("http: suspiciously long trailer after chunked body")
	errChunkNoSize  = errors.New("empty hex number for chunk length")
	errChunkSize    = errors.New("invalid byte in chunk length")
	errChunkTooBig  = errors.New("http chunk length too large")
	errChunkBareLF  = errors.New("chunked line ends with bare LF")
	errChunkStrayCR = errors.New("invalid CR in chunked line")
)

// frameFor returns the framing of an answer's body.
func frameFor(r *http.Response) frame {
	switch {
	case r.Body == http.NoBody:
		return frame{kind: frameOver}
	case len(r.TransferEncoding) > 0:
		return frame{kind: chunkSize}
	case r.ContentLength >= 0:
		return frame{kind: byLength, left: uint64(r.ContentLength)}
	}
	return frame{kind: untilClose}
}

// strip removes the framing from b: it moves the body's data to the front of b. It returns the
// length of the data, and how many bytes of b it consumed. It stops at the end of the body.
func (f *frame) strip(b []byte) (data, used int, err error) {
	for used < len(b) && f.kind != frameOver && err == nil {
		rest := b[used:]
		n := len(rest)
		switch f.kind {
		case untilClose:
			data += copy(b[data:], rest)
		case byLength, chunkData:
			n = int(min(uint64(n), f.left))
			data += copy(b[data:], rest[:n])
			if f.left -= uint64(n); f.left == 0 && f.kind == byLength {
				f.kind = frameOver
			} else if f.left == 0 {
				f.kind = chunkEnd
			}
		case chunkSize:
			n, err = f.size(rest)
		case chunkEnd:
			n = min(n, 2-len(f.line))
			if f.line = append(f.line, rest[:n]...); len(f.line) < 2 {
				break
			}
			if string(f.line) != "\r\n" {
				err = errChunkEnd
			}
			f.line, f.kind = f.line[:0], chunkSize
		case chunkTrailer:
			n, err = f.trailer(rest)
		}
		used += n
	}
	return data, used, err
}

// size reads the line with the length of the next chunk. If b ends within the line, size keeps what
// it has for the next call.
func (f *frame) size(b []byte) (n int, err error) {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		if f.line = append(f.line, b...); len(f.line) >= maxChunkLine {
			return len(b), errChunkLine
		}
		return len(b), nil
	}
	line := b[:end+1]
	if len(f.line) > 0 {
		f.line = append(f.line, line...)
		line, f.line = f.line, f.line[:0]
	}
	if len(line) > maxChunkLine {
		return end + 1, errChunkLine
	}
	switch cr := bytes.IndexByte(line, '\r'); {
	case cr < 0:
		return end + 1, errChunkBareLF
	case cr != len(line)-2:
		return end + 1, errChunkStrayCR
	}
	line = line[:len(line)-2]
	f.excess += int64(len(line)) + 2
	size, _, _ := bytes.Cut(bytes.TrimRight(line, " \t"), []byte(";"))
	if f.left, err = hex(size); err != nil {
		return end + 1, err
	}
	if f.excess = max(f.excess-16-2*int64(f.left), 0); f.excess > maxExcess {
		return end + 1, errChunkExcess
	}
	if f.kind = chunkData; f.left == 0 {
		f.kind = chunkTrailer
	}
	return end + 1, nil
}

func hex(digits []byte) (n uint64, err error) {
	if len(digits) == 0 {
		return 0, errChunkNoSize
	}
	for i, b := range digits {
		switch {
		case '0' <= b && b <= '9':
			b -= '0'
		case 'a' <= b && b <= 'f':
			b -= 'a' - 10
		case 'A' <= b && b <= 'F':
			b -= 'A' - 10
		default:
			return 0, errChunkSize
		}
		if i == 16 {
			return 0, errChunkTooBig
		}
		n = n<<4 | uint64(b)
	}
	return n, nil
}

// trailer reads what follows the last chunk: trailer fields, which are not used, and an empty line.
func (f *frame) trailer(b []byte) (n int, err error) {
	before := len(f.line)
	f.line = append(f.line, b[:min(len(b), maxTrailer-before)]...)
	end := 2
	if !bytes.HasPrefix(f.line, []byte("\r\n")) {
		if end = bytes.Index(f.line, []byte("\r\n\r\n")) + 4; end < 4 {
			if len(f.line) >= maxTrailer {
				return len(b), errTrailerLong
			}
			return len(b), nil
		}
		_, err = textproto.NewReader(bufio.NewReader(bytes.NewReader(f.line[:end]))).ReadMIMEHeader()
	}
	f.kind = frameOver
	return end - before, err
}

// cut returns the error to report when a read fails with err before the body's end was seen. If the
// end of the connection also ends the body, cut returns io.EOF unchanged.
func (f *frame) cut(err error) error {
	switch {
	case err != io.EOF || f.kind == untilClose:
		return err
	case f.kind == chunkTrailer && len(f.line) < 2:
		return errTrailerEnd
	case f.kind == chunkTrailer:
		return errTrailerLong
	}
	return io.ErrUnexpectedEOF
}
