package nights

import "math"

const (
	// backNights is the minimum number of consecutive nights that end an alarm.
	backNights = 3
	// backOdds is the likelihood ratio that ends an alarm: the last nights must be this much
	// likelier if the series is back than if it is still changed.
	backOdds = 10
	// leastChange and mostChange bound the size of a change for the likelihood ratio, in standard
	// deviations. Without leastChange, the end of a small change would show only after many nights.
	// Without mostChange, half the way back would count as back.
	leastChange, mostChange = 1, 3
)

// latch is an alarm on a series of nightly values. It stays on until somebody accepts a run as the
// new reference, or until the series is back at its reference. Each night adds evidence to a sum:
// the log odds that the series is back and not still changed. The sum never falls below 0 (a
// cumulative sum: Page, Biometrika 41, 1954).
type latch struct {
	on, worse bool
	from      int     // index of the first changed night
	sum       float64 // of the values since then
	nights    int     // nights with a value since then
	odds      float64 // log odds that the series is back, summed over the nights; at least 0
	back      int     // nights since odds was last 0
}

func (c *latch) add(value float64) { c.sum, c.nights = c.sum+value, c.nights+1 }

func (c *latch) mean() float64 { return c.sum / float64(c.nights) }

func (s *watched) forget(tonight int) {
	if s.change.on && !s.lasts(s.change.from, tonight) {
		s.change, s.first = latch{}, tonight
	}
}

// release updates the odds that the series is back at its reference. If they are high enough, it
// ends the alarm.
func (s *watched) release(tonight int) {
	c := &s.change
	expected := s.nights[tonight].Expected
	sigma := expected.Sigma
	level := (c.mean() - expected.Center) / sigma
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
	if since := s.since(c.from); c.worse && len(since) <= leastReference {
		for _, at := range since {
			s.worst = max(s.worst, float64(s.worse)*(s.values[at]-expected.Center)/sigma)
		}
	}
	s.first = s.seen[len(s.seen)-c.back]
}
