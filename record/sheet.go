package record

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/tokgate/tokgate/record/disk"
)

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
