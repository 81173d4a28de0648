//go:build !unix

package server

import (
	"os"
	osexec "os/exec"
)

// Without process groups the process alone is ended; what it started has to
// look after itself.

func ownGroup(*osexec.Cmd) {}

// terminate kills: there is no signal to ask with.
func terminate(group int) { killOne(group) }
func kill(group int)      { killOne(group) }

func killOne(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
		_ = p.Release()
	}
}

// alive cannot tell; that the process itself ended is waited for elsewhere.
func alive(int) bool { return false }

// startOf, marked and listener cannot be told.
func boot() string        { return "" }
func startOf(int) string  { return "" }
func marked(string) []int { return nil }
func listener(int) string { return "" }
