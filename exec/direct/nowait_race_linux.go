//go:build race

package direct

import "syscall"

// readNow and writeNow are for builds with the race detector. syscall.Read and syscall.Write tell
// the detector that a read comes after its write.

func readNow(fd int, b []byte) (int, error) {
	n, err := syscall.Read(fd, b)
	return max(n, 0), err
}

func writeNow(fd int, b []byte) (int, error) {
	n, err := syscall.Write(fd, b)
	return max(n, 0), err
}

func peekNow(fd int) bool {
	_, _, err := syscall.Recvfrom(fd, make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return err != syscall.EAGAIN && err != syscall.EINTR
}

func readyNow(ep int, events []syscall.EpollEvent) (int, error) {
	n, err := syscall.EpollWait(ep, events, 0)
	return max(n, 0), err
}
