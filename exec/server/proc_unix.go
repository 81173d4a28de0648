//go:build unix && !linux

package server

import (
	osexec "os/exec"
	"strconv"
	"strings"
)

// startOf tells a process from a later one with the same pid: its start, to
// the second; "" when it is gone.
func startOf(pid int) string {
	out, err := osexec.Command("ps", "-o", "lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// alive reports whether anything is left of the group. A process that ended and
// was not yet waited for still counts.
func alive(group int) bool { return exists(group) }

// marked would be the processes with the mark in their environment, which
// other systems do not show.
func marked(string) []int { return nil }

// listener would tell the socket that listens on a port from a later one.
func listener(int) string { return "" }

// boot is not known here.
func boot() string { return "" }
