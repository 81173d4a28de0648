package assert

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/metric"
)

// process is a simulated server with a known distribution of latencies. It draws a score for each
// request, and the method level turns scores into times. Its requests may depend on each other in
// all ways that are known from real servers.
type process struct {
	name string
	// round and wave are the shares of the variance that all requests of a round, or of a wave,
	// have in common. A wave is the requests that are in flight together. The rest of the variance
	// differs for each request.
	round, wave float64
	rho         float64 // correlation, from one request to the next, of the parts not in common
	heavy       bool    // a round's common random part is exponential, so skewed
	own         bool    // each request's own random part is exponential, so skewed
	slowRounds  float64 // share of rounds in which all requests are slow
	slowWaves   float64 // share of waves in which all requests are slow
	common      int     // number of requests in a wave
	spells      float64 // share of requests in slow spells; a spell has as many requests as a wave
	part        float64 // share of the requests in a slow spell that are slow; 0 means all
}

// processes are the simulated servers for which tokgate's promise holds.
var processes = []process{
	{name: "independent"},
	{name: "independent, skewed", own: true},
	{name: "AR(1) 0.5", rho: 0.5},
	{name: "AR(1) 0.9", rho: 0.9},
	{name: "rounds shifted, half the variance", round: 0.5},
	{name: "rounds shifted, 9/10 of it", round: 0.9},
	{name: "rounds shifted, skewed", round: 0.5, heavy: true},
	{name: "rounds shifted, 9/10, skewed", round: 0.9, heavy: true},
	{name: "rounds shifted, AR(1) 0.9", round: 0.3, rho: 0.9},
	{name: "waves share a batch", wave: 0.8, common: 8},
	{name: "waves share a batch, rounds shifted", wave: 0.5, round: 0.3, common: 8},
}

// hidden lists two processes that a gate of 10 rounds of 20 requests cannot detect. A few waves or
// rounds are slow as a whole, and such a gate often sees none of them. The other requests show no
// sign of them.
var hidden = []process{
	{name: "1 wave in 20 is slow", slowWaves: 0.05, common: 8},
	{name: "1 round in 20 is slow", slowRounds: 0.05},
}

// commonFailures lists processes in which all requests of a wave or round fail together. Nothing
// else shows that requests depend on each other.
var commonFailures = []process{
	{name: "1 wave in %s fails", slowWaves: 1, common: 8},
	{name: "1 round in %s fails", slowRounds: 1},
}

// spells lists processes in which requests fail in spells. A spell is as many successive requests
// as a wave has, and may begin anywhere in a wave. All or some of these requests fail.
var spells = []process{
	{name: "spells of a wave's length fail, wherever they begin, 1 request in %s", spells: 1, common: 8},
	{name: "half of the requests of such spells, 1 request in %s", spells: 1, common: 8, part: 0.5},
	{name: "a quarter of them, 1 request in %s", spells: 1, common: 8, part: 0.25},
}

// clusters returns copies of processes in which the given share of all requests fails.
func clusters(share float64, of ...process) []process {
	var out []process
	for _, p := range of {
		p.name = fmt.Sprintf(p.name, strconv.FormatFloat(math.Round(1/share), 'f', -1, 64))
		p.slowWaves, p.slowRounds, p.spells = share*p.slowWaves, share*p.slowRounds, share*p.spells
		out = append(out, p)
	}
	return out
}

// scores returns a function that simulates the score of a request. It takes the round and the
// request's number. All scores belong to one run.
func (p process) scores(r *rand.Rand) func(round, i int) float64 {
	var at, last, left = -1, -1, 0
	part := p.part
	if part == 0 {
		part = 1
	}
	spell := p.spells / part / float64(max(p.common, 1)) // chance that a spell begins at a request
	var shift, wave, own float64
	skewed := func(skew bool) float64 {
		if skew {
			return r.ExpFloat64() - 1 // an exponential value with mean 0 and variance 1
		}
		return r.NormFloat64()
	}
	rest := math.Sqrt(1 - p.round - p.wave)
	return func(round, i int) float64 {
		if round != at {
			at, last, left = round, -1, 0
			for j := range max(p.common-1, 0) { // a slow spell may have begun before the round
				if spell > 0 && r.Float64() < spell {
					left = max(left, j+1)
				}
			}
			shift = math.Sqrt(p.round) * skewed(p.heavy)
			if r.Float64() < p.slowRounds {
				shift += 10
			}
			own = skewed(p.own)
		} else {
			own = p.rho*own + math.Sqrt(1-p.rho*p.rho)*skewed(p.own)
		}
		if n := i / max(p.common, 1); p.common > 0 && n != last {
			last = n
			wave = math.Sqrt(p.wave) * r.NormFloat64()
			if r.Float64() < p.slowWaves {
				wave += 10
			}
		}
		if spell > 0 && r.Float64() < spell {
			left = p.common
		}
		slow := 0.0
		if left > 0 {
			if left--; r.Float64() < part {
				slow = 10
			}
		}
		return shift + wave + slow + rest*own
	}
}

// score returns the score that the given share of requests exceeds. It is exact if the scores are
// normal, and otherwise estimated from half a million simulated requests.
func (p process) score(share float64) float64 {
	switch {
	case p.slowRounds > 0 || p.slowWaves > 0 || p.spells > 0:
		return 5 // limit between usual scores and those of slow requests, which are 10 higher
	case p.heavy || p.own:
		type of struct {
			process
			share float64
		}
		once, _ := drawn.LoadOrStore(of{p, share}, sync.OnceValue(func() float64 { return p.draw(share) }))
		return once.(func() float64)()
	}
	return stat.NormalQuantile(1 - share)
}

// drawn caches results of process.draw, because several tables need the same ones.
var drawn sync.Map

func (p process) draw(share float64) float64 {
	r := rand.New(rand.NewPCG(99, 100))
	draws := make([]float64, 500_000)
	for i := 0; i < len(draws); i += 10 {
		f := p.scores(r) // begin new rounds, because a round has only one common part
		for j := range 10 {
			draws[i+j] = f(0, j)
		}
	}
	slices.Sort(draws)
	return draws[int((1-share)*float64(len(draws)))]
}

// spread is the standard deviation of the logarithm of a latency.
const spread = 0.4

// level simulates a level of requests. A request with exactly the given score has a TTFT of 2 s ·
// factor, and requests with higher scores have longer TTFTs.
func (p process) level(r *rand.Rand, rounds, perRound int, score, factor float64) *metric.Level {
	g := p.scores(r)
	return shape{lean: true, n: max(p.common, 4), rounds: rounds, perRound: perRound, ttft: func(round, i int) float64 {
		return 2 * factor * math.Exp(spread*(g(round, i)-score))
	}}.level()
}
