package audit

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// figures holds the results of one level by the definitions in docs/metrics.md. A figure
// that cannot be computed is missing.
type figures map[string]float64

// spread holds the values of one metric in ascending order. The field worst is the number of
// requests without a value. They count as worse than every value.
type spread struct {
	values  []float64
	worst   int
	leftOut int // number of answers that came in a single chunk; streaming metrics leave them out
	higher  bool
}

// percentile is the nearest-rank percentile over all requests. Missing values rank worst.
func (d spread) percentile(p float64) float64 {
	n := len(d.values) + d.worst
	rank := min(max(int(math.Ceil(p/100*float64(n)-1e-9)), 1), n)
	if d.higher { // missing values have the lowest ranks
		if rank -= d.worst; rank <= 0 {
			return 0
		}
	}
	if rank > len(d.values) {
		return math.Inf(1)
	}
	return d.values[rank-1]
}

func (d spread) mean() float64 {
	sum := 0.0
	for _, v := range d.values {
		sum += v
	}
	return sum / float64(len(d.values))
}

// requestMetric defines a metric that has one value for each completed request.
type requestMetric struct {
	name    string
	higher  bool
	streams bool                          // leave out answers that came in a single chunk
	of      func(*sample) (float64, bool) // returns the value of a request; false if it has none
}

func seconds(from, to int64) float64 { return float64(to-from) / 1e9 }

// afterFirst returns what came after the first chunk of an answer: the number of tokens, and the
// time from the first chunk to the last, in nanoseconds.
func afterFirst(s *sample) (tokens int, took int64) {
	if s.Failure != nil || s.Usage == nil || s.First == 0 {
		return 0, 0
	}
	return max(s.Usage.Output-max(s.FirstTokens, 1), 0), max(s.Last-s.First, 0)
}

func perToken(s *sample) (float64, bool) {
	tokens, took := afterFirst(s)
	return float64(took) / 1e9 / float64(max(tokens, 1)), tokens > 0 && took > 0
}

func oneOver(v float64, ok bool) (float64, bool) { return 1 / v, ok }

var requestMetrics = []requestMetric{
	{"ttft", false, false, func(s *sample) (float64, bool) { return seconds(s.begin(), s.First), s.First != 0 }},
	{"ttfa", false, false, func(s *sample) (float64, bool) { return seconds(s.begin(), s.FirstAnswer), s.FirstAnswer != 0 }},
	{"tpot", false, true, perToken},
	{"speed", true, true, func(s *sample) (float64, bool) { return oneOver(perToken(s)) }},
	{"request_speed", true, true, func(s *sample) (float64, bool) { return oneOver(perToken(s)) }},
	{"e2e", false, false, func(s *sample) (float64, bool) { return seconds(s.begin(), s.Last), s.Last != 0 }},
	{"e2e_speed", true, false, func(s *sample) (float64, bool) {
		if s.Last <= s.begin() || s.Usage == nil {
			return 0, false
		}
		return float64(s.Usage.Output) / seconds(s.begin(), s.Last), true
	}},
	{"tokens_per_chunk", false, false, func(s *sample) (float64, bool) {
		if s.Usage == nil || s.Chunks == 0 {
			return 0, false
		}
		return float64(s.Usage.Output-s.Usage.Hidden) / float64(s.Chunks), true
	}},
	{"lag", false, false, func(s *sample) (float64, bool) { return seconds(s.Scheduled, s.Sent), s.Sent != 0 }},
}

func (m requestMetric) spread(requests []*sample) spread {
	d := spread{higher: m.higher}
	for _, s := range requests {
		v, ok := m.of(s)
		ok = ok && (s.Embeddings == 0 || m.name == "e2e" || m.name == "lag") // there is no text that could stream
		tokens, took := afterFirst(s)
		switch {
		case s.canceled():
		case ok && s.completed() && v >= 0:
			d.values = append(d.values, v)
		case m.streams && s.completed() && s.Usage != nil && s.First != 0 && (tokens == 0 || took == 0):
			d.leftOut++
		default:
			d.worst++
		}
	}
	slices.Sort(d.values)
	return d
}

// gaps collects the gaps between chunks of all requests. A failed request counts as one gap that is
// worse than all others.
func gaps(requests []*sample) spread {
	var d spread
	for _, s := range requests {
		if s.canceled() {
			continue
		}
		for _, g := range s.Gaps {
			d.values = append(d.values, float64(g)/1e6)
		}
		switch {
		case !s.completed(), len(s.Gaps) == 0 && s.Chunks > 1:
			d.worst++
		case len(s.Gaps) == 0:
			d.leftOut++
		}
	}
	slices.Sort(d.values)
	return d
}

var percentiles = []float64{1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9}

// put adds the count, the mean, the percentiles and the extremes of a metric, by name.
func (f figures) put(name string, d spread) {
	f[name+" n"], f[name+" worst"], f[name+" left_out"] = float64(len(d.values)+d.worst), float64(d.worst), float64(d.leftOut)
	if len(d.values) == 0 {
		return
	}
	f[name+" mean"] = d.mean()
	f[name+" min"], f[name+" max"] = d.values[0], d.values[len(d.values)-1]
	if d.worst > 0 && d.higher {
		f[name+" min"] = 0
	} else if d.worst > 0 {
		f[name+" max"] = math.Inf(1)
	}
	for _, p := range percentiles {
		f[fmt.Sprintf("%s p%v", name, p)] = d.percentile(p)
	}
}

// derive computes the figures of a level. If all is true, rates such as the throughput are taken
// from the first measured request to the end of the last request. Otherwise they are taken over the
// time in which all slots were busy.
func (l *level) derive(all bool) figures {
	f := figures{}
	rounds := l.inOrder()
	var requests []*sample
	tokens, took := 0, int64(0)
	for _, r := range rounds {
		due := r.Due
		for i := range r.samples {
			s := &r.samples[i]
			if !s.measured() {
				continue
			}
			requests = append(requests, s)
			if !r.ended {
				due++
			}
			f.count(s)
			n, t := afterFirst(s)
			if n > 0 && t > 0 {
				tokens, took = tokens+n, took+t
			}
		}
		f["due"] += float64(due)
	}
	for _, m := range requestMetrics {
		f.put(m.name, m.spread(requests))
	}
	f.put("itl", gaps(requests))
	if _, ok := f["speed mean"]; ok && took > 0 {
		f["speed mean"] = float64(tokens) / (float64(took) / 1e9) // pooled
	}
	if due := l.answerable(rounds); due > 0 {
		f["success"] = f["completed"] / float64(due)
	}
	f.rates(l, rounds, all && !l.windowed())
	cached, prompt := 0, 0
	for _, s := range requests {
		if s.completed() && s.Usage != nil && s.Usage.Cached >= 0 && s.Usage.Input > 0 {
			cached, prompt = cached+s.Usage.Cached, prompt+s.Usage.Input
		}
	}
	if prompt > 0 {
		f["cache_hit_rate"] = float64(cached) / float64(prompt)
	}
	return f
}

func (f figures) count(s *sample) {
	f["reconnects"] += float64(s.Reconnects)
	switch {
	case s.canceled():
		f["canceled"]++
	case !s.completed():
		f["failed"]++
	default:
		f["completed"]++
		if s.Usage != nil {
			f["input_tokens"] += float64(s.Usage.Input)
			f["output_tokens"] += float64(s.Usage.Output)
		}
	}
}

// answerable returns how many requests should have been answered: all requests that were due,
// except for requests that the load generator itself cancelled.
func (l *level) answerable(rounds []*round) int {
	n := 0
	for _, r := range rounds {
		if r.Complete {
			n += r.Due
			continue
		}
		for i := range r.samples {
			if r.samples[i].measured() && !r.samples[i].canceled() {
				n++
			}
		}
	}
	return n
}

// inOrder returns the rounds that count. Batches that had begun when a look ended their level do
// not.
func (l *level) inOrder() []*round {
	var out []*round
	for _, r := range l.rounds {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *round) int { return a.Index - b.Index })
	n := 0
	for i, r := range out {
		if n += r.Due; l.judged > 0 && n >= l.judged {
			return out[:i+1]
		}
	}
	return out
}

// rates computes the rates of a level, such as the throughput. It divides the number of events in
// the rounds' windows by the length of the windows. If rounds follow each other without a pause, an
// event in a window counts even if its request belongs to another round. The windows of neighbouring
// batches are one.
func (f figures) rates(l *level, rounds []*round, all bool) {
	var length, output, input, ended float64
	for i := 0; i < len(rounds); {
		r, last := rounds[i], rounds[i]
		among := []*round{r}
		if l.windowed() {
			among = rounds
		}
		whole := *r
		for i++; l.batched() && i < len(rounds) && rounds[i].WindowStart == last.WindowEnd; i++ {
			last = rounds[i]
			whole.End = max(whole.End, last.End)
		}
		if l.batched() {
			among = slices.Concat(rounds, l.voided)
		}
		from, to := r.WindowStart, last.WindowEnd
		if all {
			from, to = r.Start, whole.End
		}
		if to <= from {
			continue
		}
		length += seconds(from, to)
		for _, r := range among {
			o, i, e := r.came(from, to, all, l.batched())
			output, input, ended = output+o, input+i, ended+e
		}
	}
	f["window_s"] = length
	for name, v := range map[string]float64{"throughput": output, "input_throughput": input, "request_rate": ended} {
		if v > 0 && length > 0 {
			f[name] = v / length
		}
	}
}

// came returns what a round's requests produced in the interval (from, to]: the output tokens, the
// input tokens of prompts whose first token came, and the number of completed requests. If spread is
// true, the tokens of a chunk count evenly over the time since the chunk before.
func (r *round) came(from, to int64, measured, spread bool) (output, input, ended float64) {
	each := r.tokensPerChunk()
	for i := range r.samples {
		s := &r.samples[i]
		if measured && !s.measured() || !s.completed() && !s.canceled() {
			continue
		}
		output += s.tokensWithin(from, to, each, spread)
		if s.First > from && s.First <= to && s.Usage != nil {
			input += float64(s.Usage.Input)
		}
		if s.completed() && s.End > from && s.End <= to {
			ended++
		}
	}
	return output, input, ended
}

// tokensPerChunk returns the mean number of tokens in a chunk, over the completed requests of a
// round. It is needed for answers that have no token count from the server.
func (r *round) tokensPerChunk() float64 {
	tokens, chunks := 0, 0
	for i := range r.samples {
		if s := &r.samples[i]; s.completed() && s.Usage != nil && s.Chunks > 0 {
			tokens, chunks = tokens+s.Usage.Output, chunks+s.Chunks
		}
	}
	if tokens <= 0 || chunks == 0 {
		return 1
	}
	return float64(tokens) / float64(chunks)
}

// tokensWithin returns how many tokens of an answer came in the interval (from, to]. The first
// chunk brings its own tokens. The other tokens are spread evenly over the later chunks.
func (s *sample) tokensWithin(from, to int64, perChunk float64, spread bool) float64 {
	if s.First == 0 || s.Chunks == 0 || s.First > to || s.Last <= from {
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
	came := 0.0
	if s.First > from {
		came = first
	}
	switch {
	case s.Chunks == 1:
		return came
	case s.First > from && s.Last <= to:
		return total
	case len(s.Gaps) != s.Chunks-1: // gaps between chunks were not recorded, so assume an even pace
		if s.Last <= s.First {
			return came
		}
		return came + (total-first)*float64(min(to, s.Last)-max(from, s.First))/float64(s.Last-s.First)
	}
	at, within := s.First, 0.0
	for _, g := range s.Gaps {
		before := at
		at += g * 1000
		t := min(at, s.Last)
		switch {
		case spread && t > before:
			within += max(0, float64(min(t, to)-max(before, from))) / float64(t-before)
		case !spread && t > from && t <= to:
			within++
		}
	}
	return came + (total-first)*within/float64(len(s.Gaps))
}

// sorted lists the keys of a map in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// window returns the window of a round, for which rates such as the throughput are computed. In a
// closed loop, it is the time in which all slots were busy: from the start of the last slot to the
// end of the first slot that stopped. A slot counts as busy during its pauses too. known is false
// if the round was cut short, or if it has no measured requests.
func (l *level) window(r *round) (from, to int64, known bool) {
	if l.mix != nil {
		return l.mix.window(l.mix.rounds[r.Index])
	}
	if l.Batches { // it ends when the next batch begins
		return r.WindowStart, r.WindowEnd, r.ended && r.Complete
	}
	switch l.Kind {
	case "rate":
		return l.arrivals(r)
	case "users":
		return l.stretch(r)
	}
	if !r.ended || !r.Complete || l.N < 1 || l.N > len(r.samples) || !slices.ContainsFunc(r.samples, func(s sample) bool { return s.measured() }) {
		return 0, 0, false
	}
	firsts, lasts := map[int]int64{}, map[int]int64{}
	from, to = math.MaxInt64, 0
	for i := range r.samples {
		s := &r.samples[i]
		began := s.Sent
		if began == 0 || l.Kind == "burst" {
			began = s.Scheduled
		}
		if at, ok := firsts[s.Slot]; !ok || began < at {
			firsts[s.Slot] = began
		}
		lasts[s.Slot] = max(lasts[s.Slot], s.End+max(l.pause, s.RetryAfter))
		if s.measured() {
			from, to = min(from, began), max(to, s.End)
		}
	}
	if l.Kind == "burst" {
		return from, to, true
	}
	for slot := range l.N {
		if _, ok := firsts[slot]; !ok {
			return 0, 0, false
		}
		from, to = max(from, firsts[slot]), min(to, lasts[slot])
	}
	return from, max(from, to), true
}

// windowed reports whether the rounds of the level follow each other without a pause. An answer may
// then begin in one round and end in a later one.
func (l *level) windowed() bool { return l.Kind == "rate" || l.Kind == "users" }

// batched reports whether the rounds of the level are batches of one window of a closed loop.
func (l *level) batched() bool { return l.Batches || l.mix != nil && l.mix.Batches }

// stretch returns the window of a round of users, as the recording states it. If a measured request
// was due outside the window, stretch extends the window to include it.
func (l *level) stretch(r *round) (from, to int64, known bool) {
	from, to = r.WindowStart, r.WindowEnd
	for i := range r.samples {
		if s := &r.samples[i]; s.measured() {
			from, to = min(from, s.Scheduled), max(to, s.Scheduled)
		}
	}
	return from, to, r.ended && r.Complete
}

// arrivals returns the window of a round at a rate. The window ends when the last request of the
// round was due. It begins when the last request before the round was due. That request belongs to
// the warm-up or to the previous round.
func (l *level) arrivals(r *round) (from, to int64, known bool) {
	if !r.ended || !r.Complete {
		return 0, 0, false
	}
	if l.Speedup > 0 || r.Time > 0 {
		// A trace's window begins with its section, and conversations go on after theirs. So neither
		// follows from when requests were due.
		return r.WindowStart, r.WindowEnd, true
	}
	for i := range r.samples {
		switch s := &r.samples[i]; s.Phase {
		case "warmup":
			from = max(from, s.Scheduled)
		case "measured":
			to = max(to, s.Scheduled)
		}
	}
	if before := l.rounds[r.Index-1]; from == 0 && before != nil {
		_, from, known = l.arrivals(before)
		return from, to, known
	}
	return from, to, from > 0 && to > from
}
