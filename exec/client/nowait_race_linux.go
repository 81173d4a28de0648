//go:build race

package client

import "syscall"

// These calls tell the race detector that the read happens after the write.

func readNow(fd int, b []byte) (int, error)  { return syscall.Read(fd, b) }
func writeNow(fd int, b []byte) (int, error) { return syscall.Write(fd, b) }

func readyNow(ep int, events []syscall.EpollEvent) (int, error) {
	return syscall.EpollWait(ep, events, 0)
}
