//go:build !unix

package server

// OpenFiles returns false, because the limit on open files cannot be read on this system.
func OpenFiles() (n uint64, ok bool) { return 0, false }
