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
// Mean·(1±Jitter), so that slots do not stay in phase. The result depends only on the fields of
// Lengths. No field names the server or holds the run's salt, so every run asks every server for
// answers of the same lengths.
type Lengths struct {
	Mean     int     // tokens, at least 1
	Jitter   float64 // in [0, 1)
	Seed     int64
	Workload string
	Level    string
	Round    int
}

// Range returns the length of the shortest and the longest answer, in whole tokens, at least 1.
func (l Lengths) Range() (low, high int) {
	// The term 1e-9 absorbs binary rounding: without it, a bound such as 10·(1−0.1) = 9 could
	// become 10.
	low = int(math.Ceil(float64(l.Mean)*(1-l.Jitter) - 1e-9))
	high = int(math.Floor(float64(l.Mean)*(1+l.Jitter) + 1e-9))
	low = max(low, 1)
	return low, max(low, high)
}

// Measured draws the lengths of a round's n measured requests, in order of start. The range is
// divided into n equal strata. Each length is the middle of one stratum, and only the order is
// random. So every round has the same total work, but its requests have the lengths in another
// order.
func (l Lengths) Measured(n int) []int {
	low, high := l.Range()
	lengths := make([]int, n)
	for i := range lengths {
		lengths[i] = low + int(float64(high-low+1)*(float64(i)+0.5)/float64(n))
	}
	l.source(metric.Measured, 0).Shuffle(n, func(i, j int) {
		lengths[i], lengths[j] = lengths[j], lengths[i]
	})
	return lengths
}

// At draws the length of the answer to a warm-up or filler request. The request is identified by
// its order of start within the phase, because the number of such requests is not known beforehand.
func (l Lengths) At(phase metric.Phase, order int) int {
	low, high := l.Range()
	return low + l.source(phase, order).IntN(high-low+1)
}

func (l Lengths) source(phase metric.Phase, order int) *rand.Rand {
	h := fnv.New64a()
	for _, part := range []string{l.Workload, l.Level, strconv.Itoa(l.Round), string(phase), strconv.Itoa(order)} {
		// Hash the length of each part too, so that "a", "bc" differs from "ab", "c".
		_, _ = io.WriteString(h, strconv.Itoa(len(part))+":"+part)
	}
	return rand.New(rand.NewPCG(uint64(l.Seed), h.Sum64()))
}
