package exec

import (
	"testing"
	"time"
)

// The health of a round shows how long the operating system took the CPU from the generator. It
// shows this with one stream as well as with many.
func TestBeats(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name         string
		beats        int             // number of beats on time, apart from a timer's grain
		late         []time.Duration // besides
		stall, delay time.Duration
	}{
		{"none", 0, nil, 0, 0},
		{"on time", 1000, nil, ms, 0},
		// Four beats are late, by 40, 30, 20 and 10 ms. Up to five late beats are ignored.
		{"one short stall in a short round", 100, []time.Duration{40 * ms}, 40 * ms, 0},
		// The late beats, sorted, are late by 40, 40, 30, 30, 20, 20, 10 and 10 ms. The
		// five latest beats are ignored. The next beat is late by 20 ms, and the timer's
		// grain of 1 ms is subtracted.
		{"two of them", 100, []time.Duration{40 * ms, 40 * ms}, 40 * ms, 19 * ms},
		// Eight of 1,008 beats are late, which is less than 1 %. So the 99th percentile is
		// on time.
		{"two of them in a long round", 1000, []time.Duration{40 * ms, 40 * ms}, 40 * ms, 0},
		// 16 of 1,016 beats are late. The 99th percentile is the 11th latest beat. Four
		// beats are late by 40 ms and four by 30 ms, so the 11th is late by 20 ms.
		{"four of them", 1000, []time.Duration{40 * ms, 40 * ms, 40 * ms, 40 * ms}, 40 * ms, 19 * ms},
		// The late beats are late by 100, 90 … 10 ms. Of all 110 beats the 105th counts,
		// because the five latest are ignored. It is late by 50 ms.
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
