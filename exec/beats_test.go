package exec

import (
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
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
			b.record(0, ms)
		}
		for _, by := range tt.late {
			b.record(0, by)
		}
		if b.health.Stall != tt.stall || b.delay() != tt.delay {
			t.Errorf("%s: a stall of %v and a delay of %v, want %v and %v", tt.name, b.health.Stall, b.delay(), tt.stall, tt.delay)
		}
	}
}

// The record of a round has the begin and the end of every standstill, which is a heartbeat that is
// at least 50 ms late. Shorter delays are added up, each without the 1 ms of the timer.
func TestStandstills(t *testing.T) {
	const ms = time.Millisecond
	var b beats
	for _, beat := range [][2]time.Duration{
		{10 * ms, 10 * ms},    // on time
		{20 * ms, 21 * ms},    // as late as an idle timer
		{31 * ms, 36 * ms},    // 5 ms late: 4 ms
		{46 * ms, 95 * ms},    // 49 ms late: 48 ms
		{105 * ms, 155 * ms},  // 50 ms late: a standstill
		{165 * ms, 1000 * ms}, // a standstill of 835 ms
		{1010 * ms, 1005 * ms},
	} {
		b.record(beat[0], beat[1])
	}
	want := metric.Health{
		Stall: 835 * ms, Late: 4*ms + 48*ms,
		Standstills: []metric.Standstill{{From: 105 * ms, To: 155 * ms}, {From: 165 * ms, To: 1000 * ms}},
	}
	must.Same(t, "", want, b.health)
}
