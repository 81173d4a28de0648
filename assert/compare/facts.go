package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/tokgate/tokgate/assert/stat"
)

// test is the test of one claim: that a change exceeds its limit. Several tests are judged
// together.
type test struct {
	workload string
	units    []float64 // for each pair of rounds: its change beyond the limit; otherwise nil
	p        float64   // p-value of this claim alone
}

// testOf returns the test of the claim that the change d exceeds limit. The p-value of the test is
// p.
func testOf(workload string, d delta, limit, p float64) test {
	t := test{workload: workload, p: p}
	if d.unpaired || d.starts != nil || d.infinite() || d.counts != nil || p == 0 {
		return t
	}
	for _, x := range d.units {
		t.units = append(t.units, x-limit)
	}
	return t
}

// certain reports which claims are certain. The probability that even one of them is false is at
// most alpha.
//
// Tests on the same rounds of a workload depend on each other, so they form one group, a fact. The
// facts share alpha by Holm's rule, and sign flips (stat.Flips) decide the tests of a fact. If
// rounds are too few for a fact to become certain in this way, each test is its own fact. nominal
// returns the error that one test may use if several looks share the given error.
func certain(tests []test, alpha float64, nominal func(alpha float64) float64) []bool {
	facts := factsOf(tests)
	for _, f := range facts {
		if n := len(tests[f[0]].units); len(f) > 1 && float64(len(facts))*math.Ldexp(1, -n) > alpha {
			facts = nil
			for i := range tests {
				facts = append(facts, []int{i})
			}
			break
		}
	}
	p := make([]float64, len(tests))
	for _, f := range facts {
		if len(f) == 1 {
			p[f[0]] = tests[f[0]].p
			continue
		}
		var units [][]float64
		for _, i := range f {
			units = append(units, tests[i].units)
		}
		for k, x := range stat.Flips(units) {
			p[f[k]] = x
		}
	}
	least := func(f []int) float64 {
		out := math.Inf(1)
		for _, i := range f {
			if p[i] < out { // NaN never is
				out = p[i]
			}
		}
		return out
	}
	slices.SortStableFunc(facts, func(a, b []int) int { return cmp.Compare(least(a), least(b)) })
	out := make([]bool, len(tests))
	for k, f := range facts {
		allowed := nominal(alpha / float64(len(facts)-k))
		if !(least(f) <= allowed) {
			break
		}
		for _, i := range f {
			out[i] = p[i] <= allowed
		}
	}
	return out
}

// factsOf groups tests into facts, and returns the indices of each fact's tests. A fact is a group
// of tests that depend on each other: tests of the same workload with the same number of paired
// rounds. Every other test is its own fact.
func factsOf(tests []test) [][]int {
	type rounds struct {
		workload string
		n        int
	}
	var out [][]int
	at := map[rounds]int{}
	for i, t := range tests {
		key := rounds{t.workload, len(t.units)}
		if k, ok := at[key]; ok && t.units != nil {
			out[k] = append(out[k], i)
			continue
		}
		at[key] = len(out)
		out = append(out, []int{i})
	}
	return out
}
