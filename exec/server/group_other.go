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
func terminate(group int) { kill(group) }

func kill(group int) {
	if p, err := os.FindProcess(group); err == nil {
		_ = p.Kill()
		_ = p.Release()
	}
}

// alive cannot tell; that the process itself ended is waited for elsewhere.
func alive(int) bool { return false }
