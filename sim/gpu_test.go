package sim

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// In the last three of every ten seconds, heat halves the clock of the GPU.
func TestGPUAt(t *testing.T) {
	g := GPU{ClockMHz: 1980, ThrottledShare: 0.3, ForeignProcesses: 2}
	for at, want := range map[time.Duration][2]float64{0: {1.98e9, 0}, 6900 * time.Millisecond: {1.98e9, 0}, 7 * time.Second: {9.9e8, 1}, 19 * time.Second: {9.9e8, 1}, 20 * time.Second: {1.98e9, 0}} {
		got := g.At(at)
		must.Hold(t, got["gpu_clock"] == want[0] && got["gpu_throttled"] == want[1] && got["foreign_processes"] == 2, "at %v: %v, want %v", at, got, want)
	}
	got := (GPU{ClockMHz: 1980}).At(9999 * time.Millisecond)
	must.Hold(t, got["gpu_throttled"] == 0, "a healthy one: %v", got)
	if got := (GPU{Power: &Power{60, 300, 500}}).At(0); len(got) != 3 {
		t.Errorf("of one that reports no clock: %v", got)
	}
	for _, bad := range []GPU{{}, {Power: &Power{60, 50, 500}}, {Power: &Power{60, 300, math.NaN()}}, {ClockMHz: 1980, ThrottledShare: 1.1}, {ClockMHz: 1980, ForeignProcesses: -1}} {
		var err error
		bad.validate(func(ok bool, _ string, _ ...any) {
			if !ok {
				err = errors.New("refused")
			}
		})
		must.Hold(t, err != nil, "%+v is valid", bad)
	}
}

// The meter reports the mean power between two readings, ten seconds apart here. Four seconds idle
// at 60 W, five of decoding at 300 W and one of prefill at 500 W are 2240 J, or 224 W.
func TestPowerMeter(t *testing.T) {
	read := Power{60, 300, 500}.Meter()
	gauges, counters := map[string]float64{}, map[string]float64{}
	read(20*time.Second, State{Busy: time.Second}, gauges, counters)
	before := counters[metric.Energy]
	must.Hold(t, gauges["power"] == 60, "the first reading tells %v W", gauges["power"])
	read(30*time.Second, State{Busy: 7 * time.Second, Prefilling: time.Second}, gauges, counters)
	if energy := counters[metric.Energy] - before; math.Abs(energy-2240) > 1e-9 || math.Abs(gauges["power"]-224) > 1e-9 {
		t.Errorf("%v J and %v W, want 2240 and 224", energy, gauges["power"])
	}
	// A step of five seconds starts just before this reading, and counts at once. But the reported
	// power must not exceed its maximum.
	read(31*time.Second, State{Busy: 12 * time.Second, Prefilling: 6 * time.Second}, gauges, counters)
	must.Hold(t, gauges["power"] == 500, "%v W, want 500", gauges["power"])
}

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
				got := lengths[i].Seconds() * 1000
				must.Hold(t, math.Abs(got-tt.want) <= 0.003, "%s, started after %v: a step at %v takes %.4f ms, want %v", tt.name, start, at, got, tt.want)
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
		_, err := parseProfile([]byte(src))
		must.Hold(t, (err == nil) == ok, "%s: %v", src, err)
	}
}
