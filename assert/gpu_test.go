package assert

import (
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// The gauge has the given mean in the last of ten rounds, and 0 in the other rounds.
func TestGPUsOfALevel(t *testing.T) {
	one, none, everything := 0.3, 0, 100.0
	for _, tt := range []struct {
		name    string
		gauge   string
		mean    float64
		require plan.Require
		want    string // part of the message; "" if the level is valid
		note    string
	}{
		{name: "healthy", gauge: "gpu_throttled"},
		{name: "nothing reports it", gauge: "power", mean: 300},
		{name: "thermal slowdown", gauge: "gpu_throttled", mean: 0.2, want: "round 10: heat or hardware held a GPU's clocks down in 20% of the readings; less than 1% is allowed"},
		{name: "at the bound", gauge: "gpu_throttled", mean: 0.01, want: "less than 1% is allowed"},
		{name: "below it", gauge: "gpu_throttled", mean: 0.009},
		{name: "below what the plan requires", gauge: "gpu_throttled", mean: 0.2, require: plan.Require{Throttled: &one}},
		{name: "required of nothing", gauge: "gpu_throttled", mean: 1, require: plan.Require{Throttled: &everything}},
		{name: "a power cap", gauge: "gpu_power_capped", mean: 1, note: "in the worst round, a software power cap held a GPU's clocks down in 100% of the readings"},
		{name: "foreign, not required", gauge: "foreign_processes", mean: 2},
		{name: "foreign", gauge: "foreign_processes", mean: 2, require: plan.Require{ForeignProcesses: &none}, want: "round 10: 2 foreign processes computed on the GPUs, but at most 0 are allowed"},
		{name: "nobody", gauge: "foreign_processes", mean: 0, require: plan.Require{ForeignProcesses: &none}},
		{name: "required and not reported", gauge: "power", require: plan.Require{ForeignProcesses: &none}, want: "telemetry requires foreign_processes, but it was not reported: telemetry did not count them"},
		{name: "throttled required and not reported", gauge: "power", require: plan.Require{Throttled: &one}, want: "telemetry requires throttled, but it was not reported"},
	} {
		l := shape{rounds: 10, perRound: 20}.level()
		for i, r := range l.Rounds {
			g := metric.Gauge{N: 10}
			if i == 9 {
				g = metric.Gauge{N: 10, Mean: tt.mean, Max: tt.mean}
			}
			r.Telemetry = &metric.Telemetry{Gauges: map[string]metric.Gauge{tt.gauge: g}}
		}
		w := &plan.Workload{Servers: []*plan.Server{{Name: "sim", Telemetry: plan.Telemetry{Require: tt.require}}}}
		s := subject{evidence: gather(l), workload: w, alpha: 0.05}
		var v verdict.Verdict
		s.load(&v, l.Kind, plan.Level{Name: l.Name, N: l.N, Requests: s.n}, nil)
		if (tt.want == "") != (v.Outcome == verdict.Pass) || !strings.Contains(v.Message, tt.want) || v.Outcome == verdict.Error && v.Cause != verdict.CauseInvalid {
			t.Errorf("%s: %v %q", tt.name, v.Outcome, v.Message)
		}
		must.Hold(t, strings.Contains(strings.Join(v.NotesOf(), "; "), tt.note), "%s: notes %q", tt.name, v.Notes)
	}
}

// An Xid error or an uncorrectable ECC error during a level invalidates the level. An Xid error
// from before the level only gets a note.
func TestGPUErrors(t *testing.T) {
	for _, tt := range []struct {
		name       string
		from, to   float64 // numbers of the last Xid errors before and after round 2; 0: none
		ecc        float64
		want, note string
	}{
		{"none", 0, 0, 0, "", ""},
		{"an Xid", 0, 79, 0, "round 2: the driver reported Xid error 79 of a GPU", ""},
		{"an old Xid", 31, 31, 0, "", "before the first round, the last Xid error of a GPU was 31"},
		{"ECC", 0, 0, 2, "the memory of a GPU had 2 uncorrectable ECC errors", ""},
	} {
		l := shape{rounds: 10, perRound: 20}.level()
		for i, r := range l.Rounds {
			g := metric.Gauge{N: 10, Min: tt.from, Max: tt.from}
			r.Telemetry = &metric.Telemetry{Gauges: map[string]metric.Gauge{metric.LastXID: g}}
			if i == 1 {
				r.Telemetry.Gauges[metric.LastXID] = metric.Gauge{N: 10, Min: tt.from, Max: tt.to}
				r.Telemetry.Added = map[string]float64{metric.ECCErrors: tt.ecc}
			}
		}
		s := subject{evidence: gather(l), alpha: 0.05, workload: &plan.Workload{}}
		var v verdict.Verdict
		s.load(&v, l.Kind, plan.Level{Name: l.Name, N: l.N, Requests: s.n}, nil)
		if (tt.want == "") != (v.Outcome == verdict.Pass) || !strings.Contains(v.Message, tt.want) || !strings.Contains(strings.Join(v.NotesOf(), "; "), tt.note) {
			t.Errorf("%s: %v %q %q", tt.name, v.Outcome, v.Message, v.Notes)
		}
	}
}
