package assert

import (
	"math"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
)

// The chances that tokgate validate prints agree with simulated comparisons.
func TestLongChances(t *testing.T) {
	policy := plan.Policy{Confidence: 0.95, Decide: plan.Certified, OnInconclusive: plan.Stop}
	const n = 300
	for i, row := range []struct {
		claim string
		d     duels
	}{
		{"ttft p95 +10%", usual},
		// For a mean, requests stands for what is left of the noise when both servers get the same prompts.
		{"ttft mean +2%", duels{rounds: 8, perRound: 50, requests: 0.1, starts: 0.01, restart: plan.RestartLeg}},
		{"ttft p95 +5%", usual},
		{"ttft p95 +4%", duels{rounds: 8, perRound: 600, requests: 0.3, starts: 0.01, restart: plan.RestartNever}},
	} {
		claim := tolerate(row.claim)
		ch := claim.Changes[0]
		row.d.stat = ch.Stat
		c := &plan.Compare{Restart: row.d.restart, Policy: policy, Control: plan.Control{Server: &plan.Server{}}, Rounds: row.d.rounds}
		foretold := foretell(c, claim, plan.Level{Name: "4", N: 4, Requests: row.d.rounds * row.d.perRound, Rounds: row.d.rounds})
		got := row.d.judgeAll(n, uint64(300+i), 0, ch.Limit)
		if seen := got.share(got.pass); !(math.Abs(foretold-seen) <= 0.03+3*math.Sqrt(0.25/n)) {
			t.Errorf("%s: foretold %.2f, simulated %.2f", row.claim, foretold, seen)
		}
	}
}

// If the policy judges by estimates, a change passes if its estimate is within the limit. The starts
// of each server vary by 1 %, so the difference of two servers varies by √2 · 1 % = 1.414 % in a
// round, and by 1.414 % / √8 = 0.5 % over 8 rounds. The limit of 1 % is two standard deviations. So
// an unchanged candidate passes with probability Φ(2) = 97.7 %.
func TestChanceOfAnEstimate(t *testing.T) {
	c := &plan.Compare{Restart: plan.RestartLeg, Policy: plan.Policy{Confidence: 0.95, Decide: plan.Estimate, OnInconclusive: plan.Extend}, Rounds: 8}
	got := foretell(c, tolerate("ttft mean +1%"), plan.Level{Name: "4", N: 4, Requests: 8_000_000, Rounds: 8})
	if !(math.Abs(got-0.977) <= 0.015) { // three standard errors of a thousand simulations
		t.Errorf("%.3f", got)
	}
}

// foretell returns the chance that one change at one level of a comparison passes. It is NaN if the
// chance is unknown, or if the change cannot pass.
func foretell(c *plan.Compare, claim *plan.Claim, level plan.Level) float64 {
	w := &plan.Workload{Name: "chat", Loads: []*plan.Load{{Levels: []plan.Level{level}}}}
	claim.Workloads, claim.At = []*plan.Workload{w}, []string{level.Name}
	c.Claims = []*plan.Claim{claim}
	got := compare.Chances(&plan.Plan{Compares: []*plan.Compare{c}})[0].Changes
	if len(got) != 1 || got[0].Impossible {
		return math.NaN()
	}
	return got[0].Passes
}

// Both servers get the same prompts, so most of the noise of requests cancels in a difference of
// means: 25 requests a leg leave 10 % / √25 = 2 %. With starts of 1 %, the mean of one leg varies by
// √(2² + 1²) = 2.24 %, a difference by √2 · 2.24 % = 3.16 %, and the mean of eight by 1.12 %. A limit
// of +5 % (4.88 % as a logarithm) is 4.37 of these away, and the t bound with 7 degrees of freedom
// takes 1.89 of them: a pass needs less than +2.47 of a t value, so an unchanged candidate passes in
// more than 95 %. With requests of 30 % on each side it would pass in 41 %.
func TestChanceOfSharedPrompts(t *testing.T) {
	policy := plan.Policy{Confidence: 0.95, Decide: plan.Certified, OnInconclusive: plan.Stop}
	c := &plan.Compare{Restart: plan.RestartLeg, Policy: policy, Control: plan.Control{Server: &plan.Server{}}, Rounds: 8}
	got := foretell(c, tolerate("e2e mean +5%"), plan.Level{Name: "4", N: 4, Requests: 200, Rounds: 8})
	must.Hold(t, got > 0.95 && got < 1, "e2e mean +5%%: %.3f, want 0.95 to 1", got)
}

func TestChanceDiagnostics(t *testing.T) {
	for _, row := range []struct {
		perRound int
		claims   []*plan.Claim
		want     string // summary of the expected diagnostic; "" if none is expected
	}{
		{200, []*plan.Claim{tolerate("ttft p95 +10%", "success rate -1pp")}, ""},
		{20, []*plan.Claim{tolerate("ttft p95 +10%")}, "Comparison is often inconclusive"},
		// Each side has 8 rounds of 4 requests. Even if none of these 32 requests fails, a loss of
		// one percentage point cannot be excluded.
		{4, []*plan.Claim{tolerate("success rate -1pp")}, "Change can never be certified"},
		{20, []*plan.Claim{improve("ttft p95 -10%")}, ""},
	} {
		p, _ := duel{rounds: 8, perRound: row.perRound, claims: row.claims}.make()
		var got []string
		for _, d := range CertifyDiagnostics(p) {
			got = append(got, d.Summary)
		}
		if strings.Join(got, ",") != row.want {
			t.Errorf("%d requests, %s: %q, want %q", row.perRound, row.claims[0].Changes[0].Text, got, row.want)
		}
	}
}
