package traffic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Turns is the distribution of the number of turns in a conversation. It is geometric: n turns have
// a probability proportional to qⁿ⁻¹, up to Max turns. The zero Turns means one turn.
type Turns struct {
	Mean float64 `plan:"mean"` // mean number of turns: 1 to (Max + 1)/2 if drawn, or Max if every conversation has Max turns
	Max  int     `plan:"max"`
}

// Several reports whether conversations have several turns.
func (t Turns) Several() bool { return t.Max > 1 }

// String returns the number of turns in words, such as "6" or "6 on average, 20 at most".
func (t Turns) String() string {
	if t.Mean >= float64(t.Max) {
		return fmt.Sprint(t.Max)
	}
	return fmt.Sprintf("%.3g on average, %d at most", t.Mean, t.Max)
}

// Draw returns a random number of turns. u must be a uniform random number in [0, 1).
func (t Turns) Draw(u float64) int {
	switch {
	case t.Max <= 1:
		return 1
	case t.Mean >= float64(t.Max):
		return t.Max
	}
	on := t.goesOn()
	if on == 1 {
		return 1 + min(int(u*float64(t.Max)), t.Max-1)
	}
	// Invert the distribution: with M = Max, the probability of more than n turns is
	// (qⁿ − qᴹ) / (1 − qᴹ).
	last := math.Pow(on, float64(t.Max))
	n := math.Log(1-u*(1-last)) / math.Log(on)
	return min(max(int(math.Ceil(n)), 1), t.Max)
}

// goesOn returns the q of the distribution, so that conversations have Mean turns on average. If
// Mean is (Max + 1)/2, q is 1, and all numbers of turns up to Max are equally likely.
func (t Turns) goesOn() float64 {
	mean := func(q float64) float64 { // mean number of turns: Σ n·qⁿ⁻¹ / Σ qⁿ⁻¹
		sum, weights, w := 0.0, 0.0, 1.0
		for n := 1; n <= t.Max; n++ {
			sum, weights, w = sum+float64(n)*w, weights+w, w*q
		}
		return sum / weights
	}
	low, high := 0.0, 1.0
	if mean(high) <= t.Mean {
		return 1
	}
	for range 60 {
		if q := (low + high) / 2; mean(q) < t.Mean {
			low = q
		} else {
			high = q
		}
	}
	return (low + high) / 2
}

// Think is the distribution of the time that a user thinks between an answer and the next message.
// It is log-normal, or constant if CV is 0.
type Think struct {
	Mean time.Duration `plan:"mean"`
	CV   float64       `plan:"cv"` // coefficient of variation
}

// String returns the mean and the variation in words, such as "20s" or "20s, cv 1"; "" if users do
// not think.
func (t Think) String() string {
	switch {
	case t.Mean == 0:
		return ""
	case t.CV == 0:
		return t.Mean.String()
	}
	return fmt.Sprintf("%v, cv %v", t.Mean, t.CV)
}

// Draw returns a random think time.
func (t Think) Draw(r *rand.Rand) time.Duration {
	if t.CV == 0 {
		return t.Mean
	}
	// The logarithm of a log-normal time has the variance σ² = ln(1 + CV²). The mean is exp(μ +
	// σ²/2).
	variance := math.Log(1 + t.CV*t.CV)
	return time.Duration(float64(t.Mean) * math.Exp(math.Sqrt(variance)*r.NormFloat64()-variance/2))
}
