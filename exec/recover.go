package exec

import (
	"context"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Alone is the phase of requests that are sent while no other is in flight. They show whether the
// server has recovered from a saturation: some servers go on with requests whose client has hung
// up. Their samples are not recorded.
const Alone metric.Phase = "alone"

const (
	// aloneFirst is the number of requests sent alone before a saturation.
	aloneFirst = 3
	// One request is sent every recoveredEach, for at most recoveredWithin, until metric.Recovered.
	recoveredEach   = time.Second
	recoveredWithin = 2 * time.Minute
)

func (s *levelRun) aloneBefore() (slowest time.Duration) {
	for range aloneFirst {
		slowest = max(slowest, s.alone(recoveredWithin))
	}
	return slowest
}

// recovers waits until a request alone is about as fast as before the saturation, when the slowest
// took the given time. It returns false if that takes too long, or if the time before is 0.
func (s *levelRun) recovers(slowest time.Duration) bool {
	end := s.Clock.Now() + recoveredWithin
	for slowest > 0 && s.check() && s.Clock.Now() < end {
		next := min(s.Clock.Now()+recoveredEach, end)
		if metric.Recovered(slowest, s.alone(end-s.Clock.Now())) {
			return true
		}
		s.pause(next)
	}
	return false
}

func (s *levelRun) pause(until time.Duration) {
	over := until <= s.Clock.Now()
	defer s.Clock.Timer(until, func() { over = true })()
	s.runUntil(func() bool { return over || !s.check() })
}

// alone sends one request with a new prompt, for one token, and returns its TTFT. It returns 0 if the
// token has not come within the given time. Of a mix it sends the first part.
func (s *levelRun) alone(within time.Duration) time.Duration {
	ctx, cancel := context.WithCancel(s.flying)
	defer cancel()
	id := PromptID{Level: s.level.Name, Round: len(s.level.Rounds), Phase: Alone, Order: s.aloneSent}
	s.aloneSent++
	var answered *metric.Sample
	if s.unrecorded(ctx, s.asks[0], id, 1, func(x *metric.Sample) { answered = x }) != nil {
		return 0 // the round will meet the same problem and report it
	}
	late := false
	defer s.Clock.Timer(s.Clock.Now()+within, func() { late = true })()
	s.runUntil(func() bool { return answered != nil || late || s.flying.Err() != nil })
	if answered == nil || answered.Failure != nil || answered.First == 0 {
		return 0
	}
	return answered.First - answered.Sent
}
