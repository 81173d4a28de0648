//go:build !race

package direct

import (
	"syscall"
	"unsafe"
)

// The system calls below never wait, so they bypass Go's scheduler. To tell the scheduler takes
// longer than the read itself. In an idle process, it also wakes a thread that polls every 20 µs.

// readNow reads bytes that have already arrived, and does not wait for more.
func readNow(fd int, b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	return result(n, errno)
}

// peekNow reports whether bytes wait to be read, or the end of the connection. It takes none of them.
func peekNow(fd int) bool {
	var b [1]byte
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b)), 1,
		syscall.MSG_PEEK|syscall.MSG_DONTWAIT, 0, 0)
	return errno != syscall.EAGAIN && errno != syscall.EINTR
}

// writeNow writes as many bytes as the socket takes without waiting. Write at most MostInline bytes:
// during the call, no other goroutine can use the processor.
func writeNow(fd int, b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	return result(n, errno)
}

// readyNow fills events with the descriptors that are ready, and does not wait.
func readyNow(ep int, events []syscall.EpollEvent) (int, error) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(ep), uintptr(unsafe.Pointer(unsafe.SliceData(events))),
		uintptr(len(events)), 0, 0, 0)
	return result(n, errno)
}

func result(n uintptr, errno syscall.Errno) (int, error) {
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
