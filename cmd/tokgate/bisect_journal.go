package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"

	"github.com/tokgate/tokgate/record/disk"
	"github.com/tokgate/tokgate/report/bisection"
)

// journal keeps the legs of a bisection in a folder, so that it can go on. Its first line is what is
// asked, and each later line is a leg, on disk before the next one begins.
type journal struct {
	dir  string
	file *disk.File
	legs []bisection.Leg
}

// journalFile is the name of the journal in the folder of a bisection.
const journalFile = "bisect.jsonl"

// openJournal opens the journal in a folder, or begins one. A bisection that goes on keeps its salt and
// its time. A last line without an end was never complete, so it is removed.
func openJournal(dir string, q *bisection.Question) (*journal, error) {
	if err := disk.MkdirAll(dir, 0o755); err != nil {
		return nil, measureError(err)
	}
	f, err := disk.OpenFile(filepath.Join(dir, journalFile), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, measureError(err)
	}
	j := &journal{dir: dir, file: f}
	whole, err := io.ReadAll(f)
	if err == nil {
		end := bytes.LastIndexByte(whole, '\n') + 1
		if end < len(whole) {
			err = f.Truncate(int64(end))
		}
		whole = whole[:end]
	}
	if err == nil && len(whole) == 0 {
		return j, j.put(q)
	}
	if err == nil {
		err = j.read(whole, q)
	}
	if err != nil {
		_ = f.Close()
		var exit *exitError
		if errors.As(err, &exit) {
			return nil, err
		}
		return nil, measureError(fmt.Errorf("%s: %w", filepath.Join(dir, journalFile), err), "choose another folder with --out")
	}
	return j, nil
}

func (j *journal) read(whole []byte, q *bisection.Question) error {
	lines := bufio.NewScanner(bytes.NewReader(whole))
	lines.Buffer(nil, 1<<24)
	for n := 0; lines.Scan(); n++ {
		if n > 0 {
			var l bisection.Leg
			if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
				return fmt.Errorf("line %d: %w", n+1, err)
			}
			j.legs = append(j.legs, l)
			continue
		}
		var before bisection.Question
		if err := json.Unmarshal(lines.Bytes(), &before); err != nil {
			return fmt.Errorf("line 1: %w", err)
		}
		if !q.Simulated {
			q.Salt, q.Began = before.Salt, before.Began
		}
		if !reflect.DeepEqual(before, *q) {
			return usageError("choose another folder with --out", "%s holds another bisection: other values, another cell or another --least", j.dir)
		}
	}
	return lines.Err()
}

// at returns when the last leg was measured.
func (j *journal) at() float64 {
	if len(j.legs) == 0 {
		return 0
	}
	return j.legs[len(j.legs)-1].At
}

func (j *journal) add(l bisection.Leg) error {
	for _, before := range j.legs {
		if before.Asked != "" && l.Asked != "" && before.Asked != l.Asked {
			return measureError(fmt.Errorf("leg %d was asked for something else than the legs before it: another cell", len(j.legs)+1), "choose another folder with --out")
		}
	}
	j.legs = append(j.legs, l)
	return j.put(l)
}

func (j *journal) put(x any) error {
	raw, err := json.Marshal(x)
	if err == nil {
		_, err = j.file.Write(append(raw, '\n'))
	}
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		return measureError(fmt.Errorf("could not keep a leg: %w", err))
	}
	return nil
}

func (j *journal) close() { _ = j.file.Close() }
