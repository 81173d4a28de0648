package exec

import (
	"testing"
	"time"
)

// The generator has a timer that beats regularly. Late beats show how long the operating system
// took the CPU away.
func TestBeats(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name         string
		beats        int             // beats on time, within the timer's precision
		late         []time.Duration // besides
		stall, delay time.Duration
	}{
		{"none", 0, nil, 0, 0},
		{"on time", 1000, nil, ms, 0},
		// Four beats are late, by 40, 30, 20 and 10 ms. Five late beats are always ignored, so the
		// delay is 0.
		{"one short stall in a short round", 100, []time.Duration{40 * ms}, 40 * ms, 0},
		// The five latest beats are ignored. They are late by 40, 40, 30, 30 and 20 ms. The next
		// one is 20 ms late, minus 1 ms for the precision of the timer.
		{"two of them", 100, []time.Duration{40 * ms, 40 * ms}, 40 * ms, 19 * ms},
		// Eight of 1,008 beats are late, which is less than 1 %. So the 99th percentile is
		// on time.
		{"two of them in a long round", 1000, []time.Duration{40 * ms, 40 * ms}, 40 * ms, 0},
		// 16 of 1,016 beats are late: four each by 40, 30, 20 and 10 ms. The 99th percentile is the
		// 11th latest beat. It is 20 ms late, minus 1 ms for the precision of the timer.
		{"four of them", 1000, []time.Duration{40 * ms, 40 * ms, 40 * ms, 40 * ms}, 40 * ms, 19 * ms},
		// The 10 late beats are late by 100, 90, … 10 ms. The five latest of all 110 beats are
		// ignored. The next one is 50 ms late, minus 1 ms for the precision of the timer.
		{"a long one", 100, []time.Duration{100 * ms}, 100 * ms, 49 * ms},
	} {
		var b beats
		for range tt.beats {
			b.recordLate(ms)
		}
		for _, by := range tt.late {
			b.recordLate(by)
		}
		if b.stall() != tt.stall || b.delay() != tt.delay {
			t.Errorf("%s: a stall of %v and a delay of %v, want %v and %v", tt.name, b.stall(), b.delay(), tt.stall, tt.delay)
		}
	}
}
