package server

import (
	"syscall"
	"time"
)

// CPUTime returns the processor time that this process has used, user and system.
func CPUTime() (time.Duration, bool) {
	self, err := syscall.GetCurrentProcess()
	if err != nil {
		return 0, false
	}
	var created, exited, kernel, user syscall.Filetime
	if syscall.GetProcessTimes(self, &created, &exited, &kernel, &user) != nil {
		return 0, false
	}
	// A Filetime counts units of 100 ns. Its method Nanoseconds is only for dates, and does not
	// convert a duration.
	ticks := func(f syscall.Filetime) int64 { return int64(f.HighDateTime)<<32 | int64(f.LowDateTime) }
	return time.Duration(ticks(kernel)+ticks(user)) * 100, true
}
