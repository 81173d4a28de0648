package nights

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// A change for the worse within what is accepted passes; the reference stays where it was, so that a
// further change fails.
func TestAcceptedNights(t *testing.T) {
	then := func(days int, times float64) []float64 {
		out := steady(days)
		for i := range out {
			out[i] *= times
		}
		return out
	}
	creeping := steady(40)
	for i := 20; i < 40; i++ {
		creeping[i] *= 1 + 0.01*float64(i-19)
	}
	accept := metric.Accept{Name: "a", Of: metric.AcceptNights, Workloads: []string{"chat"}, At: []string{"30"},
		Metric: "ttft", Stat: "p95", Limit: 0.12, Text: "p95 +12%", Until: time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC), Why: "v3"}
	for _, tt := range []struct {
		name     string
		values   []float64
		alter    func(*metric.Accept)
		want     verdict.Outcome
		accepted string
		says     string // in the message of the series, or in a remark
	}{
		{"nothing changed", steady(40), nil, verdict.Pass, "", "no longer needed"},
		{"within", slices.Concat(steady(30), then(10, 1.08)), nil, verdict.Pass, "a", "accepted until 2027-01-31 by accept.a: p95 +12% instead of no change (v3)"},
		{"two nights of it", slices.Concat(steady(30), then(2, 1.08)), nil, verdict.Pass, "a", "by accept.a"},
		{"beyond", slices.Concat(steady(30), then(10, 1.2)), nil, verdict.Fail, "", "beyond p95 +12%, which accept.a accepts"},
		{"beyond it later", slices.Concat(steady(30), then(20, 1.08), then(2, 1.2)), nil, verdict.Fail, "", "beyond"},
		{"creeps within", creeping[:28], nil, verdict.Pass, "a", "by accept.a"},
		{"creeps beyond", creeping, nil, verdict.Fail, "", "beyond"},
		{"far more than the change", slices.Concat(steady(30), then(10, 1.08)), func(a *metric.Accept) { a.Limit = 0.4 }, verdict.Pass, "a", "too wide"},
		{"every workload", slices.Concat(steady(30), then(10, 1.08)), func(a *metric.Accept) { a.Workloads, a.At = nil, nil }, verdict.Pass, "a", "by accept.a"},
		{"another workload", slices.Concat(steady(30), then(10, 1.08)), func(a *metric.Accept) { a.Workloads[0] = "rag" }, verdict.Fail, "", "every night fails"},
		{"another level", slices.Concat(steady(30), then(10, 1.08)), func(a *metric.Accept) { a.At = []string{"8"} }, verdict.Fail, "", "every night fails"},
		{"another statistic", slices.Concat(steady(30), then(10, 1.08)), func(a *metric.Accept) { a.Stat = "p50" }, verdict.Fail, "", "every night fails"},
		{"of a comparison", slices.Concat(steady(30), then(10, 1.08)), func(a *metric.Accept) { a.Of = "compare.c" }, verdict.Fail, "", "every night fails"},
		{"not measured", append(steady(40), -1), nil, verdict.Error, "", ""},
	} {
		h := nightsOf(ttftTrend, tt.values...)
		a := accept
		a.Workloads = slices.Clone(accept.Workloads)
		if tt.alter != nil {
			tt.alter(&a)
		}
		h.Nights[len(h.Nights)-1].Accepts = []metric.Accept{a}
		got := Judge(h, Options{Ignore: 0.01})
		x := got.Trends[slices.IndexFunc(got.Trends, func(t Trend) bool { return t.Metric == "ttft" })]
		said := x.Message + "\n" + strings.Join(got.Remarks, "\n")
		if got.Outcome != tt.want || x.Outcome != tt.want || x.Accepted != tt.accepted || !strings.Contains(said, tt.says) {
			t.Errorf("%s: %v (series %v) by %q, want %v by %q and %q:\n%s", tt.name, got.Outcome, x.Outcome, x.Accepted, tt.want, tt.accepted, tt.says, said)
		}
	}
}
