package assert

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// leftOut says whether the user left the level out on either side.
func (x *comparison) leftOut(w *plan.Workload, level string) bool {
	return slices.ContainsFunc([]string{x.out.Control, x.out.Candidate}, func(server string) bool {
		l := x.recorded[levelKey{server, w.Address(), level}]
		return l != nil && l.Skipped == metric.SkippedOnly
	})
}

// match finds both sides of a level, and says why there are none.
func (x *comparison) match(w *plan.Workload, load *plan.Load, level plan.Level) (matched, string) {
	m := matched{workload: w, level: level.Name, unpaired: !x.out.Paired, block: 1,
		price: x.judge.plan.PriceOf(x.address), priceCandidate: x.judge.plan.PriceOf(x.out.Candidate)}
	if x.out.Paired && (x.plan.Restart == plan.RestartOrder || x.out.SideBySide) {
		m.block = 2
	}
	b := x.recorded[levelKey{x.out.Candidate, w.Address(), level.Name}]
	if b == nil || b.Skipped != "" || !x.valid[levelKey{x.out.Candidate, w.Address(), level.Name}] {
		return m, "because the measurement of the candidate is not valid"
	}
	var a *metric.Level
	if x.out.Paired {
		if a = x.recorded[levelKey{x.address, w.Address(), level.Name}]; a == nil || !x.valid[levelKey{x.address, w.Address(), level.Name}] {
			return m, "because the measurement of the control is not valid"
		}
		m.one = x.recorded[levelKey{x.address, w.Address(), "1"}]
	} else {
		for _, l := range x.control.Levels {
			switch {
			case l == nil || l.Server != x.address || l.Workload != w.Address():
			case l.Name == level.Name:
				a = sound(l)
			case l.Name == "1":
				m.one = sound(l)
			}
		}
		if a == nil || a.Skipped != "" {
			return m, fmt.Sprintf("the recorded control has no %s at %s", w.Address(), level.Name)
		}
		s := subject{evidence: gather(a), workload: w, policy: w.Policy, alpha: x.alpha}
		load := Verdict{}
		s.load(&load, a.Kind, plan.Level{Name: a.Name, N: a.N, Requests: s.n}, nil)
		if load.Outcome != Pass {
			return m, "the recorded measurement of the control is not valid: " + load.Message
		}
	}
	m.oneCandidate = x.recorded[levelKey{x.out.Candidate, w.Address(), "1"}]
	if a.Kind != b.Kind || a.N != b.N {
		return m, fmt.Sprintf("the control was loaded with %s %d, the candidate with %s %d", a.Kind, a.N, b.Kind, b.N)
	}
	if a.Asked != nil && b.Asked != nil {
		asked := *a.Asked
		asked.Engine = b.Asked.Engine // what may differ is said by changed
		if differs := asked.Differs(*b.Asked); len(differs) > 0 {
			return m, "the control was sent another workload: " + strings.Join(differs, "; ")
		}
	}
	rounds := len(b.Rounds)
	if x.look != nil && x.look.Rounds > 0 {
		if rounds = x.look.Rounds; len(b.Rounds) < rounds {
			return m, fmt.Sprintf("the record holds %d of %d rounds", len(b.Rounds), rounds)
		}
	}
	m.candidate = firstRounds(b, rounds)
	if m.unpaired {
		m.control = a
		if len(a.Rounds) < leastRounds || len(b.Rounds) < leastRounds {
			return m, fmt.Sprintf("%d rounds against %d: a stored control needs at least %d on each side", len(b.Rounds), len(a.Rounds), leastRounds)
		}
	} else {
		m.control = firstRounds(a, rounds)
		if len(m.control.Rounds) != len(m.candidate.Rounds) {
			return m, fmt.Sprintf("the control has %d rounds, the candidate %d", len(m.control.Rounds), len(m.candidate.Rounds))
		}
	}
	for i := range min(len(m.control.Rounds), len(m.candidate.Rounds)) {
		p, q := m.control.Rounds[i], m.candidate.Rounds[i]
		// Percentiles of few requests differ from those of many.
		if d := p.Due - q.Due; d > 1 || d < -1 {
			return m, fmt.Sprintf("round %d has %d requests on the control and %d on the candidate", i+1, p.Due, q.Due)
		}
		if !m.unpaired && (p.Index != q.Index || p.Seed != q.Seed) {
			return m, fmt.Sprintf("the record pairs round %d (seed %d) with round %d (seed %d)", p.Index+1, p.Seed, q.Index+1, q.Seed)
		}
		if !m.unpaired && (p.Leg == nil || q.Leg == nil) {
			return m, "its rounds did not take turns"
		}
	}
	if x.out.SideBySide {
		if why := x.swapped(m); why != "" {
			return m, why
		}
	}
	x.out.Rounds = max(x.out.Rounds, len(m.candidate.Rounds))
	x.out.Units = max(x.out.Units, len(m.candidate.Rounds)/m.block)
	return m, ""
}

// swapped says why the rounds of a comparison side by side tell nothing; "".
// Both servers must have been on both sets of GPUs in each two of them, else
// the faster set decides.
func (x *comparison) swapped(m matched) string {
	on := func(run *metric.ServerRun, r *metric.Round) string {
		if run == nil || r.Leg.Start < 0 || r.Leg.Start >= len(run.Starts) {
			return ""
		}
		return strings.Join(run.Starts[r.Leg.Start].GPUs, ", ")
	}
	a, b := found(x.run, x.out.Control), found(x.run, x.out.Candidate)
	for i := range m.control.Rounds {
		p, q := m.control.Rounds[i], m.candidate.Rounds[i]
		first := i - i%2
		v, w := on(a, m.control.Rounds[first]), on(b, m.candidate.Rounds[first])
		if i != first {
			v, w = w, v
		}
		switch {
		case p.Leg.Slot != q.Leg.Slot:
			return fmt.Sprintf("the legs of round %d did not run side by side", p.Index+1)
		case v == "" || w == "" || v == w || on(a, p) != v || on(b, q) != w:
			return fmt.Sprintf("the record does not say that the servers swapped their GPUs for round %d", p.Index+1)
		}
	}
	if len(m.control.Rounds)%2 == 1 {
		return fmt.Sprintf("%d rounds side by side: the last one lacks that on swapped GPUs", len(m.control.Rounds))
	}
	return ""
}

func firstRounds(l *metric.Level, n int) *metric.Level {
	if n >= len(l.Rounds) {
		return l
	}
	out := *l
	out.Rounds = l.Rounds[:n]
	return &out
}
