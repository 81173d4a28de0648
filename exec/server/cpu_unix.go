//go:build unix

package server

import (
	"syscall"
	"time"
)

// CPUTime returns the processor time of this process so far, user and system together.
func CPUTime() (time.Duration, bool) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
