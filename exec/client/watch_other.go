//go:build !linux

package client

import "net"

// watched is what a line knows about its watcher, which is a goroutine of its own.
type watched struct{}

func (*line) poll() bool { return false }
func (*line) unwatch()   {}
func (*line) rest()      {}
func (*line) look()      {}

func unpolled(conn net.Conn) net.Conn         { return conn }
func waiting(conn net.Conn) (net.Conn, error) { return conn, nil }
