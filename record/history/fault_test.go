package history

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/record/disk"
)

// Any system call may fail while a night is added to a history, even in the middle of a write.
// Afterwards every added night is still read exactly once, and another night can be added. An
// incomplete line is reported.
func TestDiskFaults(t *testing.T) {
	for _, half := range []bool{false, true} {
		at, calls := 0, 0
		for calls >= at { // call 1 fails in the first turn, call 2 in the second, and so on
			dir := t.TempDir()
			at++
			calls = 0
			undo := disk.Inject(func(c disk.Call) (int, error) {
				if calls++; calls != at {
					return 0, nil
				}
				if half {
					return c.Size / 2, syscall.ENOSPC
				}
				return 0, syscall.EIO
			})
			want := map[string]bool{}
			failed := 0
			for i := range 3 {
				run := fmt.Sprint("run-", i)
				if added, _, err := Add(dir, night(run, november, 1)); err != nil {
					failed++
				} else if added {
					want[run] = true
				}
			}
			undo()
			h, problems, err := Read(dir)
			must.Need(t, err == nil && len(problems) <= failed, "call %d: %v, %v", at, problems, err)
			for _, n := range h.Nights {
				delete(want, n.Run)
			}
			must.Need(t, len(want) <= 0 && failed <= 1, "call %d: nights %v are lost, %d could not be added", at, want, failed)
			// The second try adds only the nights that could not be added before.
			for i := range 3 {
				if _, _, err := Add(dir, night(fmt.Sprint("run-", i), november, 1)); err != nil {
					t.Fatal(err)
				}
			}
			if h, problems, err := Read(dir); err != nil || len(problems) > 0 || len(h.Nights) != 3 {
				t.Fatalf("call %d: %d nights, %v, %v", at, len(h.Nights), problems, err)
			}
		}
		t.Logf("%d calls", at-1)
	}
}
