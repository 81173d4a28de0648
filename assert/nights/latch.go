package nights

import "math"

const (
	// backNights is the minimum number of consecutive nights that end an alarm.
	backNights = 3
	// backOdds is the likelihood ratio that ends an alarm: how much likelier the last nights are if
	// the series is back than if it is still changed.
	backOdds = 10
	// leastChange and mostChange limit the size of a change in the likelihood ratio, in standard
	// deviations. Without leastChange, many nights would be needed to see that a small change has
	// ended. Without mostChange, a series would count as back while half of its change is still
	// there.
	leastChange, mostChange = 1, 3
	// mostNight is the largest deviation of one night, in standard deviations, that counts. One
	// extreme night can therefore not decide alone.
	mostNight = 3
)

// latch is an alarm that stays on until somebody pins a run, or until the series is back at its
// reference. Each night adds its log odds that the series is back, instead of still at the mean
// since the change. The sum starts again at 0 whenever it would become negative (a cumulative sum:
// Page, Biometrika 41, 1954).
type latch struct {
	on, worse bool
	from      int     // first night of the change
	odds      float64 // evidence that the series is back: sum of log odds, at least 0
	back      int     // number of nights since odds was last 0
}

// release ends an alarm if the last nights show that the series is back at its reference.
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
