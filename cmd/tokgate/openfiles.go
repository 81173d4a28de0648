package main

import (
	"fmt"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// filesBesides is the number of open files that are not connections of the load. These are the
// recording, reports, logs, pipes, other requests, and both ends of the 64 streams that calibrate
// the load generator.
const filesBesides = 200

// needOpenFiles is the number of files and connections that a run of the plan has open at
// once: one for each request in flight, or two if the server is part of this process.
func needOpenFiles(p *plan.Plan) (need int, level string) {
	for _, c := range exec.Cases(p) {
		if n := sockets(c.Server) * c.Level.N; n > need {
			need, level = n, fmt.Sprintf("%s at %s", c.Workload.Address(), c.Level.Name)
		}
	}
	for _, c := range exec.Searches(p) {
		s := c.Workload.Capacity
		n := s.UpTo
		if s.Over == metric.OpenLoop || s.Over == metric.Speedup {
			n = s.Load.Open.MaxInFlight
		}
		if n *= sockets(c.Server); n > need {
			need, level = n, fmt.Sprintf("the search of %s, up to %s", c.Workload.Address(), s.Amount(s.UpTo))
		}
	}
	for _, c := range p.Compares {
		if c.SideBySide {
			return 2*need + filesBesides, level
		}
	}
	return need + filesBesides, level
}

func sockets(s *plan.Server) int {
	if s.Simulator != nil && s.Endpoint == nil && s.Process == nil && s.Container == nil {
		return 2
	}
	return 1
}

// checkOpenFiles returns an error if a run would open more files than limit.
func checkOpenFiles(p *plan.Plan, limit uint64) error {
	need, level := needOpenFiles(p)
	if uint64(need) <= limit {
		return nil
	}
	return measureError(fmt.Errorf("%s: %s needs about %d open files and connections, but this process may have only %d", p.Path, level, need, limit),
		fmt.Sprintf("raise the hard limit, for example with ulimit -Hn %d, or send the load from another machine", need))
}
