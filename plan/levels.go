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

// Max is the length of the longest answer that may be requested, in tokens.
func (o Output) Max() int {
	// In binary 1000·1.1 is 1100.0000000000002; the subtraction absorbs the error.
	return int(math.Ceil(float64(o.Mean)*(1+o.Jitter) - 1e-9))
}

// Longest is the largest number of tokens of one request, prompt and answer together.
// For conversations it is the last turn of the longest conversation.
func (w *Workload) Longest() int { return max(w.Prompt.Turns.Max, 1) * (w.Input + w.Output.Max()) }

// DefaultRequests is the number of measured requests of a level if the plan sets none: one wave in each of ten
// rounds, and at least 200. Certifying a p95 at three looks takes 80 effective requests. With 100 requests in five
// rounds two of five simulated gates on a healthy server are inconclusive; with 200 in ten rounds one of 500 is.
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

// DefaultRounds is the default number of rounds, of at most ten. A round gets at least the given
// number of waves of requests. There are at least five rounds, because an interval over rounds
// needs five.
//
// A fixed level has one wave in each round, because more rounds make a verdict surer. Suppose
// that rounds differ by 5 % and that a p95 is at half its limit. In simulations ten rounds of 30
// requests decide it in 99 of 100 gates, and five rounds of 60 in 70. A search has two waves in
// each round, because each round of each probe has a warm-up.
func (l Level) DefaultRounds(waves int) int { return min(max(l.Requests/(waves*l.N), 5), 10) }

// RoundRequests is the number of measured requests of round i; i counts from 0. The requests are
// divided evenly; a remainder goes to the first rounds, one request each.
func (l Level) RoundRequests(i int) int {
	n := l.Requests / l.Rounds
	if i < l.Requests%l.Rounds {
		n++
	}
	return n
}

// RoundTime is the time in which a round starts measured requests. It is 0 if the round ends
// after its RoundRequests instead.
func (l Level) RoundTime() time.Duration { return l.Duration / time.Duration(max(l.Rounds, 1)) }

// Seed is the seed of round i (from 0); bursts cycle through the seeds.
func (l *Load) Seed(i int) int64 { return l.Seeds[i%len(l.Seeds)] }

// Bounded reports whether a threshold bounds the capacity of w.
func (c *Capacity) Bounded(w *Workload) bool {
	return slices.ContainsFunc(w.Whole(), func(w *Workload) bool {
		return slices.ContainsFunc(w.SLAs, func(s *SLA) bool {
			return s.AtCapacity && s.Severity == SeverityError && len(s.Thresholds) > 0
		})
	})
}

// MostRequests is the largest number of measured requests of one level of the search;
// first is the number at its first look. The result is at least first.
func (w *Workload) MostRequests(first int) int {
	if w.Capacity.Over == metric.Users {
		return 4 * first // a window has no fixed number of requests
	}
	most := cmp.Or(w.Capacity.MaxRequests, w.Policy.MaxRequests, 16*first)
	return max(most, first)
}

// Level is level n of the search, with the requests of its first look.
//
// In a closed loop a round belongs to each seed that the plan names. If the plan names no seeds,
// a round holds two waves of requests, or one wave if there are too few requests. For bursts a
// round is one burst, and a level has at least ten bursts.
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

// speedup returns the level of a capacity search at n times SpeedupStep. The level replays the
// recorded traffic once.
func (c *Capacity) speedup(n int) Level {
	t, times := c.Load.Open.Trace, float64(n)*SpeedupStep
	l := Level{Name: "probe " + TraceName(times), Speedup: times, Rate: t.Rate() * times, Requests: t.Due, Range: c.Range}
	l.Part()
	return l
}

// rate returns the level of a capacity search at a rate of n times RateStep.
func (c *Capacity) rate(n int) Level {
	l := Level{Rate: float64(n) * RateStep, Requests: c.Requests, Range: c.Range}
	l.Name = "probe " + RateName(l.Rate)
	l.Part()
	return l
}

// Amount writes a load of the search as text for people: "39", "8.1 req/s".
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

// Hopeless is the number of failed requests after which a level with n requests in flight is
// given up. It applies only while no request has completed.
func Hopeless(n int) int { return max(20, 3*n) }

// Hanging is how long the plan's levels take on a server that accepts requests and ends none,
// until each level is given up. n requests run at a time, and each takes its time-out. Searches
// and comparisons are not included.
func (p *Plan) Hanging() time.Duration {
	var sum time.Duration
	for _, w := range p.Workloads {
		if w.Of != nil {
			continue // counted with its mix
		}
		for _, l := range w.Loads {
			for _, level := range l.Levels {
				requests := Hopeless(level.N)
				if level.Duration == 0 {
					requests = min(requests, level.Requests)
				}
				waves := 1 // at a rate, a level is given up when no token arrives
				if !l.Kind.Windowed() {
					waves = (requests + level.N - 1) / level.N
				}
				sum += time.Duration(waves*len(w.Servers)) * l.Timeout
			}
		}
	}
	return sum
}

// Settling is the time between the first user of a load and its window: the ramp-up, in which
// the users arrive, and the warm-up. By default the warm-up takes the thinking time of a mean
// conversation, so that the window begins with conversations of all ages.
func (w *Workload) Settling(l *Load) time.Duration {
	p := l.People
	if p.Warmup != OpenWarmupAuto {
		return p.RampUp + p.Warmup
	}
	return p.RampUp + time.Duration(max(w.Prompt.Turns.Mean, 1)*float64(l.Think.Mean))
}

// Part divides the window of a level into rounds. Each round counts as one request until the
// number of its requests is known.
func (p *People) Part(l *Level) {
	l.Duration, l.Rounds, l.Requests = p.Window, WindowRounds, WindowRounds
}

// mostRows bounds the rows of a data set that are cut to a length. Each row takes a few
// questions to the server's tokenizer before the load begins.
const mostRows = 4096

// Rows is the number of different rows that are sent from a data set whose rows are cut to a
// length. It is twice the number of the plan's requests, because levels may be warmed up and
// extended.
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
