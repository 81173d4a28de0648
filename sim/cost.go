package sim

import "math"

// cost is the model for the time of a step, in ms. Its constants are computed once from a profile.
type cost struct {
	base, perSeq, perToken, longest float64 // cost of decoding; perToken and longest are for each context token
	linear, square, chunk           float64 // prefill
	moe, active                     float64
	verify                          int
	expert                          []float64 // cost of the experts, by the number of decoding sequences
}

// newCost computes the cost constants of the profile p, and multiplies every time by factor. The
// factor slows down the server for its whole life after a slow start.
func newCost(p *Profile, factor float64) cost {
	return cost{
		base:     p.Decode.BaseMS * factor,
		perSeq:   p.Decode.PerSeqMS * factor,
		perToken: p.Decode.PerKtokenMS / 1024 * factor,
		longest:  p.Decode.PerKtokenLongestMS / 1024 * factor,
		linear:   p.Prefill.USPerToken / 1e3 * factor,
		square:   p.Prefill.NSPerToken2 / 1e6 * factor,
		chunk:    p.Prefill.ChunkMS * factor,
		moe:      p.Decode.MoEMS * factor,
		active:   p.Decode.MoEActiveShare,
		verify:   p.verify(),
	}
}

// decode returns the time of a step that decodes n sequences and prefills nothing. n is at least 1.
func (c *cost) decode(n, resident, longest int) float64 {
	return c.base + c.perSeq*float64(n-1) + c.perToken*float64(resident) + c.longest*float64(longest) + c.experts(n)
}

// experts is the cost of the further experts that n sequences use, compared with one sequence. It
// stops growing once all experts are used.
func (c *cost) experts(n int) float64 {
	if c.moe == 0 {
		return 0
	}
	touched := func(tokens int) float64 { return 1 - math.Pow(1-c.active, float64(tokens)) }
	for len(c.expert) <= n {
		c.expert = append(c.expert, c.moe*(touched(len(c.expert)*c.verify)-touched(c.verify)))
	}
	return c.expert[n]
}

// prefill is the time to prefill n tokens of a prompt after the first done tokens of the prompt.
func (c *cost) prefill(done, n int) float64 {
	from, to := float64(done), float64(done+n)
	return c.linear*float64(n) + c.square*(to*to-from*from)
}
