package nights

import "math"

const (
	// backNights is the minimum number of consecutive nights that end an alarm.
	backNights = 3
	// backOdds is the likelihood ratio that ends an alarm: of the nights if the
	// series is back, over the nights if it is still changed.
	backOdds = 10
	// leastChange and mostChange limit the size of a change for that comparison, in
	// standard deviations. A small change needs many nights to be distinguished from
	// none. Beyond the maximum a series with half of its change left would count as
	// back.
	leastChange, mostChange = 1, 3
	// mostNight limits the weight of one night in either direction, in standard
	// deviations.
	mostNight = 3
)

// latch is an alarm that stays until a pin, or until the series is back. Each night
// is compared with the reference and with the level since the change. The logarithms
// of the odds are summed (a cumulative sum, Page, Biometrika 41, 1954), beginning
// with the night from which they favour the reference.
type latch struct {
	on, worse bool
	from      int     // logarithm of the odds of being back; 0 if there is none
	odds      float64 // logarithm, of being back; 0: none
	back      int     // nights since the odds were even
}

// release ends a change if tonight and the nights before it are back.
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
