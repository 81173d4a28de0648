package load

import (
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/tokgate/tokgate/metric"
)

// Lengths draws the number of tokens of each answer in one round. The numbers are uniform in
// Mean·(1±Jitter), so that slots do not stay in phase. They depend only on the fields of Lengths.
type Lengths struct {
	Mean     int     // tokens, at least 1
	Jitter   float64 // in [0, 1)
	Seed     int64
	Workload string
	Level    string
	Round    int
}

// Range returns the lengths of the shortest and the longest answer, in whole tokens. Both are at
// least 1.
func (l Lengths) Range() (low, high int) {
	// Subtract 1e-9: 150·(1−0.18) is 123.00000000000001 in binary, and Ceil would return 124.
	low = int(math.Ceil(float64(l.Mean)*(1-l.Jitter) - 1e-9))
	high = int(math.Floor(float64(l.Mean)*(1+l.Jitter) + 1e-9))
	low = max(low, 1)
	return low, max(low, high)
}

// Measured draws the lengths of a round's n measured requests, in order of start. Each of n equal
// strata of the range has one length, at a random point, so all rounds have about the same work. The
// strata are in random order. Their middles would make the longest answers too rare.
func (l Lengths) Measured(n int) []int {
	low, high := l.Range()
	lengths := make([]int, n)
	random := l.source(metric.Measured, 0)
	for i := range lengths {
		lengths[i] = low + int(float64(high-low+1)*(float64(i)+random.Float64())/float64(n))
	}
	random.Shuffle(n, func(i, j int) {
		lengths[i], lengths[j] = lengths[j], lengths[i]
	})
	return lengths
}

// At draws the length of the answer to a warm-up or filler request. It depends only on the phase
// and on the request's order of start, because the number of these requests is not known in
// advance.
func (l Lengths) At(phase metric.Phase, order int) int {
	low, high := l.Range()
	return low + l.source(phase, order).IntN(high-low+1)
}

// Salted returns the seed that replaces a plan's seed in a simulation with the given salt. Salt 0
// keeps the seed. The factor is a prime far above the seeds that plans usually set, so two salts
// share no seed.
func Salted(seed int64, salt uint64) int64 { return seed + int64(salt*1_000_003) }

func (l Lengths) source(phase metric.Phase, order int) *rand.Rand {
	h := fnv.New64a()
	for _, part := range []string{l.Workload, l.Level, strconv.Itoa(l.Round), string(phase), strconv.Itoa(order)} {
		// Add the length of each part, because "a", "bc" must differ from "ab", "c".
		_, _ = io.WriteString(h, strconv.Itoa(len(part))+":"+part)
	}
	return rand.New(rand.NewPCG(uint64(l.Seed), h.Sum64()))
}
