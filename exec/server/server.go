// Package server starts what a plan declares and makes it a target: a server
// that runs already, a child process, or the built-in simulator. A server is
// ready when it completed a request, not when it says so; it is identified
// before the load and looked at again after it, so that no verdict is given
// over two servers.
package server

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/record"
)

// Options says what a Launcher needs.
type Options struct {
	// Clock is the run's; required, and a real one: servers are.
	Clock clock.Clock
	// Origin is the wall time of the clock's zero, by which the built-in
	// server's own times are compared with ours; zero: no calibration.
	Origin time.Time
	// LogDir is where logs of processes go, "server-NAME.log"; "": nowhere.
	LogDir string
	// Dir is the plan's folder: profiles and processes start from there.
	Dir string
	// Redact lists the secrets to be taken out of logs.
	Redact []string
}

// Launcher starts servers.
type Launcher struct {
	Options
	redactor record.Redactor
	grace    time.Duration // see grace
	// dial replaces the network, for tests in memory; nil: the network.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// New returns a Launcher.
func New(o Options) *Launcher {
	return &Launcher{Options: o, redactor: record.NewRedactor(o.Redact), grace: grace}
}

// Launch is an exec.Launch.
func (l *Launcher) Launch(ctx context.Context, s *plan.Server, state func(string)) (*exec.Target, error) {
	switch {
	case s.Endpoint != nil:
		return l.endpoint(ctx, s, state)
	case s.Process != nil:
		return l.process(ctx, s, state)
	case s.Simulator != nil:
		return l.simulator(ctx, s, state)
	}
	return nil, fmt.Errorf("%s declares nothing that can be started yet", s.Address())
}
