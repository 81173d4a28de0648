//go:build unix

package direct

import (
	"net"
	"syscall"
)

// Pending reports whether bytes wait to be read on the connection, or its end. It takes none of them,
// and it does not wait. It returns false if the connection cannot be asked.
func Pending(conn net.Conn) (some bool) {
	switch conn := conn.(type) {
	case interface{ Pending() bool }:
		return conn.Pending()
	case syscall.Conn:
		raw, err := conn.SyscallConn()
		if err != nil {
			return false
		}
		_ = raw.Control(func(fd uintptr) { // package net makes sockets that do not block
			_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK)
			some = err != syscall.EAGAIN && err != syscall.EINTR
		})
	}
	return some
}
