package plan

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Max is the longest answer that may be asked for, in tokens.
func (o Output) Max() int {
	// The subtraction absorbs 1000·1.1 being 1100.0000000000002 in binary.
	return int(math.Ceil(float64(o.Mean)*(1+o.Jitter) - 1e-9))
}

// Longest is the most tokens of one request, prompt and answer together: of
// conversations the last turn of the longest one.
func (w *Workload) Longest() int { return max(w.Prompt.Turns.Max, 1) * (w.Input + w.Output.Max()) }

// DefaultRequests is how many requests of a level are measured when the plan
// does not say: a wave for each of ten rounds, and above the 80 effective ones from which a p95 can be certified at three
// looks. With 100 requests in five rounds a healthy server comes out
// inconclusive in two of five simulated gates, with 200 in ten in one of 500.
func DefaultRequests(level int) int {
	if level <= 10 {
		return 200
	}
	return max(300, 10*level)
}

func LevelName(kind metric.LoadKind, n int) string {
	switch kind {
	case metric.Burst:
		return "burst " + strconv.Itoa(n)
	case metric.Users:
		return strconv.Itoa(n) + " users"
	}
	return strconv.Itoa(n)
}

// DefaultRounds is how many of the ten default seeds a level uses: as many as
// leave each round the given number of waves, but at least five, which an
// interval over rounds needs.
//
// A fixed level takes one wave a round, because more rounds make a verdict
// surer. If rounds differ by 5 %, ten rounds of 30 requests settle a p95 at half
// its limit in 99 of 100 simulated gates, five of 60 in 70. A search takes two
// waves, because it pays for the warm-up of every round at every probe.
func (l Level) DefaultRounds(waves int) int { return min(max(l.Requests/(waves*l.N), 5), 10) }

// RoundRequests is the number of measured requests of round i (from 0). All rounds are equal; if
// the division leaves a remainder, the first rounds get one more.
func (l Level) RoundRequests(i int) int {
	n := l.Requests / l.Rounds
	if i < l.Requests%l.Rounds {
		n++
	}
	return n
}

// RoundTime is for how long a round starts measured requests; 0: until
// RoundRequests were.
func (l Level) RoundTime() time.Duration { return l.Duration / time.Duration(max(l.Rounds, 1)) }

// Seed of round i (from 0); bursts cycle through the seeds.
func (l *Load) Seed(i int) int64 { return l.Seeds[i%len(l.Seeds)] }

// Bounded reports whether a threshold says where the capacity of w ends.
func (c *Capacity) Bounded(w *Workload) bool {
	return slices.ContainsFunc(w.Whole(), func(w *Workload) bool {
		return slices.ContainsFunc(w.SLAs, func(s *SLA) bool {
			return s.AtCapacity && s.Severity == SeverityError && len(s.Thresholds) > 0
		})
	})
}

// MostRequests is the most measured requests of one level of the search, which
// takes first at its first look; at least first.
func (w *Workload) MostRequests(first int) int {
	if w.Capacity.Over == metric.Users {
		return 4 * first // windows, however many come in them
	}
	most := cmp.Or(w.Capacity.MaxRequests, w.Policy.MaxRequests, 16*first)
	return max(most, first)
}

// Level is the level n of the search, with the requests of its first look.
//
// Rounds of a closed loop are one for each seed that the plan names; else they
// hold two waves of requests where there are enough, and at least one; a burst is a round, and ten bursts are sent at least.
func (c *Capacity) Level(n int) Level {
	switch c.Over {
	case metric.OpenLoop:
		return c.rate(n)
	case metric.Speedup:
		return c.speedup(n)
	case metric.Users:
		l := Level{Name: "probe " + LevelName(c.Over, n), N: n, Range: c.Range}
		c.Load.People.Part(&l)
		return l
	}
	l := Level{Name: "probe " + LevelName(c.Over, n), N: n, Requests: c.Requests, Range: c.Range}
	if l.Requests == 0 {
		l.Requests = max(DefaultRequests(n), c.Least)
	}
	if c.Over == metric.Burst {
		l.Rounds = max(10, (l.Requests+n-1)/n)
		l.Requests = l.Rounds * n
		return l
	}
	l.Requests = max(l.Requests, 5*n)
	l.Rounds = l.DefaultRounds(2)
	if c.Load.Seeded {
		l.Rounds = len(c.Load.Seeds)
	}
	l.Rounds = min(l.Rounds, l.Requests/n)
	return l
}

// speedup is a level of a search over recorded traffic: one replay of it.
func (c *Capacity) speedup(n int) Level {
	t, times := c.Load.Open.Trace, float64(n)*SpeedupStep
	l := Level{Name: "probe " + TraceName(times), Speedup: times, Rate: t.Rate() * times, Requests: t.Due, Range: c.Range}
	l.Part()
	return l
}

// rate is a level of a search for a rate.
func (c *Capacity) rate(n int) Level {
	l := Level{Rate: float64(n) * RateStep, Requests: c.Requests, Range: c.Range}
	l.Name = "probe " + RateName(l.Rate)
	l.Part()
	return l
}

// Amount is a load of the search as people read it: "39", "8.1 req/s".
func (c *Capacity) Amount(n int) string {
	switch c.Over {
	case metric.OpenLoop:
		return RateName(float64(n) * RateStep)
	case metric.Speedup:
		return strconv.FormatFloat(float64(n)*SpeedupStep, 'g', 6, 64)
	}
	return strconv.Itoa(n)
}

// PlainDuration writes a duration as a plan would: 24h, not 24h0m0s.
func PlainDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Hopeless is the number of failed requests after which a level with n in flight is given up, if
// none completed.
func Hopeless(n int) int { return max(20, 3*n) }

// Hanging is how long the plan's levels take on a server that accepts requests
// and never ends one, until each is given up: every request its time-out, n at a
// time. What searches and comparisons add is not in it.
func (p *Plan) Hanging() time.Duration {
	var sum time.Duration
	for _, w := range p.Workloads {
		if w.Of != nil {
			continue // its mix has its requests
		}
		for _, l := range w.Loads {
			for _, level := range l.Levels {
				requests := Hopeless(level.N)
				if level.Duration == 0 {
					requests = min(requests, level.Requests)
				}
				waves := 1 // a rate is given up once no token comes
				if !l.Kind.Windowed() {
					waves = (requests + level.N - 1) / level.N
				}
				sum += time.Duration(waves*len(w.Servers)) * l.Timeout
			}
		}
	}
	return sum
}

// Settling is how long the users of a load are there before its window: as long as they come,
// and then by default the thinking of a mean conversation, so that conversations of all ages
// are under way.
func (w *Workload) Settling(l *Load) time.Duration {
	p := l.People
	if p.Warmup != OpenWarmupAuto {
		return p.RampUp + p.Warmup
	}
	return p.RampUp + time.Duration(max(w.Prompt.Turns.Mean, 1)*float64(l.Think.Mean))
}

// Part cuts the window of a level into rounds, each of which counts as one request as long as
// nobody knows how many come in it.
func (p *People) Part(l *Level) {
	l.Duration, l.Rounds, l.Requests = p.Window, WindowRounds, WindowRounds
}

// mostRows bounds the rows of a data set that are made as long as Input says: each takes a
// few questions to the server's tokenizer before the load begins.
const mostRows = 4096

// Rows is how many rows of a data set of a given length are sent before any is sent again:
// twice as many as the plan's requests, since levels may be extended and warmed up.
func (w *Workload) Rows() int {
	if w.Of != nil || w.Capacity != nil {
		return mostRows
	}
	sum := 0
	for _, l := range w.Loads {
		for _, level := range l.Levels {
			if level.Duration > 0 {
				return mostRows
			}
			sum += level.Requests + 4*level.N*max(level.Rounds, 1)
		}
	}
	return min(max(2*sum, 64), mostRows)
}
