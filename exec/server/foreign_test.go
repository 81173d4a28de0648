//go:build linux

package server

import (
	"context"
	"errors"
	"os"
	osexec "os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/exec/telemetry"
	"github.com/tokgate/tokgate/internal/must"
)

// sleeper starts a process with the given environment that runs until the test ends.
func sleeper(t *testing.T, environ ...string) int {
	t.Helper()
	cmd := osexec.Command("/bin/sleep", "60")
	cmd.Env = environ
	must.Do(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd.Process.Pid
}

// A process that this run started on a GPU is not foreign. It has the run's mark in its
// environment, even if another server of the run started it.
func TestForeignProcesses(t *testing.T) {
	own, other := sleeper(t, "A=1", markName+"=run-1/vllm"), sleeper(t, markName+"=run-1/another")
	alien, someone := sleeper(t, markName+"=run-10/vllm"), os.Getpid()
	now, asked := time.Duration(0), 0
	pids, fails := []int{own, other}, error(nil)
	f := foreign{run: "run-1", now: func() time.Duration { return now }, list: func(context.Context) ([]int, error) { asked++; return pids, fails }}
	for _, tt := range []struct {
		name  string
		pids  []int
		fails error
		want  float64
		why   string
	}{
		{"its own", []int{own, other}, nil, 0, ""},
		{"nobody", nil, nil, 0, ""},
		{"others", []int{own, alien, someone}, nil, 2, ""},
		{"one that is not seen", []int{own, 1 << 30}, nil, 0, "cannot be seen from here"},
		{"no answer", nil, errors.New("nvidia-smi: exit status 9"), 0, "exit status 9"},
	} {
		pids, fails = tt.pids, tt.fails
		now += foreignEvery
		r := &telemetry.Reading{Gauges: map[string]float64{}, None: map[string]string{}}
		f.add(t.Context(), r)
		if r.Gauges["foreign_processes"] != tt.want || !strings.Contains(r.None["foreign_processes"], tt.why) || tt.why != "" && len(r.Gauges) != 0 {
			t.Errorf("%s: %+v", tt.name, r)
		}
	}
	now += foreignEvery / 2
	f.add(t.Context(), &telemetry.Reading{Gauges: map[string]float64{}, None: map[string]string{}})
	must.Hold(t, asked == 5, "asked %d times, want 5: not at each reading", asked)
}
