//go:build !unix

package server

import (
	"os"
	osexec "os/exec"
)

// This system has no process groups, so tokgate ends only the server's first process. Processes
// that it has started may remain.

func ownGroup(*osexec.Cmd) {}

// terminate kills the process, because this system has no signal that asks a process to end.
func terminate(group int) { killOne(group) }
func kill(group int)      { killOne(group) }

func killOne(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
		_ = p.Release()
	}
}

// alive always returns false, because this system does not show process groups. The launcher itself
// waits for the first process.
func alive(int) bool { return false }

// These functions return empty values, because this system does not tell.
func boot() string        { return "" }
func startOf(int) string  { return "" }
func marked(string) []int { return nil }
func listener(int) string { return "" }
