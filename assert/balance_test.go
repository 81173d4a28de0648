package assert

import (
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// behind gives the level's replicas output tokens, in a round of 100 requests of equal length.
func behind(tokens ...float64) *metric.Level {
	l := telemetryLevel(1, func(int) *metric.Telemetry { return &metric.Telemetry{} })
	for i, n := range tokens {
		l.Replicas = append(l.Replicas, metric.Replica{URL: "http://" + string(rune('a'+i)), Added: map[string]float64{metric.GeneratedTokens: n}})
	}
	return l
}

func TestBalance(t *testing.T) {
	const uneven, chance = "are loaded unevenly", "chance alone"
	for _, tt := range []struct {
		name    string
		level   *metric.Level
		turns   int // of each conversation; 0 without conversations
		limit   float64
		value   float64 // 0: none
		outcome verdict.Outcome
		say     string
	}{
		// 100 requests over four replicas. Of shares p, the test is that of p·100 of 100 against the
		// allowed limit/4.
		{"even", behind(25, 25, 25, 25), 0, 2, 1, verdict.Pass, ""},
		{"70 10 10 10", behind(700, 100, 100, 100), 0, 2, 2.8, verdict.Fail, uneven},
		{"by chance", behind(32, 26, 22, 20), 0, 2, 1.28, verdict.Pass, ""},
		{"near the limit", behind(32, 26, 22, 20), 0, 1.2, 1.28, verdict.Inconclusive, ""},
		{"any spread is within a limit of four", behind(100, 0, 0, 0), 0, 4, 4, verdict.Pass, uneven},
		// Ten conversations of ten turns count as five: even 3 of 5 on one of four replicas is chance.
		{"few conversations", behind(600, 100, 200, 100), 10, 1.5, 2.4, verdict.Inconclusive, chance},
		{"no replicas", behind(), 0, 2, 0, verdict.Error, ""},
		{"one replica", behind(100), 0, 2, 0, verdict.Error, ""},
		{"no tokens", behind(0, 0), 0, 2, 0, verdict.Error, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for i, x := range tt.level.Rounds[0].Samples {
				if tt.turns > 0 {
					x.Turn = 1 + i%tt.turns
				}
			}
			limit := &plan.Threshold{Metric: metric.MustLookup("imbalance"), Op: plan.Less, Limit: tt.limit}
			p, run := gate(tt.level, limit)
			all := Judge(p, run, Options{})
			v := verdictOf(t, all, "sla.imbalance at "+tt.level.Name)
			if v.Outcome != tt.outcome || v.Value.V != tt.value || v.Value.OK != (tt.value > 0) {
				t.Errorf("%v %v, want %v %v: %s", v.Outcome, v.Value, tt.outcome, tt.value, v.Message)
			}
			if tt.outcome == verdict.Inconclusive && v.Needs == "" {
				t.Error("it does not say what it needs")
			}
			load := verdictOf(t, all, "load at "+tt.level.Name)
			said := strings.Join(load.NotesOf(), "\n")
			for _, words := range []string{uneven, chance} {
				if strings.Contains(said, words) != (words == tt.say) {
					t.Errorf("want %q, said %q", tt.say, said)
				}
			}
		})
	}
}

// A replica whose counters are not known in one round leaves the level without a value.
func TestBalanceOfAReplicaThatWasNotRead(t *testing.T) {
	l := behind(50, 50)
	x := &l.Replicas[1]
	x.Added, x.Missing = nil, "it was not read"
	p, run := gate(l, &plan.Threshold{Metric: metric.MustLookup("imbalance"), Op: plan.Less, Limit: 2})
	if v := verdictOf(t, Judge(p, run, Options{}), "sla.imbalance at "+l.Name); v.Outcome != verdict.Error || !strings.Contains(v.Message, "http://b: it was not read") {
		t.Errorf("%v: %s", v.Outcome, v.Message)
	}
}
