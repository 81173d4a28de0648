//go:build unix

package server

import "syscall"

// OpenFiles returns the largest number of files and connections that this process may have open. ok
// is false if it is not known. The Go runtime has already raised this limit to its maximum.
func OpenFiles() (n uint64, ok bool) {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0, false
	}
	return uint64(limit.Cur), true
}
