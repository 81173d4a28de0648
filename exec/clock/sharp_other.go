//go:build !linux

package clock

import (
	"errors"
	"time"
)

// alarm does nothing on this system, because the runtime's timers are finer than a millisecond.
type alarm struct{}

func newAlarm(func()) (*alarm, error) { return nil, errors.ErrUnsupported }

func (*alarm) set(time.Duration) error { return errors.ErrUnsupported }

func (*alarm) close() {}
