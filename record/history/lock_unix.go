//go:build unix

package history

import (
	"syscall"

	"github.com/tokgate/tokgate/record/disk"
)

// lock waits until no other process has the lock for the file, and takes it. The lock ends when the
// file is closed or the process ends.
func lock(f *disk.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }
