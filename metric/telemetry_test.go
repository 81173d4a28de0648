package metric

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/internal/must"
)

func TestHistogram(t *testing.T) {
	// 10 values are up to 0.3 s, 5 more up to 0.5 s, 4 more up to 2 s, and 1 is above.
	h := Histogram{Bounds: []float64{0.3, 0.5, 1, 2}, Counts: []float64{10, 5, 0, 4, 1}, Sum: 12}
	m, ok := h.Mean()
	must.Hold(t, ok && m == 0.6, "mean %v, want 12/20", m)
	for _, tt := range []struct{ limit, least, most float64 }{
		{1, 5, 5},     // 1 is a bound of a bucket, so the values above it are known: 4 + 1
		{0.5, 5, 5},   // no value lies in (0.5, 1], so the same 4 + 1 are above
		{1.5, 1, 5},   // one value is above 2, and the four in (1, 2] may be above 1.5
		{0.1, 10, 20}, // within the first
		{2, 1, 1},
		{3, 0, 1}, // beyond the last bound
		{0.3, 10, 10},
	} {
		least, most := h.Over(tt.limit)
		must.Hold(t, least == tt.least && most == tt.most, "over %v: %v to %v, want %v to %v", tt.limit, least, most, tt.least, tt.most)
	}
	inf := math.Inf(1)
	for _, tt := range []struct{ p, estimate, low, high float64 }{
		{50, 0.3, 0, 0.3},   // p50 of 20 values is the 10th, the last of ten in (0, 0.3]
		{25, 0.15, 0, 0.3},  // p25 of 20 values is the 5th, half-way through (0, 0.3]
		{75, 0.5, 0.3, 0.5}, // p75 of 20 values is the 15th, the last one in (0.3, 0.5]
		{80, 1.25, 1, 2},    // p80 of 20 values is the 16th, the first of four in (1, 2]
		{95, 2, 1, 2},       // the 19th
		{99, 2, 2, inf},     // p99 of 20 values is the 20th, in the bucket without an upper bound
		{0.1, 0.03, 0, 0.3}, // the first of ten
	} {
		estimate, low, high, ok := h.Percentile(tt.p)
		if !ok || math.Abs(estimate-tt.estimate) > 1e-12 || low != tt.low || high != tt.high {
			t.Errorf("p%v: %v in (%v, %v], want %v in (%v, %v]", tt.p, estimate, low, high, tt.estimate, tt.low, tt.high)
		}
	}
	for name, empty := range map[string]Histogram{"nothing": {}, "no request": {Bounds: []float64{1}, Counts: []float64{0, 0}}} {
		_, ok := empty.Mean()
		must.Hold(t, !ok, "%s has a mean", name)
		if _, _, _, ok := empty.Percentile(95); ok {
			t.Errorf("%s has a percentile", name)
		}
	}
	if _, _, _, ok := (Histogram{Counts: []float64{7}, Sum: 3}).Percentile(95); ok {
		t.Error("a count and a sum have a percentile")
	}
}

// TestHistogramIsHonest draws random values, and computes bounds on their statistics from a
// histogram. The true statistics always lie within these bounds.
func TestHistogramIsHonest(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	bounds := []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10}
	for range 2000 {
		values := make([]float64, 1+rng.IntN(60))
		h := Histogram{Bounds: bounds, Counts: make([]float64, len(bounds)+1)}
		for i := range values {
			values[i] = rng.ExpFloat64() * 2
			k, _ := slices.BinarySearch(bounds, values[i])
			h.Counts[k]++
			h.Sum += values[i]
		}
		slices.Sort(values)
		limit := rng.Float64() * 12
		if rng.IntN(2) == 0 {
			limit = bounds[rng.IntN(len(bounds))]
		}
		over := 0.0
		for _, v := range values {
			if v > limit {
				over++
			}
		}
		least, most := h.Over(limit)
		must.Need(t, over >= least && over <= most, "%v over %v, said to be %v to %v: %v", over, limit, least, most, values)
		p := 0.1 + rng.Float64()*99.8
		exact, _ := NewDistribution(slices.Clone(values), 0, LowerIsBetter).Percentile(p)
		if estimate, low, high, ok := h.Percentile(p); !ok || exact <= low && low > 0 || exact > high || estimate < low || estimate > high {
			t.Fatalf("p%v is %v, said to be %v in (%v, %v]", p, exact, estimate, low, high)
		}
	}
}

func TestThin(t *testing.T) {
	s := Series{Metric: "waiting"}
	for i := range 3 * maxPoints {
		s.At, s.Values = append(s.At, int64(i)), append(s.Values, float64(i%7))
	}
	s.Values[1234] = 99
	s.Thin()
	if len(s.At) > maxPoints || len(s.At) < maxPoints/2 || len(s.At) != len(s.Values) || slices.Max(s.Values) != 99 || !slices.IsSorted(s.At) {
		t.Errorf("%d points, the most %v", len(s.At), slices.Max(s.Values))
	}
	s = Series{At: []int64{1, 2}, Values: []float64{3, 4}}
	s.Thin()
	must.Same(t, "", Series{At: []int64{1, 2}, Values: []float64{3, 4}}, s)
}

// toldLevel is a level of two rounds with server metrics.
func toldLevel() *Level {
	tell := func(preempted, accepted float64, g Gauge, below, above, sum float64) *Telemetry {
		return &Telemetry{
			Added: map[string]float64{
				Preempted: preempted, AcceptedTokens: accepted, DraftTokens: 100, Drafts: 50, AcceptedAt(0): 40, AcceptedAt(1): accepted - 40,
				PrefillTokens: 1000, PrefillSeconds: 0.5, CacheQueries: 1000, CacheHits: 100, Energy: 900, EnergySeconds: 3,
			},
			Gauges:     map[string]Gauge{"waiting": g, "power": {N: 2, Mean: 250, Min: 200, Max: 300}},
			Histograms: map[string]Histogram{"queue_wait": {Bounds: []float64{1}, Counts: []float64{below, above}, Sum: sum}},
			Missing:    map[string]string{"kv_usage": "the server reports no such value"},
		}
	}
	return &Level{Kind: ClosedLoop, N: 2, Rounds: []*Round{
		{Telemetry: tell(3, 70, Gauge{N: 2, Mean: 3, Min: 2, Max: 4}, 8, 2, 9)},
		{Index: 1, Telemetry: tell(4, 50, Gauge{N: 6, Mean: 1, Min: 0, Max: 9}, 10, 0, 3)},
	}}
}

func TestToldOfALevel(t *testing.T) {
	l := toldLevel()
	closeTo(t, "preemptions", l.Value("preemptions", Steady, nil, nil), 7)
	closeTo(t, "accept_rate", l.Value("accept_rate", Steady, nil, nil), 120.0/200)
	closeTo(t, "accept_length", l.Value("accept_length", Steady, nil, nil), 1+120.0/100)
	if diff := cmp.Diff([]float64{0.8, 0.4}, l.AcceptRateAt()); diff != "" { // 80/100, 40/100
		t.Error(diff)
	}
	closeTo(t, "prefill_speed", l.Value("prefill_speed", Steady, nil, nil), 2000) // 2000 tokens in 1 s
	closeTo(t, "cache_hit_rate", l.Value("cache_hit_rate", Steady, nil, nil), 0.1)
	if g, why := l.Gauge("waiting"); why != "" || g != (Gauge{N: 8, Mean: 1.5, Min: 0, Max: 9}) { // (2·3 + 6·1)/8
		t.Errorf("waiting %+v %q", g, why)
	}
	h, why := l.Histogram("queue_wait")
	must.Hold(t, why == "" && h.Sum == 12 && h.Counts[0] == 18 && h.Counts[1] == 2, "queue_wait %+v %q", h, why)
	// SGLang tells means.
	for _, r := range l.Rounds {
		r.Telemetry.Gauges["accept_length"] = Gauge{N: 1, Mean: 2.5, Min: 2.5, Max: 2.5}
	}
	closeTo(t, "accept_length by a mean", l.Value("accept_length", Steady, nil, nil), 2.5)
}

// A failed reading may hide the longest queue, so at most one of 20 may fail. With fewer than 20
// readings, one may fail.
func TestMissedReadings(t *testing.T) {
	for _, tt := range []struct {
		n, missed [2]int // of two rounds
		why       string
	}{
		{[2]int{2, 6}, [2]int{0, 0}, ""},
		{[2]int{1, 1}, [2]int{0, 1}, ""}, // one costs nothing
		{[2]int{10, 20}, [2]int{1, 1}, "2 of 32 readings failed: 503"},
		{[2]int{18, 20}, [2]int{1, 1}, ""}, // 2 of 40
		{[2]int{37, 19}, [2]int{3, 0}, "3 of 59 readings failed: 503"},
		{[2]int{37, 20}, [2]int{3, 0}, ""}, // 3 of 60
	} {
		l := toldLevel()
		for i, r := range l.Rounds {
			r.Telemetry.Gauges["waiting"] = Gauge{N: tt.n[i], Max: 4, Missed: tt.missed[i], Why: "503"}
		}
		g, why := l.Gauge("waiting")
		must.Hold(t, why == tt.why && (why == "") == (g.N > 0), "%v with %v missed: %+v %q, want %q", tt.n, tt.missed, g, why, tt.why)
	}
}

// A level has a value of a server's metric only if each of its rounds has one.
func TestToldByAll(t *testing.T) {
	for name, spoil := range map[string]func(l *Level) string{
		"a round was not asked": func(l *Level) string {
			l.Rounds[1].Telemetry = nil
			return "it is missing in 1 of 2 rounds: nothing was read from the server's metrics"
		},
		"a round has a reason": func(l *Level) string {
			delete(l.Rounds[1].Telemetry.Gauges, "waiting")
			delete(l.Rounds[1].Telemetry.Histograms, "queue_wait")
			delete(l.Rounds[1].Telemetry.Added, Preempted)
			for _, n := range []string{"waiting", "queue_wait", "preemptions"} {
				l.Rounds[1].Telemetry.Missing[n] = "500"
			}
			return "it is missing in 1 of 2 rounds: 500"
		},
		"no round": func(l *Level) string { l.Rounds = nil; return "no round was run" },
		"not run":  func(l *Level) string { l.Skipped = "not selected"; return "the level was not run: not selected" },
	} {
		l := toldLevel()
		want := spoil(l)
		g, why := l.Gauge("waiting")
		must.Hold(t, why == want && g.N == 0, "%s: waiting %+v %q, want %q", name, g, why, want)
		if _, why := l.Histogram("queue_wait"); why != want {
			t.Errorf("%s: queue_wait %q, want %q", name, why, want)
		}
		checkNone(t, name+": preemptions", l.Value("preemptions", Steady, nil, nil))
	}
	// A damaged record.
	for _, h := range []Histogram{{}, {Counts: []float64{1, 2, 3}}, {Bounds: []float64{1}, Counts: []float64{-1, 3}}, {Bounds: []float64{2, 1}, Counts: []float64{1, 1, 1}}} {
		l := toldLevel()
		l.Rounds[1].Telemetry.Histograms["queue_wait"] = h
		_, why := l.Histogram("queue_wait")
		must.Hold(t, why == "it is missing in 1 of 2 rounds: the server reports no such value", "%+v: %q", h, why)
	}
	l := toldLevel()
	l.Rounds[1].Telemetry.Gauges["waiting"] = Gauge{N: -2, Mean: 1}
	g, why := l.Gauge("waiting")
	must.Hold(t, why != "" && g.N == 0, "%+v, %q", g, why)
	l = toldLevel()
	l.Rounds[1].Telemetry.Histograms["queue_wait"] = Histogram{Bounds: []float64{2}, Counts: []float64{1, 1}}
	if _, why := l.Histogram("queue_wait"); why != "the buckets of the server's histogram changed between rounds" {
		t.Errorf("mixed buckets: %q", why)
	}
	l = toldLevel()
	for _, r := range l.Rounds {
		r.Telemetry.Histograms["queue_wait"] = Histogram{Bounds: []float64{1}, Counts: []float64{0, 0}}
	}
	if _, why := l.Histogram("queue_wait"); why != "the server finished no request in the window" {
		t.Errorf("an empty histogram: %q", why)
	}
	// A round that was too short for a reading does not change the level's result.
	l = toldLevel()
	delete(l.Rounds[0].Telemetry.Gauges, "waiting")
	l.Rounds[0].Telemetry.Missing["waiting"] = TooShort
	if g, why := l.Gauge("waiting"); why != "" || g.N != 6 {
		t.Errorf("a short round: %+v %q", g, why)
	}
	delete(l.Rounds[1].Telemetry.Gauges, "waiting")
	l.Rounds[1].Telemetry.Missing["waiting"] = TooShort
	if _, why := l.Gauge("waiting"); why != TooShort {
		t.Errorf("short rounds: %q", why)
	}
}

func TestCosts(t *testing.T) {
	// Each window lasts 1 s and has 100 tokens: 100 tok/s. The GPUs use 600 J in 2 s: 300 W.
	l := toldLevel()
	for _, r := range l.Rounds {
		r.WindowStart, r.WindowEnd = time.Second, 2*time.Second
		r.Samples = []*Sample{{Phase: Measured, Sent: time.Second, First: 1500 * time.Millisecond, Last: 1500 * time.Millisecond, End: 1600 * time.Millisecond,
			Chunks: 1, Usage: &Usage{Input: 10, Output: 100}}}
	}
	windows := l.Windows(Steady)
	closeTo(t, "energy_per_token", l.Value("energy_per_token", Steady, nil, nil), 3) // 1800 J in 6 s are 300 W; 300 W / 100 tok/s = 3 J per token
	closeTo(t, "cost_per_hour", l.Cost("cost_per_hour", Price{Hour: 2.5}, windows), 2.5)
	// 250 W at a price of 0.20 per kWh cost 0.05 per hour. The server costs 2.50 per hour.
	closeTo(t, "cost_per_hour", l.Cost("cost_per_hour", Price{Hour: 2.5, Electricity: 0.2}, windows), 2.55)
	// 360,000 tokens an hour
	closeTo(t, "cost_per_million_tokens", l.Cost("cost_per_million_tokens", Price{Hour: 2.5}, windows), 2.5/0.36)
	checkNone(t, "without prices", l.Cost("cost_per_hour", Price{}, windows))
	checkNone(t, "without a window", l.Cost("cost_per_million_tokens", Price{Hour: 2.5}, nil))
	checkNone(t, "no price", l.Cost("ttft", Price{Hour: 2.5}, windows))
	for _, r := range l.Rounds {
		delete(r.Telemetry.Added, Energy)
	}
	// 250 W / 100 tok/s = 2.5 J a token
	closeTo(t, "energy by power", l.Value("energy_per_token", Steady, nil, nil), 2.5)
	delete(l.Rounds[0].Telemetry.Gauges, "power")
	checkNone(t, "electricity without power", l.Cost("cost_per_hour", Price{Hour: 2.5, Electricity: 0.2}, windows))
	checkNone(t, "energy without power", l.Value("energy_per_token", Steady, nil, nil))
}

// The rounds at whose edges the server's page was read show what it reports. A recording from a
// server whose counters went back shows nothing of the kind.
func TestToldByMost(t *testing.T) {
	round := func(t Telemetry) *Round { return &Round{Telemetry: &t} }
	read := round(Telemetry{From: 1, To: 2, Added: map[string]float64{Preempted: 3}})
	late := round(Telemetry{Missing: map[string]string{Preempted: "no two readings are close enough"}})
	back := round(Telemetry{From: 1, To: 2, Restarted: true})
	for _, tt := range []struct {
		name    string
		rounds  []*Round
		rounded int // rounds of the result
		added   float64
		lacking string
	}{
		{"all", []*Round{read, read}, 2, 6, ""},
		{"two of three", []*Round{read, late, read}, 2, 6, "the server's own counters and histograms are those of 2 of 3 rounds. Of the others: no two readings are close enough"},
		{"none", []*Round{late, late}, 2, 0, ""},
		{"a restart", []*Round{read, late, back}, 3, 0, ""},
		{"not read", []*Round{read, late, {}}, 3, 0, ""},
		{"no round", nil, 0, 0, ""},
	} {
		l := &Level{Rounds: tt.rounds}
		told, lacking := l.Told()
		if len(told.Rounds) != tt.rounded || told.Added(Preempted).V != tt.added || lacking != tt.lacking {
			t.Errorf("%s: %d rounds, %v, %q", tt.name, len(told.Rounds), told.Added(Preempted), lacking)
		}
		must.Hold(t, tt.lacking == "" || !l.Added(Preempted).OK, "%s: the whole level has a value", tt.name)
	}
}
