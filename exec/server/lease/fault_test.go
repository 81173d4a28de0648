package lease

import (
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/record/disk"
)

// Writing a note about the server may fail at once, or in the middle of a write. The next run must
// still read the last whole note. If it cannot read a note, it says so and keeps the note.
func TestDiskFaults(t *testing.T) {
	before := Server{Holder: Holder{Run: "run-1", Plan: "a plan with a longer name than that which follows.hcl"}, Mark: "run-1/s", Port: 8000}
	after := before
	after.Plan, after.Group, after.Start = "p", 4711, "boot/1"
	for _, half := range []bool{false, true} {
		at, calls := 0, 0
		for calls >= at { // fail call 1, then call 2, and so on, until there are fewer calls
			f := Folder(t.TempDir())
			at++
			calls = 0
			inject := func() (undo func()) {
				return disk.Inject(func(c disk.Call) (int, error) {
					if calls++; calls != at {
						return 0, nil
					}
					if half {
						return c.Size / 2, syscall.ENOSPC
					}
					return 0, syscall.EIO
				})
			}
			undo := inject()
			noted, begun := Server{}, false
			n, err := f.Begin(before)
			if err == nil {
				noted, begun = before, true
				if err := n.Update(after); err == nil {
					noted = after
				} else if half {
					begun = false // half of a note is no note, so the run stops its server itself
				}
				n.Leave()
			}
			left, err := f.Leftovers()
			for _, l := range left {
				l.Leave()
			}
			undo()
			must.Need(t, err != nil || !begun || len(left) == 1, "call %d: nothing is found, and nothing said", at)
			if left, err = f.Leftovers(); err != nil {
				t.Fatal(err)
			}
			if begun {
				must.Need(t, len(left) == 1, "call %d: the note of the server is lost", at)
				diff := cmp.Diff(noted, left[0].Server)
				must.Need(t, diff == "" || err != nil || noted.Group == 0, "call %d (-noted +found):\n%s", at, diff)
			}
		}
		t.Logf("%d calls", at-1)
	}
}
