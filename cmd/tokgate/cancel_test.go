//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
)

// sigintTimeout is how long the runner waits when a job is cancelled (actions/runner,
// src/Runner.Sdk/ProcessInvoker.cs). It first sends SIGINT, only to the process of the
// step. After this time it sends SIGTERM, and 2.5 s later it kills what is left.
const sigintTimeout = 7500 * time.Millisecond

// TestCancelledRunsFit checks the time limits for a cancelled run. The requests in flight and the
// server may use their whole time. At least 2 s must then be left to write reports, before the
// runner sends the next signal.
func TestCancelledRunsFit(t *testing.T) {
	if spent := hurriedDrain + hurriedGrace; spent > sigintTimeout-2*time.Second {
		t.Errorf("requests in flight and the server take up to %s, and the runner asks again after %s", spent, sigintTimeout)
	}
}

// child is a process that a test started, with its output. Only real processes show what signals do
// to a process, its server and the reader of its output. The tests wait for output, and no check
// depends on time.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	ended chan struct{}

	mu   sync.Mutex
	said bytes.Buffer
	more chan struct{} // closed at the next output of the process
}

// begin starts a process. If the process still runs at the end of the test, it is killed.
func begin(t *testing.T, cmd *exec.Cmd) *child {
	t.Helper()
	c := &child{t: t, cmd: cmd, ended: make(chan struct{}), more: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout, cmd.Stderr = c, c
	}
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	go func() {
		_ = cmd.Wait() // ProcessState tells
		close(c.ended)
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return c
}

func (c *child) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.more)
	c.more = make(chan struct{})
	return c.said.Write(p)
}

// output returns what the process has printed so far. The channel more is closed as soon as the
// process prints something else.
func (c *child) output() (said string, more <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said.String(), c.more
}

// waitFor waits until the process has printed the given words. There is no time limit.
func (c *child) waitFor(words string) {
	c.t.Helper()
	for {
		said, more := c.output()
		if strings.Contains(said, words) {
			return
		}
		select {
		case <-more:
		case <-c.ended:
			if said, _ = c.output(); !strings.Contains(said, words) {
				c.t.Fatalf("it ended before it said %q: %v\n%s", words, c.cmd.ProcessState, said)
			}
		}
	}
}

// signal sends one.
func (c *child) signal(s os.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// wait waits until the process has ended and its output is closed. It returns the exit code, or -1
// if a signal ended the process, and all output.
func (c *child) wait() (code int, said string) {
	<-c.ended
	said, _ = c.output()
	return c.cmd.ProcessState.ExitCode(), said
}

// A CI job is cancelled, and its server refuses to end. tokgate still ends the server and its
// child, and reports the measurements, before the CI runner kills anything. TestCancelledRunsFit
// checks how long this takes, because a busy machine may take longer here.
func TestCancelledJob(t *testing.T) {
	dir := t.TempDir()
	pids := filepath.Join(dir, "pids")
	// The server and its child write their process ids before the server can be ready.
	server := fmt.Sprintf(`trap '' TERM INT; echo $$ >> %[1]s; sh -c 'echo $$ >> %[1]s; exec "$0" sim --listen "127.0.0.1:$1"' %[2]s $0 & while :; do sleep 1; done`, pids, programFile(t, ""))
	plan := fmt.Sprintf(`server "stubborn" {
  process {
    command = ["sh", "-c", %q, "{port}"]
  }
}

workload "w" {
  input_tokens  = 64
  output_tokens = 2000 # for as long as anybody waits

  load {
    concurrency = 2
    requests    = 100
    timeout     = "10m"
  }

  sla {
    ttft = "p95 < 2s"
  }
}
`, server)
	must.Do(t, os.WriteFile(filepath.Join(dir, "p.hcl"), []byte(plan), 0o644))
	// Use exec, so that tokgate replaces the shell, as the GitHub action does.
	cmd := exec.Command("bash", "-e", "-c", `exec "$0" run p.hcl`, programFile(t, ""))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CI=true", "GITHUB_ACTIONS=true", "GITHUB_WORKSPACE="+dir, "TOKGATE_STATE_DIR="+filepath.Join(dir, "state"),
		"GITHUB_OUTPUT="+filepath.Join(dir, "output"), "GITHUB_STEP_SUMMARY="+filepath.Join(dir, "summary"))
	job := begin(t, cmd)
	t.Cleanup(func() { // end the processes even if the test has failed
		for _, pid := range processes(pids) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	job.waitFor("w at 2 on stubborn")
	if len(processes(pids)) != 2 {
		t.Fatalf("processes %v", processes(pids))
	}
	job.signal(syscall.SIGINT)
	select {
	case <-job.ended:
	case <-time.After(sigintTimeout):
		t.Logf("it did not end within %s of the SIGINT", sigintTimeout)
		_ = cmd.Process.Signal(syscall.SIGTERM) // an error only means that the process has already ended
	}
	code, out := job.wait()
	if code != verdict.ExitInterrupted {
		t.Errorf("it ended with %v, want exit code %d\n%s", cmd.ProcessState, verdict.ExitInterrupted, out)
	}
	for _, pid := range processes(pids) {
		must.Hold(t, syscall.Kill(pid, 0) != nil || zombie(pid), "process %d of the server is still there", pid)
	}
	for name, want := range map[string]string{
		"output": "interrupted", "summary": "INTERRUPTED", "results/p/junit.xml": "interrupted", "results/p/results.json": `"exit_code": 130`,
	} {
		got := read(t, filepath.Join(dir, name))
		must.Hold(t, strings.Contains(got, want), "%s does not say %q:\n%.2000s", name, want, got)
	}
	must.Hold(t, strings.Contains(out, "::error "), "no annotation says what happened:\n%s", out)
}

// If the terminal is closed, the run ends with reports, as after SIGTERM. Under nohup it continues.
func TestClosedTerminal(t *testing.T) {
	// If the parent of a process ignores SIGHUP, as under nohup, the process ignores it too. So the
	// test handles SIGHUP while it starts its children.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangups) })
	for _, tt := range []struct {
		name, shell string
		requests    int
		interrupted bool
	}{
		{"closed", `exec "$0" run p.hcl`, 10_000, true},
		{"under nohup", `trap "" HUP; exec "$0" run p.hcl`, 20, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			plan := fmt.Sprintf(`gate {
  measure_only = true
}
server "s" {
  simulator {}
}
workload "w" {
  input_tokens  = 64
  output_tokens = 16
  load {
    concurrency = [1, 2]
    requests    = %d
    seeds       = [1, 2]
  }
}
`, tt.requests)
			must.Do(t, os.WriteFile(filepath.Join(dir, "p.hcl"), []byte(plan), 0o644))
			cmd := exec.Command("sh", "-c", tt.shell, programFile(t, ""))
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "TOKGATE_STATE_DIR="+filepath.Join(dir, "state"))
			c := begin(t, cmd)
			c.waitFor("w at 1 on s")
			c.signal(syscall.SIGHUP)
			code, out := c.wait()
			must.Hold(t, (code == verdict.ExitInterrupted) == tt.interrupted, "exit code %d\n%s", code, out)
			got := read(t, filepath.Join(dir, "results/p/results.json"))
			must.Hold(t, strings.Contains(got, `"exit_code": 130`) == tt.interrupted, "the results say otherwise:\n%.2000s", got)
		})
	}
}

// A run that is interrupted while a server starts reports the interruption, not how
// the start failed.
func TestInterruptedStart(t *testing.T) {
	dir := t.TempDir()
	plan := `gate {
  measure_only = true
}
server "s" {
  process {
    command = ["sh", "-c", "exec sleep 600", "{port}"]
  }
}
workload "w" {
  input_tokens  = 64
  output_tokens = 16
  load { concurrency = 1 }
}
`
	must.Do(t, os.WriteFile(filepath.Join(dir, "p.hcl"), []byte(plan), 0o644))
	cmd := exec.Command(programFile(t, ""), "run", "p.hcl")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TOKGATE_STATE_DIR="+filepath.Join(dir, "state"))
	c := begin(t, cmd)
	c.waitFor("started sh")
	c.signal(syscall.SIGINT)
	if code, out := c.wait(); code != verdict.ExitInterrupted || !strings.Contains(out, "interrupted before it was ready\n") || strings.Contains(out, "context canceled") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// processes returns the process ids in the file that the server of TestCancelledJob wrote.
func processes(file string) (list []int) {
	b, _ := os.ReadFile(file)
	for _, word := range strings.Fields(string(b)) {
		if pid, err := strconv.Atoi(word); err == nil {
			list = append(list, pid)
		}
	}
	return list
}

// zombie reports whether a process has ended but its parent has not yet collected the exit
// status, and may never do so.
func zombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return strings.HasPrefix(rest, "Z")
}
