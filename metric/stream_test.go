package metric

import (
	"strings"
	"testing"
	"time"
)

// TestUnstreamed checks that tokgate notices if a gateway sends answers in one piece. The server
// makes a token every 10 ms, but the last 20 of 21 tokens arrive within 5 ms.
func TestUnstreamed(t *testing.T) {
	const ms = time.Millisecond
	witness := func(tokens, steps float64) *Telemetry {
		return &Telemetry{
			Added: map[string]float64{GeneratedTokens: tokens},
			Histograms: map[string]Histogram{
				"server_ttft": {Counts: []float64{20}, Sum: 2},
				"server_itl":  {Counts: []float64{steps}, Sum: steps * 0.01},
			},
		}
	}
	one := func(out, first int, chunks ...time.Duration) func() *Sample {
		return func() *Sample {
			x := stream(0, Measured, s, out, chunks...)
			x.FirstTokens = first
			return x
		}
	}
	streamed := one(21, 1, 2*s, 2*s+100*ms, 2*s+200*ms)
	buffered := one(21, 1, 2*s, 2*s+3*ms, 2*s+5*ms)
	for _, tt := range []struct {
		name      string
		of        func() *Sample
		telemetry *Telemetry
		want      string
	}{
		{"streamed", streamed, nil, ""},
		{"streamed, several tokens a chunk, of an engine that makes one", streamed, witness(420, 400), "a chunk holds 7 tokens on average, but the engine makes one"},
		{"several a step", streamed, witness(420, 200), ""},
		// Tokens that arrive 0.25 ms apart were buffered, unless the server makes tokens that fast.
		// Without the server's own time per token, nobody knows.
		{"buffered, nobody says so", buffered, nil, ""},
		{"buffered, the server says so", buffered, witness(420, 400), "20 of 20 answers came in one piece"},
		{"faster than any server", one(21, 1, 2*s, 2*s+ms), nil, "20 of 20 answers came in one piece"},
		{"one chunk", one(21, 0, 2*s), nil, "20 of 20 answers came in one piece"},
		{"one chunk of all tokens", one(21, 21, 2*s), nil, "20 of 20 answers came in one piece"},
		{"single tokens", one(1, 1, 2*s), nil, "20 of 20 answers are too short to have a speed"},
		{"two tokens at once", one(3, 1, 2*s, 2*s+ms), nil, ""},
	} {
		r := &Round{Due: 20, Complete: true, Telemetry: tt.telemetry}
		for range 20 {
			r.Samples = append(r.Samples, tt.of())
		}
		l := &Level{Kind: ClosedLoop, N: 1, Rounds: []*Round{r}}
		if got := l.Unstreamed(); !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// The mean of three speeds would mislead: two are 50 tok/s, and one is a million because its chunks
// come within 10 µs. So the pooled speed divides all tokens by all streaming time.
func TestPooledSpeed(t *testing.T) {
	samples := []*Sample{
		stream(0, Measured, s, 11, 2*s, 2*s+200*time.Millisecond),
		stream(0, Measured, s, 11, 2*s, 2*s+200*time.Millisecond),
		stream(0, Measured, s, 11, 2*s, 2*s+10*time.Microsecond),
		stream(0, Measured, s, 11, 2*s), // without a speed, because it has one chunk
		{Phase: Measured, Sent: s, Failure: &Failure{Kind: FailStatus}},
	}
	for name, want := range map[string]float64{"speed": 30 / 0.40001, "request_speed": (50 + 50 + 1e6) / 3} {
		d := Of(MustLookup(name), samples)
		mean, ok := d.Mean()
		closeTo(t, name, Value{V: mean, OK: ok}, want)
		if len(d.Values) != 3 || d.Worst != 1 || d.LeftOut != 1 {
			t.Errorf("%s: %d values, %d worst, %d left out", name, len(d.Values), d.Worst, d.LeftOut)
		}
	}
}
