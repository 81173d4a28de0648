package exec

import (
	"iter"
	"slices"

	"github.com/tokgate/tokgate/exec/clock"
)

// The code of a round is sequential and waits where it must (until). Two rounds side by side are
// two strands of the one loop. While one strand waits, the other may run, and both strands see
// every event. Only one strand runs at a time, so no lock is needed, and in virtual time the
// order is always the same.

// sideBySide runs the strands until all have ended. A strand must not call it.
func (r *runner) sideBySide(strands ...func()) {
	var waiting []func() bool // continues a strand until its next wait; false when it ended
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
		// A strand that has begun must end, even if the clock has stopped; see until.
		r.stuck = r.stuck || !r.wait()
	}
	r.stuck = false
}

// waitBy sets the function yield, which lets other strands run. Every wait then calls it, also
// waits in code that was given the clock. If yield is nil, a wait runs the clock.
func (r *runner) waitBy(yield func()) {
	r.yield = yield
	if shared, ok := r.Clock.(*clock.Shared); ok {
		shared.Yield = yield
	}
}
