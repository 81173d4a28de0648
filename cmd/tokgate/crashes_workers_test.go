//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
)

// apartPlan gates a server that workers reach over a network which can be cut.
const apartPlan = `
gate {
  decide = "estimate"
}
server "s" {
  engine = "vllm"
  endpoint { url = "http://10.77.0.1:8000" }
}
workload "w" {
  input_tokens  = 64
  output_tokens = 17
  load {
    concurrency = 4
    duration    = "40s"
    timeout     = "20s"
  }
  sla { e2e = "p95 < 5s" }
}
`

// TestWorkerCrashes kills a worker or the run of two workers, each in a network namespace of its own, or cuts the
// network of one, at a random time. Every run ends without a process that is left, and never with a verdict of one
// worker alone. What a worker was told is recorded is on disk. The test takes real time; `make crashes` runs it.
func TestWorkerCrashes(t *testing.T) {
	if *crashes == 0 {
		t.Skip("make crashes")
	}
	if osexec.Command("unshare", "-n", "true").Run() != nil {
		t.Skip("no network namespaces: they need root")
	}
	for _, x := range []struct {
		name    string
		times   int
		harm    func(*apart)
		codes   [3]string     // that the run, the worker that is harmed and the other may have
		run     time.Duration // in which the run ends; 0: it goes on
		workers time.Duration // in which the workers end
	}{
		{"kill -9 of a worker", 25, func(a *apart) { _ = a.workers[0].cmd.Process.Kill() }, [3]string{"4", "-1", "4"}, 30 * time.Second, 30 * time.Second},
		{"SIGTERM to a worker", 10, func(a *apart) { _ = a.workers[0].cmd.Process.Signal(syscall.SIGTERM) }, [3]string{"4", "130", "4"}, 30 * time.Second, 30 * time.Second},
		{"kill -9 of the run", 25, func(a *apart) { _ = syscall.Kill(a.measuring(), syscall.SIGKILL) }, [3]string{"4", "4", "4"}, 30 * time.Second, 30 * time.Second},
		{"a cut of 10 s", 20, func(a *apart) { a.cut(10 * time.Second) }, [3]string{"0 3 4", "0", "0"}, 0, 0}, // 4: disturbed too often
		{"a cut of 60 s", 20, func(a *apart) { a.cut(60 * time.Second) }, [3]string{"4", "4", "4"}, 40 * time.Second, 40 * time.Second},
	} {
		t.Run(strings.ReplaceAll(x.name, " ", "_"), func(t *testing.T) {
			times := int(float64(x.times)**crashes + 0.5)
			codes, slowest := map[string]int{}, [2]time.Duration{}
			var mu sync.Mutex
			var all sync.WaitGroup
			next := make(chan int, times)
			for i := range times {
				next <- i
			}
			close(next)
			for range min(times, 4) {
				a := newApart(t)
				all.Go(func() {
					for i := range next {
						a.begins()
						time.Sleep(time.Second + time.Duration(rand.New(rand.NewPCG(*crashSeed, uint64(i))).Float64()*float64(14*time.Second)))
						var harm sync.WaitGroup
						harm.Go(func() { x.harm(a) })
						got, took := a.ends(time.Now())
						harm.Wait()
						problem := a.wrong(got, x.codes)
						mu.Lock()
						codes[fmt.Sprint(got)]++
						slowest[0], slowest[1] = max(slowest[0], took[0]), max(slowest[1], took[1], took[2])
						mu.Unlock()
						must.Hold(t, problem == nil, "run %d: exit codes %v: %v\n%s", i, got, problem, a.said())
						must.Hold(t, x.run == 0 || took[0] <= x.run && max(took[1], took[2]) <= x.workers, "run %d: they ended after %v", i, took)
					}
				})
			}
			all.Wait()
			t.Logf("%d times %s: exit codes %v; the run ended after at most %v, its workers after %v", times, x.name, codes, slowest[0].Round(time.Millisecond), slowest[1].Round(time.Millisecond))
		})
	}
}

// apart is a run, its server and two workers, in three network namespaces.
type apart struct {
	*life
	spaces  [3]string // processes that hold the namespaces: of the run, and of each worker
	served  string    // the server's log
	workers [2]*child
}

func newApart(t *testing.T) *apart {
	a := &apart{life: newLife(t)}
	for i := range a.spaces {
		holder := osexec.Command("unshare", "-n", "sleep", "infinity")
		a.spaces[i] = fmt.Sprint(begin(t, holder).cmd.Process.Pid)
	}
	own := must.Get(os.Readlink("/proc/self/ns/net"))(t)
	for _, pid := range a.spaces { // until unshare has made it
		for space := own; space == own; time.Sleep(10 * time.Millisecond) {
			space = must.Get(os.Readlink("/proc/" + pid + "/ns/net"))(t)
		}
	}
	a.ip(0, "address add 10.77.0.1/32 dev lo", "link set lo up")
	for i := 1; i < 3; i++ {
		a.ip(0, fmt.Sprintf("link add v%d type veth peer name eth netns %s", i, a.spaces[i]), fmt.Sprintf("address add 10.77.%d.1/24 dev v%[1]d", i), fmt.Sprintf("link set v%d up", i))
		a.ip(i, fmt.Sprintf("address add 10.77.%d.2/24 dev eth", i), "link set eth up", fmt.Sprintf("route add default via 10.77.%d.1", i))
	}
	must.Do(t, os.WriteFile(filepath.Join(a.dir, "test.hcl"), []byte(apartPlan), 0o644))
	a.served = filepath.Join(a.dir, "served")
	server := a.in(0, "sim", "--listen", "10.77.0.1:8000", "--log", a.served)
	server.Env = append(server.Env, "TOKGATE_STATE_DIR="+t.TempDir()) // it is none of those that must end
	begin(t, server).waitFor("http")
	return a
}

// ip configures the network of a namespace.
func (a *apart) ip(space int, commands ...string) {
	for _, c := range commands {
		out, err := osexec.Command("nsenter", append([]string{"-t", a.spaces[space], "-n", "ip"}, strings.Fields(c)...)...).CombinedOutput()
		must.Hold(a.t, err == nil, "ip %s: %v\n%s", c, err, out)
	}
}

// in returns a command of tokgate in a namespace.
func (a *apart) in(space int, args ...string) *osexec.Cmd {
	cmd := osexec.Command("nsenter", append([]string{"-t", a.spaces[space], "-n", a.program}, args...)...)
	cmd.Env, cmd.Dir = a.environ, a.dir
	return cmd
}

// begins begins the run and its workers, and waits until they send load.
func (a *apart) begins() {
	_ = os.Truncate(a.served, 0)
	a.child = begin(a.t, a.in(0, "run", "test.hcl", "--out", a.out, "--workers", "2", "--token-file", "token", "--listen", "10.77.0.1:7443"))
	a.waitFor("--fingerprint ")
	a.waitFor("\n") // of that line
	said, _ := a.output()
	_, said, _ = strings.Cut(said, "--fingerprint ")
	for i := range a.workers {
		a.workers[i] = begin(a.t, a.in(i+1, "worker", "--join", "https://10.77.0.1:7443", "--token-file", "token", "--fingerprint", strings.Fields(said)[0], "--name", fmt.Sprintf("w%d", i)))
	}
	a.waitFor("w at 4 on s")
}

// cut cuts the network between the run and the first worker. No connection breaks.
func (a *apart) cut(d time.Duration) {
	a.ip(0, "link set v1 down")
	time.Sleep(d)
	a.ip(0, "link set v1 up")
}

// ends waits for the run and its workers, and returns their exit codes, and how long after a time each ended.
func (a *apart) ends(since time.Time) (codes [3]int, took [3]time.Duration) {
	var all sync.WaitGroup
	for i, c := range []*child{a.child, a.workers[0], a.workers[1]} {
		all.Go(func() {
			codes[i], _ = c.wait()
			took[i] = time.Since(since)
		})
	}
	all.Wait()
	return codes, took
}

func (a *apart) said() (out string) {
	for _, c := range []*child{a.child, a.workers[0], a.workers[1]} {
		said, _ := c.output()
		out += said + "\n"
	}
	return out
}

// wrong says what is wrong about what a run and its workers left.
func (a *apart) wrong(codes [3]int, may [3]string) error {
	for i, code := range codes {
		if !strings.Contains(" "+may[i]+" ", fmt.Sprintf(" %d ", code)) {
			return fmt.Errorf("these may be %q", may)
		}
	}
	for _, pid := range a.mine() {
		if a.alive(pid) {
			return fmt.Errorf("process %d is left", pid)
		}
	}
	junit, err := os.ReadFile(filepath.Join(a.out, "junit.xml"))
	if codes[0] == verdict.ExitError && (err != nil || !bytes.Contains(junit, []byte("<error"))) {
		return fmt.Errorf("junit.xml is green: %w\n%s", err, junit)
	}
	if doc, err := a.document(); err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && codes[0] == verdict.ExitError && doc.Outcome == verdict.Pass {
		return fmt.Errorf("results.json: %w", err)
	}
	// A slot begins a request only when its last one was recorded.
	served, recorded := 0, 0
	for line := range strings.Lines(read(a.t, a.served)) {
		if strings.Contains(line, `"tokens":17`) {
			served++
		}
	}
	for line := range strings.Lines(read(a.t, filepath.Join(a.out, "samples.jsonl"))) {
		if strings.Contains(line, `"type":"sample"`) && strings.HasSuffix(line, "\n") {
			recorded++
		}
	}
	if served == 0 || recorded < served-4 {
		return fmt.Errorf("the server answered %d requests, and %d are recorded", served, recorded)
	}
	return nil
}
