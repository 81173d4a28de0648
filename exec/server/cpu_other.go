//go:build !unix && !windows

package server

import "time"

// CPUTime returns false, because this system does not report the processor time of the process.
func CPUTime() (time.Duration, bool) { return 0, false }
