package history

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/tokgate/tokgate/record/disk"
)

// Any system call may fail while a night is added, and a write may also fail in the middle. Every
// night that was added is read back exactly once, and the next night can be added. An incomplete
// line is reported.
func TestDiskFaults(t *testing.T) {
	for _, half := range []bool{false, true} {
		at, calls := 0, 0
		for calls >= at { // the last pass makes fewer calls than at, so no call fails
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
			if err != nil || len(problems) > failed {
				t.Fatalf("call %d: %v, %v", at, problems, err)
			}
			for _, n := range h.Nights {
				delete(want, n.Run)
			}
			if len(want) > 0 || failed > 1 {
				t.Fatalf("call %d: nights %v are lost, %d could not be added", at, want, failed)
			}
			// If a night could not be added, the second try adds it. If the night is there already,
			// nothing is added.
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
