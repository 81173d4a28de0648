//go:build !unix

package server

import (
	"os"
	osexec "os/exec"
)

// OpenFiles returns false, because the limit on open files cannot be read on this system.
func OpenFiles() (n uint64, ok bool) { return 0, false }

// This system has no process groups, so tokgate ends only the server's first process. Processes
// that it has started may remain.

func ownGroup(*osexec.Cmd) {}

// terminate kills the process, because this system has no signal that asks a process to end.
func terminate(group int, _ string) { kill(group) }

func kill(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
		_ = p.Release()
	}
}

// family always returns nil, because this system does not show process groups. The launcher itself
// waits for the first process.
func family(int, string) []int { return nil }

// These functions return empty values, because this system does not tell.
func boot() string                         { return "" }
func startOf(int) string                   { return "" }
func listening(int) []string               { return nil }
func sockets(int, []int) ([]socket, error) { return nil, errUnseen }
