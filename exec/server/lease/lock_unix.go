//go:build unix

package lease

import (
	"errors"
	"os"
	"syscall"

	"github.com/tokgate/tokgate/record/disk"
)

// Proof says whether a free lock on a note proves that its writer has ended. A note is a file about
// the servers that a process started.
const Proof = true

// lockFile locks a file until it is closed or the process ends. It returns errLocked at once if
// another process holds the lock. Child processes do not inherit the lock, because Go opens every
// file close-on-exec.
func lockFile(f *disk.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errLocked
		default:
			return &os.PathError{Op: "lock", Path: f.Name(), Err: err}
		}
	}
}
