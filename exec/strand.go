package exec

import (
	"iter"
	"slices"

	"github.com/tokgate/tokgate/exec/clock"
)

// Two rounds that run side by side are two strands of the loop. A strand is sequential code that
// waits by the method runUntil. While one strand waits, the other may run. Only one runs at a time,
// so no lock is needed, and in virtual time the order is always the same.

// sideBySide runs the strands in turns until all have ended. A strand must not call it.
func (r *runner) sideBySide(strands ...func()) {
	// Each function runs a strand to its next wait, and returns false when the strand has ended.
	var waiting []func() bool
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
		// If no event can happen any more, set stuck, so that all strands end; see runUntil.
		r.stuck = r.stuck || !r.wait()
	}
	r.stuck = false
}

// waitBy sets the function yield, which lets other strands run. Every wait then calls it, even a
// wait in code that knows only the clock. If yield is nil, a wait runs the clock itself.
func (r *runner) waitBy(yield func()) {
	r.yield = yield
	if shared, ok := r.Clock.(*clock.Shared); ok {
		shared.Yield = yield
	}
}
