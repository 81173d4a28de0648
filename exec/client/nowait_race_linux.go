//go:build race

package client

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

func readyNow(ep int, events []syscall.EpollEvent) (int, error) {
	n, err := syscall.EpollWait(ep, events, 0)
	return max(n, 0), err
}
