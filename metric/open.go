package metric

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Passage is one continuous window of an open loop. It has one or more rounds, without a pause
// between them.
type Passage struct {
	Rounds   []*Round
	From, To time.Duration
	Arrivals int // measured requests that were due in the window
	// Begin and End are the numbers of requests in flight at the window's beginning and end. A
	// request is in flight from the time at which it is due until it ends, even if it was sent late
	// or never.
	Begin, End int
	// Lost is the number of requests that timed out in the window. They are no longer in flight,
	// but the server has not served them.
	Lost int
	// Mean is the mean number of requests in flight in the window, and Max is the largest.
	Mean float64
	Max  int
	// Spread is the standard deviation of the number of requests in flight or lost, without its
	// trend. The trend is the straight line that fits this number best over time.
	Spread float64
}

// Passages returns the windows of an open loop, in order. It returns nil for a stage of an open
// loop, and for a level of another kind.
func (l *Level) Passages() []Passage {
	if l.Kind != OpenLoop || l.Stage != nil {
		return nil
	}
	var out []Passage
	for i, r := range l.Rounds {
		if i == 0 || r.WindowStart != l.Rounds[i-1].WindowEnd || r.Leg != nil {
			out = append(out, Passage{From: r.WindowStart})
		}
		p := &out[len(out)-1]
		p.Rounds, p.To, p.Arrivals = append(p.Rounds, r), r.WindowEnd, p.Arrivals+len(r.MeasuredSamples())
	}
	for i := range out {
		out[i].fill()
	}
	return out
}

// MostInFlight returns the largest number of requests of a round that are in flight at the same
// time. Requests of other rounds, and of the stages before and after, do not count.
func (l *Level) MostInFlight() int {
	most := 0
	for _, r := range l.Rounds {
		now := 0
		for _, c := range (&Passage{Rounds: []*Round{r}}).changes() {
			now += c.by
			most = max(most, now)
		}
	}
	return most
}

// marks is how often the requests in flight are counted in a window, to compute Spread.
const marks = 400

// fill computes the passage's numbers of requests in flight from the requests of its rounds.
func (p *Passage) fill() {
	changes := p.changes()
	length := p.To - p.From
	now, i, area := 0, 0, 0.0
	for ; i < len(changes) && changes[i].at <= p.From; i++ {
		now += changes[i].by
	}
	p.Begin, p.Max = now, now
	last := p.From
	// A request that ends exactly at the window's end counts as in flight there.
	for ; i < len(changes) && (changes[i].at < p.To || changes[i].at == p.To && changes[i].by > 0); i++ {
		area += float64(now) * (changes[i].at - last).Seconds()
		last, now = changes[i].at, now+changes[i].by
		p.Max = max(p.Max, now)
		if changes[i].lost {
			p.Lost++
		}
	}
	area += float64(now) * (p.To - last).Seconds()
	p.End = now
	if length <= 0 {
		return
	}
	p.Mean = area / length.Seconds()
	counts := make([]float64, marks)
	now, i = 0, 0
	for k := range counts {
		to := p.From + time.Duration((float64(k)+0.5)/marks*float64(length))
		for ; i < len(changes) && changes[i].at <= to; i++ {
			if !changes[i].lost || changes[i].at <= p.From {
				now += changes[i].by
			}
		}
		counts[k] = float64(now)
	}
	p.Spread = aboutLine(counts)
}

// step is a change in the number of requests in flight.
type step struct {
	at   time.Duration
	by   int
	lost bool // whether the change is the end of a request that timed out
}

// changes returns every change in the number of requests in flight in the rounds of the window, in
// order of time.
func (p *Passage) changes() []step {
	var out []step
	for _, r := range p.Rounds {
		for _, s := range r.All() {
			out = append(out, step{s.Scheduled, 1, false}, step{s.End, -1, s.Failure != nil && s.Failure.Kind == FailTimeout})
		}
	}
	slices.SortFunc(out, func(a, b step) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.by, a.by)) })
	return out
}

// aboutLine returns the standard deviation of the values from the straight line that fits them
// best. The values are equally spaced in time.
func aboutLine(values []float64) float64 {
	n := float64(len(values))
	if n < 3 {
		return 0
	}
	mean, middle := 0.0, (n-1)/2
	for _, v := range values {
		mean += v / n
	}
	sxx, sxy := 0.0, 0.0
	for i, v := range values {
		x := float64(i) - middle
		sxx, sxy = sxx+x*x, sxy+x*(v-mean)
	}
	sum := 0.0
	for i, v := range values {
		d := v - mean - sxy/sxx*(float64(i)-middle)
		sum += d * d
	}
	return math.Sqrt(sum / (n - 2))
}

// Load returns the load of the level: the number of requests in flight or sent at once, or the rate
// of an open loop.
func (l *Level) Load() float64 {
	if l.Kind == OpenLoop {
		return l.Rate
	}
	return float64(l.N)
}

// Growth describes how the backlog of an open loop grows over its windows.
type Growth struct {
	Share    float64 // growth of the backlog in requests per arrival; negative if it shrank
	Error    float64 // standard error of Share
	Arrivals int
	End      int // largest number of requests in flight or lost at the end of a window
	Lost     int // number of requests that timed out, in all windows
}

// Growth returns the growth of the backlog over all windows of the level. The backlog also holds
// the requests that timed out. ok is false if the level has no window.
//
// Share is the sum of the windows' growths N_end − N_begin, divided by the number of arrivals.
// Error assumes that the backlog varies about a straight line with the standard deviation s. N_end
// − N_begin then has the standard deviation √2·s.
func (l *Level) Growth() (g Growth, ok bool) {
	grown, variance := 0.0, 0.0
	for _, p := range l.Passages() {
		grown += float64(p.End + p.Lost - p.Begin)
		variance += 2 * p.Spread * p.Spread
		g.Arrivals, g.Lost = g.Arrivals+p.Arrivals, g.Lost+p.Lost
		g.End = max(g.End, p.End+p.Lost)
	}
	if g.Arrivals == 0 {
		return Growth{}, false
	}
	n := float64(g.Arrivals)
	g.Share, g.Error = grown/n, math.Sqrt(variance)/n
	return g, true
}

// SaturationName is the name of the level that measures the largest rate that a server reaches on a
// workload. It is also the Purpose of that level's Probe.
const SaturationName = "saturation"

// Steady reports whether the level offers one constant rate, which the server either sustains or
// not. Stages of an open loop and replays offer changing rates.
func (l *Level) Steady() bool { return l.Kind == OpenLoop && l.Stage == nil && l.Speedup == 0 }

// Saturates reports whether the level is a saturation: the one that measures the largest rate, or
// one that follows a level.
func (l *Level) Saturates() bool { return l.Probe != nil && l.Probe.Purpose == SaturationName }

// saturatedBlocks is the number of equal parts of a saturation's window. Each part gives one value
// of the rate.
const saturatedBlocks = 10

// RequestsPerBlock returns the requests per second in each part of the window. Completed requests
// come in waves, so it does not count them: it divides the tokens streamed in the part by the
// parameter answer, the number of tokens in an answer. It returns nil if a part streamed nothing.
func (l *Level) RequestsPerBlock(answer float64) []float64 {
	var out []float64
	for _, r := range l.Rounds {
		for _, st := range r.stretches(Steady, saturatedBlocks) {
			tokens, perChunk := 0.0, r.TokensPerChunk()
			for _, s := range r.All() {
				tokens += s.made(st.From, st.To, perChunk)
			}
			if tokens == 0 || answer <= 0 || st.Seconds() <= 0 {
				return nil
			}
			out = append(out, tokens/answer/st.Seconds())
		}
	}
	return out
}

// AnsweredAtOnce returns the mean number of requests in the level's rounds that were being
// answered: they had a token and had not ended. It is 0 if the rounds have no length.
func (l *Level) AnsweredAtOnce() float64 {
	var answering, length time.Duration
	for _, r := range l.Rounds {
		length += r.WindowEnd - r.WindowStart
		for _, s := range r.All() {
			if s.First > 0 {
				answering += max(0, min(s.End, r.WindowEnd)-max(s.First, r.WindowStart))
			}
		}
	}
	if length <= 0 {
		return 0
	}
	return float64(answering) / float64(length)
}

// OfRates reports whether the metric exists only for an open loop.
func OfRates(name string) bool {
	return name == "offered_rate" || name == "in_flight" || name == "backlog_growth" || name == "recovery"
}

// ofArrivals returns the value of a metric that only an open loop has.
func (l *Level) ofArrivals(name string) Value {
	if name == "recovery" {
		return None("no requirement defines when requests are good")
	}
	passages := l.Passages()
	if len(passages) == 0 {
		return None("only a rate has it")
	}
	sum, seconds := 0.0, 0.0
	for _, p := range passages {
		length := (p.To - p.From).Seconds()
		seconds += length
		switch name {
		case "offered_rate":
			sum += float64(p.Arrivals)
		case "in_flight":
			sum += p.Mean * length
		}
	}
	if name == "backlog_growth" {
		g, ok := l.Growth()
		if !ok {
			return None("no request was due")
		}
		return Some(g.Share)
	}
	if seconds <= 0 {
		return None("the window has no length")
	}
	return Some(sum / seconds)
}

// ofLevels reports whether the metric exists only for a whole level, and not for a stage of it.
// Such a metric depends on all requests in flight. During a stage, requests of the stages before
// and after it are in flight too.
func ofLevels(name string) bool {
	switch name {
	case "throughput", "input_throughput", "request_rate", "goodput", "in_flight", "backlog_growth", "imbalance":
		return true
	}
	return false
}

// OfStages reports whether the metric of this name exists for a stage of an open loop.
func OfStages(name string) bool { return !ofLevels(name) && name != "offered_rate" }

// recoveryRun is the number of consecutive good requests that show that a server has recovered.
const recoveryRun = 10

// Recovery returns the time from the beginning of a stage until requests are good again. That is
// when the first of ten good requests in a row is due. At the end of the round, fewer than ten are
// enough.
func (r *Round) Recovery(good func(*Sample) bool) Value {
	measured := r.MeasuredSamples()
	slices.SortFunc(measured, func(a, b *Sample) int { return cmp.Compare(a.Scheduled, b.Scheduled) })
	run := 0
	for i, s := range measured {
		if run++; !s.Completed() || !good(s) {
			run = 0
		}
		if run == recoveryRun || run > 0 && i == len(measured)-1 {
			return Some((measured[i-run+1].Scheduled - r.WindowStart).Seconds())
		}
	}
	return None("requests were not good again")
}

// MostLag limits the p99 of the lag: how late the requests of an open loop are sent. The limit is
// higher if a tenth of the median TTFT, or of the mean gap between requests, is higher. Beyond the
// limit, the load was not the declared load.
const (
	MostLag  = 20 * time.Millisecond
	lagShare = 0.10
)

// Late says in words that the requests of an open loop were sent too late; "" if not. It judges all
// rounds together, so one late request in a short round does not count.
func (l *Level) Late() string { return lateness(l.Rounds...) }

// lateness implements Late. The rounds may be parts of one window, or each have a window.
func lateness(rounds ...*Round) string {
	samples, most := lags(rounds)
	lag := Of(MustLookup("lag"), samples)
	lag.Worst = 0 // an unsent request is the server's fault, and is not late
	p99, ok := lag.Percentile(99)
	if ok && p99 > most {
		return fmt.Sprintf("the requests were sent late: the p99 of the lag is %s (allowed %s)", Format(Seconds, p99), Format(Seconds, most))
	}
	return ""
}

// lags returns the measured requests of the rounds and the limit on their lag, in seconds. See
// MostLag.
func lags(rounds []*Round) (samples []*Sample, most float64) {
	// gaps counts the gaps between due times within rounds, and span is their total length.
	gaps, span := 0, time.Duration(0)
	for _, r := range rounds {
		measured := r.MeasuredSamples()
		samples = append(samples, measured...)
		if n := len(measured); n > 1 {
			due := func(a, b *Sample) int { return cmp.Compare(a.Scheduled, b.Scheduled) }
			gaps, span = gaps+n-1, span+slices.MaxFunc(measured, due).Scheduled-slices.MinFunc(measured, due).Scheduled
		}
	}
	return samples, max(MostLag.Seconds(), lagShare*max(medianTTFT(samples), span.Seconds()/float64(max(gaps, 1))))
}

// LagLimit returns the largest lag of a request of the level that was sent on time, in seconds.
func (l *Level) LagLimit() float64 {
	_, most := lags(l.Rounds)
	return most
}

// Largest returns the largest rate that the server can sustain, in requests per second: the mean of
// the rates that it reached at saturation. It is 0 if unknown, and if the level is no open loop.
func (l *Level) Largest() float64 {
	sum := 0.0
	for _, x := range l.Saturation {
		sum += x
	}
	if l.Kind != OpenLoop || !(sum > 0) || math.IsInf(sum, 0) {
		return 0
	}
	return sum / float64(len(l.Saturation))
}

// Overloaded reports whether the server was slower than the rate all the time of the saturation before.
func (l *Level) Overloaded() bool { return len(l.Saturation) > 0 && slices.Max(l.Saturation) < l.Rate }
