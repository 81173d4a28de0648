//go:build unix

package history

import (
	"syscall"

	"github.com/tokgate/tokgate/record/disk"
)

// lock waits until no other process adds to the file. The lock ends when the file is
// closed or the process ends.
func lock(f *disk.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }
