package compare

import (
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Each row has the GPU clocks of control and candidate in three rounds, in MHz. A clock of 0 was
// not reported.
func TestClocksOfLegs(t *testing.T) {
	three, ten := 0.03, 0.10
	for _, tt := range []struct {
		name               string
		control, candidate []float64
		require, other     *float64
		want, note         string
	}{
		{"alike", []float64{1980, 1980, 1980}, []float64{1980, 1970, 1980}, &three, nil, "", ""},
		// The clocks differ by 1 − 990/1980 = 50 % in the second round.
		{"one slow leg", []float64{1980, 1980, 1980}, []float64{1980, 990, 1980}, &three, nil,
			"the GPUs' mean clocks in the two legs of round 2 differ by 50%: 1.98 GHz on the control, 990 MHz on the candidate; telemetry requires a difference below 3%", ""},
		{"the smaller one counts", []float64{2000, 2000, 2000}, []float64{1900, 1900, 1900}, &ten, &three, "differ by 5%", ""},
		{"noted where nothing is required", []float64{2000, 2000, 2000}, []float64{1900, 1900, 1900}, nil, nil, "", "differ by 5%"},
		{"nothing reported", []float64{0, 0, 0}, []float64{0, 0, 0}, nil, nil, "", ""},
		{"required, and one leg is silent", []float64{1980, 1980, 0}, []float64{1980, 1980, 1980}, &three, nil, "the GPU clock of a leg of round 3 was not reported", ""},
	} {
		level := func(clocks []float64) *metric.Level {
			l := &metric.Level{}
			for i, mhz := range clocks {
				r := &metric.Round{Index: i}
				if mhz > 0 {
					r.Telemetry = &metric.Telemetry{Gauges: map[string]metric.Gauge{"gpu_clock": {N: 10, Mean: mhz * 1e6}}}
				}
				l.Rounds = append(l.Rounds, r)
			}
			return l
		}
		server := func(require *float64) *plan.Server {
			return &plan.Server{Telemetry: plan.Telemetry{Require: plan.Require{ClockSpread: require}}}
		}
		x := comparison{out: &Comparison{}}
		x.Block = &plan.Compare{Candidate: server(tt.require)}
		x.Block.Control.Server = server(tt.other)
		got := x.clocks(matched{workload: &plan.Workload{}, control: level(tt.control), candidate: level(tt.candidate)})
		must.Hold(t, strings.Contains(got, tt.want) && (tt.want != "" || got == ""), "%s: %q, want %q", tt.name, got, tt.want)
		notes := strings.Join(x.out.Notes, "; ")
		must.Hold(t, strings.Contains(notes, tt.note) && (tt.note != "" || notes == ""), "%s: notes %q", tt.name, notes)
	}
}
