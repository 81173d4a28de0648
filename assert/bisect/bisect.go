// Package bisect finds the value with which a change came in, among the values of a variable in order:
// images, commits, flags. It says which value to measure next, and what is known so far. It is pure: the
// same legs give the same answer.
//
// A leg is one figure of a server with one value, as a logarithm; larger is worse. First the ends are
// measured in turns, until it is certain that the last value is worse by more than Options.Least, or
// not. Then each leg is one of the value that tells most, and every endEvery-th one of an end, so that a
// drift of the machine is known.
//
// What is believed of the place is a posterior over models with one and with two steps. A model says
// leg = level + drift + steps + noise. Given a model, all but its places is integrated out (a normal
// linear model with conjugate priors: Gelman et al., Bayesian Data Analysis, section 14), so the noise
// need not be known. The drift is linear between knots, each with a small prior.
package bisect

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tokgate/tokgate/assert/stat"
)

// Leg is one measurement.
type Leg struct {
	Value  int     // index of the value
	At     float64 // when it was measured, in any unit
	Figure float64 // logarithm; larger is worse
}

// Options say what is asked. Values is the number of values, at least 2, and Least is how much worse the
// last must be than the first, as a difference of Figures, above 0. Most is the largest number of legs.
// Broken says of which values no server starts; nil: of none.
type Options struct {
	Values int
	Least  float64
	Most   int
	Broken map[int]bool
}

// Outcome is what is known.
type Outcome string

// The outcomes. Open asks for another leg. Found has a place. Unchanged means that the last value is
// certainly not worse than the first by more than Least. Unknown means that the legs do not tell.
const (
	Open      Outcome = "open"
	Found     Outcome = "found"
	Unchanged Outcome = "unchanged"
	Unknown   Outcome = "unknown"
)

// State is what is known after some legs.
type State struct {
	Outcome Outcome
	Next    int  // value to measure next, if the outcome is Open
	Ends    bool // the ends are not decided yet
	// Good and Bad are the values that a step lies between, and Sure is the probability that it does. If
	// it is not Found, they hold the smallest stretch with a probability of Certain.
	Good, Bad int
	Sure      float64
	// Chances are the probabilities that a step came with a value, by its index. Two steps add up to two.
	Chances []float64
	// Two is the probability that there are two steps. Other is the likeliest place of the second one, if Two is
	// above a half: the last value before it and the first after it.
	Two     float64
	Other   [2]int
	Exceeds float64 // probability that the last value is worse than the first by more than Least
	named   bool    // Good and Bad are neighbours, as far as servers start
	// Change is how much worse the last value is than the first; Low and High are its bounds, each with
	// a confidence of 95 %. Noise is the standard deviation of a leg. They are NaN if unknown.
	Change, Low, High, Noise float64
	// Needed is about how many more legs would decide it; 0 if that is not known.
	Needed int
}

const (
	// Certain is the probability from which a place is named.
	Certain = 0.998
	// MostPairs is the largest number of pairs of legs on the ends, and leastPairs the number at the first look.
	MostPairs, leastPairs = 24, 6
	// endsCertain is the probability from which the ends are decided. After MostPairs, endsLikely suffices to
	// look for the place, but no place is named until endsCertain is reached.
	endsCertain = 0.95
	endsLikely  = 0.75
	endEvery    = 4
)

// Next returns what is known after the legs, and what to measure next. A leg of a value that is out of
// range or broken does not count. It needs the first and the last value.
func Next(o Options, legs []Leg) State {
	legs = slices.DeleteFunc(slices.Clone(legs), func(l Leg) bool {
		return l.Value < 0 || l.Value >= o.Values || o.Broken[l.Value] || math.IsNaN(l.Figure) || math.IsInf(l.Figure, 0)
	})
	s := State{Outcome: Open, Ends: true, Bad: o.Values - 1, Chances: make([]float64, o.Values)}
	last := o.Values - 1
	if last < 1 || !(o.Least > 0) || o.Broken[0] || o.Broken[last] {
		s.Outcome = Unknown
		return s
	}
	ends := s.ends(o, legs)
	if s.Outcome != Open || s.Ends {
		if n := len(ends); s.Outcome == Open {
			s.Next = last * turn(n)
		}
		return s
	}
	s.locate(o, legs)
	switch {
	case s.Exceeds <= 1-endsCertain:
		s.Outcome = Unchanged
	case s.Sure >= Certain && s.Exceeds >= endsCertain && s.named:
		s.Outcome = Found
	case len(legs) >= o.Most:
		s.Outcome = Unknown
		s.Needed = s.needed(len(legs))
	}
	return s
}

// turn returns the side of a leg in the order A B B A A B B A: 0 or 1.
func turn(n int) int { return (n%2 + n/2%2) % 2 }

// ends decides whether the last value is worse than the first by more than is asked. It returns the legs
// that decide it: those before any other value was measured.
func (s *State) ends(o Options, legs []Leg) []Leg {
	n := 0
	for n < len(legs) && (legs[n].Value == 0 || legs[n].Value == o.Values-1) {
		n++
	}
	first := legs[:n]
	s.Change, s.Low, s.High, s.Noise = math.NaN(), math.NaN(), math.NaN(), math.NaN()
	for k := 2 * leastPairs; k <= min(n, 2*MostPairs); k += 2 {
		d, ok := s.difference(o, first[:k])
		if !ok {
			continue
		}
		above := 1 - d.Above(o.Least) // the posterior under a flat prior is Student's t
		switch s.Exceeds = above; {
		case above >= endsCertain:
			s.Ends = false
			return first
		case above <= 1-endsCertain:
			s.Outcome = Unchanged
			return first
		case k == 2*MostPairs && above >= endsLikely:
			s.Ends = false // all later legs tell more of it
			return first
		case k == 2*MostPairs:
			s.Outcome = Unknown
			s.Needed, _ = d.StartsNeeded(o.Least, 1-endsCertain)
			s.Needed = max(0, 2*s.Needed-k)
			return first
		}
	}
	return first
}

func (s *State) difference(o Options, legs []Leg) (stat.Drift, bool) {
	var sides [2]stat.Timed
	for _, l := range legs {
		side := &sides[min(l.Value, 1)]
		side.Values, side.At = append(side.Values, l.Figure), append(side.At, l.At)
	}
	d, ok := stat.Groups.Drifting(sides[0], sides[1])
	if ok {
		s.Change, s.Noise = d.Diff, d.Spread
		s.Low, s.High = d.Bounds(1 - endsCertain)
	}
	return d, ok
}

// Expected is what a bisection is expected to take: medians.
type Expected struct{ Legs, Values int }

// Forecast simulates bisections of one step of the given size at each of some places, with legs of the given noise.
// Both are differences of logarithms.
func Forecast(o Options, step, noise float64) Expected {
	var legs, values []int
	r := rand.New(rand.NewPCG(45, uint64(o.Values)))
	for range 15 {
		place, seen := 1+r.IntN(o.Values-1), map[int]bool{}
		var all []Leg
		for {
			s := Next(o, all)
			if s.Outcome != Open {
				break
			}
			y := noise * r.NormFloat64()
			if s.Next >= place {
				y += step
			}
			seen[s.Next], all = true, append(all, Leg{s.Next, float64(len(all)), y})
		}
		legs, values = append(legs, len(all)), append(values, len(seen))
	}
	slices.Sort(legs)
	slices.Sort(values)
	return Expected{legs[len(legs)/2], values[len(values)/2]}
}
