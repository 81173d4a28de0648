package metric

import (
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
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
		got := l.Unstreamed()
		must.Hold(t, strings.HasPrefix(got, tt.want) && (tt.want != "" || got == ""), "%s: %q, want %q", tt.name, got, tt.want)
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
		must.Hold(t, len(d.Values) == 3 && d.Worst == 1 && d.LeftOut == 1, "%s: %d values, %d worst, %d left out", name, len(d.Values), d.Worst, d.LeftOut)
	}
}

// A client cannot read an answer in less time than the server takes to make it. Every answer has 101
// tokens, and the client reads them within 0.5 s, if the row does not say otherwise.
func TestHeldBack(t *testing.T) {
	const ms = time.Millisecond
	took := func(sum float64, n float64) Histogram { return Histogram{Counts: []float64{n}, Sum: sum} }
	of := func(name string, h Histogram) map[string]Histogram { return map[string]Histogram{name: h} }
	answer := func(out, first int, span time.Duration, chunks int) *Sample {
		at := []time.Duration{2 * s}
		for i := range chunks - 1 {
			at = append(at, 2*s+span*time.Duration(i+1)/time.Duration(chunks-1))
		}
		x := stream(0, Measured, s, out, at...)
		x.FirstTokens = first
		return x
	}
	plain := func() *Sample { return answer(101, 1, 500*ms, 101) }
	stood := []Standstill{{2*s + 100*ms, 2*s + 300*ms}}
	for _, tt := range []struct {
		name   string
		of     func() *Sample
		server map[string]Histogram
		stood  []Standstill
		held   bool
	}{
		{"nothing known", plain, nil, nil, false},
		{"as the server", plain, of("decode", took(20*0.5, 20)), nil, false},
		// 0.6 s is 20 % longer than 0.5 s, and 0.61 s is longer than that.
		{"at the limit", plain, of("decode", took(20*0.6, 20)), nil, false},
		{"beyond it", plain, of("decode", took(20*0.61, 20)), nil, true},
		{"four times as fast", plain, of("decode", took(20*2, 20)), nil, true},
		// E2E 3 s - TTFT 1 s = 2 s
		{"by E2E and TTFT", plain, map[string]Histogram{"server_e2e": took(20*3, 20), "server_ttft": took(20, 20)}, nil, true},
		{"by E2E and TTFT of other requests", plain, map[string]Histogram{"server_e2e": took(20*3, 20), "server_ttft": took(30, 30)}, nil, false},
		{"another client's answers too", plain, of("decode", took(40*2, 40)), nil, false},
		// The first piece has 51 of 101 tokens: (101 - 51) / (101 - 1) of 1 s are 0.5 s.
		{"a first piece of half the tokens", func() *Sample { return answer(101, 51, 500*ms, 11) }, of("decode", took(20*1, 20)), nil, false},
		// Unknown, but 10 pieces of 10.1 tokens: 0.909 of 0.65 s are 0.591 s, and of 0.7 s 0.636 s.
		{"pieces of ten", func() *Sample { return answer(101, 0, 500*ms, 10) }, of("decode", took(20*0.65, 20)), nil, false},
		{"pieces of ten, held back", func() *Sample { return answer(101, 0, 500*ms, 10) }, of("decode", took(20*0.7, 20)), nil, true},
		{"short answers", func() *Sample { return answer(15, 1, 50*ms, 15) }, of("decode", took(20*2, 20)), nil, false},
		// 12 ms against 8 ms: the clocks may differ by 5 ms.
		{"by 4 ms", func() *Sample { return answer(16, 1, 8*ms, 16) }, of("decode", took(20*0.012, 20)), nil, false},
		{"in a standstill of the generator", plain, of("decode", took(20*2, 20)), stood, false},
	} {
		r := &Round{Due: 20, Complete: true, Telemetry: &Telemetry{From: s, To: 10 * s, Histograms: tt.server}, Health: Health{Standstills: tt.stood}}
		for range 20 {
			r.Samples = append(r.Samples, tt.of())
		}
		l := &Level{Kind: ClosedLoop, N: 1, Rounds: []*Round{r}}
		got := l.Unstreamed()
		must.Hold(t, strings.HasPrefix(got, "the streams were held back before they arrived") == tt.held && (tt.held || got == ""), "%s: %q", tt.name, got)
	}
}

// Answers that the generator read at once after its own standstill do not count against the server.
func TestInOnePieceByStandstill(t *testing.T) {
	const ms = time.Millisecond
	l := &Level{Kind: ClosedLoop, N: 1, Rounds: []*Round{{Due: 20, Complete: true}}}
	r := l.Rounds[0]
	for i := range 20 {
		x := stream(0, Measured, s, 21, 2*s, 2*s+100*ms, 2*s+200*ms)
		if x.FirstTokens = 1; i < 4 {
			x = stream(0, Measured, s, 21, 5*s, 5*s, 5*s)
		}
		r.Samples = append(r.Samples, x)
	}
	got := l.Unstreamed()
	must.Hold(t, strings.HasPrefix(got, "4 of 20 answers came in one piece"), "without a standstill: %q", got)
	r.Health.Standstills = []Standstill{{4 * s, 5*s - ms}}
	must.Same(t, "with a standstill", "", l.Unstreamed())
}
