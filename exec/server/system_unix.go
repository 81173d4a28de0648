//go:build unix

package server

import (
	osexec "os/exec"
	"syscall"
	"time"
)

// CPUTime returns the processor time of this process so far, user and system together.
func CPUTime() (time.Duration, bool) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}

// OpenFiles returns the largest number of files and connections that this process may have open. ok
// is false if it is not known. The Go runtime has already raised this limit to its maximum.
func OpenFiles() (n uint64, ok bool) {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0, false
	}
	return uint64(limit.Cur), true
}

// ownGroup makes the process the leader of a new process group. Its own child processes belong to
// the group too, so tokgate can end all of them. A Ctrl-C at the terminal reaches only tokgate.
func ownGroup(cmd *osexec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// A negative number stands for a process group.
func kill(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }
