//go:build unix

package record

import (
	"errors"
	"syscall"

	"github.com/tokgate/tokgate/record/disk"
)

// lock keeps a second run out of the folder until f is closed or the process ends. On a file system
// without locks, it does nothing.
func lock(f *disk.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return err
	}
	return nil
}
