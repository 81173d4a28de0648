//go:build unix

package telemetry

import (
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
)

// program writes a shell script that a test uses in place of nvidia-smi or amd-smi.
func program(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "smi")
	must.Do(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755))
	return path
}

// readUntil reads the source repeatedly, until done accepts the result.
func readUntil(t *testing.T, c clock.Clock, source Source, done func(*Reading, error) bool) {
	t.Helper()
	ok, busy := false, false
	deadline := c.Now() + 20*time.Second
	var last error
	for !ok && c.Now() < deadline {
		if !busy {
			busy = true
			source(t.Context(), func(r *Reading, err error) { ok, busy, last = done(r, err), false, err })
		}
		sleep(t, c, 5*time.Millisecond)
	}
	must.Need(t, ok, "it never came; last error: %v", last)
}

func TestNvidiaSMI(t *testing.T) {
	c := clock.NewReal()
	args := filepath.Join(t.TempDir(), "args")
	path := program(t, `echo "$@" > `+args+`
while :; do
  echo "2, GPU-a, 300.5, 90, 1024, 60, 1700"
  echo "3, GPU-b, 200, 70, 1024, 65, 1500"
  sleep 0.05
done`)
	smi, err := StartNvidiaSMI(c, path, []string{"2", "3"}, time.Second, nil)
	must.Do(t, err)
	readUntil(t, c, smi.Source(), func(r *Reading, err error) bool {
		return err == nil && r.Gauges["power"] == 500.5 && r.Gauges["gpu_clock"] == 1.5e9
	})
	smi.Close()
	raw, err := os.ReadFile(args)
	const want = "--query-gpu=index,uuid,power.draw,utilization.gpu,memory.used,temperature.gpu,clocks.sm,clocks_event_reasons.active,ecc.errors.uncorrected.volatile.total --format=csv,noheader,nounits -lms 1000 -i 2,3"
	must.Hold(t, err == nil && strings.TrimSpace(string(raw)) == want, "it was run with %q (%v), want %q", raw, err, want)
	// After Close, the source must report an error, and no process may remain.
	readUntil(t, c, smi.Source(), func(_ *Reading, err error) bool {
		return err != nil && strings.Contains(err.Error(), "nvidia-smi ended")
	})
	smi.Close()
}

// An older driver has another name for the field that says why clocks are reduced. A very old
// driver does not have the field.
func TestNvidiaSMIOfOlderDrivers(t *testing.T) {
	for _, tt := range []struct {
		unknown   string // name of the field in the query that this driver rejects
		reading   string
		throttled bool
	}{
		{"clocks_event_reasons", "0, GPU-a, 300, 90, 1024, 88, 900, 0x40, 0", true},
		{"_reasons", "0, GPU-a, 300, 90, 1024, 88, 900", false},
	} {
		c := clock.NewReal()
		smi := must.Get(StartNvidiaSMI(c, program(t, `case "$1" in *`+tt.unknown+`*) echo "Field \"`+tt.unknown+`\" is not a valid field to query."; exit 2;; esac
while :; do echo "`+tt.reading+`"; sleep 0.05; done`), []string{"0"}, time.Second, nil))(t)
		readUntil(t, c, smi.Source(), func(r *Reading, err error) bool {
			if err != nil {
				return false
			}
			v, ok := r.Gauges["gpu_throttled"]
			return r.Gauges["power"] == 300 && ok == tt.throttled && (v == 1) == tt.throttled
		})
		smi.Close()
	}
}

func TestComputeProcesses(t *testing.T) {
	for script, want := range map[string][]int{
		`[ "$*" = "--query-compute-apps=pid --format=csv,noheader,nounits -i 0,2" ] && printf '123\n 45 \n'`: {123, 45},
		`:`:                            nil,
		`echo "No devices were found"`: {-1},
		`exit 9`:                       {-1},
	} {
		got, err := ComputeProcesses(t.Context(), program(t, script), []string{"0", "2"})
		wrong := len(want) == 1 && want[0] == -1
		must.Hold(t, (err != nil) == wrong && (wrong || slices.Equal(got, want)), "%s: %v, %v", script, got, err)
	}
}

func TestAMDProcesses(t *testing.T) {
	const of = `[{"gpu":%s,"process_list":[{"process_info":{"name":"python","pid":%d,"mem_usage":{"value":%d,"unit":"B"}}}]}]`
	both := fmt.Sprintf(`case "$*" in "process --gpu 0 --json") echo '`+of+`';; "process --gpu 2 --json") echo '`+of+`';; esac`, "0", 123, 5, "2", 45, 7)
	for _, tt := range []struct {
		name, script string
		gpus         []string
		want         []int // expected process ids
		fails        string
	}{
		{"two GPUs", both, []string{"0", "2"}, []int{45, 123}, ""},
		{"a process of another GPU", fmt.Sprintf(`echo '`+of+`'`, "0", 123, 0), []string{"0"}, nil, ""},
		{"all GPUs, on which it may say no memory", fmt.Sprintf(`[ "$*" = "process --json" ] && echo '`+of+`'`, "0", 123, 0), nil, []int{123}, ""},
		{"one on two GPUs", fmt.Sprintf(`echo '`+of+`'`, "0", 123, 9), []string{"0", "1"}, []int{123}, ""},
		{"memory by its older name", `echo '[{"process_list":[{"process_info":{"pid":7,"memory_usage":{"vram_mem":{"value":0,"unit":"B"}}}}]}]'`, []string{"0"}, nil, ""},
		{"memory that is not told", `echo '[{"process_list":[{"process_info":{"pid":7}}]}]'`, []string{"0"}, []int{7}, ""},
		{"none", `echo '[{"gpu":0,"process_list":[{"process_info":"No running processes detected"}]}]'`, []string{"0"}, nil, ""},
		{"other words", `echo '[{"gpu":0,"process_list":[{"process_info":"N/A"}]}]'`, []string{"0"}, nil, "without its pid"},
		{"no JSON", `echo hello`, []string{"0"}, nil, "the expected JSON"},
		{"no GPU", `echo '[]'`, []string{"0"}, nil, "the expected JSON"},
		{"no permission", `echo "no permission" >&2; exit 1`, []string{"0"}, nil, "amd-smi: exit status 1: no permission"},
	} {
		got, err := AMDProcesses(t.Context(), program(t, tt.script), tt.gpus)
		if (err != nil) != (tt.fails != "") || err != nil && !strings.Contains(err.Error(), tt.fails) || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, %v", tt.name, got, err)
		}
	}
}

func TestNvidiaSMIThatCannot(t *testing.T) {
	for _, tt := range []struct{ name, script, want string }{
		{"no driver", `echo "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."; exit 9`, "nvidia-smi ended: NVIDIA-SMI has failed because it couldn't communicate"},
		{"words on stderr", `echo "Field \"clocks.sm\" is not a valid field to query." >&2; exit 2`, `nvidia-smi ended: Field "clocks.sm" is not a valid field`},
		{"not a word", `exit 3`, "nvidia-smi ended: exit status 3"},
		{"no GPU", `echo "No devices were found"; exec sleep 60`, "nvidia-smi said: No devices were found"},
		{"fewer GPUs than the server has", `while :; do echo "0, GPU-a, 300, 90, 1024, 60, 1700"; sleep 0.05; done`, "nvidia-smi has reported nothing yet"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := clock.NewReal()
			var prepared atomic.Bool // set when StartNvidiaSMI has prepared the command
			smi := must.Get(StartNvidiaSMI(c, program(t, tt.script), []string{"0", "1"}, time.Second, func(*osexec.Cmd) { prepared.Store(true) }))(t)
			defer smi.Close()
			must.Hold(t, prepared.Load(), "the command was not prepared")
			readUntil(t, c, smi.Source(), func(r *Reading, err error) bool {
				must.Need(t, err != nil, "it told %v", r)
				return strings.Contains(err.Error(), tt.want)
			})
		})
	}
	_, err := StartNvidiaSMI(clock.NewReal(), "/nowhere/nvidia-smi", nil, time.Second, nil)
	must.Hold(t, err != nil, "a program that is not there was started")
}

func TestAMDSMI(t *testing.T) {
	c := clock.NewReal()
	args := filepath.Join(t.TempDir(), "args")
	source := AMDSMI(c, program(t, `echo "$@" > `+args+`; echo '{"gpu_data": [{"power": {"socket_power": {"value": 742, "unit": "W"}}}]}'`), []string{"1"})
	readUntil(t, c, source, func(r *Reading, err error) bool { return err == nil && r.Gauges["power"] == 742 })
	raw, err := os.ReadFile(args)
	must.Hold(t, err == nil && strings.TrimSpace(string(raw)) == "metric --json --gpu 1", "it was run with %q (%v)", raw, err)
	for script, want := range map[string]string{
		`echo "no permission" >&2; exit 1`: "amd-smi: exit status 1: no permission",
		`echo hello`:                       "the expected JSON",
	} {
		readUntil(t, c, AMDSMI(c, program(t, script), nil), func(r *Reading, err error) bool {
			return err != nil && strings.Contains(err.Error(), want)
		})
	}
}
