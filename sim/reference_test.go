package sim

import (
	"math"
	"slices"
	"testing"
	"time"
)

// slotLoop is a closed loop whose slots start 4 ms apart and pause between an
// answer and the next request. It returns the mean TTFT in s and the speed of
// mean times in tok/s.
func slotLoop(t *testing.T, p *Profile, n, input, output, rounds int, pause time.Duration) (ttft, speed float64) {
	t.Helper()
	e := NewEngine(p, 1)
	type start struct {
		at   time.Duration
		slot uint64
	}
	var due []start
	for i := range n {
		due = append(due, start{time.Duration(i) * 4 * time.Millisecond, uint64(i)})
	}
	sent := make([]int, n)
	var decode float64
	done := 0
	for now := time.Duration(0); done < n*rounds; {
		emitted, _, _ := e.Advance(now)
		for _, m := range emitted {
			if !m.Last {
				continue
			}
			done++
			ttft += (m.Times.First - m.Times.Submitted).Seconds()
			decode += (m.Times.Finished - m.Times.First).Seconds()
			if sent[m.ID] < rounds {
				due = append(due, start{m.At + pause, m.ID})
			}
		}
		slices.SortStableFunc(due, func(a, b start) int { return int(a.at - b.at) })
		for len(due) > 0 && due[0].at <= now {
			sent[due[0].slot]++
			submit(t, e, now, Job{ID: due[0].slot, Input: input, Output: output})
			due = due[1:]
		}
		_, next, busy := e.Advance(now)
		if len(due) > 0 && (!busy || due[0].at < next) {
			next = due[0].at
		}
		now = max(now, next)
	}
	return ttft / float64(done), float64((output-1)*done) / decode
}

// The shipped profiles give back the published numbers they were fitted to,
// at low and at high load: the engine means by its parameters what the fit
// meant.
func TestProfilesHoldTheirReports(t *testing.T) {
	const k = 1024
	for _, test := range []struct {
		profile               string
		input, output, n      int
		rounds                int
		pause                 time.Duration
		ttft, speed, tolerate float64 // s, tok/s, share
	}{
		{"qwen3.6-35b-a3b-mtp-fp8.1x-rtx-pro-6000", k, k, 1, 4, 860 * time.Millisecond, 0.065, 219.2, 0.05},
		{"qwen3.6-35b-a3b-mtp-fp8.1x-rtx-pro-6000", 256 * k, k, 1, 4, 860 * time.Millisecond, 26, 98.4, 0.08},
		{"qwen3.6-35b-a3b-mtp-fp8.1x-rtx-pro-6000", 32 * k, k, 39, 4, 860 * time.Millisecond, 8.1, 19, 0.12},
		{"qwen3.6-35b-a3b-mtp-fp8.1x-rtx-pro-6000", 8 * k, k, 125, 4, 860 * time.Millisecond, 9.4, 21, 0.12},
		{"qwen3-coder-next-80b-fp8.2x-rtx-pro-6000", 8 * k, k, 1, 8, 2204 * time.Millisecond, 0.6, 150, 0.08},
		{"qwen3-coder-next-80b-fp8.2x-rtx-pro-6000", 32 * k, k, 10, 8, 2204 * time.Millisecond, 13.1, 79, 0.08},
		{"qwen3-coder-30b-a3b-instruct-fp8.1x-h200-sxm", 8 * k, k, 75, 4, 1262 * time.Millisecond, 3, 25, 0.20},
		{"qwen3.5-35b-a3b-fp8.1x-h100", k, 256, 1, 1, 0, 0.189, 172.4, 0.12},
		{"qwen3.5-35b-a3b-fp8.1x-dgx-spark-gb10.fresh", 2 * k, 512, 16, 4, 0, 3.989, 1 / 0.0663, 0.05},
		{"qwen3.6-35b-a3b-fp8.1x-dgx-spark-gb10.vanilla", 2 * k, 512, 16, 4, 0, 3.979, 1 / 0.06703, 0.12},
		{"qwen3.6-35b-a3b-fp8.1x-dgx-spark-gb10.mtp", 2 * k, 512, 16, 4, 0, 1.721, 1 / 0.05558, 0.12},
	} {
		p, err := LoadProfile(test.profile, "")
		if err != nil {
			t.Fatal(err)
		}
		ttft, speed := slotLoop(t, p, test.n, test.input, test.output, test.rounds, test.pause)
		t.Logf("%s: %d × %d: TTFT %.3f s (%.3f), speed %.1f tok/s (%.1f)", test.profile, test.n, test.input, ttft, test.ttft, speed, test.speed)
		if math.Abs(ttft/test.ttft-1) > test.tolerate || math.Abs(speed/test.speed-1) > test.tolerate {
			t.Errorf("%s at %d × %d tokens: TTFT %.3f s, speed %.1f tok/s; published are %.3f and %.1f",
				test.profile, test.n, test.input, ttft, speed, test.ttft, test.speed)
		}
	}
}
