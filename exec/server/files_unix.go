//go:build unix

package server

import "syscall"

// OpenFiles is how many files and connections this process may have open; ok is false
// where that is not known. The runtime has raised it as far as it may be.
func OpenFiles() (n uint64, ok bool) {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0, false
	}
	return uint64(limit.Cur), true
}
