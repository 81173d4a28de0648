package nights

import "math"

const (
	// backNights is how many nights in a row it takes at least to end an alarm.
	backNights = 3
	// backOdds is how much likelier they must be where the series is back than
	// where it is still changed.
	backOdds = 10
	// least and most that a change is taken for when nights are compared with
	// both, in standard deviations. A small change takes many nights to be told
	// from none; beyond the most, half of a large change left would pass for none.
	leastChange, mostChange = 1, 3
	// mostNight is how far one night may speak for either, in standard deviations.
	mostNight = 3
)

// latch is an alarm that stays: until a pin, or until the series is back. Each
// night is compared with the reference and against the level since the change;
// the logarithms of their odds are summed (a cumulative sum, Page, Biometrika
// 41, 1954), from the night on from which they speak for the reference.
type latch struct {
	on, worse bool
	from      int     // first night of the change
	odds      float64 // logarithm, of being back; 0: none
	back      int     // nights since the odds were even
}

// release ends a change from which tonight and the nights before it are back.
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
