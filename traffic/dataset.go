package traffic

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of a data set and of a trace. Anything beyond them is an error.
const (
	maxFile = 2 << 30  // largest file, in bytes
	MaxRow  = 32 << 20 // largest row, in bytes
	maxRows = 2_000_000
)

// Dataset is a file of requests.
type Dataset struct {
	Path string // path as the caller gave it
	Hash string // SHA-256 of the file, hex
	Rows []Row  // at least one row
}

// Options control how a data set is read.
type Options struct {
	// Column is the name of the column with the prompts in a CSV file; "" if the file is not CSV.
	Column string
	// Talks reads conversations of ShareGPT with all that is said in them, not only what a person says first.
	Talks bool
}

// Error is a problem with a data set and its place.
type Error struct {
	Path string
	Line int // 1-based; 0 for the file as a whole
	Err  error
}

// Error returns a message such as "prompts.jsonl:7: no prompt".
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.Path, e.Line, e.Err)
}

// Unwrap returns the problem.
func (e *Error) Unwrap() error { return e.Err }

// Read reads a data set: JSON lines, a JSON array of objects, or a CSV file with a header. It
// detects the format from the name and the first character of the file. Read refuses files that are
// not regular. Errors are *Error.
func Read(path string, o Options) (*Dataset, error) {
	return read(path, func(r io.Reader) (*Dataset, error) { return Parse(r, path, o) })
}

// ReadFile reads a data set from an open file, as Read does; path is its name.
func ReadFile(f *os.File, path string, o Options) (*Dataset, error) {
	return readOpen(f, path, func(r io.Reader) (*Dataset, error) { return Parse(r, path, o) })
}

func read[T any](path string, parse func(io.Reader) (*T, error)) (*T, error) {
	// Call Stat first, because opening a pipe would wait for a writer.
	info, err := os.Stat(path)
	if err != nil {
		return nil, &Error{Path: path, Err: reason(err)}
	}
	if !info.Mode().IsRegular() {
		return nil, &Error{Path: path, Err: errors.New("it is no regular file")}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, &Error{Path: path, Err: reason(err)}
	}
	defer f.Close()
	return readOpen(f, path, parse)
}

func readOpen[T any](f *os.File, path string, parse func(io.Reader) (*T, error)) (*T, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, &Error{Path: path, Err: reason(err)}
	}
	if info.Size() > maxFile {
		return nil, &Error{Path: path, Err: fmt.Errorf("it has %d bytes, at most %d are read", info.Size(), maxFile)}
	}
	return parse(sized{io.LimitReader(f, maxFile), info.Size()})
}

type sized struct {
	io.Reader
	size int64
}

func (s sized) Size() int64 { return s.size }

// reason returns an error of the file system without the path, because the message names
// the path anyway.
func reason(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

// Parse reads a data set from r; path is its name. Errors are *Error.
func Parse(r io.Reader, path string, o Options) (*Dataset, error) {
	in, b := begin(r)
	rows, line, err := parse(b, in, path, o)
	if err == nil && len(rows) == 0 {
		line, err = 0, errors.New("it has no row")
	}
	if err != nil {
		return nil, &Error{Path: path, Line: line, Err: err}
	}
	return &Dataset{Path: path, Hash: hex.EncodeToString(in.sum.Sum(nil)), Rows: rows}, nil
}

// begin skips the byte order mark of r. The returned input computes the hash of the file and limits
// the length of a row. The buffered reader reads from the input.
func begin(r io.Reader) (*input, *bufio.Reader) {
	in := &input{sum: sha256.New(), r: r}
	if f, ok := r.(interface{ Size() int64 }); ok {
		in.size = f.Size()
	}
	b := bufio.NewReaderSize(in, 1<<20)
	if mark, _ := b.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = b.Discard(3)
	}
	return in, b
}

// parse detects the format of the rows and reads them. If it fails, the result line is the number
// of the faulty line.
func parse(b *bufio.Reader, in *input, path string, o Options) (rows []Row, line int, err error) {
	table := strings.EqualFold(filepath.Ext(path), ".csv")
	switch {
	case table && o.Column == "":
		return nil, 0, errors.New("a CSV file needs the name of the column that holds the prompts")
	case table:
		return parseCSV(b, in, o.Column)
	case o.Column != "":
		return nil, 0, errors.New("only a CSV file has columns; its name ends in .csv")
	}
	first, err := in.first(b)
	var silent error
	keep := func(raw []byte, line int) error {
		row, err := readRow(raw, line, o)
		if errors.Is(err, errSilent) {
			silent = err
			return nil
		}
		rows = append(rows, row)
		return err
	}
	switch {
	case err != nil || first == 0:
	case first == '[':
		line, err = eachElement(b, in, keep)
	default:
		line, err = eachLine(b, in, keep)
	}
	if err == nil && len(rows) == 0 {
		return nil, 0, silent
	}
	return rows, line, err
}

func (in *input) first(b *bufio.Reader) (byte, error) {
	for {
		c, err := b.ReadByte()
		switch {
		case err == io.EOF:
			return 0, nil
		case err != nil:
			return 0, reason(err)
		case c == '\n':
			in.lines++
		case c == ' ' || c == '\t' || c == '\r':
		default:
			return c, b.UnreadByte()
		}
	}
}

type input struct {
	r     io.Reader
	sum   hash.Hash
	lines int   // number of lines before the first row
	row   int   // number of bytes read since the last row ended
	size  int64 // of the file, in bytes; 0 if not known
	done  int64 // number of bytes up to the end of the row that is being read
}

// reserve returns the rows with room for one more. It grows them once to the number that a file will
// have if it goes on as it began: by doubling, old and new rows would be in memory together.
func reserve[T any](in *input, rows []T) []T {
	const first = 1 << 10 // rows from which the rest is estimated
	if len(rows) < cap(rows) || len(rows) < first || in.done == 0 {
		return rows
	}
	all := float64(len(rows)) * float64(in.size) / float64(in.done) * 17 / 16
	return slices.Grow(rows, max(int(min(all, maxRows))-len(rows), 1))
}

var errLong = fmt.Errorf("a row is longer than %d bytes", MaxRow)

// Read implements io.Reader. It returns errLong for a row that is too long, and the parsers pass
// this on.
func (in *input) Read(p []byte) (int, error) {
	if in.row > MaxRow {
		return 0, errLong
	}
	n, err := in.r.Read(p)
	in.sum.Write(p[:n])
	in.row += n
	return n, err
}
