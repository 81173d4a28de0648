//go:build !unix

package direct

import "net"

// Pending returns false, because this system cannot look at waiting bytes without taking them.
func Pending(net.Conn) bool { return false }
