//go:build !race

package client

import (
	"syscall"
	"unsafe"
)

// These system calls never wait, so the scheduler is not told of them. To tell it costs
// more than a read: where the process was idle it wakes the runtime's monitor, a thread
// that then looks at what runs every 20 µs until nothing does.

// readNow reads what there is.
func readNow(fd int, b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	return result(n, errno)
}

// mostCopied is how many bytes may be copied before others get the processor.
const mostCopied = 64 << 10

// writeNow writes what there is room for.
func writeNow(fd int, b []byte) (int, error) {
	if len(b) > mostCopied {
		return syscall.Write(fd, b)
	}
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	return result(n, errno)
}

// readyNow fills in events with what is ready.
func readyNow(ep int, events []syscall.EpollEvent) (int, error) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(ep), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
	return result(n, errno)
}

func result(n uintptr, errno syscall.Errno) (int, error) {
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
