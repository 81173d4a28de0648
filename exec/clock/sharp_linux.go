package clock

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// alarm is a timer of the kernel that is precise to about 10 µs. The timers of Go's runtime wake an
// idle process only to the millisecond (golang.org/issue/44343). The runtime polls an alarm like a
// socket, so no thread waits for it.
type alarm struct {
	file *os.File
	raw  syscall.RawConn
}

// newAlarm returns an alarm that calls the function ring each time it goes off, until it is closed.
func newAlarm(ring func()) (*alarm, error) {
	const monotonic = 1 // CLOCK_MONOTONIC
	fd, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, monotonic, syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if errno != 0 {
		return nil, os.NewSyscallError("timerfd_create", errno)
	}
	a := &alarm{file: os.NewFile(fd, "timer")}
	var err error
	if a.raw, err = a.file.SyscallConn(); err != nil {
		_ = a.file.Close()
		return nil, err
	}
	go func() {
		for times := make([]byte, 8); ; ring() {
			if _, err := a.file.Read(times); err != nil {
				return // closed
			}
		}
	}()
	return a, nil
}

// set lets the alarm go off once, after d.
func (a *alarm) set(d time.Duration) error {
	spec := struct{ interval, value syscall.Timespec }{value: syscall.NsecToTimespec(int64(max(d, 1)))}
	var errno syscall.Errno
	err := a.raw.Control(func(fd uintptr) {
		_, _, errno = syscall.Syscall6(syscall.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
	})
	if err == nil && errno != 0 {
		err = os.NewSyscallError("timerfd_settime", errno)
	}
	return err
}

func (a *alarm) close() { _ = a.file.Close() }
