//go:build unix

package server

import (
	"errors"
	osexec "os/exec"
	"syscall"
)

// ownGroup has the process lead a group of its own, so that everything it
// starts can be ended with it, and a Ctrl-C at the terminal is ours alone.
func ownGroup(cmd *osexec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// terminate asks the group to end, kill does not ask; killOne is for what left
// its group.
func terminate(group int) { _ = syscall.Kill(-group, syscall.SIGTERM) }
func kill(group int)      { _ = syscall.Kill(-group, syscall.SIGKILL) }
func killOne(pid int)     { _ = syscall.Kill(pid, syscall.SIGKILL) }

// exists reports whether the group has a member, be it one that ended and was not
// yet waited for.
func exists(group int) bool {
	return !errors.Is(syscall.Kill(-group, 0), syscall.ESRCH)
}
