//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/exec/server/lease"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/report"
)

// lifePlan is a plan that starts a server. Its three verbs stand for the gpus attribute, the
// command of the server, and the number of requests. Two slots with requests of 70 ms need more
// than two minutes for 4,000 requests, so the tests can disturb the run meanwhile.
const lifePlan = `
gate {
  decide = "estimate"
}
server "s" {
  process {
    %s
    command = %s
  }
  ready { timeout = "1m" }
}
workload "w" {
  input_tokens  = 64
  output_tokens = { mean = 8, jitter = "10%%" }
  load {
    concurrency = [1, 2]
    requests    = { 1 = 6, default = %d }
    seeds       = [1, 2]
  }
  sla {
    at   = 2
    ttft = "p95 < 60s"
  }
}
`

// life runs a tokgate process with a server process, as in CI. Its tests check what happens to both
// processes when the system signals or kills them, or when files or the disk fail.
//
// The tests check no times, and no verdicts that depend on times, because the machine may stall.
type life struct {
	*child   // the latest
	t        *testing.T
	program  string
	dir, out string // folder of the plan, and folder of the reports
	environ  []string
}

func newLife(t *testing.T) *life {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes")
	}
	self := must.Get(os.Executable())(t)
	l := &life{t: t, program: self, dir: t.TempDir()}
	l.out = filepath.Join(l.dir, "out")
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); name != "CI" && name != "CUDA_VISIBLE_DEVICES" && !strings.HasPrefix(name, "GITHUB_") {
			l.environ = append(l.environ, v)
		}
	}
	// The variable asProgram turns this test binary into tokgate. The servers inherit it, because
	// they are started with the same binary.
	l.environ = append(l.environ, "TOKGATE_STATE_DIR="+l.state(), asProgram+"=real")
	t.Cleanup(func() {
		// The servers of a failed test would disturb other tests.
		for _, group := range l.groups() {
			_ = syscall.Kill(-group, syscall.SIGKILL)
		}
	})
	return l
}

func (l *life) state() string { return filepath.Join(l.dir, "state") }

// serve returns a command for a plan that starts the built-in server. If before is not "", it is a
// shell script that becomes the command. In the script, SERVE stands for the built-in server's
// command.
func (l *life) serve(before string) string {
	if before == "" {
		return fmt.Sprintf(`[%q, "sim", "--listen", "127.0.0.1:{port}"]`, l.program)
	}
	script := strings.ReplaceAll(before, "SERVE", l.program+" sim --listen 127.0.0.1:{port}")
	return fmt.Sprintf(`["sh", "-c", %s]`, strconv.Quote(script))
}

func (l *life) plan(gpus, command string, requests int) {
	l.t.Helper()
	if err := os.WriteFile(filepath.Join(l.dir, "test.hcl"), fmt.Appendf(nil, lifePlan, gpus, command, requests), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

func (l *life) start(args ...string) {
	l.t.Helper()
	cmd := osexec.Command(l.program, append([]string{"run", "--out", l.out, filepath.Join(l.dir, "test.hcl")}, args...)...)
	cmd.Env = l.environ
	l.child = begin(l.t, cmd)
}

// waitForLoad waits until the run is under load, so that it measures requests.
func (l *life) waitForLoad() {
	l.t.Helper()
	l.waitFor("w at 2 on s")
}

func (l *life) check(code int, words ...string) (said string) {
	l.t.Helper()
	got, said := l.wait()
	result{got, said, ""}.check(l.t, code, words...)
	return said
}

// says waits for the run to end, and checks that it printed the given words. It accepts any exit
// code, because a stalled machine may have made the run invalid.
func (l *life) says(words ...string) (said string) {
	l.t.Helper()
	code, said := l.wait()
	result{code, said, ""}.check(l.t, code, words...)
	return said
}

// groups lists the process groups of the servers that tokgate has notes on.
func (l *life) groups() []int {
	var out []int
	notes, _ := filepath.Glob(filepath.Join(l.state(), "*.server.json"))
	for _, path := range notes {
		var note struct {
			Group int `json:"group"`
		}
		// A running program overwrites its note, so a read may return half of a note. Then read it
		// again.
		for range 100 {
			raw, err := os.ReadFile(path)
			if err != nil || json.Unmarshal(raw, &note) == nil {
				break
			}
		}
		if note.Group > 1 {
			out = append(out, note.Group)
		}
	}
	return out
}

// gone reports whether no process of the group runs. It waits a few seconds for the end of each,
// because a server's keeper ends a moment after the server. Zombies do not count, because they may
// stay for ever if nobody waits for them.
func (l *life) gone(group int) bool {
	if errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) {
		return true
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		raw, _ := os.ReadFile(path)
		f := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
		if pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path))); len(f) > 2 && f[2] == strconv.Itoa(group) && l.alive(pid) {
			return false
		}
	}
	return len(stats) > 0
}

// reports checks that all reports exist and are well formed, and that each contains the words.
func (l *life) reports(code int, words ...string) {
	l.t.Helper()
	wellFormed(l.t, filepath.Join(l.out, "junit.xml"))
	var doc report.Document
	if err := json.Unmarshal([]byte(read(l.t, filepath.Join(l.out, "results.json"))), &doc); err != nil {
		l.t.Error(err)
	}
	if doc.ExitCode != code {
		l.t.Errorf("results.json says exit %d, want %d", doc.ExitCode, code)
	}
	for _, name := range []string{"junit.xml", "results.json", "report.md"} {
		text := read(l.t, filepath.Join(l.out, name))
		for _, w := range words {
			if !strings.Contains(text, w) {
				l.t.Errorf("%s does not say %q", name, w)
			}
		}
	}
}

// A run may be interrupted once, interrupted twice, or ended by SIGTERM as in a CI system. Each
// time its server must end, if necessary by SIGKILL, and the reports must be written.
func TestInterrupted(t *testing.T) {
	const stubborn = `trap "" TERM INT; SERVE & wait; while :; do sleep 1000; done`
	for _, tt := range []struct {
		name    string
		before  string
		signals []os.Signal
	}{
		{"once", "", []os.Signal{os.Interrupt}},
		{"twice", stubborn, []os.Signal{os.Interrupt, os.Interrupt}},
		{"SIGTERM", stubborn, []os.Signal{syscall.SIGTERM}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.plan("", l.serve(tt.before), 4000)
			l.start()
			l.waitForLoad()
			groups := l.groups()
			must.Need(t, len(groups) == 1, "%d servers are noted, want one", len(groups))
			for i, s := range tt.signals {
				if i > 0 { // without a wait, two equal signals would arrive as one
					l.waitFor("stopping: ")
				}
				l.signal(s)
			}
			l.check(verdict.ExitInterrupted, "INTERRUPTED")
			must.Hold(t, l.gone(groups[0]), "the server is still there")
			l.reports(verdict.ExitInterrupted, "interrupted")
			left := l.groups()
			must.Hold(t, len(left) <= 0, "servers %v are still noted", left)
		})
	}
}

// After kill -9 of a run its server is gone, and the reports say that nothing was measured. After
// kill -9 of the run's supervisor, the run ends as after an interrupt.
func TestKilled(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	for _, tt := range []struct {
		name   string
		to     func() int
		signal syscall.Signal
		code   int
		words  []string
	}{
		{"killed", l.run, syscall.SIGKILL, verdict.ExitError, []string{"the run crashed: signal: killed", "removing what a killed run left behind", "tokgate itself crashed"}},
		{"a crash of its own", l.run, syscall.SIGQUIT, verdict.ExitError, []string{"the run crashed: exit status 2", "SIGQUIT", "removing what a killed run left behind"}},
		{"a supervisor that is aborted", l.supervisor, syscall.SIGABRT, verdict.ExitError, []string{"the run crashed: exit status 2", "SIGABRT", "removing what a killed run left behind"}},
		{"a supervisor's segmentation fault", l.supervisor, syscall.SIGSEGV, verdict.ExitError, []string{"the run crashed: exit status 2", "SIGSEGV", "removing what a killed run left behind"}},
	} {
		l.plan("", l.serve(""), 4000)
		l.start()
		l.waitForLoad()
		group := l.groups()[0]
		must.Do(t, syscall.Kill(tt.to(), tt.signal))
		l.check(tt.code, tt.words...)
		l.reports(verdict.ExitError, "tokgate itself crashed")
		l.checkGone(tt.name, group)
	}

	// A plan that is gone by then is no wrong plan.
	l.plan("", l.serve(""), 4000)
	l.start()
	l.waitForLoad()
	group := l.groups()[0]
	must.Do(t, os.Remove(filepath.Join(l.dir, "test.hcl")))
	must.Do(t, syscall.Kill(l.run(), syscall.SIGQUIT))
	l.check(verdict.ExitError, "the run crashed: exit status 2", "removing what a killed run left behind", "test.hcl")
	l.checkGone("a crash without its plan", group)

	l.plan("", l.serve(""), 4000)
	l.start()
	l.waitForLoad()
	group = l.groups()[0]
	l.signal(os.Kill)
	l.wait() // this waits for the run and its supervisor, because they share one output
	l.checkGone("the supervisor", group)

	// Kill the run and its supervisor together. They leave a server, which the next run must end.
	l.start()
	l.waitForLoad()
	group = l.groups()[0]
	l.killBoth()
	l.wait()
	l.plan("", l.serve(""), 20)
	l.start()
	l.says(fmt.Sprintf("removing what a killed run left behind: process group %d", group), "20 of 20 requests completed")
	l.checkGone("both", group)
}

// A crash of any command is an error. Exit code 2, with which the Go runtime ends a program that
// panics, would mean that the plan is wrong.
func TestPanic(t *testing.T) {
	var said strings.Builder
	if code := program([]string{"version"}, Streams{Out: broken{}, Err: &said}); code != verdict.ExitError || !strings.Contains(said.String(), "tokgate: it crashed, so there is no verdict: planted") {
		t.Errorf("exit code %d, %q", code, said.String())
	}
}

// What the runtime does not let a program recover from, here a mutex that is not locked, is a signal.
func TestFatal(t *testing.T) {
	if os.Getenv("TOKGATE_FATAL") != "" {
		program([]string{"version"}, Streams{Out: fatal{}, Err: io.Discard})
	}
	cmd := osexec.Command(os.Args[0], "-test.run=^TestFatal$")
	cmd.Env, cmd.Dir = append(os.Environ(), "TOKGATE_FATAL=1"), t.TempDir() // a core dump goes there
	said, err := cmd.CombinedOutput()
	exit, failed := errors.AsType[*osexec.ExitError](err)
	must.Need(t, failed, "%v: %s", err, said)
	if status, ok := exit.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGABRT || !bytes.Contains(said, []byte("unlock of unlocked mutex")) {
		t.Errorf("%v: %s", exit, said)
	}
}

type fatal struct{}

func (fatal) Write([]byte) (int, error) {
	new(sync.Mutex).Unlock()
	return 0, nil
}

type broken struct{}

func (broken) Write([]byte) (int, error) { panic("planted") }

// run returns the pid of the process that measures. It is a child of the supervisor, which is the
// process that l started.
func (l *life) run() int {
	l.t.Helper()
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", l.cmd.Process.Pid)) // children by thread
	for _, path := range lists {
		raw, _ := os.ReadFile(path)
		if pid, err := strconv.Atoi(strings.TrimSpace(string(raw))); err == nil {
			return pid
		}
	}
	l.t.Skip("this system does not list a process's children")
	return 0
}

// supervisor returns the pid of the process that l started.
func (l *life) supervisor() int { return l.cmd.Process.Pid }

// killBoth kills the run and its supervisor. It stops the supervisor first, so that it cannot react
// to the end of the run.
func (l *life) killBoth() {
	l.t.Helper()
	run := l.run()
	l.signal(syscall.SIGSTOP)
	if err := syscall.Kill(run, syscall.SIGKILL); err != nil {
		l.t.Fatal(err)
	}
	l.signal(os.Kill)
}

func (l *life) checkGone(after string, group int) {
	l.t.Helper()
	if !l.gone(group) {
		l.t.Errorf("%s: the server is still there", after)
	}
	if notes, err := l.notes(); err != nil || len(notes) > 0 {
		l.t.Errorf("%s: %v, %v stay behind", after, notes, err)
	}
}

// notes lists the notes on the servers of a run. It leaves out files for later runs, such as the
// calibration.
func (l *life) notes() ([]os.DirEntry, error) {
	kept := []lease.Memory{lease.Starts, lease.Counts, lease.Calibrations}
	entries, err := os.ReadDir(l.state())
	return slices.DeleteFunc(entries, func(e os.DirEntry) bool { return slices.Contains(kept, lease.Memory(filepath.Ext(e.Name()))) }), err
}

// If the reader of the output closes the pipe, the run continues. The verdict still decides its
// exit code.
func TestBrokenPipe(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.plan("", l.serve(""), 20)
	reader, writer, err := os.Pipe()
	must.Do(t, err)
	cmd := osexec.Command(l.program, "run", "--out", l.out, filepath.Join(l.dir, "test.hcl"))
	cmd.Env, cmd.Stdout, cmd.Stderr = l.environ, writer, writer
	l.child = begin(t, cmd)
	writer.Close()
	reader.Close()
	code, _ := l.wait()
	must.Hold(t, code >= 0, "%v", cmd.ProcessState)
	l.reports(code)
}

// If two runs want the same GPU, the second run fails and names the first run.
func TestTwoRunsOnOneGPU(t *testing.T) {
	l := newLife(t)
	bin := t.TempDir()
	const smi = "#!/bin/sh\ncase \"$1\" in --query-gpu=index,*) echo '0, GPU-4711-aaaa, NVIDIA H100 80GB HBM3, 81559, 4, 570.124.06, 1980, 2619, 700.00, Enabled, Disabled, Enabled' ;; esac\n"
	must.Do(t, os.WriteFile(filepath.Join(bin, "nvidia-smi"), []byte(smi), 0o755))
	l.environ = append(l.environ, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	l.plan("gpus = 1", l.serve(""), 4000)
	l.start()
	l.waitForLoad()

	second := &life{t: t, program: l.program, dir: l.dir, environ: l.environ, out: filepath.Join(l.dir, "out2")}
	second.start()
	second.check(verdict.ExitError, "too few free GPUs: 0 of 1 usable GPUs are free, and 1 needed", "GPU 0 GPU-4711-aaaa is held by run 20", "test.hcl (server s, tokgate's pid "+strconv.Itoa(l.cmd.Process.Pid))
	second.reports(verdict.ExitError, "GPU-4711-aaaa is held by run")

	l.signal(os.Interrupt)
	l.waitFor("stopping: ")
	_ = l.cmd.Process.Signal(os.Interrupt) // fails if the run has ended already
	l.check(verdict.ExitInterrupted, "gpu 1 x NVIDIA H100 80GB HBM3")
}

// If a server fails, the run has no verdict. Every report quotes the last lines of the server's
// log.
func TestServerFails(t *testing.T) {
	// The shell prints the server's pid, so that the test can kill the server.
	const noted = `SERVE & echo "pid $!"; wait $!`
	for _, tt := range []struct {
		name  string
		shell string
		kill  bool // kill the server once requests are measured
		words []string
	}{
		{"runs out of memory at start", `: {port}; echo "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB" >&2; exit 1`, false,
			[]string{"ended by itself: exit status 1; it ran out of memory: torch.OutOfMemoryError", "Tried to allocate"}},
		{"dies", noted, true, []string{"the server's process ended by itself: exit status 137"}},
		// The error has one of two messages: the server was restarted, or it "no longer answers"
		// because the restart takes longer than the load.
		{"is started again by its supervisor", `while :; do ` + noted + `; done`, true, []string{"the server "}},
		{"a flag it does not know", `SERVE --nonsense`, false, []string{"ended by itself: exit status 2", "unknown flag"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.plan("", l.serve(tt.shell), 300)
			l.start()
			if tt.kill {
				l.waitForLoad()
				log := read(t, filepath.Join(l.out, "server-s.log"))
				m := regexp.MustCompile(`pid (\d+)`).FindStringSubmatch(log)
				must.Need(t, m != nil, "log %q", log)
				pid, _ := strconv.Atoi(m[1])
				must.Do(t, syscall.Kill(pid, syscall.SIGKILL))
			}
			l.check(verdict.ExitError, tt.words[0])
			l.reports(verdict.ExitError, tt.words...)
		})
	}
}

// If the recording cannot be written, the run is an error.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	must.Do(t, os.Mkdir(l.out, 0o755))
	if out, err := osexec.Command("mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", l.out).CombinedOutput(); err != nil {
		t.Skipf("no small disk can be made: %s", bytes.TrimSpace(out))
	}
	t.Cleanup(func() { _ = osexec.Command("umount", "-l", l.out).Run() })
	l.plan("", l.serve(""), 4000)
	l.start()
	l.check(verdict.ExitError, "no space left on device")
	left := l.groups()
	must.Hold(t, len(left) <= 0, "servers %v are still noted", left)
}

func TestNoPlaceForReports(t *testing.T) {
	l := newLife(t)
	l.plan("", l.serve(""), 20)
	must.Do(t, os.WriteFile(l.out, nil, 0o444))
	l.start()
	l.check(verdict.ExitError, "hint: choose another folder with --out")
	_, err := os.Stat(l.state())
	must.Hold(t, err != nil, "a server was started")
}
