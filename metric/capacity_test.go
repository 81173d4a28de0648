package metric

import (
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

func TestUserWords(t *testing.T) {
	c := Capacity{Over: Users, Bracket: Bracket{Kind: CapacityExact, Pass: 39, Fail: 40, Confirmed: true, Binding: "ttft p95", AtPass: "7.9 s", AtFail: "8.1 s"}}
	got, want := c.Words(), "39 users · limited by ttft p95: 7.9 s at 39, 8.1 s at 40"
	must.Hold(t, got == want, "%q, want %q", got, want)
}

// Rates are counted in steps of 0.001 req/s, so a Capacity with Pass 8100 is 8.1 req/s.
func TestRateWords(t *testing.T) {
	for _, tt := range []struct {
		c    Capacity
		want string
	}{
		{Capacity{Bracket: Bracket{Kind: CapacityInterpolated, Pass: 8100, Crossing: 9312}}, "certified 8.1 req/s; estimate 9.31"},
		{Capacity{Bracket: Bracket{Kind: CapacityInterpolated, Pass: 8100, Fail: 9700, Crossing: 9312, Binding: "ttft p95", AtPass: "0.9 s", AtFail: "2.4 s"}}, "certified 8.1 req/s; estimate 9.31; 9.7 fails · limited by ttft p95: 0.9 s at 8.1, 2.4 s at 9.7"},
		{Capacity{Bracket: Bracket{Kind: CapacityInterpolated, Pass: 8100, Crossing: 9312, Binding: "ttft p95", AtPass: "0.1 s"}}, "certified 8.1 req/s; estimate 9.31, limited by ttft p95"},
		{Capacity{Bracket: Bracket{Kind: CapacityAtLeast, Pass: 40_000, Crossing: 61_000}}, "certified 40+ req/s; estimate 61"},
		{Capacity{Bracket: Bracket{Kind: CapacityBelow, Fail: 500, Crossing: 100}}, "does not hold at 0.5 req/s; estimate 0.1"},
		{Capacity{Bracket: Bracket{Kind: CapacityUnknown, Crossing: 9312}, Reason: "no time"}, "unknown: no time; estimate 9.31"},
		{Capacity{Bracket: Bracket{Kind: CapacityUnknown}}, "unknown"},
	} {
		tt.c.Over, tt.c.Step = OpenLoop, 0.001
		must.Same(t, "", tt.want, tt.c.Words())
	}
}
