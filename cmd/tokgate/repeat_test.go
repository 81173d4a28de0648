package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/internal/must"
)

var repeats = flag.Int("repeats", 20, "how often TestLongSimulationsRepeat runs its plan; from 100 on niced, beside busy loops")

// A simulated run depends only on its plan and on this program. Its files stay the same to the
// byte. The number of processors, the load on the machine and earlier files in the results folder
// do not matter. The run has a search, a table of levels and server metrics.
func TestLongSimulationsRepeat(t *testing.T) {
	// Run a copy, so that nobody can edit the plan during a thousand runs.
	shipped := system{file: "qwen3.6-35b-a3b-mtp-fp8.1x-rtx-pro-6000"}.plan()
	folder := t.TempDir()
	must.Do(t, os.CopyFS(folder, os.DirFS(filepath.Dir(shipped))))
	t.Chdir(folder)
	plan := filepath.Base(shipped)
	command := []string{programFile(t, ""), "run", "--simulate", "--quiet", "--out", "out", "--only", `use_case["coding_assistant"]`, plan}
	if *repeats >= 100 {
		command = append([]string{"nice", "-n", "19"}, command...)
		defer spin()()
	}
	files := []string{"samples.jsonl", "results.json"}
	want := map[string]string{}
	for i := range *repeats {
		procs := []int{1, 2, 8}[i%3]
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", procs))
		if said, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != assert.ExitPass {
			t.Fatalf("run %d: %v\n%s", i, err, said)
		}
		for _, name := range files {
			got := fmt.Sprintf("%x", sha256.Sum256([]byte(read(t, filepath.Join("out", name)))))
			if i == 0 {
				want[name] = got
			} else if got != want[name] {
				t.Errorf("run %d, on %d processors: %s is %s, and was %s in the first run", i, procs, name, got, want[name])
			}
		}
	}
	if !t.Failed() {
		t.Logf("%d runs, the same bytes in each of %s", *repeats, files)
	}
}

// spin keeps every processor busy until it is stopped.
func spin() (stop func()) {
	var over atomic.Bool
	for range runtime.NumCPU() {
		go func() {
			for !over.Load() {
			}
		}()
	}
	return func() { over.Store(true) }
}
