package plan_test

import (
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// A round of the mix has 25 requests, of which 17.5 and 7.5 are due to the parts. So the rounds of a part
// differ, and some of them together are not as many as the same share of the part's requests: of 210
// requests in 12 rounds, three rounds would be 54.
func TestSentIn(t *testing.T) {
	mix := &plan.Workload{Name: "all", Loads: []*plan.Load{{Kind: metric.ClosedLoop, Levels: []plan.Level{{Name: "4", N: 4, Requests: 300, Rounds: 12}}}}}
	for name, share := range map[string]int{"chat": 700_000, "rag": 300_000} {
		mix.Mix = append(mix.Mix, mix.Part(&plan.Workload{Name: name}, share))
	}
	mix.ShareOut()
	for rounds, want := range map[int]int{0: 0, 1: 25, 3: 75, 12: 300, 24: 600} {
		must.Same(t, "of the mix", want, mix.SentIn(mix.Loads[0].Levels[0], rounds))
	}
	for _, part := range mix.Mix {
		level := part.Loads[0].Levels[0]
		for rounds, want := range map[int]int{0: 0, 2: 35, 12: 210, 24: 420} {
			if part.PartName() == "rag" {
				want = 25*rounds - want
			}
			must.Same(t, part.Name, want, part.SentIn(level, rounds))
		}
		three := part.SentIn(level, 3) // 52.5 of 75, rounded up or down
		must.Hold(t, three == 52 || three == 53 || three == 22 || three == 23, "%s sends %d in three rounds", part.Name, three)
	}
	sum := mix.Mix[0].SentIn(mix.Mix[0].Loads[0].Levels[0], 3) + mix.Mix[1].SentIn(mix.Mix[1].Loads[0].Levels[0], 3)
	must.Same(t, "of both parts in three rounds", 75, sum)
}
