package metric

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
)

func TestSampleValues(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	// whole is a request that was sent at 1000 ms. Its reasoning starts at 1400 ms, its text at
	// 1500 ms, and its last chunk comes at 2400 ms. The answer has 41 tokens in 21 chunks.
	// The first chunk has one token.
	whole := Sample{Scheduled: ms(990), Sent: ms(1000), First: ms(1400), FirstAnswer: ms(1500), Last: ms(2400), End: ms(2410), Chunks: 21, Usage: &Usage{Output: 41}}
	failed := whole
	failed.Failure = &Failure{Kind: FailStream}
	noUsage := whole
	noUsage.Usage = nil
	wideFirst := whole
	wideFirst.FirstTokens = 21 // the time per token is then (2400 − 1400) / (41 − 21) = 50 ms
	oneChunk := whole
	oneChunk.FirstTokens, oneChunk.Chunks, oneChunk.Last = 41, 1, oneChunk.First
	unsent := Sample{Scheduled: ms(990), End: ms(1000), Failure: &Failure{Kind: FailConnect}}
	no := math.NaN()
	for _, c := range []struct {
		name   string
		metric string
		sample Sample
		want   float64 // NaN: no value
	}{
		{"whole", "ttft", whole, 0.4}, {"whole", "ttfa", whole, 0.5}, {"whole", "e2e", whole, 1.4},
		{"whole", "tpot", whole, 0.025}, {"whole", "speed", whole, 40}, // 1000 ms / 40 tokens after the first
		{"whole", "e2e_speed", whole, 41 / 1.4}, {"whole", "tokens_per_chunk", whole, 41.0 / 21}, {"whole", "lag", whole, 0.01},
		{"wide first", "tpot", wideFirst, 0.05}, {"wide first", "speed", wideFirst, 20},
		{"one chunk", "tpot", oneChunk, no}, {"one chunk", "speed", oneChunk, no}, {"one chunk", "e2e", oneChunk, 0.4},
		{"no usage", "ttft", noUsage, 0.4}, {"no usage", "tpot", noUsage, no}, {"no usage", "e2e_speed", noUsage, no}, {"no usage", "tokens_per_chunk", noUsage, no},
		{"failed", "ttft", failed, 0.4}, {"failed", "e2e", failed, no}, {"failed", "tpot", failed, no}, {"failed", "e2e_speed", failed, no},
		{"unsent", "ttft", unsent, no}, {"unsent", "ttfa", unsent, no}, {"unsent", "lag", unsent, no},
		{"whole", "throughput", whole, no},
	} {
		v, ok := c.sample.Value(c.metric)
		must.Hold(t, ok != math.IsNaN(c.want) && (!ok || math.Abs(v-c.want) <= 1e-9), "%s of %s = %v, %v, want %v", c.metric, c.name, v, ok, c.want)
	}
}

// Gaps are rounded up to microseconds, so that rounding never makes a gap pass its limit.
func TestGaps(t *testing.T) {
	for d, want := range map[time.Duration]uint32{0: 0, 1: 1, time.Microsecond: 1, time.Microsecond + 1: 2, 20 * time.Millisecond: 20_000, -time.Second: 0, 100 * time.Hour: 1<<32 - 1} {
		var g Gaps
		if g.Add(d); g[0] != want {
			t.Errorf("a gap of %v is kept as %d µs, want %d", d, g[0], want)
		}
	}
}

// MeasuredSamples returns requests in order of start, even if they ended in another order. It also
// copes with missing and doubled requests, and with those of another round.
func TestMeasuredInOrder(t *testing.T) {
	for _, orders := range [][]int{{}, {0}, {2, 0, 1}, {1, 0, 3, 2}, {3, 1, 0}, {1, 1, 0}, {0, -1, 1}, {2, 1, 0, 3, 5, 4}} {
		for _, round := range []int{0, 1} {
			var all []*Sample
			for i, order := range orders {
				s := &Sample{Phase: Measured, Order: order}
				if i == len(orders)-1 {
					s.Round = round
				}
				all = append(all, s, &Sample{Phase: Filler, Order: order})
			}
			got := MeasuredOf(all)
			sorted := slices.IsSortedFunc(got, func(a, b *Sample) int { return cmp.Or(a.Round-b.Round, a.Order-b.Order) })
			must.Hold(t, len(got) == len(orders) && sorted, "%v, the last in round %d: %d requests, sorted: %v", orders, round, len(got), sorted)
		}
	}
}
