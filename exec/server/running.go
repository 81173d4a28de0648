package server

import (
	"context"
	"strings"
	"time"

	"github.com/tokgate/tokgate/exec/clock"
)

// Grace is how long a server may take to end itself once it is asked to,
// reaped how long the system may take to be rid of one that was killed.
const (
	Grace  = 15 * time.Second
	reaped = 5 * time.Second
)

// Teardown is the most that ending a server takes; what a run with a budget
// holds back for it.
const Teardown = Grace + reaped

// tick is how often is looked whether a server has ended.
const tick = 20 * time.Millisecond

// running is a server that tokgate started on this machine, outside itself.
type running interface {
	// gone is why it is no longer there, unless it was asked to go.
	gone() error
	// instance tells it from a later one in its place; "": not known.
	instance(context.Context) string
	// settled says that it is ready: what listens from now on is it.
	settled()
	// end ends it with everything it started, and is an error when something
	// is left. To end it twice does nothing.
	end() error
}

// within waits until done, and says whether that took longer than d says by
// then.
func within(c clock.Clock, d func() time.Duration, done func() bool) (late bool) {
	since := c.Now()
	for !done() {
		if c.Now() >= since+d() || clock.Sleep(context.Background(), c, tick) != nil {
			return true
		}
	}
	return false
}

func always(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// outOfMemory are words by which engines say that memory ran out.
var outOfMemory = []string{"out of memory", "OutOfMemoryError", "cudaMalloc failed", "not enough memory", "Cannot allocate memory"}

// cause adds to how a server ended what its log says of the reason.
func cause(how, log string) string {
	for line := range strings.Lines(log[max(len(log)-tailSize/4, 0):]) {
		for _, words := range outOfMemory {
			if strings.Contains(line, words) {
				return how + "; it ran out of memory: " + shorten(strings.TrimSpace(line), 200)
			}
		}
	}
	return how
}
