package sim

import "math"

type cost struct {
	base, perSeq, perToken, longest float64 // terms of the time of a decode step; see decode
	linear, square, chunk           float64 // prefill
	moe, active                     float64
	verify                          int
	expert                          []float64 // cost of the experts, by the number of sequences
}

// newCost computes the cost of the profile p. It multiplies every time by factor, so a factor above
// 1 makes the server slower.
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

func (c *cost) decode(n, resident, longest int) float64 {
	return c.base + c.perSeq*float64(n-1) + c.perToken*float64(resident) + c.longest*float64(longest) + c.experts(n)
}

// experts returns the additional cost of the experts for n sequences, compared with one sequence.
// It stops growing when all experts are in use.
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

// prefill returns the time to prefill n tokens of a prompt, in ms. The parameter done is the number
// of tokens before them.
func (c *cost) prefill(done, n int) float64 {
	from, to := float64(done), float64(done+n)
	return c.linear*float64(n) + c.square*(to*to-from*from)
}
