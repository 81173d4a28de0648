package metric

import "slices"

// The rounds of a closed loop may be batches of one window; see Level.Batches. A run of batches has
// no pause within it. A level has one run, or several if disturbed batches were left out between.

// runs returns the runs of the level's batches: groups of rounds whose windows touch.
func (l *Level) runs() [][]*Round {
	var out [][]*Round
	for i, r := range l.Rounds {
		if i == 0 || r.WindowStart != l.Rounds[i-1].WindowEnd {
			out = append(out, nil)
		}
		last := len(out) - 1
		out[last] = append(out[last], r)
	}
	return out
}

// batchWindows divides each run of batches into as many equal parts as it has batches. The parts
// are equal in time, because a slow batch lasts longer than a fast one: rates between the starts of
// batches would be biased. Requests of other batches, even of left-out ones, are in flight in a
// part, so they count too.
func (l *Level) batchWindows(w Window) []Stretch {
	all := slices.Concat(l.Rounds, l.Voided)
	var out []Stretch
	for _, run := range l.runs() {
		whole := *run[0]
		whole.WindowEnd = run[len(run)-1].WindowEnd
		for _, r := range run {
			whole.End = max(whole.End, r.End)
		}
		for _, part := range whole.stretches(w, len(run)) {
			part.Round, part.Among, part.Spread = run[0], all, true
			out = append(out, part)
		}
	}
	return out
}

// joined returns consecutive rounds of the level as one round. Its Busy is the mean over the
// rounds' windows. Without rounds it returns an empty round.
func joined(rounds []*Round) *Round {
	if len(rounds) == 0 {
		return &Round{}
	}
	out := *rounds[0]
	out.Samples, out.Stored, out.Due = nil, nil, 0
	var busy, length float64
	for _, r := range rounds {
		out.Samples, out.Due = append(out.Samples, r.All()...), out.Due+r.Due
		out.Start, out.End = min(out.Start, r.Start), max(out.End, r.End)
		out.WindowStart, out.WindowEnd = min(out.WindowStart, r.WindowStart), max(out.WindowEnd, r.WindowEnd)
		seconds := (r.WindowEnd - r.WindowStart).Seconds()
		busy, length = busy+r.Busy*seconds, length+seconds
		out.Health.Stall = max(out.Health.Stall, r.Health.Stall)
	}
	out.Busy = 0
	if length > 0 {
		out.Busy = busy / length
	}
	return &out
}

// Window returns all batches of the level as one round, in order of start. Left-out batches are
// among them, because they were part of the load.
func (l *Level) Window() *Round {
	all := slices.Concat(l.Rounds, l.Voided)
	slices.SortStableFunc(all, func(a, b *Round) int { return a.Index - b.Index })
	return joined(all)
}

// groupOf is the least number of batches over which the starts of slots are compared: each slot
// starts about once in a batch of one wave.
const groupOf = 2

// Synchronies returns the Synchrony of each round. Batches are too short for that, so neighbouring
// ones are joined: at least two, and as many as leave LeastRounds groups.
func (l *Level) Synchronies() []Value {
	var out []Value
	if !l.Batches {
		for _, r := range l.Rounds {
			out = append(out, r.synchrony(l.N))
		}
		return out
	}
	for of := range slices.Chunk(l.Rounds, max(groupOf, len(l.Rounds)/LeastRounds)) {
		out = append(out, joined(of).synchrony(l.N))
	}
	return out
}

// Each returns the level with each of its rounds alone, in order. Of batches, the requests of the
// others still count in rates, because they were in flight meanwhile; and each has an equal part of
// the window.
func (l *Level) Each() []*Level {
	var cuts []Stretch
	if l.Batches {
		cuts = l.batchWindows(Steady)
	}
	out := make([]*Level, len(l.Rounds))
	for i, r := range l.Rounds {
		of := *l
		if l.Batches {
			of.Voided = slices.DeleteFunc(slices.Concat(l.Rounds, l.Voided), func(x *Round) bool { return x == r })
		}
		if len(cuts) == len(l.Rounds) {
			part := *r
			part.WindowStart, part.WindowEnd = cuts[i].From, cuts[i].To
			r = &part
		}
		of.Rounds = []*Round{r}
		out[i] = &of
	}
	return out
}
