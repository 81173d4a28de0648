//go:build unix && !linux

package server

import (
	"errors"
	osexec "os/exec"
	"strconv"
	"strings"
	"syscall"
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

func terminate(group int, _ string) { _ = syscall.Kill(-group, syscall.SIGTERM) }

// family returns the process group, as a negative number, if it still has a process. A zombie counts
// too: a process that has ended, but whose parent has not waited for it. This system does not show the
// environment of a process, so those that left the group are not known.
func family(group int, _ string) []int {
	if group > 1 && exists(group) {
		return []int{-group}
	}
	return nil
}

// These functions return nothing, because this system does not show which sockets listen on a port.
func listening(int) []string               { return nil }
func sockets(int, []int) ([]socket, error) { return nil, errUnseen }

// boot returns "", because this system does not show a boot id.
func boot() string { return "" }

// A process that has ended also counts, until its parent has waited for it.
func exists(group int) bool { return !errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) }
