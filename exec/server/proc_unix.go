//go:build unix && !linux

package server

import (
	osexec "os/exec"
	"strconv"
	"strings"
)

// startOf returns the start time of a process, to the second. A later process with the same pid has
// a different start time. startOf returns "" if the process is gone.
func startOf(pid int) string {
	out, err := osexec.Command("ps", "-o", "lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// alive reports whether the process group still has a process. A zombie counts too: a process that
// has ended, but whose parent has not waited for it.
func alive(group int) bool { return exists(group) }

// marked always returns nil, because this system does not show the environment of a process.
func marked(string) []int { return nil }

// listener always returns "", because this system does not show which socket listens on a port.
func listener(int) string { return "" }

// boot returns "", because this system does not show a boot id.
func boot() string { return "" }
