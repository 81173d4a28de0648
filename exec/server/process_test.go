//go:build unix

package server

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	osexec "os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/sim"
)

// TestMain lets the test binary be the server that tests start.
func TestMain(m *testing.M) {
	if mode := os.Getenv("TOKGATE_TEST_CHILD"); mode != "" {
		childMain(mode, os.Args[1:])
	}
	os.Exit(m.Run())
}

func childMain(mode string, args []string) {
	fmt.Println("key", os.Getenv("TOKGATE_TEST_KEY"))
	fmt.Println("args", strings.Join(args, " "))
	switch mode {
	case "die":
		fmt.Fprintln(os.Stderr, "CUDA error: out of memory")
		os.Exit(3)
	case "sleep":
		select {}
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		os.Setenv("TOKGATE_TEST_CHILD", "stubborn-grandchild")
		grandchild := osexec.Command(os.Args[0])
		grandchild.Stdout = os.Stdout // it holds our output open
		if err := grandchild.Start(); err != nil {
			panic(err)
		}
		fmt.Println("grandchild", grandchild.Process.Pid)
	case "stubborn-grandchild":
		signal.Ignore(syscall.SIGTERM)
		select {}
	}
	s, err := sim.New(sim.Options{})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", s)
	mux.HandleFunc("/die", func(http.ResponseWriter, *http.Request) { os.Exit(7) })
	err = http.ListenAndServe("127.0.0.1:"+args[len(args)-1], mux)
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func childServer(t *testing.T, mode string) *plan.Server {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &plan.Server{
		Name: "vllm", Key: "on", Engine: "vllm", Ready: plan.Ready{Timeout: time.Minute},
		Flags: []plan.Flag{{Name: "max-model-len", Value: cty.NumberIntVal(32768)}},
		Args:  []string{"--port", plan.PortPlaceholder},
		Process: &plan.Process{
			Command: []string{self, "serve"}, Dir: t.TempDir(),
			Env: map[string]string{"TOKGATE_TEST_CHILD": mode, "TOKGATE_TEST_KEY": "sk-verysecret"},
		},
	}
}

func childLauncher(t *testing.T) *Launcher {
	l := New(Options{Clock: clock.NewReal(), LogDir: t.TempDir(), Redact: []string{"sk-verysecret"}})
	l.grace = 300 * time.Millisecond
	return l
}

func TestProcess(t *testing.T) {
	l := childLauncher(t)
	var states []string
	target, err := l.Launch(t.Context(), childServer(t, "serve"), func(s string) { states = append(states, s) })
	if err != nil {
		t.Fatal(err)
	}
	if target.Err() != nil || target.Fingerprint["model"] != "tokgate-sim" {
		t.Errorf("error %v, fingerprint %v", target.Err(), target.Fingerprint)
	}
	if err := target.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if err := target.Close(); err != nil {
		t.Error(err)
	}
	if err := target.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	raw, err := os.ReadFile(filepath.Join(l.LogDir, "server-vllm-on.log"))
	if err != nil {
		t.Fatal(err)
	}
	log := string(raw)
	if !strings.Contains(log, "key [redacted]\n") || !strings.Contains(log, "args serve --max-model-len 32768 --port ") || strings.Contains(log, "{port}") {
		t.Errorf("log %q", log)
	}
	if log != target.Log() {
		t.Errorf("the file holds %q and the tail %q", log, target.Log())
	}
}

func TestProcessDiesAtStart(t *testing.T) {
	_, err := childLauncher(t).Launch(t.Context(), childServer(t, "die"), func(string) {})
	if err == nil || !strings.Contains(err.Error(), "ended by itself: exit status 3") {
		t.Errorf("error %v, want the exit status", err)
	}
	if e, ok := errors.AsType[*exec.ServerError](err); !ok || !strings.Contains(e.Log, "CUDA error: out of memory") {
		t.Errorf("error %#v, want the log's tail in it", err)
	}
}

func TestProcessIsNeverReady(t *testing.T) {
	s := childServer(t, "sleep")
	s.Ready.Timeout = time.Second
	_, err := childLauncher(t).Launch(t.Context(), s, func(string) {})
	if err == nil || !strings.Contains(err.Error(), "was not ready after 1s") {
		t.Errorf("error %v", err)
	}
	if e, ok := errors.AsType[*exec.ServerError](err); !ok || !strings.Contains(e.Log, "args serve") {
		t.Errorf("error %#v, want the log's tail in it", err)
	}
}

func TestProcessDiesUnderWay(t *testing.T) {
	s := childServer(t, "serve")
	l := childLauncher(t)
	var url string
	target, err := l.Launch(t.Context(), s, func(state string) {
		if _, u, ok := strings.Cut(state, "waiting for "); ok {
			url, _, _ = strings.Cut(u, ": ")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := http.Get(url + "/die"); err == nil {
		resp.Body.Close()
	}
	// The connection broke because the process ended; that it is waited for
	// takes another moment.
	if err := clock.Until(t.Context(), l.Clock, func() bool {
		_ = clock.Sleep(t.Context(), l.Clock, time.Millisecond)
		return target.Err() != nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := target.Err().Error(); got != "the server's process ended by itself: exit status 7" {
		t.Errorf("error %q", got)
	}
	if err := target.Check(t.Context()); err == nil {
		t.Error("a dead process is the same server")
	}
	if err := target.Close(); err != nil {
		t.Error(err)
	}
}

func TestStubbornProcessIsKilledWithItsChildren(t *testing.T) {
	l := childLauncher(t)
	target, err := l.Launch(t.Context(), childServer(t, "stubborn"), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(target.Log(), "grandchild ")
	if !ok {
		t.Fatalf("log %q", target.Log())
	}
	pid, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := target.Close(); err != nil {
		t.Error(err)
	}
	// It is gone, or a zombie that only its new parent can be rid of.
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && !strings.Contains(string(stat), ") Z") {
		t.Errorf("the grandchild %d is still there: %s", pid, stat)
	}
}

func TestProcessCannotStart(t *testing.T) {
	s := childServer(t, "serve")
	s.Process.Command = []string{"./no-such-program"}
	if _, err := childLauncher(t).Launch(t.Context(), s, func(string) {}); err == nil || !strings.Contains(err.Error(), "could not start ./no-such-program") {
		t.Errorf("error %v", err)
	}
	l := childLauncher(t)
	l.LogDir = "/nowhere"
	if _, err := l.Launch(t.Context(), childServer(t, "serve"), func(string) {}); err == nil || !strings.Contains(err.Error(), "log") {
		t.Errorf("error %v", err)
	}
}

func TestCommand(t *testing.T) {
	s := &plan.Server{
		Engine: "vllm", Process: &plan.Process{Command: []string{"vllm", "serve", "m"}},
		Flags: []plan.Flag{{Name: "port", Value: cty.NumberIntVal(8123)}},
	}
	words, port, err := command(s)
	if err != nil || port != 8123 || strings.Join(words, " ") != "vllm serve m --port 8123" {
		t.Errorf("got %q, %d, %v", words, port, err)
	}
	s.Flags, s.Args, s.Process.Port = nil, []string{"--listen=127.0.0.1:{port}"}, 9000
	words, port, err = command(s)
	if err != nil || port != 9000 || strings.Join(words, " ") != "vllm serve m --listen=127.0.0.1:9000" {
		t.Errorf("got %q, %d, %v", words, port, err)
	}
}
