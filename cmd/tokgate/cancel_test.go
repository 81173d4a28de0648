//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert"
)

// What the runner does when a job is cancelled (actions/runner,
// src/Runner.Sdk/ProcessInvoker.cs): SIGINT to the process of the step alone,
// then SIGTERM, then it kills what is left.
const (
	sigintTimeout  = 7500 * time.Millisecond
	sigtermTimeout = 2500 * time.Millisecond
)

// With the time that a server has to end itself there is half of the runner's
// left for the reports, before it asks a second time.
func TestCancelledRunsFit(t *testing.T) {
	if spent := hurriedDrain + hurriedGrace; spent > sigintTimeout-2*time.Second {
		t.Errorf("requests in flight and the server take up to %s, and the runner asks again after %s", spent, sigintTimeout)
	}
}

// log is the output of a process, read while it is written.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A job that is cancelled while a server answers that will not go: the server
// and its child are gone, and what was measured is reported, without the runner
// having to kill anything. How long that took is the business of
// TestCancelledRunsFit: a machine that runs other tests too may take longer, and
// is waited for.
func TestCancelledJob(t *testing.T) {
	dir := t.TempDir()
	pids := filepath.Join(dir, "pids")
	server := fmt.Sprintf("trap '' TERM INT; echo $$ >> %[1]s; %[2]s sim --listen 127.0.0.1:$0 & echo $! >> %[1]s; while :; do sleep 1; done", pids, programFile(t, ""))
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
	if err := os.WriteFile(filepath.Join(dir, "p.hcl"), []byte(plan), 0o644); err != nil {
		t.Fatal(err)
	}
	var out log
	// As the action does it: the shell gives way.
	cmd := exec.Command("bash", "-e", "-c", `exec "$0" run p.hcl`, programFile(t, ""))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CI=true", "GITHUB_ACTIONS=true", "GITHUB_WORKSPACE="+dir, "XDG_STATE_HOME="+dir,
		"GITHUB_OUTPUT="+filepath.Join(dir, "output"), "GITHUB_STEP_SUMMARY="+filepath.Join(dir, "summary"))
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { // of a test that failed
		_ = cmd.Process.Kill()
		for _, pid := range processes(pids) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	until(t, &out, ended, func() bool { return strings.Contains(out.String(), "w at 2 on stubborn") && len(processes(pids)) == 2 })

	signal := func(s syscall.Signal) time.Duration {
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		return map[syscall.Signal]time.Duration{syscall.SIGINT: sigintTimeout, syscall.SIGTERM: sigtermTimeout}[s]
	}
	var err error
	select {
	case err = <-ended:
	case <-time.After(signal(syscall.SIGINT)):
		t.Logf("it did not end within %s of the SIGINT", sigintTimeout)
		signal(syscall.SIGTERM)
		select {
		case err = <-ended:
		case <-time.After(time.Minute):
			t.Fatalf("it did not end within a minute of the SIGTERM:\n%s", out.String())
		}
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != assert.ExitInterrupted {
		t.Errorf("it ended with %v, want exit code %d\n%s", err, assert.ExitInterrupted, out.String())
	}
	for _, pid := range processes(pids) {
		if syscall.Kill(pid, 0) == nil && !zombie(pid) {
			t.Errorf("process %d of the server is still there", pid)
		}
	}
	for name, want := range map[string]string{
		"output": "interrupted", "summary": "INTERRUPTED", "results/p/junit.xml": "interrupted", "results/p/results.json": `"exit_code": 130`,
	} {
		if got := read(t, filepath.Join(dir, name)); !strings.Contains(got, want) {
			t.Errorf("%s does not say %q:\n%.2000s", name, want, got)
		}
	}
	if !strings.Contains(out.String(), "::error ") {
		t.Errorf("no annotation says what happened:\n%s", out.String())
	}
}

// A terminal that is closed ends the run as a SIGTERM does, with reports; under
// nohup it is no reason to stop.
func TestClosedTerminal(t *testing.T) {
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
			if err := os.WriteFile(filepath.Join(dir, "p.hcl"), []byte(plan), 0o644); err != nil {
				t.Fatal(err)
			}
			var out log
			cmd := exec.Command("sh", "-c", tt.shell, programFile(t, ""))
			cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
			cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+dir)
			ended := begin(t, cmd)
			until(t, &out, ended, func() bool { return strings.Contains(out.String(), "w at 1 on s") })
			if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			awaitEnd(t, &out, ended)
			if code := cmd.ProcessState.ExitCode(); (code == assert.ExitInterrupted) != tt.interrupted {
				t.Errorf("exit code %d\n%s", code, out.String())
			}
			if got := read(t, filepath.Join(dir, "results/p/results.json")); strings.Contains(got, `"exit_code": 130`) != tt.interrupted {
				t.Errorf("the results say otherwise:\n%.2000s", got)
			}
		})
	}
}

// A run that is interrupted while a server starts says so, and nothing of how
// its start was ended.
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
	if err := os.WriteFile(filepath.Join(dir, "p.hcl"), []byte(plan), 0o644); err != nil {
		t.Fatal(err)
	}
	var out log
	cmd := exec.Command(programFile(t, ""), "run", "p.hcl")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+dir)
	ended := begin(t, cmd)
	until(t, &out, ended, func() bool { return strings.Contains(out.String(), "started sh") })
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, &out, ended)
	if got := out.String(); cmd.ProcessState.ExitCode() != assert.ExitInterrupted || !strings.Contains(got, "interrupted before it was ready\n") || strings.Contains(got, "context canceled") {
		t.Errorf("exit code %d\n%s", cmd.ProcessState.ExitCode(), got)
	}
}

// processes are the ids that the server of TestCancelledJob noted.
func processes(file string) (list []int) {
	b, _ := os.ReadFile(file)
	for _, word := range strings.Fields(string(b)) {
		if pid, err := strconv.Atoi(word); err == nil {
			list = append(list, pid)
		}
	}
	return list
}

// zombie says whether a process ended and waits for a parent that may never
// ask.
func zombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return strings.HasPrefix(rest, "Z")
}

// begin starts a command, which is killed at the end of the test if it still
// runs; its end is told.
func begin(t *testing.T, cmd *exec.Cmd) <-chan error {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return ended
}

// awaitEnd waits until what begin started has ended.
func awaitEnd(t *testing.T, out fmt.Stringer, ended <-chan error) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		t.Fatalf("it did not end:\n%s", out.String())
	}
}

// until waits for a condition for as long as a busy machine may need.
func until(t *testing.T, out fmt.Stringer, ended <-chan error, ok func() bool) {
	t.Helper()
	timeout := time.After(2 * time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case err := <-ended:
			t.Fatalf("it ended early: %v\n%s", err, out)
		case <-timeout:
			t.Fatalf("it never came to it:\n%s", out)
		}
	}
}
