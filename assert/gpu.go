package assert

import (
	"fmt"
	"math"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// gpus checks the server's GPUs during the level. Heat and hardware must not have reduced their
// clocks. The GPUs must not have reported errors, and no foreign process may have used them.
//
// A condition of the plan for which there is no reading makes the measurement invalid. A default
// condition without a reading is ignored.
func (s *subject) gpus(v *verdict.Verdict, invalid objection) {
	require := s.require()
	most := plan.MostThrottled
	if require.Throttled != nil {
		most = *require.Throttled
		if !math.IsInf(most, 1) {
			s.reported("throttled", "gpu_throttled", invalid)
		}
	}
	if require.ForeignProcesses != nil {
		s.reported("foreign_processes", "foreign_processes", invalid)
	}
	capped, errs := 0.0, 0.0
	round, _ := s.level.RoundNames()
	for _, r := range s.level.Rounds {
		if r.Telemetry == nil {
			continue
		}
		gauge := func(name string) metric.Gauge { return r.Telemetry.Gauges[name] }
		if g := gauge("gpu_throttled"); g.N > 0 && !(g.Mean < most) {
			invalid(verdict.CauseInvalid, "%s %d: heat or hardware held a GPU's clocks down in %s of the readings%s; less than %s is allowed", round, r.Index+1,
				metric.Format(metric.Ratio, g.Mean), state(r), metric.Format(metric.Ratio, most))
		}
		if g, n := gauge("foreign_processes"), require.ForeignProcesses; n != nil && g.N > 0 && !(g.Max <= float64(*n)) {
			invalid(verdict.CauseInvalid, "%s %d: %.0f foreign processes computed on the GPUs, but at most %d are allowed", round, r.Index+1, g.Max, *n)
		}
		if g := gauge(metric.LastXID); g.N > 0 && g.Max != g.Min {
			invalid(verdict.CauseInvalid, "%s %d: the driver reported Xid error %.0f of a GPU", round, r.Index+1, g.Max)
		} else if g.N > 0 && g.Max > 0 && r == s.level.Rounds[0] {
			v.Note(fmt.Sprintf("before the first %s, the last Xid error of a GPU was %.0f", round, g.Max))
		}
		capped, errs = max(capped, gauge("gpu_power_capped").Mean), errs+r.Telemetry.Added[metric.ECCErrors]
	}
	if errs >= 1 {
		invalid(verdict.CauseInvalid, "the memory of a GPU had %s", verdict.Count(int(errs), "uncorrectable ECC errors"))
	}
	if capped > 0 {
		v.Note(fmt.Sprintf("in the worst %s, a software power cap held a GPU's clocks down in %s of the readings", round, metric.Format(metric.Ratio, capped)))
	}
}

// require returns what the plan requires of the GPUs of the level's server.
func (s *subject) require() plan.Require {
	if s.workload != nil {
		for _, server := range s.workload.Servers {
			if server.Address() == s.level.Server {
				return server.Telemetry.Require
			}
		}
	}
	return plan.Require{}
}

// reported makes the measurement invalid if the plan requires a value that was not reported.
func (s *subject) reported(required, name string, invalid objection) {
	if _, why := s.level.Gauge(name); why != "" {
		invalid(verdict.CauseInvalid, "telemetry requires %s, but it was not reported: %s", required, why)
	}
}

// state writes the temperature and the clock of the GPUs in a round, such as ", at 91 °C and 975
// MHz". It returns "" if the round has neither.
func state(r *metric.Round) string {
	var parts []string
	if g := r.Telemetry.Gauges["gpu_temperature"]; g.N > 0 {
		parts = append(parts, metric.Format(metric.Celsius, g.Max))
	}
	if g := r.Telemetry.Gauges["gpu_clock"]; g.N > 0 {
		parts = append(parts, metric.Format(metric.Hertz, g.Min))
	}
	if len(parts) == 0 {
		return ""
	}
	return ", at " + strings.Join(parts, " and ")
}
