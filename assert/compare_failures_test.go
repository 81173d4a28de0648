package assert

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

var failuresTable = flag.String("failures-table", "", "write how often equal servers that fail requests stay undecided to this file, as Markdown")

// firstOf returns a function that lets the first k requests of a comparison of 8 rounds of 20 fail,
// spread over the rounds.
func firstOf(k int) func(round, i int) bool {
	return func(round, i int) bool { return (8*i+round)%160 < k }
}

// A limit on a percentile or on throughput implies that the candidate fails few more requests than
// the control. Of 160 requests a side, 1.6 are 1 %.
func TestCompareRefusing(t *testing.T) {
	const implied = "compare.ab.tolerate.success.rate at 4"
	for _, c := range []struct {
		name               string
		claims             []*plan.Claim
		control, candidate int
		want               verdict.Outcome // of the implied limit
	}{
		{"nothing fails", []*plan.Claim{tolerate("throughput -5%")}, 0, 0, verdict.Pass},
		{"one more", []*plan.Claim{tolerate("throughput -5%")}, 0, 1, verdict.Pass},
		{"two more, 1.25 %", []*plan.Claim{tolerate("throughput -5%")}, 0, 2, verdict.Inconclusive},
		{"as many", []*plan.Claim{tolerate("throughput -5%")}, 5, 5, verdict.Pass},
		{"fewer", []*plan.Claim{tolerate("throughput -5%")}, 5, 0, verdict.Pass},
		{"a third", []*plan.Claim{tolerate("throughput -50%")}, 0, 56, verdict.Fail},
		{"a third, of a percentile", []*plan.Claim{tolerate("ttft p50 +15%")}, 0, 56, verdict.Fail},
	} {
		p, run := duel{rounds: 8, perRound: 20, controlFails: firstOf(c.control), candidateFails: firstOf(c.candidate), claims: c.claims}.make()
		v := Judge(p, run, Options{})
		got := verdictOf(t, v, implied)
		must.Hold(t, got.Outcome == c.want && (c.want != verdict.Inconclusive || got.Needs != ""), "%s: %v %q, want %v", c.name, got.Outcome, got.Message, c.want)
		must.Hold(t, c.want == verdict.Pass || v.Outcome != verdict.Pass, "%s: the run passes", c.name)
	}
	for _, c := range []struct {
		name   string
		claims []*plan.Claim
		want   string // outcomes of limits on success
	}{
		{"means have a stricter rule", []*plan.Claim{tolerate("ttft mean +10%")}, ""},
		{"a written limit replaces it", []*plan.Claim{tolerate("throughput -50%", "success rate -60pp")}, "pass "},
		{"nothing is required", nil, ""},
	} {
		p, run := duel{rounds: 8, perRound: 20, candidateFails: firstOf(56), claims: c.claims}.make()
		got := ""
		for _, x := range Judge(p, run, Options{}).List {
			if x.Name == implied {
				got += x.Outcome.String() + " "
			}
		}
		must.Hold(t, got == c.want, "%s: %q, want %q", c.name, got, c.want)
	}
}

// TestLongFailuresOfEqualServers counts how often two equal servers that fail requests stay
// undecided, by the implied limit alone. That is its price. They never fail more often than the
// comparison's error allows.
func TestLongFailuresOfEqualServers(t *testing.T) {
	n := *gates
	r := rand.New(rand.NewPCG(1, 1))
	var b strings.Builder
	fmt.Fprintf(&b, "**Equal servers that fail requests: the limit that a comparison implies, %d comparisons a row**\n\n", n)
	b.WriteString("| requests a side | both fail | undecided | fail |\n|---:|---:|---:|---:|\n")
	for _, perRound := range []int{10, 20} {
		for _, share := range []float64{0, 0.01, 0.02, 0.05} {
			var undecided, red int
			chance := func(int, int) bool { return r.Float64() < share }
			for range n {
				p, run := duel{rounds: 8, perRound: perRound, controlFails: chance, candidateFails: chance, claims: []*plan.Claim{tolerate("throughput -50%")}}.make()
				switch verdictOf(t, Judge(p, run, Options{}), "compare.ab.tolerate.success.rate at 4").Outcome {
				case verdict.Inconclusive:
					undecided++
				case verdict.Fail:
					red++
				}
			}
			fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", 8*perRound, metric.Format(metric.Ratio, share), metric.Format(metric.Ratio, float64(undecided)/float64(n)), metric.Format(metric.Ratio, float64(red)/float64(n)))
			most := func(p float64) int { // three standard errors above p
				return int(float64(n)*p + 3*math.Sqrt(float64(n)*p*(1-p)))
			}
			if red > most(0.05) || undecided > most(0.35) || share == 0 && undecided+red > 0 {
				t.Errorf("%d requests, of which %v fail: %d undecided and %d failed of %d", 8*perRound, share, undecided, red, n)
			}
		}
	}
	t.Log("\n" + b.String())
	if *failuresTable != "" {
		must.Do(t, os.WriteFile(*failuresTable, []byte(b.String()), 0o644))
	}
}
