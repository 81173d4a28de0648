package server

import (
	"fmt"
	"os"
)

// Ports returns how many local ports connections to one address may use; 0 if that is not known.
func Ports() int {
	var first, last int
	raw, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return 0
	}
	if _, err := fmt.Sscan(string(raw), &first, &last); err != nil || last < first {
		return 0
	}
	return last - first + 1
}
