// Package server starts what a plan declares and makes it a target: a server
// that runs already, a child process, a container, or the built-in simulator. A
// server is ready when it completed a request, not when it says so; it is
// identified before the load and looked at again after it, so that no verdict
// is given over two servers. What it starts it ends, with all that came of it,
// and what a killed run left behind it finds.
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
	case s.Local():
		return l.local(ctx, s, state)
	case s.Simulator != nil:
		return l.simulator(ctx, s, state)
	}
	return nil, fmt.Errorf("%s declares nothing to start", s.Address())
}
