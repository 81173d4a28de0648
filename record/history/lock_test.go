//go:build unix

package history

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record"
	"github.com/tokgate/tokgate/record/disk"
)

// A writer waits while another process is in the middle of a line. Otherwise it would take the half
// line for the remains of a crashed writer, and remove it.
func TestWriterInTheMiddleIsWaitedFor(t *testing.T) {
	const each = 50
	dir := t.TempDir()
	if _, _, err := Add(dir, night("first", november, 1)); err != nil {
		t.Fatal(err)
	}
	slow := make(chan error, 1)
	go func() {
		for i := range each {
			if err := addInHalves(filepath.Join(dir, "2026-11.jsonl"), night(fmt.Sprintf("slow-%d", i), november, 1)); err != nil {
				slow <- err
				return
			}
		}
		slow <- nil
	}()
	for i := range each {
		if _, repaired, err := Add(dir, night(fmt.Sprintf("fast-%d", i), november, 1)); err != nil || repaired != "" {
			t.Error(repaired, err)
		}
	}
	must.Do(t, <-slow)
	h, problems, err := Read(dir)
	must.Hold(t, err == nil && len(problems) <= 0 && len(h.Nights) == 2*each+1, "%d nights, want %d: %v %v", len(h.Nights), 2*each+1, problems, err)
}

// addInHalves writes the line of a night in two halves. The first half is on disk before the second
// is written.
func addInHalves(path string, n metric.Night) error {
	raw, err := json.Marshal(line{Schema: schema, Night: &n})
	if err != nil {
		return err
	}
	raw = record.SealLine(raw)
	f, err := disk.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := lock(f); err != nil {
		return err
	}
	for _, part := range [][]byte{raw[:len(raw)/2], append(raw[len(raw)/2:], '\n')} {
		if _, err := f.Write(part); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return nil
}
