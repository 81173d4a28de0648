// Package server turns the servers that a plan declares into targets: a running server, a child
// process, a container, a pod, a stack of the plan's own commands, or the built-in simulator. A server is
// ready when it has completed a request, not when it says so. It is identified before the load and
// again after it, so that no verdict covers two servers. The package ends everything that it started,
// and finds what a killed run left behind.
package server

import (
	"context"
	"fmt"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/plan"
)

// Launch is an exec.Launch.
func (l *Launcher) Launch(ctx context.Context, s *plan.Server, state func(string)) (*exec.Target, error) {
	switch {
	case s.Endpoint != nil:
		return l.endpoint(ctx, s, state)
	case s.Started():
		return l.started(ctx, s, state)
	case s.Simulator != nil:
		return l.simulator(ctx, s, state)
	}
	return nil, fmt.Errorf("%s declares nothing to start", s.Address())
}
