package assert

import (
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// counted returns a level of five rounds of twelve requests. Each request has a TTFT of 1 s and an
// E2E of 1.2 s. The server's own histograms have n requests per round; their means are the
// parameters ttft, itl and e2e, in seconds. The map added holds further counters of the server.
func counted(n, ttft, itl, e2e float64, added map[string]float64) *metric.Level {
	l := shape{rounds: 5, perRound: 12}.level()
	for _, r := range l.Rounds {
		h := func(n, mean float64) metric.Histogram {
			return metric.Histogram{Bounds: []float64{mean}, Counts: []float64{n, 0}, Sum: n * mean}
		}
		r.Telemetry = &metric.Telemetry{From: r.Start, To: r.End, Added: map[string]float64{metric.GeneratedTokens: 12 * 11},
			Histograms: map[string]metric.Histogram{"server_ttft": h(n, ttft), "server_itl": h(10*n, itl), "server_e2e": h(n, e2e)}}
		for name, v := range added {
			r.Telemetry.Added[name] = v
		}
	}
	return l
}

func TestWitness(t *testing.T) {
	// seconds makes a level whose engine reports seconds instead of a histogram. Of the 12 × 11
	// tokens in a round, 120 are not the first of their answer.
	seconds := func(tokens, step float64) *metric.Level {
		l := counted(12, 1, 1, 1, map[string]float64{metric.GeneratedTokens: tokens, metric.GeneratedSeconds: 120 * step})
		for _, r := range l.Rounds {
			r.Telemetry.Histograms = nil
		}
		return l
	}
	for _, tt := range []struct {
		name  string
		level *metric.Level
		want  []string // the expected notes, one text for each
	}{
		{"seconds agree", seconds(132, 0.02), nil},
		{"seconds of slower tokens", seconds(132, 0.1), []string{"ITL by the server is 100 ms, but tokgate measured 20 ms (-80%)"}},
		{"seconds of other answers", seconds(160, 0.1), nil}, // 148 tokens after first ones, not 120
		{"no seconds", seconds(132, 0), nil},
		{"agree", counted(12, 1, 0.02, 1.2, nil), nil},
		{"HTTP before it", counted(12, 0.8, 0.02, 1.0, nil), nil},                                // HTTP takes 0.2 s
		{"a proxy before it", counted(12, 0.5, 0.02, 0.7, nil), []string{"+100%", "E2E", ""}},    // the proxy takes 0.5 s
		{"later than the client's", counted(12, 1.2, 0.02, 1.2, nil), []string{"1.2 s", "-17%"}}, // the server counts 0.2 s more than the client
		{"slower tokens", counted(12, 1, 0.1, 2, nil), []string{"E2E by the server is 2 s", "ITL by the server is 100 ms, but tokgate measured 20 ms (-80%)"}},
		{"tokens in steps", counted(12, 1, 0.04, 1.2, map[string]float64{metric.Drafts: 60}), nil},
		{"other requests", counted(14, 0.1, 0.1, 0.1, nil), nil}, // the server counted 14 requests, not 12
		{"nothing read", shape{rounds: 5, perRound: 12}.level(), nil},
		{"too few", func() *metric.Level {
			l := counted(12, 0.1, 0.1, 0.1, nil)
			l.Rounds = l.Rounds[:1]
			return l
		}(), nil},
	} {
		got := strings.Join(witnessed(tt.level), "\n")
		must.Hold(t, len(tt.want) != 0 || got == "", "%s: %s", tt.name, got)
		for _, w := range tt.want {
			must.Hold(t, got != "" && strings.Contains(got, w), "%s: nothing says %q: %q", tt.name, w, got)
		}
	}
}

// If usage does not report cached tokens, the server's own counters show how many came from a
// cache. Of 1,000 tokens of a prompt, at most 84 may: 64 for the chat template, and a tolerance of
// 2%.
func TestCountedHits(t *testing.T) {
	for _, tt := range []struct {
		name  string
		added map[string]float64
		want  verdict.Outcome
		says  string
	}{
		{"none", map[string]float64{metric.CacheQueries: 12_000, metric.CacheHits: 0}, verdict.Pass, "server's counters (0 of 60000"},
		{"the template", map[string]float64{metric.CacheQueries: 12_000, metric.CacheHits: 1008}, verdict.Pass, "5040 of 60000"},
		{"more", map[string]float64{metric.CacheQueries: 12_000, metric.CacheHits: 1009}, verdict.Error, "cache: by the server's own count, 5045 of 60000 prompt tokens came from a cache"},
		{"its own prompts again", map[string]float64{metric.CacheQueries: 12_000, metric.CacheHits: 3000, metric.Preempted: 1}, verdict.Pass, "cannot be used instead: a preempted request that restarts finds its own prompt in the cache"},
		{"no queries", map[string]float64{metric.CacheHits: 3000}, verdict.Pass, "cannot be used instead: the telemetry of the server has no series of this name"},
		{"no prompt looked up", map[string]float64{metric.CacheQueries: 0, metric.CacheHits: 0}, verdict.Pass, "not checked"},
		{"another server's page", map[string]float64{metric.CacheQueries: 12_000, metric.CacheHits: 3000, metric.GeneratedTokens: 1}, verdict.Pass, "not checked"},
	} {
		l := counted(12, 1, 0.02, 1.2, tt.added)
		for _, x := range l.MeasuredSamples() {
			x.Usage.Cached = -1
		}
		p, run := gate(l)
		v := verdictOf(t, Judge(p, run, Options{}), "load at 4")
		all := v.Message + "\n" + strings.Join(v.NotesOf(), "\n")
		must.Hold(t, v.Outcome == tt.want && strings.Contains(all, tt.says), "%s: %s, want %s and %q:\n%s", tt.name, v.Outcome, tt.want, tt.says, all)
	}
}

// The page of one round of five was read late. The cache is checked in the four others: of their
// 48,000 tokens at most 4,032 may come from it. A threshold on a figure of the page has no value.
func TestLateReading(t *testing.T) {
	const late = "no two readings are close enough to the edges of the window of 2.781s"
	for _, tt := range []struct {
		hits float64 // in each round
		late int     // rounds
		want verdict.Outcome
		says string
	}{
		{1008, 1, verdict.Pass, "(4032 of 48000 prompt tokens)"},
		{1009, 1, verdict.Error, "cache: by the server's own count, 4036 of 48000 prompt tokens came from a cache"},
		{1008, 1, verdict.Pass, "the server's own counters and histograms are those of 4 of 5 rounds. Of the others: " + late},
		{1009, 5, verdict.Pass, "cache hits were not checked: the server's usage does not report cached tokens, and its counters cannot be used instead: " + late},
	} {
		l := counted(12, 1, 0.02, 1.2, map[string]float64{metric.CacheQueries: 12_000, metric.CacheHits: tt.hits})
		for _, x := range l.MeasuredSamples() {
			x.Usage.Cached = -1
		}
		for _, r := range l.Rounds[:tt.late] {
			r.Telemetry = &metric.Telemetry{Missing: map[string]string{}}
			for _, name := range []string{metric.Preempted, metric.CacheQueries, metric.CacheHits, "server_ttft"} {
				r.Telemetry.Missing[name] = late
			}
		}
		p, run := gate(l, threshold("server_ttft", "p95 < 2s"))
		all := Judge(p, run, Options{})
		v := verdictOf(t, all, "load at 4")
		if said := v.Message + "\n" + strings.Join(v.NotesOf(), "\n"); v.Outcome != tt.want || !strings.Contains(said, tt.says) {
			t.Errorf("%v hits, %d late: %s, want %s and %q:\n%s", tt.hits, tt.late, v.Outcome, tt.want, tt.says, said)
		}
		if v := verdictOf(t, all, "sla.server_ttft.p95 at 4"); v.Outcome == verdict.Pass || tt.want == verdict.Pass && !strings.Contains(v.Message, late) {
			t.Errorf("%d late: %s: %s", tt.late, v.Outcome, v.Message)
		}
	}
}
