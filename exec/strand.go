package exec

import (
	"iter"
	"slices"

	"github.com/tokgate/tokgate/exec/clock"
)

// A round is written as what is done one after the other, and waits where it
// must (until). Two of them side by side are two strands of the one loop: while
// one waits the other may go on, and whatever happens is shown to both. Only
// one of them ever runs, so that nothing needs a lock, and in virtual time the
// order is always the same.

// sideBySide runs the strands until all of them have ended. None of them may
// do so itself.
func (r *runner) sideBySide(strands ...func()) {
	var waiting []func() bool // goes on until the next wait; false: it ended
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
		// What is begun must end even then: see until.
		r.stuck = r.stuck || !r.wait()
	}
	r.stuck = false
}

// waitBy has waits let the other strands go on, those of whoever was given the clock too; nil: they
// run the clock.
func (r *runner) waitBy(yield func()) {
	r.yield = yield
	if shared, ok := r.Clock.(*clock.Shared); ok {
		shared.Yield = yield
	}
}
