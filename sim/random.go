package sim

import (
	"math"
	"math/rand/v2"
	"time"
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

func (r *rng) float() float64 { return float64(r.next()>>11) / (1 << 53) }

// noise draws random factors for durations. The factors are log-normal with a mean of 1.
type noise struct {
	start float64 // factor on all times of the server; drawn anew at each start
	sigma float64 // standard deviation of the logarithm of the factor on a step's time; 0: no noise
	rand  *rand.Rand
	slow  slowNoise
}

// slowNoise is a factor on durations that changes slowly. Its logarithm is a stationary
// Ornstein–Uhlenbeck process. It has random numbers of its own, so that other noise stays the same
// with and without it.
type slowNoise struct {
	sigma float64       // standard deviation of the logarithm; 0: no noise
	lasts float64       // time in seconds in which the correlation falls to 1/e
	z     float64       // the logarithm at the time last, in standard deviations
	last  time.Duration // time of the last step
	rand  *rand.Rand
}

// Times must not decrease.
func (s *slowNoise) at(now time.Duration) float64 {
	if s.sigma == 0 {
		return 1
	}
	keeps := math.Exp(-(now - s.last).Seconds() / s.lasts)
	s.z = keeps*s.z + math.Sqrt(1-keeps*keeps)*s.rand.NormFloat64()
	s.last = now
	return logNormal(s.sigma, s.z)
}

func newNoise(n Noise, seed int64) *noise {
	d := &noise{start: 1, rand: rand.New(rand.NewPCG(uint64(seed), 0x5eed))}
	if n.StartCV > 0 {
		d.start = logNormal(sigmaOf(n.StartCV), d.rand.NormFloat64())
	}
	d.sigma = sigmaOf(n.StepCV)
	if n.SlowCV > 0 {
		d.slow = slowNoise{sigma: sigmaOf(n.SlowCV), lasts: n.SlowS, rand: rand.New(rand.NewPCG(uint64(seed), 0x510))}
		d.slow.z = d.slow.rand.NormFloat64()
	}
	return d
}

func (d *noise) step(at time.Duration) float64 {
	if d.sigma == 0 {
		return d.slow.at(at)
	}
	return logNormal(d.sigma, d.rand.NormFloat64()) * d.slow.at(at)
}

// sigmaOf is the standard deviation of ln X for a log-normal X with the given
// coefficient of variation.
func sigmaOf(cv float64) float64 { return math.Sqrt(math.Log1p(cv * cv)) }

// logNormal turns a standard normal z into a log-normal value with mean 1.
func logNormal(sigma, z float64) float64 { return math.Exp(sigma*z - sigma*sigma/2) }
