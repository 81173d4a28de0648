package server

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"os/signal"
	"strings"
	"syscall"
)

const keeps = true

// subreaper is PR_SET_CHILD_SUBREAPER of prctl(2).
const subreaper = 36

// startKept starts cmd below a keeper. cmd then is the keeper. The keeper writes two lines to the
// pipe: why the program could not be started, empty if it was, and how the program ended.
func startKept(cmd *osexec.Cmd) (ended func() (how string), err error) {
	told, tell, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Args = append([]string{keeperName, cmd.Path}, cmd.Args...)
	cmd.Path = "/proc/self/exe" // also if the program's file was replaced since
	cmd.ExtraFiles = []*os.File{tell}
	err = cmd.Start()
	tell.Close()
	if err != nil {
		told.Close()
		return nil, err
	}
	lines := bufio.NewReader(told)
	line, err := lines.ReadString('\n')
	if why := strings.TrimSpace(line); why != "" || err != nil {
		told.Close()
		_ = cmd.Wait()
		if why == "" {
			return nil, fmt.Errorf("its keeper ended: %v", cmd.ProcessState)
		}
		return nil, errors.New(why)
	}
	return func() string {
		line, _ := lines.ReadString('\n')
		told.Close()
		if how := strings.TrimSpace(line); how != "" {
			go cmd.Wait() // the keeper ends when the last process below it has ended
			return how
		}
		_ = cmd.Wait()
		return fmt.Sprintf("its keeper ended: %v", cmd.ProcessState)
	}, nil
}

func keep(path string, words []string) {
	tell := os.NewFile(3, "run")
	syscall.CloseOnExec(3)
	// The end of a server begins with a signal to the process group, of which the keeper is the
	// leader.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM)
	// Without a subreaper, a process that leaves is not found. Kernels since 3.4 have it.
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, subreaper, 1, 0)
	pid, err := syscall.ForkExec(path, words, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		fmt.Fprintln(tell, &os.PathError{Op: "fork/exec", Path: path, Err: err})
		return
	}
	fmt.Fprintln(tell)
	// The output ends when the server's processes have ended, whether the keeper has or not.
	if null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0); err == nil {
		for fd := range 3 {
			_ = syscall.Dup3(int(null.Fd()), fd, 0)
		}
	}
	for {
		var state syscall.WaitStatus
		switch ended, err := syscall.Wait4(-1, &state, 0, nil); {
		case err == syscall.EINTR:
		case err != nil:
			return
		case ended == pid:
			fmt.Fprintln(tell, howEnded(state))
			tell.Close()
		}
	}
}

func howEnded(state syscall.WaitStatus) string {
	if state.Signaled() {
		words := "signal: " + state.Signal().String()
		if state.CoreDump() {
			words += " (core dumped)"
		}
		return words
	}
	return fmt.Sprintf("exit status %d", state.ExitStatus())
}

func keeper(pid int) bool {
	words, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return bytes.HasPrefix(words, []byte(keeperName+"\x00"))
}
