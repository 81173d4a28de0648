package metric

// Judged returns the level without the batches that had begun when a look ended it. Their requests
// were sent, but no verdict and no figure includes them. Any other level, and the part of a mix, is
// returned as it is.
func (l *Level) Judged() *Level {
	if l == nil || !l.Batches || l.Of != "" || len(l.Looks) == 0 {
		return l
	}
	out := *l
	n := l.Looks[len(l.Looks)-1].Requests
	for i, r := range l.Rounds {
		if r == nil || n <= 0 {
			out.Rounds = l.Rounds[:i:i]
			break
		}
		n -= r.Due
	}
	return &out
}

// Judged returns the run with only the judged rounds of its levels; see Level.Judged. The part of a
// mix has the rounds of its mix.
func (r *Run) Judged() *Run {
	out := *r
	out.Levels = make([]*Level, len(r.Levels))
	parts := map[*Level]*Level{}
	for i, l := range r.Levels {
		j := l.Judged()
		if out.Levels[i] = j; j == l || l == nil {
			continue
		}
		j.Parts = nil
		for _, p := range l.Parts {
			parts[p] = j.Part(p)
			j.Parts = append(j.Parts, parts[p])
		}
	}
	for i, l := range r.Levels {
		if p := parts[l]; p != nil {
			out.Levels[i] = p
		}
	}
	return &out
}
