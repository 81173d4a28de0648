package assert

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// engine is a simulated server that works in steps: each step prefills the prompts that came, and
// makes one token of every other running request. So requests in flight together depend on each
// other. Times are in milliseconds.
type engine struct {
	name                 string
	base, each, perToken float64 // of a step: fixed, per running request, per prompt token
	noise                float64 // standard deviation of ln(step)
	slow, lasts          float64 // slow noise: standard deviation of ln(step), and its time constant
	pauseEvery, pauseFor float64
	heavy, times         float64 // share of prompts that take times as long to prefill
	atOnce               float64 // requests that run at the same time, as a share of those in flight; 0: all
	alone                bool    // no steps: each request takes a log-normal time of its own
	random               bool    // lengths of answers are random, not in strata
}

// lifetime is about how long a request takes, in milliseconds.
const lifetime = 700

// engines lists the servers on which the rules for batches keep their promise.
func engines(n int) []engine {
	plain := engine{name: "batch steps", base: 15, each: 4 / float64(n), perToken: 3.6 / float64(n), noise: 0.05}
	change := func(name string, by func(*engine)) engine {
		e := plain
		e.name = name
		by(&e)
		return e
	}
	slow := func(lives float64) func(*engine) {
		return func(e *engine) { e.slow, e.lasts = 0.1, lives*lifetime }
	}
	return []engine{
		{name: "log-normal times", alone: true},
		plain,
		change("6 % heavy prefills", func(e *engine) { e.heavy, e.times = 0.06, 3 }),
		change("noise of 0.3 lifetimes", slow(0.3)),
		change("noise of 1 lifetime", slow(1)),
		change("noise of 3 lifetimes", slow(3)),
		change("pauses of 0.5 s every 10 s", func(e *engine) { e.pauseEvery, e.pauseFor = 10_000, 500 }),
		change("a queue", func(e *engine) { e.atOnce = 0.75 }),
		change("a queue, random lengths", func(e *engine) { e.atOnce, e.random = 0.75, true }),
		change("noise of 10 lifetimes", slow(10)),
	}
}

// request is a request of a simulated closed loop.
type request struct {
	sent, first, end float64
	out, slot        int
	chunks           []float64 // when each token came
	left             int
	prefill          float64 // prompt tokens to prefill
	phase            metric.Phase
}

// closedLoop drives an engine with n requests in flight.
type closedLoop struct {
	engine
	n       int
	r       *rand.Rand
	now     float64
	drift   float64 // state of the slow noise
	drifted float64 // when it was drawn
	chunks  bool    // keep when each token came
	strata  int     // lengths are drawn in strata of so many requests; 0: at random
	middles bool    // at the middles of the strata
	block   []int
}

func (e engine) loop(n int, seed uint64) *closedLoop {
	c := &closedLoop{engine: e, n: n, r: rand.New(rand.NewPCG(seed, 17))}
	c.now = 30_000 * c.r.Float64() // at any time between pauses
	c.drift, c.drifted = c.r.NormFloat64(), c.now
	return c
}

const shortest, longest = 12, 36 // tokens of an answer

// length draws the length of an answer, of measured requests in strata.
func (c *closedLoop) length(measured bool) int {
	if !measured || c.strata == 0 || c.random {
		return shortest + c.r.IntN(longest-shortest+1)
	}
	if len(c.block) == 0 {
		for i := range c.strata {
			at := 0.5
			if !c.middles {
				at = c.r.Float64()
			}
			c.block = append(c.block, shortest+int((longest-shortest+1)*(float64(i)+at)/float64(c.strata)))
		}
		c.r.Shuffle(len(c.block), func(i, j int) { c.block[i], c.block[j] = c.block[j], c.block[i] })
	}
	out := c.block[0]
	c.block = c.block[1:]
	return out
}

// run sends a wave of warm-up, as many measured requests as are due, and fillers until they have
// ended. It returns all requests in order of start; what was in flight at the end has no end.
func (c *closedLoop) run(due int) []*request {
	free := make([]float64, c.n) // when each slot sends its next request; +Inf while it waits
	for i := range free {
		free[i] = c.now + float64(i)*lifetime/float64(c.n)
	}
	var all, waiting, running []*request
	started := map[int]bool{}
	measured, ended := 0, 0
	for ended < due {
		next := slices.Min(free)
		if len(waiting)+len(running) == 0 {
			c.now = max(c.now, next)
		}
		for {
			slot := slices.Index(free, slices.Min(free))
			if free[slot] > c.now {
				break
			}
			q := &request{sent: free[slot], slot: slot, phase: metric.Filler}
			switch {
			case !started[slot], len(started) < c.n:
				q.phase, started[slot] = metric.Warmup, true
			case measured < due:
				q.phase = metric.Measured
				measured++
			}
			q.out = c.length(q.phase == metric.Measured)
			q.left, q.prefill = q.out, 64
			if c.heavy > 0 && c.r.Float64() < c.heavy {
				q.prefill *= c.times
			}
			free[slot] = math.Inf(1)
			all, waiting = append(all, q), append(waiting, q)
		}
		for len(waiting) > 0 && (c.atOnce == 0 || float64(len(running)) < c.atOnce*float64(c.n)) {
			running, waiting = append(running, waiting[0]), waiting[1:]
		}
		running = c.step(running, slices.Min(free))
		for i := 0; i < len(running); i++ {
			if q := running[i]; q.end > 0 && q.end <= c.now {
				if free[q.slot] = q.end + 0.8; q.phase == metric.Measured {
					ended++
				}
				running = slices.Delete(running, i, i+1)
				i--
			}
		}
	}
	c.now += 20
	return all
}

// step lets the server work for one step, or, without steps, until the next request ends or starts.
func (c *closedLoop) step(running []*request, starts float64) []*request {
	if c.alone {
		next := starts
		for _, q := range running {
			if q.end == 0 {
				q.first = q.sent + 80*math.Exp(0.4*c.r.NormFloat64())
				each := 25 * math.Exp(0.1*c.r.NormFloat64())
				q.end = q.first + float64(q.out-1)*each
				for i := range q.out {
					q.chunks = append(q.chunks, q.first+float64(i)*each)
				}
			}
			next = min(next, q.end)
		}
		c.now = max(c.now, next)
		return running
	}
	tokens := 0.0
	for _, q := range running {
		tokens += q.prefill
	}
	took := c.base + c.each*float64(len(running)) + c.perToken*tokens
	took *= math.Exp(c.noise * c.r.NormFloat64())
	if c.slow > 0 {
		a := math.Exp(-(c.now - c.drifted) / c.lasts)
		c.drift, c.drifted = a*c.drift+math.Sqrt(1-a*a)*c.r.NormFloat64(), c.now
		took *= math.Exp(c.slow * c.drift)
	}
	end := c.now + took
	if c.pauseEvery > 0 && math.Floor(end/c.pauseEvery) > math.Floor(c.now/c.pauseEvery) {
		end += c.pauseFor
	}
	for _, q := range running {
		if q.prefill = 0; q.first == 0 {
			q.first = end
		}
		if c.chunks {
			q.chunks = append(q.chunks, end)
		}
		if q.left--; q.left == 0 {
			q.end = end
		}
	}
	c.now = end
	return running
}

// at converts a time of a simulation.
func at(ms float64) time.Duration { return time.Second + time.Duration(ms*1e6) }

// sample returns a request as a recording has it. One that had not ended was cancelled.
func (q *request) sample(round, order int, end float64) *metric.Sample {
	x := &metric.Sample{Server: "sim", Workload: "chat", Level: "4", Round: round, Slot: q.slot, Order: order, Phase: q.phase, Scheduled: at(q.sent), Sent: at(q.sent),
		InputAsked: 64, OutputAsked: q.out, Status: 200}
	if q.first > 0 {
		x.Headers, x.First, x.FirstAnswer, x.FirstTokens = at(q.sent)+1, at(q.first), at(q.first), 1
		x.Chunks = len(q.chunks)
		for i := range max(len(q.chunks)-1, 0) {
			x.Gaps.Add(at(q.chunks[i+1]) - at(q.chunks[i]))
		}
		if x.Last = x.First; len(q.chunks) > 0 {
			x.Last = at(q.chunks[len(q.chunks)-1])
		}
	}
	if q.end == 0 || q.end > end {
		x.End, x.Failure = at(end), &metric.Failure{Kind: metric.FailCanceled}
		return x
	}
	x.Last, x.End, x.Finish, x.Chunks = at(q.end), at(q.end), "length", q.out
	x.Usage = &metric.Usage{Input: 64, Output: q.out}
	return x
}

// window returns the requests of one run as a level of k batches.
func window(n, k int, all []*request) *metric.Level {
	l := &metric.Level{Server: "sim", Workload: "chat", Name: strconv.Itoa(n), Kind: metric.ClosedLoop, Batches: true, N: n, Exact: true}
	measured := slices.DeleteFunc(slices.Clone(all), func(q *request) bool { return q.phase != metric.Measured })
	end := 0.0
	for _, q := range measured {
		end = max(end, q.end)
	}
	for i := range k {
		from, to := len(measured)*i/k, len(measured)*(i+1)/k
		r := &metric.Round{Index: i, Due: to - from, Busy: 1, Complete: true, Start: at(measured[from].sent), WindowStart: at(measured[from].sent)}
		for order, q := range measured[from:to] {
			x := q.sample(i, order, end)
			r.Samples, r.End = append(r.Samples, x), max(r.End, x.End)
		}
		if r.WindowEnd = r.End; to < len(measured) {
			r.WindowEnd = at(measured[to].sent)
		}
		l.Rounds = append(l.Rounds, r)
	}
	last, orders := l.Rounds[k-1], map[metric.Phase]int{}
	for _, q := range all {
		if q.phase == metric.Measured || q.sent > end {
			continue
		}
		r := l.Rounds[0]
		if q.phase == metric.Filler {
			if r = last; orders[q.phase] == 0 {
				last.WindowEnd = at(q.sent)
			}
		}
		r.Samples = append(r.Samples, q.sample(r.Index, orders[q.phase], end))
		orders[q.phase]++
	}
	return l
}
