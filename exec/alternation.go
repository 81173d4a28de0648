package exec

import (
	"fmt"
	"slices"
	"time"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// alternation runs the servers of a group in turns. In each round each server has a leg, and the next
// round reverses the order:
//
//	round    0   1   2   3
//	legs    A B B A A B B A
//
// So drift affects both servers alike. With side_by_side, both legs of a round run at the same
// time, and the servers swap their GPUs after each round:
//
//	GPUs X   A B A B
//	GPUs Y   B A B A
//
// So a faster GPU favours neither server.
type alternation struct {
	*runner
	group       plan.Group
	restart     plan.Restart
	parallel    bool // side by side
	sides       []*side
	records     []*metric.Comparison
	answering   *answering // the answers that a control scores; nil if it scores none
	rounds      int        // number of rounds that every server of an undecided comparison completed
	earlier     int        // those of them that earlier sessions measured
	looks       []int      // numbers of rounds after which the comparisons are judged
	decided     []bool     // the comparisons of the group that need no further round
	differences string     // differences of the servers that the plan does not declare; "" if none
	slot        int
	began       time.Duration
	warm        time.Duration // end of the session's first round
	durations   map[*side]map[*plan.Workload]time.Duration
}

// takeTurns runs the compared cases of a group of servers in turns. It returns the order of the
// servers. It also returns the cases of each server that are not compared.
func (r *runner) takeTurns(g plan.Group, cases func(*plan.Server) []Case) (order []*plan.Server, rest map[*plan.Server][]Case) {
	first := g.Compares[0]
	t := &alternation{runner: r, group: g, restart: first.Restart, parallel: first.SideBySide,
		durations: map[*side]map[*plan.Workload]time.Duration{}}
	rest = map[*plan.Server][]Case{}
	order = t.order()
	for _, s := range order {
		x := &side{server: s, longest: map[place]time.Duration{}}
		for _, c := range cases(s) {
			if slices.ContainsFunc(g.Compares, func(cmp *plan.Compare) bool {
				return (cmp.Candidate == s || cmp.Control.Server == s) && slices.Contains(cmp.Workloads(r.Plan), c.Workload)
			}) && r.selected(c) {
				x.cases = append(x.cases, c)
			} else {
				rest[s] = append(rest[s], c)
			}
		}
		t.sides = append(t.sides, x)
	}
	t.compare()
	return order, rest
}

// order returns the order of the servers in the first round. A control comes before its
// candidate, because the candidate's capacity search needs the control's result.
func (t *alternation) order() []*plan.Server {
	out := slices.Clone(t.group.Servers)
	for range out {
		for _, c := range t.group.Compares {
			a, b := slices.Index(out, c.Control.Server), slices.Index(out, c.Candidate)
			if a > b {
				out[a], out[b] = out[b], out[a]
			}
		}
	}
	return out
}

func (t *alternation) compare() {
	cases := 0
	for _, x := range t.sides {
		cases += len(x.cases)
	}
	for _, c := range t.group.Compares {
		t.records = append(t.records, &metric.Comparison{
			Name: c.Name, Control: c.Control.Server.Address(), Candidate: c.Candidate.Address(),
			Restart: string(c.Restart), SideBySide: c.SideBySide,
		})
	}
	t.decided = make([]bool, len(t.records))
	for i, c := range t.group.Compares {
		if c.Heeded != "" {
			t.records[i].Notes = append(t.records[i].Notes, c.Heeded)
		}
	}
	t.plan(t.planned())
	if t.Continue != nil {
		t.goesOn(t.Continue)
	}
	t.remaining -= cases
	defer t.conclude(cases)
	defer t.closeAll()
	if cases == 0 || !t.check() {
		return
	}
	t.began, t.answering = t.Clock.Now(), t.answersOf()
	defer t.answering.rest()
	if t.restart == plan.RestartNever && !t.startAll() {
		return
	}
	t.play()
}

func (t *alternation) note(text string) {
	for i, rec := range t.records {
		if !t.decided[i] {
			rec.Notes = append(rec.Notes, text)
		}
	}
}

// round measures every case once on each server of an undecided comparison. One server's turn is a
// leg. The legs of disturbed cases are repeated. round returns false if a leg was cut short.
func (t *alternation) round() (ok bool) {
	sides := t.running()
	if t.rounds%2 == 1 {
		slices.Reverse(sides)
	}
	// The comparison may end at its next look, so only so many rounds may be repeated.
	until := max(t.rounds+1, t.looks[0])
	if t.deadline > 0 && until > fewestRounds {
		until = max(t.rounds+1, fewestRounds) // the remaining time may allow no more rounds
	}
	ok, again := true, t.places(sides)
	for ok && len(again) > 0 {
		if t.parallel {
			ok = t.legs(sides, again)
		} else {
			ok = t.inTurns(sides, again)
		}
		again = t.settle(sides, ok, func(d metric.Disturbance, voided int) bool {
			return measuredAgain(d, voided, until) && !t.timeShort(1)
		})
	}
	return ok
}

// inTurns runs one round of the given cases, first on one server and then on the other. It returns
// false if a case was cut short or a server failed.
func (t *alternation) inTurns(sides []*side, only []place) bool {
	for _, x := range sides {
		if !x.has(only) {
			continue
		}
		if !t.leg(x, only) || t.restart == plan.RestartLeg && !t.close(x) {
			return false
		}
	}
	return true
}

// leg runs one round of the given cases on the server x. It starts the server if necessary. It
// returns false if a case was cut short or the server failed.
func (t *alternation) leg(x *side, only []place) bool {
	if !t.check() {
		return false
	}
	if x.target == nil && (!t.start(x) || !t.compareServers()) {
		return false
	}
	for i, c := range x.cases {
		if !slices.Contains(only, placeOf(c)) {
			continue
		}
		due := t.begin(x, i)
		ended, lost := t.measure(x, i, due)
		if !t.end(x, i, ended, lost) {
			return false
		}
	}
	t.answering.ask(x)
	t.answering.score(x)
	t.slot++
	return t.answering.unread() == ""
}

// compareServers compares the two servers of a comparison when both have started. The list changed
// in the plan says in what they may differ. If they differ in another fact, compareServers returns
// false, and no further leg runs.
func (t *alternation) compareServers() bool {
	found := func(s *plan.Server) *metric.ServerRun {
		i := slices.IndexFunc(t.sides, func(x *side) bool { return x.server == s })
		if i < 0 || t.sides[i].found == nil || len(t.sides[i].found.Starts) == 0 {
			return nil
		}
		return t.sides[i].found
	}
	for _, c := range t.group.Compares {
		a, b := found(c.Control.Server), found(c.Candidate)
		if a != nil && b != nil && t.differences == "" {
			t.differences = plan.Incomparable(c.Changed, plan.Apart(c.Changed, a, b), a, b)
		}
	}
	return t.differences == ""
}

// begin prepares a server's turn at one case, and returns its number of requests.
func (t *alternation) begin(x *side, i int) int {
	t.at(x)
	c, s := x.cases[i], x.runs[i]
	due := c.Level.RoundRequests(t.rounds % c.Level.Rounds)
	t.observe(metric.LevelStarted{Level: s.level, Due: due, Expected: t.expected(c, []int{due})})
	s.leg = &metric.Leg{Slot: t.slot, Start: x.starts - 1}
	s.picked = t.answering.pick(x, i, due)
	s.most = t.limit(x, i)
	return due
}

// measure measures a case on a server.
func (t *alternation) measure(x *side, i, due int) (ended bool, lost error) {
	ended, lost = x.runs[i].play([]int{due})
	if r := x.runs[i].held; r != nil && ended {
		at := placeOf(x.cases[i])
		x.longest[at] = max(x.longest[at], r.End-r.Start)
	}
	for _, y := range t.sides { // a leg beside this one may get its limit only now
		for k, s := range y.runs {
			if s.now != nil && y != x {
				s.now.limit(t.limit(y, k))
			}
		}
	}
	return ended, lost
}

// limit returns how long a candidate's leg may take: LegLimit times the control's longest leg so far,
// times one plus the largest loss that the plan tolerates. It is 0 if the server is no candidate, or
// if its control had no leg.
func (t *alternation) limit(x *side, i int) (most time.Duration) {
	for _, c := range t.group.Compares {
		for _, control := range t.sides {
			if c.Candidate == x.server && c.Control.Server == control.server {
				longest := control.longest[placeOf(x.cases[i])]
				most = max(most, time.Duration(metric.LegLimit*(1+c.Loss())*float64(longest)))
			}
		}
	}
	return most
}

// end records the result of one case on a server. It returns false if the case was cut short.
func (t *alternation) end(x *side, i int, ended bool, lost error) bool {
	t.done(x.runs[i].level)
	if lost != nil {
		t.lost(x.found, x.target, lost)
	}
	return ended
}

// legs starts the servers one after the other, because a start would disturb a server under load.
// Then it runs one round of the given cases on both at the same time, and ends the servers. It
// returns false if a case was cut short or a server failed.
func (t *alternation) legs(sides []*side, only []place) bool {
	sides = slices.DeleteFunc(slices.Clone(sides), func(x *side) bool { return !x.has(only) })
	most := 0
	for _, x := range sides {
		if !t.check() || !t.start(x) || !t.compareServers() {
			return false
		}
		most = max(most, len(x.cases))
	}
	for i := range most {
		type played struct {
			side  *side
			ended bool
			lost  error
		}
		var results []*played
		var strands []func()
		for _, x := range sides {
			if i >= len(x.cases) || !slices.Contains(only, placeOf(x.cases[i])) {
				continue
			}
			p, due := &played{side: x}, t.begin(x, i)
			results = append(results, p)
			strands = append(strands, func() {
				if p.ended, p.lost = t.measure(x, i, due); !p.ended {
					t.cutRound(x, i, sides)
				}
			})
		}
		t.sideBySide(strands...)
		ok := true
		for _, p := range results {
			ok = t.end(p.side, i, p.ended, p.lost) && ok
		}
		if !ok {
			return false
		}
	}
	for _, x := range sides {
		t.answering.ask(x)
	}
	for _, x := range sides {
		t.answering.score(x)
	}
	t.slot++
	ok := t.answering.unread() == ""
	for _, x := range sides {
		ok = t.close(x) && ok
	}
	return ok
}

// cutRound cuts the legs of case i on all servers except gone, whose leg was cut short. Legs, the
// servers' turns in a round, are judged only together.
func (t *alternation) cutRound(gone *side, i int, sides []*side) {
	for _, x := range sides {
		if x != gone && i < len(x.runs) && x.runs[i].now != nil {
			x.runs[i].now.cut("the leg beside it on " + gone.found.Address + " was cut short")
			t.Clock.Post(func() {}) // wakes the leg, which may wait for a long time
		}
	}
}

// seen returns the run so far, to be judged while it continues.
func (t *alternation) seen() *metric.Run {
	seen := *t.runner.run
	seen.Comparisons = t.records
	seen.End = t.Clock.Now()
	return &seen
}

// ended returns the reason why the comparisons ended early; otherwise "".
func (t *alternation) ended(cases int) string {
	going := cases == 0 || t.check()
	for _, x := range t.sides {
		if x.found != nil && x.found.Error != "" {
			return fmt.Sprintf("%s could not be measured: %s", x.found.Address, x.found.Error)
		}
	}
	switch {
	case cases == 0:
		return metric.SkippedOnly
	case !going:
		return t.why()
	case t.differences != "":
		return t.differences
	case t.answering.unread() != "":
		return t.answering.unread()
	}
	for _, x := range t.sides {
		for _, l := range x.levels {
			for _, r := range l.Rounds {
				if !r.Complete && r.Limit == 0 {
					return fmt.Sprintf("round %d of %s at %s on %s was cut short: %s", r.Index+1, l.Workload, l.Name, l.Server, r.Stopped)
				}
			}
		}
	}
	return ""
}

// conclude records which cases and capacity searches did not run, and why.
func (t *alternation) conclude(cases int) {
	why := t.ended(cases)
	for _, x := range t.sides {
		if len(x.levels) > 0 {
			continue
		}
		t.remaining += len(x.cases) // skip counts them
		t.skip(x.cases, why)
	}
	for i, rec := range t.records {
		if !t.decided[i] {
			rec.Answers = t.answering.pairs(t.group.Compares[i])
		}
		switch {
		case t.decided[i]:
		case why == metric.SkippedOnly:
			rec.Skipped = why
		default:
			rec.Skipped = fmt.Sprintf("it was cut short after %d of up to %d rounds: %s", t.rounds, slices.Max(t.looks), why)
		}
		t.runner.run.Comparisons = append(t.runner.run.Comparisons, rec)
		t.observe(metric.ComparisonDone{Comparison: rec})
	}
}
