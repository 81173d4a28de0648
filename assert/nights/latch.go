package nights

import "math"

const (
	// backNights is the minimum number of consecutive nights that end an alarm.
	backNights = 3
	// backOdds is the likelihood ratio that ends an alarm: how much likelier the last nights are if
	// the series is back than if it is still changed.
	backOdds = 10
	// leastChange and mostChange limit the size of a change in the likelihood ratio, in standard
	// deviations. Without leastChange, it would take many nights to see the end of a small change.
	// Without mostChange, a series that is half way back would count as back.
	leastChange, mostChange = 1, 3
	// mostNight limits the deviation of one night, in standard deviations. So one extreme night
	// cannot decide alone.
	mostNight = 3
)

// latch is an alarm that stays on until somebody pins a run, or until the series is back at its
// reference. Each night adds to a sum: the log odds that the series is back, and not still at the
// mean since the change. The sum starts again at 0 if it would become negative (a cumulative sum:
// Page, Biometrika 41, 1954).
type latch struct {
	on, worse bool
	from      int     // first night of the change
	odds      float64 // sum of the nights' log odds that the series is back, at least 0
	back      int     // number of nights since odds was 0
}

// release updates the odds that the series is back at its reference. If they are high enough, it
// ends the alarm.
func (s *watched) release(tonight int) {
	c := &s.change
	expected := s.nights[tonight].Expected
	sigma := expected.Sigma
	level := (s.mean(s.since(c.from)) - expected.Center) / sigma
	size := min(max(math.Abs(level), leastChange), mostChange)
	z := (s.values[tonight] - expected.Center) / sigma * math.Copysign(1, level)
	z = min(max(z, -mostNight), mostNight)
	c.odds, c.back = max(c.odds+size*(size/2-z), 0), c.back+1
	if c.odds == 0 {
		c.back = 0
	}
	if c.back < backNights || c.odds < math.Log(backOdds) {
		return
	}
	c.on = false
	s.first = s.seen[len(s.seen)-c.back]
}
