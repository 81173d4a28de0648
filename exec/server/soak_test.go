//go:build linux

package server

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/server/lease"
	"github.com/tokgate/tokgate/internal/must"
)

var soak = flag.Int("soak", 0, "how many servers TestSoak starts and ends; 0: it is skipped")

func init() { launch = launchMain }

// launchMain stands in for a tokgate process that launches a server and is then killed. The
// arguments are the folder for notes about running servers, the name of the run, and what the server
// does.
func launchMain(args []string) {
	l := New(Options{Clock: clock.NewReal(), State: lease.Folder(args[0]), Holder: lease.Holder{Run: args[1], PID: os.Getpid()}, Reap: true})
	s := childServerOf(os.Args[0], args[2], "/")
	if _, err := l.Launch(context.Background(), s, func(string) {}); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("launched")
	forever()
}

// TestSoak starts many servers, several at a time, and ends them in every way. `make soak` runs the
// test.
func TestSoak(t *testing.T) {
	if *soak == 0 {
		t.Skip("make soak")
	}
	d := newDock(t, "serve") // the fake container runtime can run only one container at a time
	d.put(t, "image", "")
	t.Setenv("TMPDIR", t.TempDir())
	state := lease.Folder(t.TempDir())
	run := fmt.Sprintf("soak-%d", os.Getpid())
	began := time.Now()
	var container sync.Mutex
	var wg sync.WaitGroup
	next := make(chan int)
	done := map[string]int{}
	var mu sync.Mutex
	for range 4 {
		wg.Go(func() {
			for i := range next {
				name, err := cycle(t, state, fmt.Sprintf("%s-%d", run, i), i, &container, d)
				must.Hold(t, err == nil, "cycle %d, %s: %v", i, name, err)
				mu.Lock()
				done[name]++
				mu.Unlock()
			}
		})
	}
	for i := range *soak {
		next <- i
	}
	close(next)
	wg.Wait()

	// A last run of tokgate must find and end the servers that killed runs left behind.
	l := New(Options{Clock: clock.NewReal(), State: state, Holder: lease.Holder{Run: run + "-last"}, Reap: true})
	if _, err := l.leftovers(t.Context(), childServer(t, "serve"), func(string) {}); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(string(state))
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return filepath.Ext(e.Name()) == string(lease.Starts) }) // for later runs
	must.Hold(t, err == nil && len(entries) <= 0, "%d notes stay behind, such as %v; %v", len(entries), entries, err)
	if entries, _ := os.ReadDir(os.TempDir()); len(entries) > 0 {
		t.Errorf("%d temporary files stay behind, such as %v", len(entries), entries[0])
	}
	for _, pid := range pids() {
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		ours := bytes.Contains(env, []byte(markName+"="+run)) || bytes.Contains(env, []byte("TOKGATE_TEST_OF="+run))
		must.Hold(t, pid == os.Getpid() || !ours || startOf(pid) == "", "process %d stays behind", pid)
	}
	must.Hold(t, !d.has("there"), "a container stays behind")
	t.Logf("%d servers in %v: %v", *soak, time.Since(began).Round(time.Second), done)
}

// cycle starts and ends one server, in the i-th of the ways that TestSoak lists.
func cycle(t *testing.T, state lease.Folder, run string, i int, container *sync.Mutex, d dock) (name string, err error) {
	l := New(Options{Clock: clock.NewReal(), State: state, Holder: lease.Holder{Run: run, PID: os.Getpid()}, Reap: true, Grace: constant(100 * time.Millisecond)})
	quiet := func(string) {}
	start := func(mode string, then func(pid string) error) error {
		s := childServerOf(os.Args[0], mode, "/")
		target, err := l.Launch(t.Context(), s, quiet)
		if err != nil {
			return err
		}
		port := strings.TrimSpace(target.Log())
		if err := then(port); err != nil {
			return errors.Join(err, target.Close())
		}
		return target.Close()
	}
	switch i % 6 {
	case 0:
		return "ended", start("serve", func(string) error { return nil })
	case 1:
		return "killed", start("serve", func(log string) error {
			for _, pid := range family(0, run+`/vllm["on"]`) {
				kill(pid)
			}
			return nil
		})
	case 2:
		return "stubborn", start([]string{"stubborn", "escape", "leave"}[i/6%3], func(string) error { return nil })
	case 3:
		if err := start("die", func(string) error { return nil }); err == nil {
			return "dead at start", errors.New("it was ready")
		}
		return "dead at start", nil
	case 4:
		cmd := osexec.Command(os.Args[0], string(state), run, []string{"serve", "leave"}[i/6%2])
		cmd.Env = append(os.Environ(), "TOKGATE_TEST_CHILD=launch")
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return "tokgate killed", err
		}
		said := make([]byte, 4096)
		for n := 0; err == nil && !bytes.Contains(said[:n], []byte("launched")); {
			var m int
			m, err = out.Read(said[n:])
			n += m
		}
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, bytes.Trim(said, "\x00"))
		}
		return "tokgate killed", err
	}
	container.Lock()
	defer container.Unlock()
	for _, f := range []string{"pid", "exit", "log"} {
		_ = os.Remove(d.dir + "/" + f)
	}
	target, err := l.Launch(t.Context(), containerServer(), quiet)
	if err != nil {
		return "container", err
	}
	return "container", target.Close()
}
