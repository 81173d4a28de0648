package metric

// Judged returns the level without the batches that had begun when a look ended it. Their requests
// were sent, but no verdict and no figure includes them. Any other level, and the part of a mix, is
// returned as it is.
func (l *Level) Judged() *Level {
	if l == nil || !l.Batches || !l.Alone() || len(l.Looks) == 0 {
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

// Judged returns the run with only the judged rounds of its levels; see Level.Judged.
func (r *Run) Judged() *Run {
	out := *r
	out.Levels = make([]*Level, len(r.Levels))
	for i, l := range r.Levels {
		out.Levels[i] = l.Judged()
	}
	return &out
}
