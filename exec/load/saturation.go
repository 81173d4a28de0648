package load

import (
	"cmp"
	"time"
)

// Saturation decides how many requests a saturation keeps in flight. If the server runs only some
// of the requests, the others wait in a queue, and more requests would only make the queue longer.
// If the server runs all of them at once, N is doubled until the server gets no faster.
type Saturation struct {
	N    int // in flight
	Most int // the largest value of N; at least N
	// Enough is the speed, in tokens a second, at which N is not raised further; 0
	// means no such limit.
	Enough float64
	// Anew reports that N was raised for the first time. The caller then starts all requests again,
	// because those in flight began together.
	Anew bool

	raised time.Duration // time at which N was last raised; 0 if never
	filled time.Duration // time from raised until N requests had a first token; 0 if some have none
	before float64       // output tokens per second before N was last raised
	marks  []mark        // states in the last settling time, since N was raised
}

// mark holds what Look was told at one time.
type mark struct {
	at      time.Duration
	waiting int
	tokens  int64
}

const (
	// settling is the time after N was raised in which the number of waiting requests must not
	// shrink. Requests that wait longer are a queue, and not prompts that arrived together. A speed
	// over ten seconds is exact to 1 %: one step of a thousand running requests takes 0.1 s.
	settling = 10 * time.Second
	// mostSettling is the longest wait for the number of waiting requests to stop shrinking.
	mostSettling = time.Minute
	// mostFilling limits how long the server may take to read the prompts of twice as many
	// requests. The time is estimated from the requests in flight. Meanwhile the older requests go
	// on, so a long time passes until the requests in flight have mixed ages.
	mostFilling = 30 * time.Second
	// more is the factor by which N is raised. N is raised again only if the server's speed rose at
	// least by the factor in faster.
	more, faster = 2, 1.05
)

// Look is called about once a second. It takes the number of requests that wait for their first
// token, the tokens streamed so far, and whether the warm-up of the first N requests is over. It
// reports whether to measure from now on. If it returns false, it may have raised N.
func (s *Saturation) Look(at time.Duration, waiting int, tokens int64, warm bool) (measure bool) {
	s.marks = append(s.marks, mark{at, waiting, tokens})
	for len(s.marks) > 2 && s.marks[1].at <= at-settling {
		s.marks = s.marks[1:]
	}
	if s.filled == 0 && few(waiting, s.N) {
		s.filled = at - s.raised
	}
	if s.raised > 0 {
		warm = s.settled()
	}
	if !warm {
		return false
	}
	speed := s.speed()
	switch {
	case s.Queues(waiting), s.N >= s.Most, s.before > 0 && speed < faster*s.before, s.Enough > 0 && speed >= s.Enough:
		return true
	case more*cmp.Or(s.filled, at-s.raised) > mostFilling:
		return true
	}
	s.Anew = s.raised == 0
	if waiting += min(more*s.N, s.Most) - s.N; s.Anew {
		waiting = min(more*s.N, s.Most)
	}
	s.N, s.before, s.raised, s.filled = min(more*s.N, s.Most), speed, at, 0
	s.marks = []mark{{at, waiting, tokens}}
	return false
}

// Queues reports whether the waiting requests are a queue: at least a quarter of the requests in
// flight are waiting.
func (s *Saturation) Queues(waiting int) bool { return 4*waiting >= s.N }

// few reports whether at most 5 % of the n requests in flight are waiting.
func few(waiting, n int) bool { return 20*waiting <= n }

// settled reports whether the number of waiting requests has settled after N was raised.
func (s *Saturation) settled() bool {
	first, last := s.marks[0], s.marks[len(s.marks)-1]
	if last.at-s.raised >= mostSettling {
		return true
	}
	if last.at-first.at < settling {
		return false
	}
	for _, m := range s.marks {
		if !few(m.waiting, s.N) {
			return first.waiting-last.waiting < s.N/100
		}
	}
	return true
}

// speed returns the output tokens per second over the last settling time.
func (s *Saturation) speed() float64 {
	first, last := s.marks[0], s.marks[len(s.marks)-1]
	if last.at <= first.at {
		return 0
	}
	return float64(last.tokens-first.tokens) / (last.at - first.at).Seconds()
}
