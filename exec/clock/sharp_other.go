//go:build !linux

package clock

import (
	"errors"
	"time"
)

// alarm does nothing here. The runtime's timers are finer than a millisecond on this system, so
// no alarm is needed.
type alarm struct{}

func newAlarm(func()) (*alarm, error) { return nil, errors.ErrUnsupported }

func (*alarm) set(time.Duration) error { return errors.ErrUnsupported }

func (*alarm) close() {}
