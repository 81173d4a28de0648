package sim

import (
	"math"
	"math/rand/v2"
)

// rng is a SplitMix64 generator (Steele, Lea, Flood: Fast splittable pseudorandom number
// generators, OOPSLA 2014). Its state has only eight bytes, so every random sequence can have its
// own generator. The numbers of one sequence do not depend on other sequences.
type rng uint64

func (r *rng) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// float draws a number that is uniformly distributed in [0, 1).
func (r *rng) float() float64 { return float64(r.next()>>11) / (1 << 53) }

// noise draws random factors for durations. The factors are log-normal with a mean of 1.
type noise struct {
	start float64 // factor on all times of the server; drawn anew at each start
	sigma float64 // standard deviation of the logarithm of the factor on a step's time; 0: no noise
	rand  *rand.Rand
}

func newNoise(n Noise, seed int64) *noise {
	d := &noise{start: 1, rand: rand.New(rand.NewPCG(uint64(seed), 0x5eed))}
	if n.StartCV > 0 {
		d.start = logNormal(sigmaOf(n.StartCV), d.rand.NormFloat64())
	}
	d.sigma = sigmaOf(n.StepCV)
	return d
}

func (d *noise) step() float64 {
	if d.sigma == 0 {
		return 1
	}
	return logNormal(d.sigma, d.rand.NormFloat64())
}

// sigmaOf is the standard deviation of ln X for a log-normal X with the given
// coefficient of variation.
func sigmaOf(cv float64) float64 { return math.Sqrt(math.Log1p(cv * cv)) }

// logNormal turns a standard normal z into a log-normal value with mean 1.
func logNormal(sigma, z float64) float64 { return math.Exp(sigma*z - sigma*sigma/2) }
