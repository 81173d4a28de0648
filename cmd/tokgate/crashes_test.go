//go:build linux

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/record"
	"github.com/tokgate/tokgate/report"
)

var (
	crashes   = flag.Float64("crashes", 0, "the share of its runs that TestCrashes does; 0: it is skipped")
	crashSeed = flag.Uint64("crash-seed", 1, "of the times at which TestCrashes does")
)

// crashPlan gates a server that answers within milliseconds, so the gate must never fail: even a
// generator that stops for seconds is not the server's fault.
const crashPlan = `
gate {
  decide = "estimate"
}
server "s" {
  process {
    command = [%q, "sim", "--listen", "127.0.0.1:{port}"]
  }
  ready { timeout = "1m" }
}
workload "w" {
  input_tokens  = 64
  output_tokens = 16
  load {
    concurrency = 2
    requests    = 60
    seeds       = [1, 2, 3, 4, 5, 6]
    timeout     = "6s"
  }
  sla {
    ttft    = "p95 < 1500ms"
    e2e     = "p95 < 3s"
    success = "every"
  }
}
`

const (
	killRun    = "kill -9 of the run"
	killParent = "kill -9 of its supervisor"
	killBoth   = "kill -9 of both"
	stop       = "SIGSTOP"
	brokenPipe = "broken pipe"
	emptied    = "removed folder"
)

// crashWays lists the ways to disturb a run, and the number of runs for each way.
var crashWays = map[string]int{killRun: 34, killParent: 33, killBoth: 33, stop: 100, brokenPipe: 20, emptied: 20}

// disturb disturbs the run in progress, in the given way.
func (l *life) disturb(way string, r *rand.Rand) {
	switch run := l.measuring(); way {
	case killRun:
		_ = syscall.Kill(run, syscall.SIGKILL)
	case killParent:
		_ = l.cmd.Process.Kill()
	case killBoth:
		_ = l.cmd.Process.Signal(syscall.SIGSTOP)
		_ = syscall.Kill(run, syscall.SIGKILL)
		_ = l.cmd.Process.Kill()
	case stop:
		if syscall.Kill(run, syscall.SIGSTOP) == nil {
			time.Sleep(200*time.Millisecond + time.Duration(r.Float64()*float64(7800*time.Millisecond)))
			_ = syscall.Kill(run, syscall.SIGCONT)
		}
	case emptied:
		_ = os.RemoveAll(l.out)
	}
}

// measuring returns the pid of the process that measures, or an impossible pid if there is no such
// process.
func (l *life) measuring() int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", l.cmd.Process.Pid))
	for _, path := range lists {
		raw, _ := os.ReadFile(path)
		if pid, err := strconv.Atoi(strings.TrimSpace(string(raw))); err == nil {
			return pid
		}
	}
	return 1 << 30
}

// TestCrashes runs the gate in real processes, and disturbs each run at a random time. For example,
// it kills the run with kill -9, stops it for a while, or removes its results folder.
//
// A run may pass only if its recording is complete. It may not fail because of the disturbance. The
// next run must clean up everything. The test takes real time; `make crashes` runs it.
func TestCrashes(t *testing.T) {
	if *crashes == 0 {
		t.Skip("make crashes")
	}
	for _, way := range slices.Sorted(maps.Keys(crashWays)) {
		times := int(float64(crashWays[way])**crashes + 0.5)
		t.Run(strings.ReplaceAll(way, " ", "_"), func(t *testing.T) {
			codes := map[int]int{}
			var mu sync.Mutex
			var workers sync.WaitGroup
			next := make(chan int)
			for range 4 {
				l := newLife(t)
				must.Do(t, os.WriteFile(filepath.Join(l.dir, "test.hcl"), fmt.Appendf(nil, crashPlan, l.program), 0o644))
				workers.Go(func() {
					whole := l.undisturbed()
					for i := range next {
						code, err := l.crash(way, whole, rand.New(rand.NewPCG(*crashSeed, uint64(i))))
						must.Hold(t, err == nil, "%s, run %d: %v", way, i, err)
						mu.Lock()
						codes[code]++
						mu.Unlock()
					}
					l.undisturbed()
				})
			}
			for i := range times {
				next <- i
			}
			close(next)
			workers.Wait()
			t.Logf("%d times %s: exit codes %v", times, way, codes)
		})
	}
}

// crash runs the gate, disturbs it at a random time, and checks its result. The gate must also
// clean up what earlier runs left in its folders. The parameter whole is the duration of an
// undisturbed run.
func (l *life) crash(way string, whole time.Duration, r *rand.Rand) (code int, err error) {
	cmd := osexec.Command(l.program, "run", "--out", l.out, filepath.Join(l.dir, "test.hcl"))
	cmd.Env = l.environ
	reader, writer, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer reader.Close()
	if way == brokenPipe {
		cmd.Stdout, cmd.Stderr = writer, writer
	}
	l.child = begin(l.t, cmd)
	writer.Close()
	after := time.Duration(r.Float64() * 1.1 * float64(whole))
	select {
	case <-time.After(after):
		reader.Close()
		l.disturb(way, r)
	case <-l.ended:
	}
	code, said := l.wait()
	if err := l.judge(way, code); err != nil {
		return code, fmt.Errorf("after %v: exit %d: %w\n%s", after.Round(time.Millisecond), code, err, said)
	}
	if way == killBoth {
		l.undisturbed() // the next run must end the processes that were left
	}
	for _, pid := range l.mine() {
		if l.alive(pid) {
			return code, fmt.Errorf("after %v: exit %d: process %d is left", after.Round(time.Millisecond), code, pid)
		}
	}
	return code, nil
}

// judge checks the exit code of a disturbed run and the files that it left.
func (l *life) judge(way string, code int) error {
	killed := strings.HasPrefix(way, "kill")
	switch {
	case code == verdict.ExitFail:
		return errors.New("the server is charged")
	case code < 0 && !killed:
		return fmt.Errorf("it died: %v", l.cmd.ProcessState)
	case code == verdict.ExitPlan:
		return errors.New("the plan is said to be wrong")
	}
	doc, err := l.document()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if code == verdict.ExitPass && way != emptied {
			return err
		}
		// A run may pass although its results folder was removed meanwhile. Then this folder must
		// not contain a part of the results.
		if left, _ := os.ReadDir(l.out); code == verdict.ExitPass && len(left) > 0 {
			return fmt.Errorf("it passed, and leaves %v", left)
		}
		return nil
	case err != nil:
		return err
	case doc.Outcome == verdict.Fail:
		return errors.New("results.json: the server is charged")
	case code >= 0 && doc.ExitCode != code && way != killRun:
		return fmt.Errorf("results.json says %d", doc.ExitCode)
	case doc.ExitCode != verdict.ExitPass:
		return nil
	}
	// The run passed, so its recording must be complete.
	run, problems, err := record.Read(l.out)
	if err != nil || len(problems) > 0 || run.Recording != doc.Recording || len(run.Levels[0].MeasuredSamples()) != 60 {
		return fmt.Errorf("it passed, and of its recording %v %w", problems, err)
	}
	return nil
}

func (l *life) document() (*report.Document, error) {
	f, err := os.Open(filepath.Join(l.out, "results.json"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return report.ReadDocument(f)
}

// undisturbed lets the gate run to its end, and returns how long that took. The gate must remove
// what earlier runs left, and leave nothing itself.
func (l *life) undisturbed() time.Duration {
	began := time.Now()
	l.start()
	code, said := l.wait()
	if code != verdict.ExitPass && code != verdict.ExitError && code != verdict.ExitInconclusive {
		l.t.Errorf("a run that nobody disturbed: exit %d\n%s", code, said)
	}
	took := time.Since(began)
	for _, pid := range l.mine() {
		if l.alive(pid) {
			l.t.Errorf("process %d is left behind the last run", pid)
		}
	}
	if notes, err := l.notes(); err != nil || len(notes) > 0 {
		l.t.Errorf("notes are left behind the last run: %v, %v", notes, err)
	}
	return took
}

// mine lists the processes that tokgate started in this test, including children of its children.
// It recognizes them by TOKGATE_STATE_DIR in their environment.
func (l *life) mine() (pids []int) {
	mark := []byte("TOKGATE_STATE_DIR=" + l.state() + "\x00")
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environs {
		if raw, _ := os.ReadFile(path); bytes.Contains(raw, mark) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// alive reports whether a process is still running. It first waits a few seconds for its end.
func (l *life) alive(pid int) bool {
	for range 50 {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return false
		}
		if f := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:])); len(f) > 0 && (f[0] == "Z" || f[0] == "X") {
			return false
		}
		time.Sleep(100 * time.Millisecond)
	}
	return true
}
