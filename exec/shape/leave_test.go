package shape

import (
	"testing"
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
)

// Over all units of a level, as many clients leave as the share says, up to one; and a larger part of
// a level does not change who leaves in a smaller one.
func TestLeavingIsExact(t *testing.T) {
	for _, tt := range []struct {
		share            float64
		requests, rounds int
	}{
		{0.05, 400, 10}, {0.05, 95, 10}, {0.2, 10, 10}, {0.2, 13, 4}, {0.5, 100, 7}, {0.9, 20, 5}, {0.9, 1, 1}, {0.01, 50, 5},
	} {
		w := &plan.Workload{Name: "w", Leave: plan.Leave{Cancel: &plan.Cancel{Share: tt.share, After: time.Second}}}
		level := plan.Level{Name: "1", N: 1, Requests: tt.requests, Rounds: tt.rounds}
		left, last := 0, -1
		for i, due := range load.Split(tt.requests, tt.rounds) {
			l := newLeaving(&Env{Case: Case{Workload: w, Level: level}, Level: "1", Index: i, Parts: []int{due}})
			for n := range due {
				for l.due() {
					must.Need(t, l.next > last, "%+v: client %d leaves after %d", tt, l.next, last)
					last = l.next
					if turn := l.turn(0); turn.Order != l.order-1 {
						t.Fatalf("%+v: order %d", tt, turn.Order)
					}
					left++
				}
				if l.stays(); n == due-1 && l.due() {
					t.Errorf("%+v: a client leaves behind the last request of round %d", tt, i)
				}
			}
		}
		want := float64(tt.requests) * tt.share / (1 - tt.share)
		off := float64(left) - want
		must.Hold(t, off > -1 && off < 1, "%+v: %d clients left, want %.2f", tt, left, want)
	}
	l := newLeaving(&Env{Case: Case{Workload: &plan.Workload{}}})
	must.Hold(t, !l.due() && l.of(1000) == 0, "clients leave without a cancel block")
}
