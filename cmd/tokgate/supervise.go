//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tokgate/tokgate/assert/verdict"
)

// ended is the line that a run writes to its supervisor when it ends normally, with any exit code.
const ended = "ended\n"

// crashSignals are the signals that make the Go runtime end a process with exit code 2, which would
// mean a wrong plan. Sent to the supervisor, they make the run crash instead.
var crashSignals = []os.Signal{syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGSEGV, syscall.SIGBUS,
	syscall.SIGFPE, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGSYS}

// supervise runs a command line that starts servers in a new process. If that process crashes or is
// killed, supervise ends its servers and reports that nothing was measured. The exit code is then
// verdict.ExitError: the Go runtime's own 2 would mean a wrong plan. If the command line starts no
// servers, ok is false.
func supervise(root *cobra.Command, args, environ []string, s Streams) (code int, ok bool) {
	if !startsServers(root, args) {
		return 0, false
	}
	self, err := os.Executable()
	if err != nil {
		return 0, false
	}
	alive, hold, err := os.Pipe() // the run reads alive until this process, which has hold, ends
	if err != nil {
		return 0, false
	}
	said, say, err := os.Pipe()
	if err != nil {
		return 0, false
	}
	cmd := osexec.Command(self, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.In, s.Out, s.Err
	cmd.Env = append(slices.Clone(environ), fmt.Sprintf("%s=%d", supervisedName, os.Getpid()))
	cmd.ExtraFiles = []*os.File{alive, say}
	// The run gets its own process group. A Ctrl-C in the terminal then reaches only the
	// supervisor, which passes it on once.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	began := time.Now().Format(time.RFC3339Nano)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	signal.Notify(signals, crashSignals...)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, false
	}
	alive.Close()
	say.Close()
	defer hold.Close()
	go func() {
		for got := range signals {
			_ = cmd.Process.Signal(got)
		}
	}()
	last, _ := bufio.NewReader(said).ReadString('\n')
	err = cmd.Wait()
	if last == ended {
		return cmd.ProcessState.ExitCode(), true
	}
	how := "it ended without a verdict"
	if exit, failed := errors.AsType[*osexec.ExitError](err); failed {
		how = exit.String()
	}
	fmt.Fprintf(s.Err, "tokgate: the run crashed: %s\n", how)
	// The flag comes first, because arguments may end with "--". Whatever the second process finds,
	// such as a plan that was removed meanwhile, a crashed run has measured nothing.
	Main(context.Background(), append([]string{"--crashed=" + began}, args...), environ, s)
	return verdict.ExitError, true
}

// supervised prepares a process that was started by a supervisor. If the supervisor dies, the
// process gets SIGTERM. The process calls done at its normal end.
func supervised() (done func()) {
	if os.Getenv(supervisedName) == "" {
		return func() {}
	}
	os.Unsetenv(supervisedName) // otherwise the servers that it starts would have it too
	alive, say := os.NewFile(3, "supervisor"), os.NewFile(4, "supervisor")
	syscall.CloseOnExec(3)
	syscall.CloseOnExec(4)
	go func() {
		_, _ = alive.Read(make([]byte, 1)) // no data comes: Read returns when the supervisor ends
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}()
	return func() { _, _ = say.WriteString(ended) }
}

func startsServers(root *cobra.Command, args []string) bool {
	if os.Getenv(supervisedName) != "" {
		return false
	}
	cmd, rest, err := root.Find(args)
	if err != nil || cmd.Name() != "run" {
		return false
	}
	return !slices.ContainsFunc(rest, func(s string) bool {
		return s == "-h" || s == "--help" || strings.HasPrefix(s, "--simulate")
	})
}

// surviveBrokenPipes makes a write to a pipe without a reader return an error. By default SIGPIPE
// would end the process. The signal is caught, not ignored, because servers that tokgate starts
// would inherit an ignored signal.
func surviveBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
