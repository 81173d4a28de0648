package traffic_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/traffic"
)

// The mean number of turns of 10,000 conversations is near the declared mean: within 4 standard
// errors. After each turn, a conversation continues with about the same probability.
func TestTurns(t *testing.T) {
	const n = 10_000
	for _, turns := range []traffic.Turns{{Mean: 6, Max: 20}, {Mean: 2, Max: 3}, {Mean: 1.5, Max: 8}, {Mean: 10.5, Max: 20}, {Mean: 4, Max: 4}, {}} {
		r := rand.New(rand.NewPCG(1, 2))
		counts := make([]float64, turns.Max+2)
		sum, squares := 0.0, 0.0
		for range n {
			k := turns.Draw(r.Float64())
			must.Need(t, k >= 1 && k <= max(turns.Max, 1), "%v: %d turns", turns, k)
			counts[k]++
			sum, squares = sum+float64(k), squares+float64(k*k)
		}
		mean := sum / n
		want := max(turns.Mean, 1)
		must.Hold(t, math.Abs(mean-want) <= 4*math.Sqrt((squares/n-mean*mean)/n)+1e-9, "%v: %v turns on average", turns, mean)
		if turns.Mean == float64(turns.Max) || turns.Max < 3 {
			continue
		}
		on := counts[2] / counts[1]
		for k := 2; k < turns.Max; k++ {
			expected := counts[1] * math.Pow(on, float64(k))
			// The ratio counts[2]/counts[1] is random too. Its error grows with the power k.
			off := 5*math.Sqrt(expected) + 5*float64(k)*expected*math.Sqrt(1/counts[1]+1/counts[2])
			must.Hold(t, math.Abs(counts[k+1]-expected) <= off+5, "%v: %v of %d turns, want about %v", turns, counts[k+1], k+1, expected)
		}
	}
}

// Think times are log-normal. With a mean of 20 s and a coefficient of variation of 1, their median
// is 20/√2 s, and σ = √ln 2. 84 % of them are below e^σ · median.
func TestThink(t *testing.T) {
	const n = 10_000
	think := traffic.Think{Mean: 20 * time.Second, CV: 1}
	r := rand.New(rand.NewPCG(3, 4))
	var all []float64
	sum := 0.0
	for range n {
		x := think.Draw(r).Seconds()
		all, sum = append(all, x), sum+x
	}
	slices.Sort(all)
	sigma := math.Sqrt(math.Ln2)
	for _, x := range []struct {
		name           string
		got, want, off float64
	}{
		{"mean", sum / n, 20, 0.8},
		{"median", all[n/2], 20 / math.Sqrt2, 0.6},
		{"84 %", all[8413], 20 / math.Sqrt2 * math.Exp(sigma), 2},
		{"16 %", all[1587], 20 / math.Sqrt2 * math.Exp(-sigma), 0.4},
	} {
		must.Hold(t, math.Abs(x.got-x.want) <= x.off, "%s %v s, want %v", x.name, x.got, x.want)
	}
	must.Same(t, "", time.Second, (traffic.Think{Mean: time.Second}).Draw(r))
}
