//go:build unix

package history

import (
	"syscall"

	"github.com/tokgate/tokgate/record/disk"
)

// lock waits until no other process adds to the file; the lock ends with the
// file's being closed, or the process.
func lock(f *disk.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }
