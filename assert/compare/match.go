package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

func (x *comparison) leftOut(w *plan.Workload, level string) bool {
	return slices.ContainsFunc([]string{x.out.Control, x.out.Candidate}, func(server string) bool {
		l := x.Level(server, w.Address(), level)
		return l != nil && l.Skipped == metric.SkippedOnly
	})
}

// match finds a level of both servers. If one server lacks the level, problem is the reason.
func (x *comparison) match(w *plan.Workload, level plan.Level) (m matched, problem string) {
	m = matched{workload: w, level: level.Name, unpaired: !x.out.Paired, block: 1, confidence: 1 - x.whole}
	m.ofControl = metric.Terms{Window: w.Policy.Window, Good: sample.Good(w), Price: x.Plan.PriceOf(x.address)}
	m.ofCandidate = m.ofControl
	m.ofCandidate.Price = x.Plan.PriceOf(x.out.Candidate)
	m.fresh = x.out.Paired && x.Block.Restart == plan.RestartLeg
	m.design = designOf(x.Plan, x.Block)
	if x.out.SideBySide {
		m.block = 2
	}
	if x.record != nil {
		for _, rounds := range x.record.Sessions {
			m.sessions = append(m.sessions, rounds/m.block)
		}
	}
	candidate := x.Level(x.out.Candidate, w.Address(), level.Name)
	if candidate == nil || candidate.Skipped != "" || !x.Valid(x.out.Candidate, w.Address(), level.Name) {
		return m, "because the measurement of the candidate is not valid"
	}
	m.ofCandidate.One = x.Level(x.out.Candidate, w.Address(), "1")
	var control *metric.Level
	if x.out.Paired {
		control, m.ofControl.One, problem = x.turns(w, level.Name)
	} else {
		control, m.ofControl.One, problem = x.stored(w, level.Name)
	}
	if problem == "" {
		problem = workDifference(control, candidate)
	}
	if problem != "" {
		return m, problem
	}
	if problem = x.cut(&m, control, candidate); problem != "" {
		return m, problem
	}
	if problem = m.pairs(); problem == "" && x.out.SideBySide {
		problem = x.swapped(m)
	}
	if problem == "" {
		problem = x.clocks(m)
	}
	if problem != "" {
		return m, problem
	}
	x.out.Rounds = max(x.out.Rounds, len(m.candidate.Rounds))
	x.out.Units = max(x.out.Units, len(m.candidate.Rounds)/m.block)
	return m, ""
}

// turns returns a level of the control, which took turns with the candidate in the same run. The
// result one is the control's level at concurrency 1.
func (x *comparison) turns(w *plan.Workload, level string) (control, one *metric.Level, problem string) {
	control = x.Level(x.address, w.Address(), level)
	if control == nil || !x.Valid(x.address, w.Address(), level) {
		return nil, nil, "because the measurement of the control is not valid"
	}
	return control, x.Level(x.address, w.Address(), "1"), ""
}

// levels returns the judged levels of the control's run. They are made once.
func (x *comparison) levels() []*metric.Level {
	if x.ofControl == nil {
		x.ofControl = x.control.Judged().All()
	}
	return x.ofControl
}

// stored returns a level of a control that comes from another, recorded run. The result one is the
// control's level at concurrency 1.
func (x *comparison) stored(w *plan.Workload, level string) (control, one *metric.Level, problem string) {
	for _, l := range x.levels() {
		switch {
		case l == nil || l.Server != x.address || l.Workload != w.Address():
		case l.Name == level:
			control = sample.Sound(l)
		case l.Name == "1":
			one = sample.Sound(l)
		}
	}
	if control == nil || control.Skipped != "" {
		return nil, nil, fmt.Sprintf("the recorded control has no measurement of %s at level %s", w.Address(), level)
	}
	if why := x.Invalid(control, w); why != "" {
		return nil, nil, "the recorded measurement of the control is not valid: " + why
	}
	return control, one, ""
}

// workDifference returns how the work of two levels differs, in words. It returns "" if it does not
// differ.
func workDifference(control, candidate *metric.Level) string {
	if control.Kind != candidate.Kind || control.N != candidate.N || control.Rate != candidate.Rate {
		return fmt.Sprintf("the load of the control is %s (%s), but the load of the candidate is %s (%s)", control.Kind.Text(control.N, control.Rate), control.Kind, candidate.Kind.Text(candidate.N, candidate.Rate),
			candidate.Kind)
	}
	if control.Batches != candidate.Batches {
		// A level in one window keeps the state that each round would begin anew.
		how := map[bool]string{true: "in one window", false: "in rounds with a pause between them"}
		return fmt.Sprintf("the control was measured %s, but the candidate %s: these are different states of a server. Measure the control again", how[control.Batches], how[candidate.Batches])
	}
	if control.Asked != nil && candidate.Asked != nil {
		asked := *control.Asked
		asked.Engine = candidate.Asked.Engine // whether engines may differ is checked elsewhere
		if differs := asked.Differs(*candidate.Asked); len(differs) > 0 {
			return "the workload of the control differs from the workload of the candidate: " + strings.Join(differs, "; ")
		}
	}
	return ""
}

// cut keeps the rounds of both servers that the current look judges. It returns a reason if a
// server has too few rounds.
func (x *comparison) cut(m *matched, control, candidate *metric.Level) string {
	rounds := len(candidate.Rounds)
	if x.look != nil && x.look.Rounds > 0 {
		if rounds = x.look.Rounds; len(candidate.Rounds) < rounds {
			return fmt.Sprintf("the record holds only %d of %d rounds", len(candidate.Rounds), rounds)
		}
	}
	m.control, m.candidate = control, firstRounds(candidate, rounds)
	if !m.unpaired {
		m.control = firstRounds(control, rounds)
		if len(m.control.Rounds) != len(m.candidate.Rounds) {
			return fmt.Sprintf("the control has %d rounds, but the candidate has %d", len(m.control.Rounds), len(m.candidate.Rounds))
		}
	} else if len(control.Rounds) < metric.LeastRounds || len(candidate.Rounds) < metric.LeastRounds {
		return fmt.Sprintf("the candidate has %d rounds and the stored control has %d: each side needs at least %d rounds", len(candidate.Rounds), len(control.Rounds), metric.LeastRounds)
	}
	return ""
}

// pairs explains why the rounds of control and candidate cannot be compared with each other. It
// returns "" if they can be compared.
func (m matched) pairs() string {
	type start struct{ side, number int }
	seen := map[start]int{}
	for i := range min(len(m.control.Rounds), len(m.candidate.Rounds)) {
		p, q := m.control.Rounds[i], m.candidate.Rounds[i]
		// Control and candidate must have the same number of requests, because a percentile of few
		// requests differs from a percentile of many requests. A difference of 1 is allowed.
		if d := p.Due - q.Due; (d > 1 || d < -1) && q.Limit == 0 {
			return fmt.Sprintf("round %d has %d requests on the control, but %d on the candidate", i+1, p.Due, q.Due)
		}
		if !m.unpaired && (p.Index != q.Index || p.Seed != q.Seed) {
			return fmt.Sprintf("the record pairs the control's round %d (seed %d) with the candidate's round %d (seed %d)", p.Index+1, p.Seed, q.Index+1, q.Seed)
		}
		if !m.unpaired && (p.Leg == nil || q.Leg == nil) {
			return "the control and the candidate did not take turns"
		}
		if !m.fresh {
			continue
		}
		for side, leg := range []*metric.Leg{p.Leg, q.Leg} {
			if first, ok := seen[start{side, leg.Start}]; ok {
				return fmt.Sprintf("the record says that rounds %d and %d had one start of the same server, but each round needs a fresh start", first+1, i+1)
			}
			seen[start{side, leg.Start}] = i
		}
	}
	return ""
}

// swapped checks the rounds of a comparison in which both servers run side by side. In every two
// successive rounds each server must have run on both sets of GPUs. Otherwise the faster set of
// GPUs would decide. It returns what is wrong; "" if nothing is.
func (x *comparison) swapped(m matched) string {
	on := func(run *metric.ServerRun, r *metric.Round) string {
		if run == nil || r.Leg.Start < 0 || r.Leg.Start >= len(run.Starts) {
			return ""
		}
		return strings.Join(run.Starts[r.Leg.Start].GPUs, ", ")
	}
	a, b := x.Run.Server(x.out.Control), x.Run.Server(x.out.Candidate)
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
		return fmt.Sprintf("the number of rounds side by side is odd (%d), so the last round has no partner on swapped GPUs", len(m.control.Rounds))
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
