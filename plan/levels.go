package plan

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Levels lists the levels of the load blocks, each with its block.
func (w *Workload) Levels() iter.Seq2[*Load, Level] {
	return func(yield func(*Load, Level) bool) {
		for _, load := range w.Loads {
			for _, level := range load.Levels {
				if !yield(load, level) {
					return
				}
			}
		}
	}
}

// Fixed returns the level of the given name in the load blocks; nil if there is none.
func (w *Workload) Fixed(name string) *Level {
	for _, load := range w.Loads {
		if i := slices.IndexFunc(load.Levels, func(l Level) bool { return l.Name == name }); i >= 0 {
			return &load.Levels[i]
		}
	}
	return nil
}

// Max returns the largest number of output tokens that a request may ask for.
func (o Output) Max() int {
	// In binary 1000·1.1 is 1100.0000000000002. Subtract a little, so that it is not rounded up to
	// 1101.
	return int(math.Ceil(float64(o.Mean)*(1+o.Jitter) - 1e-9))
}

// Longest is the largest number of tokens of one request, with prompt and answer. In a conversation
// it is the number for the last turn of the longest conversation. It leaves out the text of a system
// prompt, and the prompts of a data set that keep their own length.
func (w *Workload) Longest() int {
	if w.Prompt.Replies == RecordedReplies {
		return w.Output.Max()
	}
	return w.Prompt.System.Tokens + max(w.Prompt.Turns.Max, 1)*(w.Input+w.Output.Max())
}

// DefaultRequests is the number of measured requests of a level if the plan sets none: 20 waves, and
// 200 requests up to level 10.
func DefaultRequests(level int) int { return Waves(mostBatches, level) }

// LegRequests is the number of measured requests of a leg of a comparison, and of a probe of bursts, if
// the plan sets none: 200 up to level 10, and above it ten waves, but at least 300.
func LegRequests(level int) int {
	if level <= 10 {
		return 200
	}
	return max(300, 10*level)
}

// SaltsLengths reports whether each run draws the lengths of the answers anew, so that one plan is
// not always lucky with them. Runs that are compared with each other ask for the same lengths.
func (p *Plan) SaltsLengths() bool {
	varied := func(w *Workload) bool { return w.Output.Jitter > 0 }
	return p.History == nil && len(p.Compares) == 0 && slices.ContainsFunc(p.Workloads, varied)
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

// The window of a closed loop is judged by its batches. At most mostBatches are judged, because the
// error that they share would not suffice for more. A batch has at least leastBatch requests, and
// at least one wave: as many requests as are in flight.
const (
	mostBatches = 20
	leastBatch  = 10
)

// batchesOf returns how many batches the window of a closed loop has, for the given numbers of
// requests and of requests in flight. It is at least metric.LeastRounds if there are that many
// waves, and with fewer waves nothing can be certified.
func batchesOf(requests, n int) int {
	k := min(mostBatches, requests/max(n, leastBatch))
	if requests >= metric.LeastRounds*n {
		k = max(k, metric.LeastRounds)
	}
	return max(k, 1)
}

// Waves is the number of requests in the given number of waves, with n requests in flight.
func Waves(waves, n int) int { return waves * max(n, leastBatch) }

// Cut makes the level of a closed loop one window of batches. A duration is cut into ten.
func (l *Level) Cut() {
	l.Batches = true
	if l.Duration > 0 {
		l.Rounds, l.Requests = fewBatches, fewBatches*l.N
		return
	}
	l.Rounds = batchesOf(l.Requests, l.N)
}

// RoundRequests is the number of measured requests of round i, from 0. The level's requests are
// divided evenly. A remainder goes to the first rounds, one request for each.
func (l Level) RoundRequests(i int) int {
	n := l.Requests / l.Rounds
	if i < l.Requests%l.Rounds {
		n++
	}
	return n
}

// RoundTime is the time in which a round starts measured requests. It is 0 if the number of
// requests, RoundRequests, ends the round.
func (l Level) RoundTime() time.Duration { return l.Duration / time.Duration(max(l.Rounds, 1)) }

// Seed returns the seed of round i, from 0. After the last seed it begins again with the first. Without
// seeds it is i.
func (l *Load) Seed(i int) int64 {
	if len(l.Seeds) == 0 {
		return int64(i)
	}
	return l.Seeds[i%len(l.Seeds)]
}

// Bounded reports whether w has a threshold that can limit its capacity.
func (c *Capacity) Bounded(w *Workload) bool {
	return slices.ContainsFunc(w.Whole(), func(w *Workload) bool {
		return slices.ContainsFunc(w.SLAs, func(s *SLA) bool {
			return s.AtCapacity && s.Severity == SeverityError && len(s.Thresholds) > 0
		})
	})
}

// MostRequests is the largest number of measured requests of a level of a capacity search. The
// parameter first is their number at the first look, and the result is at least that.
func (w *Workload) MostRequests(first int) int {
	times := 4
	switch w.Capacity.Over {
	case metric.Users:
		return times * first // a window has no fixed number of requests
	case metric.OpenLoop:
		times = 16
	}
	return max(cmp.Or(w.Capacity.MaxRequests, w.Policy.MaxRequests, times*first), first)
}

// probeLooks plans the looks at a level of a capacity search that may have up to the given number of
// requests. The level's own number and each doubling get equal parts of the error. Within its part
// the error spent in a window of a closed loop grows with the square of the number of requests.
func (w *Workload) probeLooks(level Level, most int) []Look {
	ends := Doubled(w.Capacity.Over, level, most)
	part := 1 / float64(len(ends))
	var looks []Look
	if level.Batches { // bursts are judged when they have all been sent
		for _, early := range w.Capacity.Load.earlyLooks(w, level) {
			whole := float64(early.Requests) / float64(level.Requests)
			looks = append(looks, Look{Requests: early.Requests, Spent: whole * whole * part, Ahead: true})
		}
	}
	for i, n := range ends {
		looks = append(looks, Look{Requests: n, Spent: float64(i+1) * part, Extends: i > 0})
	}
	for i := range looks {
		looks[i].Planned = len(looks)
	}
	return looks
}

// usualTimes is how many times the requests of the first look a usual probe may have.
func (c *Capacity) usualTimes() int {
	if c.Over == metric.ClosedLoop {
		return 2
	}
	return 4
}

// ProbeLooks plans the looks at level n of the search. If certify is set, they are those of a probe with
// the most requests.
func (w *Workload) ProbeLooks(n int, certify bool) []Look {
	c := w.Capacity
	level := c.Level(n)
	most := w.MostRequests(level.Requests)
	if !certify {
		most = min(most, c.usualTimes()*level.Requests)
	}
	return w.probeLooks(level, most)
}

// SpentAtProbe returns the share of the allowed error that a probe of level n may have spent after the
// given number of requests. The probe has the given number of planned looks. It is 0 for a probe
// that spends all at its only look.
func (w *Workload) SpentAtProbe(n, planned, requests int) float64 {
	for _, certify := range []bool{false, true} {
		looks := w.ProbeLooks(n, certify)
		i := slices.IndexFunc(looks, func(at Look) bool { return at.Requests == requests })
		if len(looks) == planned && i >= 0 {
			return looks[i].Spent
		}
	}
	return 0
}

// Level returns level n of the capacity search, with the number of requests at which it is judged
// for the first time.
//
// In a closed loop the level is one window. In a burst load a round is one burst, and a level has at
// least ten rounds.
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
	burst := c.Over == metric.Burst
	switch {
	case l.Requests > 0:
	case burst:
		l.Requests = max(LegRequests(n), c.Least)
	default:
		l.Requests = max(DefaultRequests(n), c.Least)
	}
	if burst {
		l.Rounds = max(10, (l.Requests+n-1)/n)
		l.Requests = l.Rounds * n
		return l
	}
	l.Requests = max(l.Requests, metric.LeastRounds*n)
	l.Cut()
	l.Requests += (l.Rounds - l.Requests%l.Rounds) % l.Rounds // whole batches, so that more may follow
	return l
}

// speedup returns a level of a capacity search over replays of recorded traffic. It replays the
// traffic once, at n times SpeedupStep.
func (c *Capacity) speedup(n int) Level {
	t, times := c.Load.Open.Trace, float64(n)*SpeedupStep
	l := Level{Name: "probe " + TraceName(times), Speedup: times, Rate: t.Rate() * times, Requests: t.Due, Range: c.Range}
	l.Part()
	return l
}

// Step returns the load of level 1 of a capacity search whose levels are steps of a rate or of a
// speedup. It is 0 if a level is a whole number of requests or users.
func (c *Capacity) Step() float64 {
	switch c.Over {
	case metric.OpenLoop:
		return RateStep
	case metric.Speedup:
		return SpeedupStep
	}
	return 0
}

// Its rate is n times RateStep.
func (c *Capacity) rate(n int) Level {
	l := Level{Rate: float64(n) * RateStep, Requests: c.Requests, Range: c.Range}
	l.Name = "probe " + RateName(l.Rate)
	l.Part()
	return l
}

// Amount formats a load of the search for readers, such as "39" or "8.1 req/s".
func (c *Capacity) Amount(n int) string {
	switch c.Over {
	case metric.OpenLoop:
		return RateName(float64(n) * RateStep)
	case metric.Speedup:
		return strconv.FormatFloat(float64(n)*SpeedupStep, 'g', 6, 64)
	}
	return strconv.Itoa(n)
}

// PlainDuration writes a duration as plans do: 24h, not 24h0m0s.
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

// Hopeless is the number of failed requests after which a level is given up. It is for n requests
// in flight, and applies only while no request has completed.
func Hopeless(n int) int { return max(20, 3*n) }

// Hanging is how long a run lasts if no request is completed. At each level, all requests in flight
// then wait for their time-out, and others follow until the run gives up the level. Searches and
// comparisons do not count.
func (p *Plan) Hanging() time.Duration {
	var sum time.Duration
	for _, w := range p.Loaded() {
		for l, level := range w.Levels() {
			requests := Hopeless(level.N)
			if level.Duration == 0 {
				requests = min(requests, level.Requests)
			}
			waves := 1 // waves without a token after which a level at a rate is given up
			if !l.Kind.Windowed() {
				waves = (requests + level.N - 1) / level.N
			}
			sum += time.Duration(waves*len(w.Servers)) * l.Timeout
		}
	}
	return sum
}

// Settling is the time from the first user of a load to the beginning of its window. It consists of
// the ramp-up, in which the users arrive, and the warm-up. By default the warm-up takes the
// thinking time of a mean conversation. Then the window begins with conversations of all ages.
func (w *Workload) Settling(l *Load) time.Duration {
	p := l.People
	if p.Warmup != OpenWarmupAuto {
		return p.RampUp + p.Warmup
	}
	return p.RampUp + time.Duration(max(w.Prompt.Turns.Mean, 1)*float64(l.Think.Mean))
}

// Part divides the window of a level into rounds. A round counts as one request until the real
// number is known.
func (p *People) Part(l *Level) {
	l.Duration, l.Rounds, l.Requests = p.Window, windowRounds, windowRounds
}

// mostRows is the largest number of rows of a data set that are cut to a length. Cutting a row
// takes a few requests to the server's tokenizer before the load begins.
const mostRows = 4096

// Rows is the number of different rows of a data set that are cut and sent. It is about twice the
// number of the plan's requests, because levels may be warmed up and extended.
func (w *Workload) Rows() int {
	if w.Root() != w || w.Capacity != nil {
		return mostRows
	}
	sum := 0
	for _, level := range w.Levels() {
		if level.Duration > 0 {
			return mostRows
		}
		sum += level.Requests + 4*level.N*max(level.Rounds, 1)
	}
	return min(max(2*sum, 64), mostRows)
}
