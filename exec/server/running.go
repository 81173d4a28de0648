package server

import (
	"context"
	"time"

	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/plan"
)

// Grace is how long a server may take to end by itself after a request to stop. The constant reaped
// is how long the system may take to remove a killed server.
const (
	Grace  = 15 * time.Second
	reaped = 5 * time.Second
)

// Teardown is the longest time that ending one of the servers takes; 0 if tokgate starts none of them. A run
// keeps this time, or a tenth of its budget if that is less, at the end of the budget.
func Teardown(servers []*plan.Server) (longest time.Duration) {
	for _, s := range servers {
		switch {
		case s.Stack != nil:
			longest = max(longest, s.Stack.Timeout+Grace+reaped)
		case s.Started():
			longest = max(longest, Grace+reaped)
		}
	}
	return longest
}

// tick is the interval between two checks whether a server has ended.
const tick = 20 * time.Millisecond

// running is a process or container on this machine in which tokgate started a server.
type running interface {
	// gone returns the reason why the server ended by itself. It returns nil while the server runs,
	// and after tokgate asked it to end.
	gone() error
	// instance identifies the running server; "" if not known. It changes if another server starts
	// in its place.
	instance(context.Context) string
	// listens returns an error if another program listens on the server's port. If that is not known,
	// fact says why; otherwise it is "".
	listens(context.Context) (fact string, err error)
	// settled is called when the server is ready. From then on, a process that listens on the port
	// counts as the server.
	settled()
	// end ends the server and all processes that it started. It returns an error if a process
	// remains. A second call does nothing.
	end() error
}

// within waits until the function done returns true, but at most for the time that the function d
// returns. That time may change during the wait. late is true if the time ended first.
func within(c clock.Clock, d func() time.Duration, done func() bool) (late bool) {
	since := c.Now()
	for !done() {
		if c.Now() >= since+d() || clock.Sleep(context.Background(), c, tick) != nil {
			return true
		}
	}
	return false
}

func constant(d time.Duration) func() time.Duration { return func() time.Duration { return d } }
