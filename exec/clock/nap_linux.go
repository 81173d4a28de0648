package clock

import (
	"syscall"
	"time"
)

// nap has the kernel wake this thread, to about 60 µs.
var nap = func(d time.Duration) {
	rest := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&rest, nil) // a signal ends it: then the next one is longer
}
