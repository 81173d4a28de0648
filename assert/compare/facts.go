package compare

import (
	"math"
	"slices"

	"github.com/tokgate/tokgate/assert/stat"
)

// test is the test of the claim that one change exceeds its limit. The tests of several claims are
// judged together.
type test struct {
	workload string
	units    []float64 // for paired rounds, how far each round is beyond the claimed limit; else nil
	p        float64   // the p-value of this claim alone
}

// testOf returns the test of a claim: the change exceeds limit.
func testOf(workload string, d delta, limit, p float64) test {
	t := test{workload: workload, p: p}
	if d.unpaired || d.infinite() || d.counts != nil || p == 0 {
		return t
	}
	for _, x := range d.units {
		t.units = append(t.units, x-limit)
	}
	return t
}

// certain reports which claims are certain. The chance that even one of them is false is at most
// alpha. Tests on the same rounds of a workload depend on each other, so they form one fact. A fact
// is tested as a whole by flipping signs (stat.Flips). The facts share the allowed error by Holm's
// rule. The tests within a fact are then decided at the error of the fact. With few rounds a fact
// cannot reach a small enough error; each of its tests then counts as a fact.
func certain(tests []test, alpha float64) []bool {
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
	slices.SortStableFunc(facts, func(a, b []int) int {
		switch x, y := least(a), least(b); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	out := make([]bool, len(tests))
	for k, f := range facts {
		allowed := alpha / float64(len(facts)-k)
		if !(least(f) <= allowed) {
			break
		}
		for _, i := range f {
			out[i] = p[i] <= allowed
		}
	}
	return out
}

// factsOf groups tests into facts and returns the indices of the tests of each fact. Tests of the
// same workload with the same number of paired rounds form one fact. Any other test is a fact by
// itself.
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
