package metric

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Window names the time over which level-wide rates are measured. Latencies always cover every
// measured request.
type Window string

const (
	// Steady is the time in which every slot was busy, without ramp and drain. All requests count
	// in it, also fillers. "" means Steady too.
	Steady Window = "steady"
	// All is the time from the start of the first measured request to the end of the last. Only
	// measured requests count in it, as in published reports.
	All Window = "all"
)

// Stretch is a part of the window of one round: the time after From, up to and including To.
type Stretch struct {
	Round    *Round
	From, To time.Duration
	Measured bool // only measured requests count
	// Among lists the rounds whose requests count; nil means only the field Round. It is needed in
	// a window of several rounds, where a request may begin in one round and end in the next.
	Among []*Round
	// Spread says that the tokens of a chunk count evenly over the time since the chunk before.
	// Otherwise whole steps of the server would count on one side of the stretch's edge.
	Spread bool
}

func (s Stretch) among() []*Round {
	if s.Among == nil {
		return []*Round{s.Round}
	}
	return s.Among
}

// Seconds returns the length of the stretch in seconds.
func (s Stretch) Seconds() float64 { return (s.To - s.From).Seconds() }

// stretches divides the window of the round into equal parts. It returns nil if the round has no
// window.
func (r *Round) stretches(w Window, parts int) []Stretch {
	start, end := r.WindowStart, r.WindowEnd
	if w == All {
		start, end = r.Start, r.End
	}
	length := end - start
	if length <= 0 || parts < 1 {
		return nil
	}
	out := make([]Stretch, parts)
	for i := range out {
		out[i] = Stretch{Round: r, From: start + length*time.Duration(i)/time.Duration(parts),
			To: start + length*time.Duration(i+1)/time.Duration(parts), Measured: w == All}
	}
	return out
}

// Windows returns the windows of all rounds. It skips a round without a window. Of batches it
// returns equally long parts of the whole window.
func (l *Level) Windows(w Window) []Stretch {
	if l.Batches {
		return l.batchWindows(w)
	}
	var out []Stretch
	for _, r := range l.Rounds {
		out = append(out, l.Stretches(r, w, 1)...)
	}
	return out
}

// stretches divides a round of the level into equal parts. In an open loop they are the same for
// both values of w, and cover the time in which measured requests were due.
func (l *Level) Stretches(r *Round, w Window, parts int) []Stretch {
	if !l.Windowed() {
		return r.stretches(w, parts)
	}
	out := r.stretches(Steady, parts)
	for i := range out {
		out[i].Among = l.Rounds
	}
	return out
}

// rampStep is the tolerance of OnRamp, because slots never start at exactly the same time.
const rampStep = 10 * time.Millisecond

// OnRamp returns how many measured requests of a closed loop were sent before all slots had
// started. It is 0 if the slots started during the warm-up.
func (l *Level) OnRamp() int {
	if l.Kind != ClosedLoop {
		return 0
	}
	n := 0
	for _, r := range l.Rounds {
		for _, s := range r.All() {
			if s.Phase == Measured && s.Sent != 0 && s.Sent+rampStep < r.WindowStart {
				n++
			}
		}
	}
	return n
}

// RateOver returns a rate of the whole level over stretches of time: the number of events in them,
// divided by their total length. The names and their events are:
//
//	throughput        output tokens, at the times at which their chunks came
//	                  (FirstTokens with the first chunk, the rest evenly;
//	                  see Stretch.Spread)
//	input_throughput  input tokens of requests, when the first output token came
//	request_rate      completed requests
//	goodput           completed requests for which good is true; no value if good is nil
//
// All requests count, because all occupy the server, even fillers and requests from before the
// window. In a stretch with Measured set only measured requests count. The output of a failed
// request does not count.
func RateOver(name string, stretches []Stretch, good func(*Sample) bool) Value {
	var amount, seconds float64
	for _, st := range stretches {
		seconds += st.Seconds()
		for _, r := range st.among() {
			perChunk := r.TokensPerChunk()
			for _, s := range r.All() {
				if st.Measured && s.Phase != Measured {
					continue
				}
				if name == "goodput" && good == nil {
					return None("the workload does not say which requests are good (it has no `good` block)")
				}
				v, ok := st.adds(name, s, perChunk, good)
				if !ok {
					return None(name + " is no rate")
				}
				amount += v
			}
		}
	}
	if seconds <= 0 {
		return None("there was no time in which every slot was busy")
	}
	if amount == 0 && name != "goodput" {
		if name == "request_rate" {
			return None("no request completed in the window")
		}
		return None("no token came in the window")
	}
	return Some(amount / seconds)
}

// adds returns what the request s contributes to the rate with the given name, in this stretch of
// time. ok is false if there is no such rate.
func (st Stretch) adds(name string, s *Sample, perChunk float64, good func(*Sample) bool) (v float64, ok bool) {
	in := func(t time.Duration) bool { return t > st.From && t <= st.To }
	switch name {
	case "throughput":
		if st.Spread {
			return s.made(st.From, st.To, perChunk), true
		}
		return s.emitted(st.From, st.To, perChunk), true
	case "input_throughput":
		if s.First != 0 && in(s.First) && s.counts() && s.Usage != nil {
			v = float64(s.Usage.Input)
		}
	case "request_rate", "goodput":
		if s.Completed() && in(s.End) && (name == "request_rate" || good(s)) {
			v = 1
		}
	default:
		return 0, false
	}
	return v, true
}

// counts reports whether the output of the request counts in rates: if the request completed, or if
// the run itself cancelled it.
func (s *Sample) counts() bool { return s.Completed() || s.Canceled() }

// TokensPerChunk returns the mean number of tokens in a chunk, over the completed requests of the
// round; 1 if unknown. It is needed for requests that ended before the server reported usage.
func (r *Round) TokensPerChunk() float64 {
	tokens, chunks := 0, 0
	for _, s := range r.All() {
		if s.Completed() && s.Usage != nil && s.Chunks > 0 {
			tokens, chunks = tokens+s.Usage.Output, chunks+s.Chunks
		}
	}
	if chunks == 0 || tokens <= 0 {
		return 1
	}
	return float64(tokens) / float64(chunks)
}

// emitted returns how many output tokens of the request were in chunks that arrived in (from, to].
func (s *Sample) emitted(from, to time.Duration, perChunk float64) float64 {
	return s.output(from, to, perChunk, func(_, at time.Duration) float64 {
		if at > from && at <= to {
			return 1
		}
		return 0
	})
}

// made returns how many output tokens of the request the server made in (from, to]. It spreads the
// tokens of a chunk evenly over the time since the chunk before, because concurrent requests get their
// chunks at the same times.
func (s *Sample) made(from, to time.Duration, perChunk float64) float64 {
	return s.output(from, to, perChunk, func(before, at time.Duration) float64 {
		if before >= from && at <= to && at > before { // as most of them
			return 1
		} else if at <= from || before >= to || at <= before {
			return 0
		}
		return max(0, min(at, to)-max(before, from)).Seconds() / (at - before).Seconds()
	})
}

// output returns how many output tokens the request got in (from, to]. The callback within gets the
// arrival times of two successive chunks, and returns the share of the second chunk that counts.
func (s *Sample) output(from, to time.Duration, perChunk float64, within func(before, at time.Duration) float64) float64 {
	if s.First == 0 || s.Chunks == 0 || !s.counts() || s.First > to || s.Last <= from {
		return 0
	}
	total := perChunk * float64(s.Chunks)
	if s.Usage != nil {
		total = float64(s.Usage.Output)
	}
	first := total
	if s.Chunks > 1 {
		first = min(float64(max(s.FirstTokens, 1)), total)
	}
	sum := 0.0
	if s.First > from {
		sum = first
	}
	if s.Chunks == 1 {
		return sum
	}
	rest := total - first
	if s.First > from && s.Last <= to {
		return total
	}
	if len(s.Gaps) != s.Chunks-1 {
		// The recording lacks the gaps between chunks, so spread the tokens evenly from First to
		// Last.
		whole := (s.Last - s.First).Seconds()
		if whole <= 0 {
			return sum
		}
		return sum + rest*(min(to, s.Last)-max(from, s.First)).Seconds()/whole
	}
	at, inside := s.First, 0.0
	for _, g := range s.Gaps {
		before := at
		at += time.Duration(g) * time.Microsecond
		inside += within(min(before, s.Last), min(at, s.Last))
	}
	return sum + rest*inside/float64(len(s.Gaps))
}

// Completed returns the number of completed measured requests of the level.
func (l *Level) Completed() int { return l.count((*Sample).Completed) }

func (l *Level) count(keep func(*Sample) bool) int {
	n := 0
	for _, r := range l.Rounds {
		for _, s := range r.All() {
			if s.Phase == Measured && keep(s) {
				n++
			}
		}
	}
	return n
}

// answerable returns the number of measured requests that were due, without requests that the run
// itself cancelled. If a round was cut short, only its completed and failed requests count.
func (l *Level) answerable() int {
	n := 0
	for _, r := range l.Rounds {
		if r.Complete {
			n += r.Due
			continue
		}
		for _, s := range r.All() {
			if s.Phase == Measured && !s.Canceled() {
				n++
			}
		}
	}
	return n
}

// Success returns the share of completed requests among the requests that were due. Requests that
// the run itself cancelled do not count.
func (l *Level) Success() Value {
	due := l.answerable()
	if due == 0 {
		return None("no request was due")
	}
	return Some(float64(l.Completed()) / float64(due))
}

// GoodputShare returns the share of good requests among the requests that were due. A good request
// is one that completed and for which the function good returns true. Requests that the run
// cancelled do not count, as in Success.
func (l *Level) GoodputShare(good func(*Sample) bool) Value {
	if good == nil {
		return None("the workload does not say which requests are good (it has no `good` block)")
	}
	due := l.answerable()
	if due == 0 {
		return None("no request was due")
	}
	n := l.count(func(s *Sample) bool { return s.Completed() && good(s) })
	return Some(float64(n) / float64(due))
}

// scalingEfficiency returns the throughput at concurrency N, divided by N times the throughput at
// concurrency 1. The parameter one is the level at concurrency 1 of the same workload and server;
// nil if the plan has none.
func (l *Level) scalingEfficiency(w Window, one *Level) Value {
	if one == nil || one.Skipped != "" || one.Kind != ClosedLoop || one.N != 1 {
		return None("the level at concurrency 1 was not run")
	}
	if l.Kind != ClosedLoop {
		return None("it has no concurrency")
	}
	many, single := RateOver("throughput", l.Windows(w), nil), RateOver("throughput", one.Windows(w), nil)
	switch {
	case !many.OK:
		return many
	case !single.OK:
		return None("concurrency 1: " + single.Why)
	}
	return Some(many.V / (float64(l.N) * single.V))
}

// FirstTokenSpeed returns the input tokens divided by ttft, both as sums over completed requests.
// It has a value only at concurrency 1: otherwise ttft includes the wait for other requests.
func (l *Level) FirstTokenSpeed(samples []*Sample) Value {
	if l.Kind != ClosedLoop || l.N != 1 {
		return None("the server reports no prefill time, and ttft shows the prefill time only at concurrency 1")
	}
	tokens, seconds := 0.0, 0.0
	for _, s := range samples {
		if ttft, ok := s.Value("ttft"); ok && s.Completed() && s.Usage != nil && ttft > 0 {
			tokens, seconds = tokens+float64(s.Usage.Input), seconds+ttft
		}
	}
	if seconds == 0 || tokens == 0 {
		return None("no completed request has token counts (usage) from the server")
	}
	return Some(tokens / seconds)
}

// CacheHitRate returns the share of prompt tokens that came from the cache. It covers the completed
// samples whose usage reports cached tokens.
func CacheHitRate(samples []*Sample) Value {
	cached, input := 0, 0
	for _, s := range samples {
		if s.Completed() && s.Usage != nil && s.Usage.Cached >= 0 && s.Usage.Input > 0 {
			cached, input = cached+s.Usage.Cached, input+s.Usage.Input
		}
	}
	if input == 0 {
		return None("the server does not report cached tokens")
	}
	return Some(float64(cached) / float64(input))
}

// synchrony measures how far the slots of the round send their requests at the same times. It is 0
// if their starts are spread evenly or at random, and 1 if all slots start together.
//
// T is the mean time between two starts of the same slot. A start at time t is taken as the angle
// 2π·t/T. R_k is the length of the mean vector of the k-th starts of all N slots, and R² is the
// mean of R_k² over k. Random angles give R² = 1/N on average, so ρ² = (N·R² − 1)/(N − 1) is
// unbiased (Kutil, Statistics 46, 2012). The result is √ρ², or 0 if ρ² is negative.
func (r *Round) synchrony(slots int) Value {
	if slots < 2 {
		return None("fewer than two slots")
	}
	samples := r.All()
	if slots > len(samples) {
		return None("the slots sent too few requests to show whether they start together")
	}
	starts := make([][]time.Duration, slots)
	for i := range starts {
		starts[i] = make([]time.Duration, 0, len(samples)/slots+1)
	}
	for _, s := range samples {
		if s.Phase == Measured && s.Sent != 0 && s.Slot >= 0 && s.Slot < slots {
			starts[s.Slot] = append(starts[s.Slot], s.Sent)
		}
	}
	var cycles time.Duration
	n, waves := 0, math.MaxInt
	for _, st := range starts {
		slices.Sort(st)
		waves = min(waves, len(st))
		if len(st) > 1 {
			cycles += st[len(st)-1] - st[0]
			n += len(st) - 1
		}
	}
	if waves == 0 || n == 0 || cycles <= 0 {
		return None("the slots sent too few requests to show whether they start together")
	}
	cycle := float64(cycles) / float64(n)
	squares := 0.0
	for k := range waves {
		x, y := 0.0, 0.0
		for _, st := range starts {
			sin, cos := math.Sincos(2 * math.Pi * math.Mod(float64(st[k]-starts[0][k])/cycle, 1))
			x, y = x+cos, y+sin
		}
		squares += (x*x + y*y) / float64(slots*slots)
	}
	squares /= float64(waves)
	rho := (float64(slots)*squares - 1) / float64(slots-1)
	return Some(math.Sqrt(min(max(rho, 0), 1)))
}

// synchrony returns the mean synchrony of the level's rounds.
func (l *Level) Synchrony() Value {
	if l.Kind != ClosedLoop || !l.Alone() {
		return None("it has no slots")
	}
	sum, n, why := 0.0, 0, "no round was run"
	for _, v := range l.Synchronies() {
		if v.OK {
			sum, n = sum+v.V, n+1
		} else {
			why = v.Why
		}
	}
	if n == 0 {
		return None(why)
	}
	return Some(sum / float64(n))
}

// Value returns the value of a metric that describes a whole level. Rates are means over the window
// w. success is a share, and goodput is a rate per second. For metrics of prices use the method
// Cost.
//
// The function good reports whether a request is good; goodput has no value if it is nil. The level
// one is the level at concurrency 1; scaling_efficiency has no value if it is nil.
func (l *Level) Value(name string, w Window, good func(*Sample) bool, one *Level) Value {
	if l.Skipped != "" {
		return None("the level was not run: " + l.Skipped)
	}
	if def, _ := Lookup(name); !l.Alone() && !OfParts(def) {
		return None("only the whole mix has this metric, because its parts share the server and the slots")
	}
	if l.Stage != nil && !OfStages(name) {
		return None("a stage does not have this metric, because requests of other stages are in flight too")
	}
	switch name {
	case "success":
		return l.Success()
	case "throughput", "input_throughput", "request_rate", "goodput":
		if w == All && len(l.Windows(w)) == 0 {
			return None("no measured request ended")
		}
		return RateOver(name, l.Windows(w), good)
	case "scaling_efficiency":
		return l.scalingEfficiency(w, one)
	case "prefill_speed":
		v, _ := l.PrefillSpeed(l.MeasuredSamples())
		return v
	case "cache_hit_rate":
		v, _ := l.CacheHitRate(l.MeasuredSamples())
		return v
	case "preemptions":
		return l.Added(Preempted)
	case "accept_rate", "accept_length":
		return l.accepted(name)
	case "imbalance":
		return l.imbalance()
	case "energy_per_token":
		return l.energyPerToken()
	case "synchrony":
		return l.Synchrony()
	}
	if OfRates(name) {
		return l.ofArrivals(name)
	}
	def, _ := Lookup(name)
	if def.OfAnswers {
		return l.AnswerShare(def)
	}
	return None(cmp.Or(def.NoValue, "this is not a metric of a whole level"))
}
