//go:build unix

package server

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	osexec "os/exec"
	"os/signal"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/server/lease"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/sim"
)

// TestMain also runs the test binary as a server, in processes that tests start.
func TestMain(m *testing.M) {
	Keep()
	if mode := os.Getenv("TOKGATE_TEST_CHILD"); mode != "" {
		childMain(mode, os.Args[1:])
	}
	os.Exit(m.Run())
}

// listenShared listens on a port that another process may listen on too. Only Linux sets it.
var listenShared func(address string) (net.Listener, error)

// launch runs a server for the soak test. Only a build with that test sets it.
var launch = func([]string) {}

func childMain(mode string, args []string) {
	time.AfterFunc(10*time.Minute, func() { os.Exit(1) }) // ends the process if its test was killed
	fmt.Println("key", os.Getenv("TOKGATE_TEST_KEY"))
	fmt.Println("args", strings.Join(args, " "))
	fmt.Println("gpus", os.Getenv("CUDA_VISIBLE_DEVICES"), os.Getenv("CUDA_DEVICE_ORDER"))
	switch mode {
	case "die":
		fmt.Fprintln(os.Stderr, "CUDA error: out of memory")
		os.Exit(3)
	case "sleep":
		forever()
	case "launch":
		launch(args)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		os.Setenv("TOKGATE_TEST_CHILD", "stubborn-grandchild")
		grandchild := osexec.Command(os.Args[0])
		grandchild.Stdout = os.Stdout // keeps the output open after its parent process has ended
		if err := grandchild.Start(); err != nil {
			panic(err)
		}
		fmt.Println("grandchild", grandchild.Process.Pid)
	case "escape":
		os.Setenv("TOKGATE_TEST_CHILD", "stubborn-grandchild")
		escaped := osexec.Command(os.Args[0])
		escaped.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := escaped.Start(); err != nil {
			panic(err)
		}
		fmt.Println("grandchild", escaped.Process.Pid)
	case "leave":
		// A daemon forks twice, leaves its session and clears its environment.
		between := osexec.Command(os.Args[0])
		between.Env = []string{"TOKGATE_TEST_CHILD=leave-between", "TOKGATE_TEST_OF=" + os.Getenv(markName)}
		between.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		out, err := between.Output()
		if err != nil {
			panic(err)
		}
		os.Stdout.Write(out)
	case "leave-between":
		daemon := osexec.Command(os.Args[0])
		daemon.Env = []string{"TOKGATE_TEST_CHILD=stubborn-grandchild", "TOKGATE_TEST_OF=" + os.Getenv("TOKGATE_TEST_OF")}
		daemon.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := daemon.Start(); err != nil {
			panic(err)
		}
		fmt.Println("grandchild", daemon.Process.Pid)
		os.Exit(0)
	case "chatty":
		line := append(bytes.Repeat([]byte("x"), 999), '\n')
		out := bufio.NewWriterSize(os.Stdout, 1<<16)
		for range 100_000 {
			out.Write(line)
		}
		out.Flush()
		fmt.Println("the last line")
	case "stubborn-grandchild":
		signal.Ignore(syscall.SIGTERM)
		forever()
	}
	s, err := sim.New(sim.Options{})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", s)
	mux.HandleFunc("/die", func(http.ResponseWriter, *http.Request) { os.Exit(7) })
	if mode == "unlisted" {
		mux.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"object":"list","data":[]}`) })
	}
	listen := func(address string) (net.Listener, error) { return net.Listen("tcp", address) }
	if mode == "shared" {
		listen = listenShared
	}
	listener, err := listen("127.0.0.1:" + args[len(args)-1])
	if err == nil {
		err = http.Serve(listener, mux)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// forever never returns. The Go runtime would report select {} as a deadlock.
func forever() { time.Sleep(1<<63 - 1) }

func childServer(t *testing.T, mode string) *plan.Server {
	self := must.Get(os.Executable())(t)
	return childServerOf(self, mode, t.TempDir())
}

func childServerOf(self, mode, dir string) *plan.Server {
	return &plan.Server{
		Name: "vllm", Key: "on", Engine: "vllm", Ready: plan.Ready{Timeout: time.Minute},
		Flags: []plan.Flag{{Name: "max-model-len", Value: cty.NumberIntVal(32768)}},
		Args:  []string{"--port", plan.PortPlaceholder},
		Process: &plan.Process{
			Command: []string{self, "serve"}, Dir: dir,
			Env: map[string]string{"TOKGATE_TEST_CHILD": mode, "TOKGATE_TEST_KEY": "sk-verysecret"},
		},
	}
}

// testHolder returns a holder with a run id that no other test uses.
func testHolder() lease.Holder {
	return lease.Holder{Run: "test-" + rand.Text(), Plan: "test.hcl", PID: os.Getpid(), Started: "now"}
}

func childLauncher(t *testing.T) *Launcher {
	l := New(Options{Clock: clock.NewReal(), LogDir: t.TempDir(), State: lease.Folder(t.TempDir()), Holder: testHolder(), Redact: []string{"sk-verysecret"}})
	l.Grace = constant(300 * time.Millisecond)
	return l
}

func kill9(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	must.Need(t, err == nil && n > 1, "pid %q", pid)
	must.Do(t, syscall.Kill(n, syscall.SIGKILL))
}

// eventually runs the clock until done returns true. It fails the test after a minute.
func eventually(t *testing.T, l *Launcher, done func() bool) {
	t.Helper()
	must.Need(t, !within(l.Clock, constant(time.Minute), done), "it did not happen within a minute")
}

// logged waits until the server's log contains the given words. It returns the rest of their line.
// The log may arrive later than other output.
func logged(t *testing.T, l *Launcher, target *exec.Target, words string) (rest string) {
	t.Helper()
	eventually(t, l, func() bool {
		_, after, _ := strings.Cut(target.Log(), words)
		var whole bool
		rest, _, whole = strings.Cut(after, "\n")
		return whole
	})
	return rest
}

func TestProcess(t *testing.T) {
	l := childLauncher(t)
	var states []string
	target := must.Get(l.Launch(t.Context(), childServer(t, "serve"), func(s string) { states = append(states, s) }))(t)
	if target.Err() != nil || target.Fingerprint["model"] != "tokgate-sim" {
		t.Errorf("error %v, fingerprint %v", target.Err(), target.Fingerprint)
	}
	err := target.Check(t.Context())
	must.Hold(t, err == nil, "%v", err)
	if err := target.Close(); err != nil {
		t.Error(err)
	}
	if err := target.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	raw := must.Get(os.ReadFile(filepath.Join(l.LogDir, "server-vllm-on.log")))(t)
	log := string(raw)
	if !strings.Contains(log, "key [redacted]\n") || !strings.Contains(log, "args serve --max-model-len 32768 --port ") || strings.Contains(log, "{port}") {
		t.Errorf("log %q", log)
	}
	if log != target.Log() {
		t.Errorf("the file holds %q and the tail %q", log, target.Log())
	}
}

// If a server does not list its model, the plan must set served_as. `transformers serve` is such a
// server: it lists the models in its cache, not the one that it loaded.
func TestProcessThatListsNoModel(t *testing.T) {
	s := childServer(t, "unlisted")
	_, err := childLauncher(t).Launch(t.Context(), s, func(string) {})
	must.Hold(t, err != nil && strings.Contains(err.Error(), "the server lists none; set served_as"), "error %v", err)
	s.Process.ServedAs = "tokgate-sim"
	target := must.Get(childLauncher(t).Launch(t.Context(), s, func(string) {}))(t)
	must.Hold(t, target.Model == "tokgate-sim", "asked for %q", target.Model)
	if err := target.Close(); err != nil {
		t.Error(err)
	}
}

func TestProcessDiesAtStart(t *testing.T) {
	_, err := childLauncher(t).Launch(t.Context(), childServer(t, "die"), func(string) {})
	must.Hold(t, err != nil && strings.Contains(err.Error(), "ended by itself: exit status 3"), "error %v, want the exit status", err)
	e, ok := errors.AsType[*exec.ServerError](err)
	must.Hold(t, ok && strings.Contains(e.Log, "CUDA error: out of memory"), "error %#v, want the log's tail in it", err)
}

func TestProcessIsNeverReady(t *testing.T) {
	s := childServer(t, "sleep")
	s.Ready.Timeout = time.Second
	_, err := childLauncher(t).Launch(t.Context(), s, func(string) {})
	must.Hold(t, err != nil && strings.Contains(err.Error(), "was not ready after 1s"), "error %v", err)
	// A ServerError carries the log of the server, and here the log is still empty.
	_, ok := errors.AsType[*exec.ServerError](err)
	must.Hold(t, ok, "error %#v, want one with a log", err)
}

func TestProcessDiesUnderWay(t *testing.T) {
	s := childServer(t, "serve")
	l := childLauncher(t)
	var url string
	target := must.Get(l.Launch(t.Context(), s, func(state string) {
		if _, u, ok := strings.Cut(state, "waiting for "); ok {
			url, _, _ = strings.Cut(u, ": ")
		}
	}))(t)
	if resp, err := http.Get(url + "/die"); err == nil {
		resp.Body.Close()
	}
	// tokgate notices the broken connection a moment before it notices the end of the process.
	eventually(t, l, func() bool { return target.Err() != nil })
	must.Same(t, "error", "the server's process ended by itself: exit status 7", target.Err().Error())
	err := target.Check(t.Context())
	must.Hold(t, err != nil, "a dead process is the same server")
	if err := target.Close(); err != nil {
		t.Error(err)
	}
}

func TestStubbornProcessIsKilledWithItsChildren(t *testing.T) {
	l := childLauncher(t)
	target := must.Get(l.Launch(t.Context(), childServer(t, "stubborn"), func(string) {}))(t)
	pid := must.Get(strconv.Atoi(logged(t, l, target, "grandchild ")))(t)
	err := target.Close()
	must.Hold(t, err == nil, "%v", err)
	// The process has ended, but may still be a zombie that its new parent process has not removed.
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && !strings.Contains(string(stat), ") Z") {
		t.Errorf("the grandchild %d is still there: %s", pid, stat)
	}
}

// tokgate finds a process that has left the process group of its server, by a variable in the
// environment of processes. A process that cleared its environment is below the server's keeper.
func TestProcessThatLeftItsGroup(t *testing.T) {
	if startOf(os.Getpid()) == "" || goruntime.GOOS != "linux" {
		t.Skip("this system does not show the environment of processes")
	}
	for _, mode := range []string{"escape", "leave"} {
		l := childLauncher(t)
		target := must.Get(l.Launch(t.Context(), childServer(t, mode), func(string) {}))(t)
		pid, _ := strconv.Atoi(logged(t, l, target, "grandchild "))
		must.Need(t, startOf(pid) != "", "it is not there to begin with")
		err := target.Close()
		must.Hold(t, err == nil, "%v", err)
		must.Hold(t, startOf(pid) == "", "%s: the grandchild %d is still there", mode, pid)
		nothingHeld(t, l)
	}
}

// The server writes a log of about 250 MB. Memory and disk keep only a limited part, with its end.
func TestChattyProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("a tenth of a gigabyte")
	}
	l := childLauncher(t)
	var before, after goruntime.MemStats
	goruntime.GC() // measure memory in use, without garbage
	goruntime.ReadMemStats(&before)
	target, err := l.Launch(t.Context(), childServer(t, "chatty"), func(string) {})
	must.Do(t, err)
	goruntime.GC()
	goruntime.ReadMemStats(&after)
	if grown := int64(after.HeapInuse) - int64(before.HeapInuse); grown > 64<<20 {
		t.Errorf("%d MiB more in use", grown>>20)
	}
	logged(t, l, target, "the last line")
	if err := target.Close(); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(filepath.Join(l.LogDir, "server-vllm-on.log"))
	must.Hold(t, err == nil && info.Size() <= fileSize+2*tailSize, "%v, %v on disk", info, err)
}

func TestProcessCannotStart(t *testing.T) {
	s := childServer(t, "serve")
	s.Process.Command = []string{"./no-such-program"}
	_, err := childLauncher(t).Launch(t.Context(), s, func(string) {})
	must.Hold(t, err != nil && strings.Contains(err.Error(), "could not start ./no-such-program"), "error %v", err)
	l := childLauncher(t)
	l.LogDir = "/nowhere"
	if _, err := l.Launch(t.Context(), childServer(t, "serve"), func(string) {}); err == nil || !strings.Contains(err.Error(), "log") {
		t.Errorf("error %v", err)
	}
}

func TestFixedPort(t *testing.T) {
	port := []plan.Flag{{Name: "port", Value: cty.NumberIntVal(8123)}}
	for _, tt := range []struct {
		server plan.Server
		want   int
	}{
		{plan.Server{Process: &plan.Process{}}, 0},
		{plan.Server{Process: &plan.Process{}, Flags: port}, 8123},
		{plan.Server{Process: &plan.Process{Port: 9000}, Flags: port}, 9000},
		{plan.Server{Container: &plan.Container{Inside: 8123}, Flags: port}, 0}, // inside it
		{plan.Server{Container: &plan.Container{Port: 9000}}, 9000},
		{plan.Server{Container: &plan.Container{Network: "host"}, Flags: port}, 8123},
	} {
		must.Same(t, fmt.Sprintf("FixedPort of %+v", tt.server), tt.want, tt.server.FixedPort())
	}
}

// A server does not start on a taken port, because tokgate would measure another program there.
func TestPortIsTaken(t *testing.T) {
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	s := childServer(t, "serve")
	s.Process.Port = listener.Addr().(*net.TCPAddr).Port
	_, err := childLauncher(t).Launch(t.Context(), s, func(string) {})
	must.Hold(t, err != nil && strings.Contains(err.Error(), "is not free: listen tcp"), "error %v", err)
}
