//go:build unix

package server

import (
	"errors"
	osexec "os/exec"
	"syscall"
)

// ownGroup makes the process the leader of a new process group. Its own child processes belong to
// the group too, so tokgate can end all of them. A Ctrl-C at the terminal reaches only tokgate.
func ownGroup(cmd *osexec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// terminate asks all processes of the group to end, and kill ends them at once. killOne ends a
// single process that has left the group.
func terminate(group int) { _ = syscall.Kill(-group, syscall.SIGTERM) }
func kill(group int)      { _ = syscall.Kill(-group, syscall.SIGKILL) }
func killOne(pid int)     { _ = syscall.Kill(pid, syscall.SIGKILL) }

// exists reports whether the process group still has a process. A process that has ended also
// counts, until its parent has waited for it.
func exists(group int) bool {
	return !errors.Is(syscall.Kill(-group, 0), syscall.ESRCH)
}
