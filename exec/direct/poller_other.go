//go:build !linux

package direct

import "net"

// watched is empty on this system, because each connection has a goroutine that watches it.
type watched struct{}

func (*line) poll() bool { return false }
func (*line) unwatch()   {}
func (*line) rest()      {}
func (*line) look()      {}

func unpolled(conn net.Conn) net.Conn         { return conn }
func waiting(conn net.Conn) (net.Conn, error) { return conn, nil }
