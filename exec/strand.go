package exec

import (
	"iter"
	"slices"

	"github.com/tokgate/tokgate/exec/clock"
)

// A round is sequential code that waits where it must (until). Two rounds that run side by side are
// two strands of the loop. While one strand waits, the other may run, and both see every event.
// Only one strand runs at a time, so no lock is needed. In virtual time the order is always the
// same.

// sideBySide runs the strands in turns until all have ended. A strand must not call it.
func (r *runner) sideBySide(strands ...func()) {
	var waiting []func() bool // runs a strand to its next wait; returns false when the strand ended
	for _, strand := range strands {
		var yield func()
		next, _ := iter.Pull(func(pass func(struct{}) bool) {
			yield = func() { pass(struct{}{}) }
			r.waitBy(yield)
			strand()
		})
		waiting = append(waiting, func() bool {
			r.waitBy(yield)
			defer r.waitBy(nil)
			_, waits := next()
			return waits
		})
	}
	step := func() {
		waiting = slices.DeleteFunc(waiting, func(goOn func() bool) bool { return !goOn() })
	}
	for step(); len(waiting) > 0; step() {
		// All strands must end, even if no event can happen any more; see until.
		r.stuck = r.stuck || !r.wait()
	}
	r.stuck = false
}

// waitBy sets the function that lets other strands run. Every wait then calls this function, even a
// wait in code that only has the clock. If yield is nil, a wait runs the clock.
func (r *runner) waitBy(yield func()) {
	r.yield = yield
	if shared, ok := r.Clock.(*clock.Shared); ok {
		shared.Yield = yield
	}
}
