//go:build !unix && !windows

package server

import "time"

// CPUTime is not known on this system.
func CPUTime() (time.Duration, bool) { return 0, false }
