//go:build unix

package server

import (
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec/server/lease"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// onGPUs is a server that asks for the GPUs g and prints the GPUs that it got.
func onGPUs(t *testing.T, g *plan.GPUs) *plan.Server {
	s := childServer(t, "serve")
	s.Process.GPUs = g
	return s
}

// fourGPUs answers like nvidia-smi 570. The second GPU is busy; the last reports few
// values.
const fourGPUs = `case "$1" in
--query-gpu=*) cat <<'END'
0, GPU-00000000-aaaa, NVIDIA H100 80GB HBM3, 81559, 4, 570.124.06, 1980, 2619, 700.00, Enabled, Disabled, Enabled
1, GPU-11111111-aaaa, NVIDIA H100 80GB HBM3, 81559, 41000, 570.124.06, 1980, 2619, 700.00, Enabled, Disabled, Enabled
2, GPU-22222222-aaaa, NVIDIA H100 80GB HBM3, 81559, 4, 570.124.06, 1980, 2619, 500.00, Enabled, Disabled, Enabled
3, GPU-33333333-aaaa, NVIDIA GB10, [N/A], [N/A], 570.124.06, [N/A], [Not Supported], [N/A], Enabled, [N/A], [N/A]
END
;;
--version) echo 'CUDA Version : 12.8' ;;
esac
`

func withSMI(t *testing.T) {
	t.Helper()
	script(t, bin(t), "nvidia-smi", fourGPUs)
	t.Setenv("CUDA_VISIBLE_DEVICES", "")
}

// Two servers that run at the same time get different GPUs. A third server that needs a GPU in use
// gets an error, which names the run that holds the GPU.
func TestGPUsAreHeld(t *testing.T) {
	withSMI(t)
	l := childLauncher(t)
	other := New(l.Options) // another run
	other.Holder.Run = "another"
	start := func(l *Launcher, g *plan.GPUs) (string, func() error, error) {
		target, err := l.Launch(t.Context(), onGPUs(t, g), func(string) {})
		if err != nil {
			return "", nil, err
		}
		return target.Fingerprint["gpu_ids"], target.Close, nil
	}
	first, end1, err := start(l, &plan.GPUs{Count: 1})
	must.Need(t, err == nil && first == "0", "the first got %q, %v", first, err)
	second, end2, err := start(other, &plan.GPUs{Count: 2})
	must.Need(t, err == nil && second == "2,3", "the second got %q, %v", second, err)
	// No run holds GPU 1, so it counts as free, although another program uses it.
	_, _, err = start(other, &plan.GPUs{Count: 2})
	if err == nil || !strings.Contains(err.Error(), "too few free GPUs: 1 of 4 usable GPUs are free, and 2 needed: GPU 0 GPU-00000000-aaaa is held by run "+l.Holder.Run+" of test.hcl (server") {
		t.Errorf("error %v", err)
	}
	for _, g := range []*plan.GPUs{{IDs: []string{"0"}}, {All: true}, nil} {
		if _, _, err := start(other, g); err == nil || !strings.Contains(err.Error(), "GPU 0 GPU-00000000-aaaa is held by run "+l.Holder.Run) {
			t.Errorf("gpus %+v: error %v", g, err)
		}
	}
	if err := end1(); err != nil {
		t.Error(err)
	}
	again, end3, err := start(other, &plan.GPUs{IDs: []string{"GPU-00000000-aaaa"}})
	if err != nil || again != "0" {
		t.Errorf("after its end: %q, %v", again, err)
	} else if err := end3(); err != nil {
		t.Error(err)
	}
	if err := end2(); err != nil {
		t.Error(err)
	}
	nothingHeld(t, l)
}

func TestGPUsOfAProcess(t *testing.T) {
	withSMI(t)
	l := childLauncher(t)
	s := onGPUs(t, &plan.GPUs{IDs: []string{"1"}})
	s.Expect = map[string]string{"gpu": "1 x H100", "gpu_driver": "570.124.06", "cuda": "12.8"}
	target := must.Get(l.Launch(t.Context(), s, func(string) {}))(t)
	defer target.Close()
	for key, want := range map[string]string{
		"gpu": "1 x NVIDIA H100 80GB HBM3", "gpu_limits": "1980 MHz, memory 2619 MHz, 700 W", "gpu_modes": "persistence enabled, MIG disabled, ECC enabled", "gpu_used_before": "1: 41000 MiB",
	} {
		must.Same(t, key, want, target.Fingerprint[key])
	}
	must.Same(t, "it has GPUs", "1 PCI_BUS_ID", logged(t, l, target, "gpus "))
	wrong := onGPUs(t, &plan.GPUs{IDs: []string{"0"}})
	wrong.Expect = map[string]string{"gpu": "1 x RTX PRO 6000"}
	if _, err := l.Launch(t.Context(), wrong, func(string) {}); err == nil || !strings.Contains(err.Error(), `gpu = "1 x RTX PRO 6000" was expected, but "1 x NVIDIA H100 80GB HBM3" was found`) {
		t.Errorf("another GPU gave %v", err)
	}
}

func TestPortIsHeld(t *testing.T) {
	l := childLauncher(t)
	n := must.Get(l.State.Take("port 18000", lease.Holder{Run: "run-1", Plan: "night.hcl", Server: "vllm", PID: 1, Started: "now"}))(t)
	defer n.Done()
	s := childServer(t, "serve")
	s.Process.Port = 18000
	_, err := l.Launch(t.Context(), s, func(string) {})
	must.Hold(t, err != nil && strings.Contains(err.Error(), "port 18000 is held by run run-1 of night.hcl"), "error %v", err)
}

// A killed run leaves a process with children behind. tokgate recognises this process by its pid
// and its start time, because another process may get the pid later.
func TestLeftoverProcess(t *testing.T) {
	l := childLauncher(t)
	note := func(change func(*lease.Server)) *osexec.Cmd {
		t.Helper()
		cmd := osexec.Command("/bin/sh", "-c", "sleep 1000 & wait")
		cmd.Env = append(os.Environ(), markName+"=run-1/vllm")
		ownGroup(cmd)
		must.Do(t, cmd.Start())
		go cmd.Wait() // as init would
		t.Cleanup(func() { kill(-cmd.Process.Pid) })
		s := lease.Server{
			Holder: lease.Holder{Run: "run-1", Plan: "night.hcl", Server: "vllm"},
			Group:  cmd.Process.Pid, Start: startOf(cmd.Process.Pid), Mark: "run-1/vllm", Port: 8000,
		}
		if change != nil {
			change(&s)
		}
		n := must.Get(l.State.Begin(s))(t)
		n.Leave()
		return cmd
	}

	l.doubt = true
	left := note(nil)
	var said []string
	say := func(s string) { said = append(said, s) }
	_, err := l.Launch(t.Context(), childServer(t, "serve"), say)
	want := fmt.Sprintf("process group %d on port 8000, of run run-1 of night.hcl", left.Process.Pid)
	must.Need(t, errors.Is(err, errLeftover) && strings.Contains(err.Error(), want), "error %v, want %q in it", err, want)
	must.Need(t, len(family(left.Process.Pid, "")) != 0, "it was removed without being asked to")
	l.doubt = false
	target, err := l.Launch(t.Context(), childServer(t, "serve"), say)
	must.Do(t, err)
	if len(family(left.Process.Pid, "")) > 0 || !strings.Contains(strings.Join(said, "\n"), "removing what a killed run left behind: "+want) {
		t.Errorf("it was not removed, or not in so many words: %q", said)
	}
	if err := target.Close(); err != nil {
		t.Error(err)
	}
	nothingHeld(t, l)

	// A new process may get the pid of a server that has ended. tokgate does not kill this process.
	stranger := note(func(s *lease.Server) { s.Start, s.Mark = "another boot/1", "run-0/vllm" })
	target, err = l.Launch(t.Context(), childServer(t, "serve"), say)
	must.Do(t, err)
	must.Hold(t, len(family(stranger.Process.Pid, "")) != 0, "a stranger was killed")
	if err := target.Close(); err != nil {
		t.Error(err)
	}
	nothingHeld(t, l)
}

// The first process of a server has ended, but its child still runs in another process group.
// tokgate finds the child.
func TestLeftoverChild(t *testing.T) {
	if startOf(os.Getpid()) == "" || len(family(0, "none")) > 0 {
		t.Skip("this system does not show the environment of processes")
	}
	l := childLauncher(t)
	l.Reap = true
	cmd := osexec.Command("/bin/sleep", "1000")
	cmd.Env = []string{markName + "=run-1/vllm"}
	ownGroup(cmd)
	must.Do(t, cmd.Start())
	go cmd.Wait()
	eventually(t, l, func() bool { return len(family(0, "run-1/vllm")) == 1 })
	n := must.Get(l.State.Begin(lease.Server{Holder: lease.Holder{Run: "run-1"}, Group: 1 << 30, Start: "boot/1", Mark: "run-1/vllm"}))(t)
	n.Leave()
	target := must.Get(l.Launch(t.Context(), childServer(t, "serve"), func(string) {}))(t)
	must.Hold(t, len(family(cmd.Process.Pid, "")) <= 0, "it is still there")
	err := target.Close()
	must.Hold(t, err == nil, "%v", err)
}

// A leftover (a server that an earlier run left) does not block a new server on other GPUs. The run
// still names it.
func TestLeftoverElsewhere(t *testing.T) {
	withSMI(t)
	l := childLauncher(t)
	l.doubt = true
	cmd := osexec.Command("/bin/sleep", "1000")
	ownGroup(cmd)
	must.Do(t, cmd.Start())
	go cmd.Wait()
	defer kill(-cmd.Process.Pid)
	n := must.Get(l.State.Begin(lease.Server{
		Holder: lease.Holder{Run: "run-1"}, Group: cmd.Process.Pid, Start: startOf(cmd.Process.Pid), GPUs: []string{"GPU 0 GPU-00000000-aaaa"},
	}))(t)
	n.Leave()
	var said []string
	target := must.Get(l.Launch(t.Context(), onGPUs(t, &plan.GPUs{Count: 1}), func(s string) { said = append(said, s) }))(t)
	if got := target.Fingerprint["gpu_ids"]; got != "2" || !strings.Contains(strings.Join(said, "\n"), "still running: process group") {
		t.Errorf("GPU %s, said %q; want the next free one, and the leftover named", got, said)
	}
	err := target.Close()
	must.Hold(t, err == nil, "%v", err)
	if _, err := l.Launch(t.Context(), onGPUs(t, &plan.GPUs{IDs: []string{"0"}}), func(string) {}); !errors.Is(err, errLeftover) {
		t.Errorf("on its GPU: %v", err)
	}
}

func script(t *testing.T, dir, name, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755))
}

// bin sets the PATH to a new folder and a folder with links to some system tools. It returns the
// new folder.
func bin(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	tools := t.TempDir()
	for _, tool := range []string{"cat", "sleep", "rm", "mkdir", "touch", "env", "sh", "kill", "head", "yes"} {
		for _, from := range []string{"/bin/", "/usr/bin/"} {
			if _, err := os.Stat(from + tool); err == nil {
				_ = os.Symlink(from+tool, filepath.Join(tools, tool))
				break
			}
		}
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+tools)
	return dir
}

// Shell scripts replace the GPU tools, so the test covers what the tools print and how they fail.
func TestInventory(t *testing.T) {
	for want, text := range map[string]string{
		"4, driver 570.124.06, CUDA 12.8": fourGPUs,
		"nvidia-smi: exit status 9: NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.": "echo 'NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.'; exit 9",
		"neither nvidia-smi nor amd-smi is on the PATH":                                                             "",
	} {
		if dir := bin(t); text != "" {
			script(t, dir, "nvidia-smi", text)
		}
		t.Setenv("CUDA_VISIBLE_DEVICES", "")
		inv := inventory(t.Context())
		got := inv.Why
		if got == "" {
			got = fmt.Sprintf("%d, driver %s, CUDA %s", len(inv.GPUs), inv.Driver, inv.CUDA)
		}
		must.Hold(t, got == want, "got %q, want %q", got, want)
	}
}

// While a server starts, its state shows the phase, the duration of the last start, and the last
// line of the log.
func TestStarting(t *testing.T) {
	l := &Launcher{Options: Options{State: lease.Folder(t.TempDir())}}
	s := &plan.Server{Engine: "vllm", Model: "tiny", Process: &plan.Process{}}
	key := startKey(s)
	other := *s
	other.Model = "large"
	must.Hold(t, startKey(&other) != key && l.took(key) == 0, "two models are one start, or one is known that never was")
	l.State.Remember(lease.Starts, key, 72400*time.Millisecond)
	facts := &logFacts{read: engine.Of("vllm").Facts}
	said := ""
	say := l.starting(func(words string) { said = words }, facts, l.took(key))
	for _, tt := range []struct{ line, want string }{
		{"INFO 11-22 07:24:50 [__init__.py:248] No platform detected", "waiting (the last start took 1m12s)"},
		{"INFO 11-22 07:24:50 [cpu_model_runner.py:60] Starting to load model /models/tiny...", "loading the weights (the last start took 1m12s): waiting"},
		{"(EngineCore pid=1) INFO 11-22 07:25:01 [kv_cache_utils.py:2327] CPU KV cache size: 2,097,152 tokens", "making the KV cache (the last start took 1m12s): waiting"},
	} {
		facts.line(tt.line)
		if say("waiting"); said != tt.want {
			t.Errorf("after %q it says %q, want %q", tt.line, said, tt.want)
		}
	}
	found := metric.Fingerprint{}
	if facts.add(found); found["phase"] != "" || found["kv_cache_tokens"] != "2097152" {
		t.Errorf("found %v", found)
	}
	// If the last start was short, its duration is not mentioned.
	l.starting(func(words string) { said = words }, &logFacts{}, time.Second)("waiting")
	must.Hold(t, said == "waiting", "it says %q", said)
}
