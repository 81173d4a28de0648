package plan

import "time"

// People is what a load of users has that others have not.
type People struct {
	RampUp time.Duration `plan:"ramp_up"` // over which they come, one after the other
	Warmup time.Duration // after it, before the window; OpenWarmupAuto: the thinking of a mean conversation
	Window time.Duration // the window, which is measured
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
