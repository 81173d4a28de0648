package exec

import (
	"testing"
	"time"
)

// Late beats show how long the operating system took the CPU from the generator. The result is the
// same for one stream as for many.
func TestBeats(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name         string
		beats        int             // number of beats that are on time within the timer's grain
		late         []time.Duration // besides
		stall, delay time.Duration
	}{
		{"none", 0, nil, 0, 0},
		{"on time", 1000, nil, ms, 0},
		// Four beats are late, by 40, 30, 20 and 10 ms. Up to five late beats count as no delay.
		{"one short stall in a short round", 100, []time.Duration{40 * ms}, 40 * ms, 0},
		// Four beats are late by 40, 40, 30 and 30 ms, and four more by 20, 20, 10 and 10 ms. The
		// five latest beats are ignored. The next beat is late by 20 ms, and 1 ms of the timer's
		// grain is subtracted.
		{"two of them", 100, []time.Duration{40 * ms, 40 * ms}, 40 * ms, 19 * ms},
		// Eight of 1,008 beats are late, which is less than 1 %. So the 99th percentile is
		// on time.
		{"two of them in a long round", 1000, []time.Duration{40 * ms, 40 * ms}, 40 * ms, 0},
		// Of 1,016 beats 16 are late: four each by 40, 30, 20 and 10 ms. The 99th percentile is the
		// 11th latest beat, which is late by 20 ms. 1 ms of the timer's grain is subtracted.
		{"four of them", 1000, []time.Duration{40 * ms, 40 * ms, 40 * ms, 40 * ms}, 40 * ms, 19 * ms},
		// The 10 late beats are late by 100, 90, … 10 ms. The five latest of all 110 beats are
		// ignored. The next beat is late by 50 ms, and 1 ms of the timer's grain is subtracted.
		{"a long one", 100, []time.Duration{100 * ms}, 100 * ms, 49 * ms},
	} {
		var b beats
		for range tt.beats {
			b.late(ms)
		}
		for _, by := range tt.late {
			b.late(by)
		}
		if b.stall() != tt.stall || b.delay() != tt.delay {
			t.Errorf("%s: a stall of %v and a delay of %v, want %v and %v", tt.name, b.stall(), b.delay(), tt.stall, tt.delay)
		}
	}
}
