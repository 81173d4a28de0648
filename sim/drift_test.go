package sim

import (
	"math"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
)

// decodeSteps returns the times of the steps that decode one long answer, by a server that started at
// the given time. Each step takes 10 ms without a drift.
func decodeSteps(t *testing.T, p *Profile, start time.Duration, tokens int) (begins, lengths []time.Duration) {
	t.Helper()
	p.Decode, p.Prefill = DecodeCost{BaseMS: 10}, PrefillCost{}
	must.Do(t, p.Validate())
	e := NewEngine(p, 1)
	e.began = start
	must.Do(t, e.Submit(start, Job{ID: 1, Input: 1, Output: tokens}))
	emitted, _, _ := e.Advance(start + 1000*time.Hour)
	for i := 1; i < len(emitted); i++ {
		begins = append(begins, emitted[i-1].At-start)
		lengths = append(lengths, emitted[i].At-emitted[i-1].At)
	}
	return begins, lengths
}

func quiet() *Profile {
	p := DefaultProfile()
	p.Noise, p.MaxModelLen, p.Limits = Noise{}, 100_000, Limits{MaxBatchedTokens: 2048}
	return p
}

// A drift begins after a time since the server's start. It makes steps slower at once, and by a
// further share each minute.
func TestDrift(t *testing.T) {
	for _, tt := range []struct {
		name  string
		drift *Drift
		at    time.Duration
		want  float64 // time of a step in ms
	}{
		{"none", nil, time.Minute, 10},
		{"before it begins", &Drift{AfterS: 61, Slower: 0.1}, time.Minute, 10},
		{"slower at once", &Drift{AfterS: 60, Slower: 0.1}, time.Minute, 11},
		{"the same later", &Drift{AfterS: 60, Slower: 0.1}, 3 * time.Minute, 11},
		{"each minute", &Drift{SlowerPerMinute: 0.04}, 2 * time.Minute, 10.8},
		{"each minute from a time on", &Drift{AfterS: 60, SlowerPerMinute: 0.04}, 2 * time.Minute, 10.4},
		{"both", &Drift{AfterS: 60, Slower: 0.1, SlowerPerMinute: 0.04}, 2 * time.Minute, 11.4},
	} {
		for _, start := range []time.Duration{0, time.Hour} { // a later server drifts from its own start
			p := quiet()
			p.Drift = tt.drift
			begins, lengths := decodeSteps(t, p, start, 20_000)
			for i, at := range begins {
				if at < tt.at {
					continue
				}
				if got := lengths[i].Seconds() * 1000; math.Abs(got-tt.want) > 0.003 {
					t.Errorf("%s, started after %v: a step at %v takes %.4f ms, want %v", tt.name, start, at, got, tt.want)
				}
				break
			}
		}
	}
}

// Slow noise has its coefficient of variation, and steps lose their likeness with its time: the
// correlation of the logarithms is 1/e after SlowS.
func TestSlowNoise(t *testing.T) {
	p := quiet()
	p.Noise = Noise{SlowCV: 0.1, SlowS: 2}
	_, lengths := decodeSteps(t, p, 0, 90_000)
	const block = 200 // steps: about 2 s
	var logs []float64
	for _, l := range lengths {
		logs = append(logs, math.Log(l.Seconds()/0.01))
	}
	mean, variance, product := 0.0, 0.0, 0.0
	for _, x := range logs {
		mean += x / float64(len(logs))
	}
	n := len(logs) - block
	for i := range n {
		variance += (logs[i] - mean) * (logs[i] - mean) / float64(n)
		product += (logs[i] - mean) * (logs[i+block] - mean) / float64(n)
	}
	// The series has about 900 s / (2·2 s) = 225 independent values.
	if cv := math.Sqrt(variance); math.Abs(cv-0.1) > 0.015 || math.Abs(product/variance-1/math.E) > 0.15 {
		t.Errorf("cv %.3f, correlation after 2 s %.2f; want 0.1 and %.2f", cv, product/variance, 1/math.E)
	}
}

func TestDriftProfiles(t *testing.T) {
	for src, ok := range map[string]bool{
		`{"base":"default","drift":{"after_s":180,"slower":0.1}}`:       true,
		`{"base":"default","drift":{"slower_per_minute":0.02}}`:         true,
		`{"base":"default","drift":{"after_s":-1}}`:                     false,
		`{"base":"default","drift":{"slower":-0.1}}`:                    false,
		`{"base":"default","drift":{"slower_per_minute":-0.1}}`:         false,
		`{"base":"default","noise":{"slow_cv":0.1,"slow_s":2}}`:         true,
		`{"base":"default","noise":{"slow_cv":0.1}}`:                    false,
		`{"base":"default","noise":{"slow_cv":1.1,"slow_s":2}}`:         false,
		`{"base":"default","drift":{"slower":0.1,"slower_a_minute":1}}`: false,
	} {
		if _, err := parseProfile([]byte(src)); (err == nil) != ok {
			t.Errorf("%s: %v", src, err)
		}
	}
}
