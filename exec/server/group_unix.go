//go:build unix

package server

import (
	osexec "os/exec"
	"syscall"
)

// ownGroup makes the process the leader of a new process group. Its own child processes belong to
// the group too, so tokgate can end all of them. A Ctrl-C at the terminal reaches only tokgate.
func ownGroup(cmd *osexec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// A negative number stands for a process group.
func kill(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }
