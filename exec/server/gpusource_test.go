//go:build unix

package server

import (
	"strings"
	"testing"

	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/telemetry"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
)

// If no source reports values of a server's GPUs, the reading says why. If the plan has a condition
// on such values, they are an error, and never a pass.
func TestGPUSource(t *testing.T) {
	none := 0
	process := func() *plan.Server { return &plan.Server{Name: "s", Process: &plan.Process{}} }
	for _, tt := range []struct {
		name   string
		server *plan.Server
		given  []string
		t      plan.Telemetry
		tool   string // on the PATH
		why    string // "" if there is a source
	}{
		{"an endpoint", &plan.Server{Endpoint: &plan.Endpoint{}}, nil, plan.Telemetry{}, "nvidia-smi", "list them in telemetry { gpus"},
		{"the built-in server", &plan.Server{Simulator: &plan.Simulator{}}, nil, plan.Telemetry{}, "nvidia-smi", "the built-in server has no GPU"},
		{"it was given none", process(), []string{}, plan.Telemetry{}, "nvidia-smi", "the server has no GPU"},
		{"no tool", process(), nil, plan.Telemetry{}, "", "there is no nvidia-smi and no amd-smi on the PATH"},
		{"nvidia-smi", process(), nil, plan.Telemetry{}, "nvidia-smi", ""},
		{"nvidia-smi, and others' processes", process(), nil, plan.Telemetry{Require: plan.Require{ForeignProcesses: &none}}, "nvidia-smi", ""},
		{"amd-smi", process(), []string{"0"}, plan.Telemetry{}, "amd-smi", ""},
		{"amd-smi, and others' processes", process(), []string{"0"}, plan.Telemetry{Require: plan.Require{ForeignProcesses: &none}}, "amd-smi", ""},
		{"DCGM at no URL", &plan.Server{Endpoint: &plan.Endpoint{}}, nil, plan.Telemetry{DCGM: "ftp://x/metrics"}, "", "ftp://x/metrics"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if dir := bin(t); tt.tool != "" {
				script(t, dir, tt.tool, "exit 3\n")
			}
			l := New(Options{Clock: clock.NewReal(), Holder: testHolder()})
			r := &reached{Launcher: l, server: tt.server, url: "http://127.0.0.1:1", given: tt.given}
			r.config.Now = l.Clock.Now
			var w telemetry.Watch
			defer r.gpuSource(&w, tt.t)()
			must.Need(t, (w.GPU != nil) == (tt.why == "") && strings.Contains(w.NoGPU, tt.why), "source %t, %q, want %q", w.GPU != nil, w.NoGPU, tt.why)
			if w.GPU == nil {
				return
			}
			// The tool fails, so there is no reading.
			got := make(chan error, 1)
			w.GPU(t.Context(), func(r *telemetry.Reading, err error) {
				must.Hold(t, err != nil, "a tool that fails tells %+v", r)
				got <- err
			})
			eventually(t, l, func() bool { return len(got) > 0 })
		})
	}
}
