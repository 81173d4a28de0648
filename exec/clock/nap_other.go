//go:build !linux

package clock

import "time"

// nap is not needed: the runtime's timers are finer than a millisecond.
var nap func(time.Duration)
