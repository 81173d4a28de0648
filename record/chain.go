package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/tokgate/tokgate/record/disk"
)

// chain protects a recording. Each line ends with a checksum over its own bytes and all lines
// before it. If a line is changed, removed, added or moved, its checksum and all later ones fail.
//
// The sum after the last line identifies the recording. To find tampering too, store this sum in
// another place.
type chain [sha256.Size]byte

const (
	checkHead = `,"check":"`
	checkTail = `"}`
	checkHex  = 16 // number of hexadecimal digits of a checksum: the first 8 bytes of a SHA-256 sum
	checkSize = len(checkHead) + checkHex + len(checkTail)
)

func (c *chain) seal(object []byte) []byte {
	body := object[:len(object)-1]
	c.add(body)
	out := append(body, checkHead...)
	out = hex.AppendEncode(out, c[:checkHex/2])
	return append(out, checkTail...)
}

func (c *chain) open(line []byte) error {
	at := len(line) - checkSize
	if at < 1 || !bytes.HasPrefix(line[at:], []byte(checkHead)) || !bytes.HasSuffix(line, []byte(checkTail)) {
		return errors.New("it is damaged: it has no checksum")
	}
	c.add(line[:at])
	want := hex.AppendEncode(nil, c[:checkHex/2])
	if !bytes.Equal(line[at+len(checkHead):len(line)-len(checkTail)], want) {
		return errors.New("it was changed after it was written, or a line before it is missing: its checksum does not match")
	}
	return nil
}

// SealLine returns a JSON object with a checksum over its own bytes. It is for files whose lines
// may be merged with lines of other files.
func SealLine(object []byte) []byte { return new(chain).seal(object) }

// CheckLine verifies a line that SealLine made, without the line feed.
func CheckLine(line []byte) error { return new(chain).open(line) }

func (c *chain) add(body []byte) {
	h := sha256.New()
	h.Write(c[:])
	h.Write(body)
	h.Sum(c[:0])
}

func (c *chain) String() string { return hex.EncodeToString(c[:]) }

// sheet is a file of lines that only grows. The checksum of each line covers the line and all lines
// before it.
type sheet struct {
	file  *disk.File
	size  int64
	chain chain
}

func (s *sheet) add(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.append(raw)
}

func (s *sheet) append(raw []byte) error {
	n, err := s.file.Write(append(s.chain.seal(raw), '\n'))
	s.size += int64(n)
	return err
}

// keep syncs the file to disk. It returns an error if the file's name now belongs to another file.
func (s *sheet) keep() error {
	if err := s.file.Sync(); err != nil {
		return err
	}
	return s.checkName()
}

func (s *sheet) close() error {
	err := s.keep()
	if e := s.file.Close(); err == nil {
		err = e
	}
	return err
}

func (s *sheet) checkName() error {
	written, err := s.file.Stat()
	if err != nil {
		return err
	}
	named, err := disk.Lstat(s.file.Name())
	switch {
	case err != nil:
		return err
	case !os.SameFile(written, named):
		return fmt.Errorf("another file has taken the place of %s", s.file.Name())
	case named.Size() != s.size:
		return fmt.Errorf("%s has %d bytes, and %d were written", s.file.Name(), named.Size(), s.size)
	}
	return nil
}
