package assert

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Comparison is a candidate against a control, as judged.
type Comparison struct {
	Name      string
	Control   string // address, or the folder of a stored one
	Candidate string // address
	// Paired: the rounds took turns. Else the control is a record, and drift is
	// not excluded.
	Paired      bool
	Restart     plan.Restart // "" when not paired
	SideBySide  bool         // both legs of a round at the same time, on swapped GPUs
	Rounds      int          // judged, of each side
	Units       int          // independent ones among them
	Outcome     Outcome
	Skipped     string // why nothing was compared; ""
	Line        string // the answer in one line
	Differences []Difference
	Decisions   []Decision
	Changes     []Change
	Notes       []string
}

// Difference is one fact in which the two servers differ.
type Difference struct {
	Key                string
	Control, Candidate string // "": not set, or unknown
	Allowed            bool
}

// Decision is what a comparison says for one workload at one level.
type Decision struct {
	Workload, Level string
	Answer          string // yes, no, mixed, no difference, unknown
	Why             string
}

// The answers of a decision. They are taken from what the whole request and the
// whole server come to (e2e and throughput), where these tell a difference; else
// from everything else that is shown.
const (
	AnswerYes     = "yes"           // something is better, nothing worse
	AnswerNo      = "no"            // something is worse, nothing better; or a required change fails
	AnswerMixed   = "mixed"         // both
	AnswerNone    = "no difference" // none was found, or only worse within what is tolerated
	AnswerUnknown = "unknown"       // nothing could be compared
)

// shown are the statistics that are compared whether required or not, and from
// which the answer for a workload is taken.
var shown = []struct {
	metric string
	stat   metric.Stat
}{
	{"throughput", metric.Stat{}},
	{"e2e", metric.Stat{Kind: metric.Mean}},
	{"ttft", metric.Stat{Kind: metric.Percentile, P: 95}},
	{"speed", metric.Stat{Kind: metric.Mean}},
	{"success", metric.Stat{Kind: metric.Rate}},
}

// drifting labels what was not measured in turns.
const drifting = "unpaired: drift not excluded"

// startedOnce labels what speaks of two starts alone.
const startedOnce = "each server was started once: what a start brings by chance is part of the change"

// comparison is one compare block under judgement.
type comparison struct {
	*judge
	plan    *plan.Compare
	out     *Comparison
	alpha   float64
	control *metric.Run // that holds the control
	address string      // of the control in it
	look    *metric.ComparisonLook
	record  *metric.Comparison // nil: the run has none
	claims  []claimed
}

// claimed is a required change and where it stands.
type claimed struct {
	index  int // in out.Changes
	claim  *plan.Claim
	change *plan.Change
}

// compare judges one compare block.
func (j *judge) compare(c *plan.Compare) {
	x := comparison{judge: j, plan: c, alpha: errorOf(c.Policy), out: &Comparison{
		Name: c.Name, Candidate: c.Candidate.Address(), Paired: c.Control.Baseline == "", Restart: c.Restart,
	}}
	x.out.Control = c.Control.Baseline
	if c.Control.Server != nil {
		x.out.Control = c.Control.Server.Address()
	}
	if !x.out.Paired {
		x.out.Restart = ""
	}
	whole := Verdict{Kind: KindCompare, Server: x.out.Candidate, Name: "compare." + c.Name, File: c.Range.Filename, Line: c.Range.Start.Line,
		Value: metric.None("a comparison has no value of its own"), Confidence: 1 - x.alpha}
	whole.Outcome, whole.Message = x.comparable()
	if whole.Outcome == Pass && !c.Unchanged {
		x.measure()
		x.unfounded()
		x.decide()
		x.settle()
	} else {
		x.out.Skipped = whole.Message
	}
	for _, d := range x.out.Differences {
		allowed := "allowed by changed"
		if !d.Allowed {
			allowed = "not in changed"
		}
		whole.Notes = append(whole.Notes, fmt.Sprintf("%s: %s → %s (%s)", d.Key, cmp.Or(oneLine(d.Control), "not set"), cmp.Or(oneLine(d.Candidate), "not set"), allowed))
	}
	whole.Notes = append(whole.Notes, x.out.Notes...)
	if whole.Outcome == Pass && x.out.Line != "" {
		whole.Message = x.out.Line
	}
	x.out.Outcome = whole.Outcome
	j.add(whole, plan.Stop)
	x.verdicts(whole)
	j.comparisons = append(j.comparisons, x.out)
}

// comparable says whether there is anything to compare, and that only what may
// differ does.
func (x *comparison) comparable() (Outcome, string) {
	c := x.plan
	i := slices.IndexFunc(x.run.Comparisons, func(r *metric.Comparison) bool { return r != nil && r.Name == c.Name })
	if i >= 0 {
		x.record = x.run.Comparisons[i]
		if n := len(x.record.Looks); n > 0 {
			x.look = &x.record.Looks[n-1]
			x.alpha = stat.SplitAlpha(x.alpha, x.look.Planned)
		}
		for _, note := range x.record.Notes {
			x.out.Notes = append(x.out.Notes, oneLine(note))
		}
	}
	switch {
	case c.Unchanged:
		for _, claim := range c.Claims {
			if claim.Improve && claim.Severity == plan.SeverityError {
				return Fail, c.Skip + ", so nothing improved"
			}
		}
		return Pass, c.Skip
	case c.Skip != "":
		return Skipped, c.Skip
	case x.record != nil && x.record.Skipped == metric.SkippedOnly:
		x.partial = true
		return Skipped, "left out: not selected"
	case x.record != nil && x.record.Skipped != "":
		return Error, "not compared: " + oneLine(x.record.Skipped)
	case x.record == nil && x.out.Paired && !x.planless:
		return Error, "the run holds no such comparison" + because(x.run.Stopped)
	}
	// Rounds that were recorded as halves of a pair are no units by themselves,
	// whatever the plan says by now.
	x.out.SideBySide = x.out.Paired && (c.SideBySide || x.record != nil && x.record.SideBySide)
	x.control, x.address = x.run, x.out.Control
	if !x.out.Paired {
		if x.control = x.baselines[c.Name]; x.control == nil {
			return Error, "the recorded run of the control was not read: " + c.Control.Baseline
		}
		if SameRun(x.control, x.run) {
			return Error, fmt.Sprintf("%s holds this very run, %s: nothing to compare it with", c.Control.Baseline, oneLine(x.run.ID))
		}
		var why string
		if x.address, why = storedServer(c, x.control); why != "" {
			return Error, why
		}
		x.out.Notes = append(x.out.Notes, fmt.Sprintf("%s: the control was recorded in %s (run %s)", drifting, c.Control.Baseline, oneLine(x.control.ID)))
	}
	if x.control.Simulated != x.run.Simulated {
		return Error, fmt.Sprintf("the control was %s and the candidate %s", measuredOr(x.control), measuredOr(x.run))
	}
	if x.planless {
		switch {
		case x.run.Stopped != "":
			return Error, "the candidate's run did not end: " + oneLine(x.run.Stopped)
		case x.unrun != "":
			return Error, x.unrun
		}
		x.only()
	}
	a, b := found(x.control, x.address), found(x.run, x.out.Candidate)
	for _, s := range []struct {
		what string
		run  *metric.ServerRun
	}{{"control", a}, {"candidate", b}} {
		if s.run == nil {
			return Error, "there is no record of the " + s.what + because(x.run.Stopped)
		}
		if s.run.Error != "" {
			return Error, fmt.Sprintf("because the %s could not be measured: %s", s.what, oneLine(s.run.Error))
		}
		if s.run.Unended {
			return Error, fmt.Sprintf("the recording ends before the %s did: whether it was the same server at the end is not known", s.what)
		}
	}
	var more, keys []string
	x.out.Differences = differences(c.Changed, a, b)
	for _, d := range x.out.Differences {
		if !d.Allowed {
			more = append(more, d.Key)
			key, _, _ := strings.Cut(d.Key, ".")
			keys = append(keys, key)
		}
	}
	if len(more) > 0 {
		keys = append(keys, c.Changed...)
		slices.Sort(keys)
		return Error, fmt.Sprintf("the servers differ in %s, which changed does not name; if that was meant, changed is to name %s", strings.Join(more, ", "), strings.Join(slices.Compact(keys), ", "))
	}
	x.cold(a, b)
	if x.out.SideBySide {
		x.out.Notes = append(x.out.Notes, "side by side: the servers swapped their GPUs after every round, and two rounds are one observation")
	}
	if x.out.Paired && c.Restart == plan.RestartNever {
		x.out.Notes = append(x.out.Notes, startedOnce+", also where a difference is seen")
	}
	return Pass, ""
}

// only notes the levels that the control alone has, where no plan says which
// there are to be.
func (x *comparison) only() {
	for _, l := range x.control.Levels {
		if l == nil || l.Server != x.address || l.Probe != nil || l.Skipped != "" {
			continue
		}
		if !slices.ContainsFunc(x.run.Levels, func(o *metric.Level) bool {
			return o != nil && o.Server == x.out.Candidate && o.Workload == l.Workload && o.Name == l.Name && o.Skipped == ""
		}) {
			x.out.Notes = append(x.out.Notes, fmt.Sprintf("only the control was measured with %s at %s: it is not compared", l.Workload, l.Name))
		}
	}
}

func measuredOr(run *metric.Run) string {
	if run.Simulated {
		return "simulated"
	}
	return "measured"
}

func found(run *metric.Run, address string) *metric.ServerRun {
	for _, s := range run.Servers {
		if s != nil && s.Address == address {
			return s
		}
	}
	return nil
}

// storedServer is the address of the control in a recorded run.
func storedServer(c *plan.Compare, run *metric.Run) (address, problem string) {
	var have []string
	for _, s := range run.Servers {
		if s != nil {
			have = append(have, s.Address)
		}
	}
	want := cmp.Or(c.Control.BaselineServer, c.Candidate.Address())
	switch {
	case slices.Contains(have, want):
		return want, ""
	case c.Control.BaselineServer == "" && len(have) == 1:
		return have[0], ""
	}
	return "", fmt.Sprintf("the recorded run %s has no server %s; it has %s", c.Control.Baseline, want, strings.Join(have, ", "))
}

// differences are the facts in which two servers differ: what was declared,
// also where only one side has it, and what was observed of both. What may
// follow from something that may differ may differ too: a flag changes the
// context that is served.
func differences(changed []string, a, b *metric.ServerRun) []Difference {
	var out []Difference
	declared := a.Declared != nil && b.Declared != nil
	if declared {
		for _, key := range plan.Differences(a.Declared, b.Declared) {
			out = append(out, Difference{key, a.Declared[key], b.Declared[key], plan.Allows(changed, key)})
		}
	}
	if declared && a.Fingerprint["simulated"] != "" && a.Declared["profile"] == "" && b.Declared["profile"] == "" {
		return out // what stands in for a server says nothing of it
	}
	for _, key := range a.Fingerprint.Keys() {
		other, ok := b.Fingerprint[key]
		if !ok || !metric.Differs(key, a.Fingerprint[key], other) || declared && key == "flags" || slices.ContainsFunc(out, func(d Difference) bool { return d.Key == key }) {
			continue
		}
		fact, _ := metric.FactOf(key)
		allowed := plan.Allows(changed, key) || slices.ContainsFunc(changed, func(c string) bool {
			root, _, _ := strings.Cut(c, ".")
			return slices.Contains(fact.Follows, root)
		})
		out = append(out, Difference{key, a.Fingerprint[key], other, allowed})
	}
	return out
}

// cold notes what the first request after a start met: it is no part of any
// value.
func (x *comparison) cold(a, b *metric.ServerRun) {
	say := func(s *metric.ServerRun) string {
		var times []float64
		for _, start := range s.Starts {
			if start.Cold > 0 {
				times = append(times, start.Cold.Seconds())
			}
		}
		if len(times) == 0 {
			return ""
		}
		return fmt.Sprintf("%s (median of %s)", metric.Format(metric.Seconds, median(times)), count(len(times), "starts"))
	}
	if was, is := say(a), say(b); was != "" && is != "" {
		x.out.Notes = append(x.out.Notes, fmt.Sprintf("cold: the first request after a start had its first token after %s on the control, %s on the candidate; it is part of no value", was, is))
	}
}

// measure compares every workload at every level.
func (x *comparison) measure() {
	x.out.Changes = []Change{}
	colds, inPhase := map[string]int{}, map[string][]string{}
	for _, w := range x.plan.Workloads(x.judge.plan) {
		for _, load := range w.Loads {
			for _, level := range load.Levels {
				if x.leftOut(w, level.Name) {
					rows := x.without(w, level.Name, leftOut)
					for i := range rows {
						rows[i].Outcome = Skipped
					}
					x.out.Changes = append(x.out.Changes, rows...)
					continue
				}
				m, problem := x.match(w, load, level)
				if problem != "" {
					x.out.Changes = append(x.out.Changes, x.without(w, level.Name, problem)...)
					x.out.Decisions = append(x.out.Decisions, Decision{w.Address(), level.Name, AnswerUnknown, problem})
					continue
				}
				x.changes(m)
				for _, side := range []struct {
					name  string
					level *metric.Level
				}{{"control", m.control}, {"candidate", m.candidate}} {
					if sync := side.level.Synchrony(); side.level.Kind == metric.ClosedLoop && sync.OK && sync.V >= lockStep {
						inPhase[side.name] = append(inPhase[side.name], fmt.Sprintf("%s at %s (synchrony %.2f)", w.Address(), level.Name, sync.V))
					}
					for _, r := range side.level.Rounds {
						if coldFirst(r) > 0 {
							colds[side.name]++
						}
					}
				}
			}
		}
		x.capacity(w)
	}
	for _, side := range []string{"control", "candidate"} {
		if places := inPhase[side]; len(places) > 0 {
			x.out.Notes = append(x.out.Notes, fmt.Sprintf("lock-step: on the %s the slots of %s start in phase: TTFT is that of bursts there, and changes of it may be changes of phase", side, enumerate(places)))
		}
	}
	for _, side := range slices.Sorted(maps.Keys(colds)) {
		x.out.Notes = append(x.out.Notes, fmt.Sprintf("in %s on the %s the first measured request took more than %d times the median ttft; such requests are measured and judged like all others", count(colds[side], "legs"), side, coldTimes))
	}
}

// leftOut is why a change was not compared that the user did not select.
const leftOut = "left out: not selected"

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

// changes adds the rows of one level: what is required of it, and what is shown
// besides.
func (x *comparison) changes(m matched) {
	required := map[string]bool{}
	begin := len(x.out.Changes)
	for _, claim := range x.plan.Claims {
		if !slices.Contains(claim.Workloads, m.workload) || !slices.Contains(claim.At, m.level) {
			continue
		}
		for _, ch := range claim.Changes {
			if ch.Metric.Name == "capacity" || !applies(ch, m.workload) {
				continue
			}
			row := Change{Metric: ch.Metric, Stat: ch.Stat, Points: ch.Points}
			m.measure(&row, x.alpha)
			row.require(ch, claim, x.plan.Policy, x.alpha)
			m.outliers(&row)
			required[row.name()] = true
			x.claims = append(x.claims, claimed{len(x.out.Changes), claim, ch})
			x.out.Changes = append(x.out.Changes, row)
		}
	}
	for _, s := range shown {
		row := Change{Metric: lookup(s.metric), Stat: s.stat, Points: s.metric == "success", Limit: metric.None(""), Outcome: Skipped}
		if required[row.name()] {
			continue
		}
		m.measure(&row, x.alpha)
		if row.Outcome == Error {
			row.Outcome = Skipped // nothing is required of it
		}
		if s.metric == "success" && row.Control.OK && row.Control.V == 1 && row.Candidate.OK && row.Candidate.V == 1 {
			continue
		}
		if row.Message == "" {
			row.Message = row.line()
		}
		m.outliers(&row)
		x.out.Changes = append(x.out.Changes, row)
	}
	x.blind(m, begin)
}

// blind holds back what leaves failed requests out of its number: a mean, and
// gaps, of the survivors says nothing of a candidate that fails more requests.
func (x *comparison) blind(m matched, begin int) {
	success := Change{Metric: lookup("success"), Stat: metric.Stat{Kind: metric.Rate}, Points: true}
	m.measure(&success, x.alpha)
	outcome := Pass
	for _, row := range x.out.Changes[begin:] {
		if row.Metric.Name == "success" && row.Limit.OK && !row.Improve {
			outcome, success.Limit = row.Outcome, row.Limit
		}
	}
	if !success.Limit.OK && success.Change.OK && success.Change.V < 0 {
		outcome = Inconclusive
		if success.Direction == Worse {
			outcome = Fail
		}
	}
	for i := begin; i < len(x.out.Changes); i++ {
		row := &x.out.Changes[i]
		if row.Outcome == Pass && outcome != Pass && (row.Stat.Kind == metric.Mean || row.Metric.Scope == metric.PerGap) {
			row.Outcome = outcome
			row.Message += ", but the candidate fails more requests"
			row.Notes = append(row.Notes, fmt.Sprintf("%s leaves failed requests out, so it passes only if success does (%s); tolerate success to allow some", row.name(), success.line()))
			if outcome == Inconclusive {
				row.Needs = "needs a decided success"
			}
			row.pFail = 0 // its failure is that of success
		}
	}
}

// without lists the required rows of a level that could not be compared.
func (x *comparison) without(w *plan.Workload, level, why string) []Change {
	var out []Change
	for _, claim := range x.plan.Claims {
		if !slices.Contains(claim.Workloads, w) || !slices.Contains(claim.At, level) {
			continue
		}
		for _, ch := range claim.Changes {
			if ch.Metric.Name == "capacity" || !applies(ch, w) {
				continue
			}
			row := Change{Workload: w.Address(), Level: level, Metric: ch.Metric, Stat: ch.Stat, Points: ch.Points, Confidence: 1 - x.alpha,
				Limit: metric.Some(ch.Limit), Improve: claim.Improve, Severity: claim.Severity, bound: ch, Outcome: Error, Message: why, Why: why}
			x.claims = append(x.claims, claimed{len(x.out.Changes) + len(out), claim, ch})
			out = append(out, row)
		}
	}
	return out
}

// applies says whether the workload has what a change is one of.
func applies(ch *plan.Change, w *plan.Workload) bool {
	switch ch.Metric.Name {
	case "capacity":
		return w.Capacity != nil
	case "goodput":
		return len(w.Good) > 0
	}
	return true
}

// capacity certifies the candidate at the control's capacity less what is
// tolerated.
func (x *comparison) capacity(w *plan.Workload) {
	for _, claim := range x.plan.Claims {
		if !slices.Contains(claim.Workloads, w) {
			continue
		}
		for _, ch := range claim.Changes {
			if ch.Metric.Name != "capacity" || !applies(ch, w) {
				continue
			}
			row := Change{Workload: w.Address(), Level: "capacity", Metric: ch.Metric, Confidence: 1 - x.alpha, Limit: metric.Some(ch.Limit),
				Improve: claim.Improve, Severity: claim.Severity, bound: ch}
			x.certified(&row, w, ch.Limit)
			x.claims = append(x.claims, claimed{len(x.out.Changes), claim, ch})
			x.out.Changes = append(x.out.Changes, row)
		}
	}
}

// CapacityTarget is the load at which a candidate must hold if it may differ
// by change from a control whose certified capacity is that: ⌈L·(1+change)⌉.
func CapacityTarget(control int, change float64) int {
	// The subtraction absorbs 20·0.85 being 17.000000000000004 in binary.
	return max(1, int(math.Ceil(float64(control)*(1+change)-1e-9)))
}

func (x *comparison) certified(row *Change, w *plan.Workload, change float64) {
	a, b := x.limitOf(x.control, x.address, w), x.limitOf(x.run, x.out.Candidate, w)
	row.Control, row.Candidate = metric.None("unknown"), metric.None("unknown")
	unknown := func(side string, l limit) bool {
		why := "there was no search"
		switch {
		case l.Capacity == nil:
		case l.problem != "":
			why = l.problem
		case l.Pass == 0 && l.Fail == 0:
			why = cmp.Or(l.Reason, "no level was certified")
		default:
			return false
		}
		row.Outcome, row.Why = Error, fmt.Sprintf("the capacity of the %s is unknown: %s", side, oneLine(why))
		row.Message = row.Why
		return true
	}
	if unknown("control", a) || unknown("candidate", b) {
		return
	}
	if a.Pass == 0 {
		row.fromNothing(a, b, change)
		return
	}
	target := CapacityTarget(a.Pass, change)
	row.Control = metric.Some(float64(a.Pass))
	row.Message = fmt.Sprintf("capacity: the control holds %d; the candidate must at %d and is certified to %d", a.Pass, target, b.Pass)
	if b.Pass > 0 {
		row.Candidate = metric.Some(float64(b.Pass))
		row.Change = metric.Some(float64(b.Pass)/float64(a.Pass) - 1)
		row.Low = row.Change
		row.Certifiable = metric.Some(min(0, row.Change.V))
	}
	if b.Fail > 0 {
		row.High = metric.Some(float64(b.Fail-1)/float64(a.Pass) - 1)
		row.Message += fmt.Sprintf(", fails at %d", b.Fail)
	}
	switch {
	case b.Pass >= target:
		row.Outcome = Pass
	case b.Fail > 0 && b.Fail <= target, b.Kind == metric.CapacityServerCap && b.Pass < target:
		row.Outcome = Fail
	default:
		row.Outcome = Inconclusive
		row.Needs = fmt.Sprintf("needs a larger budget, or more requests, to decide %d", target)
	}
	row.pFail = 0 // each probe is a test of its own
	if b.Fail > 0 && b.Fail <= a.Pass {
		row.Direction = Worse
	} else if a.Fail > 0 && b.Pass >= a.Fail {
		row.Direction = Better
	}
	if a.Kind == metric.CapacityAtLeast {
		row.Notes = append(row.Notes, fmt.Sprintf("the control was not seen to fail: its capacity is at least %d", a.Pass))
	}
}

// fromNothing judges a capacity where the control holds at no level that was
// tried. There is nothing to lose, so that a tolerance is not applicable; but a
// candidate that holds more than the control can is not worse, and better.
func (c *Change) fromNothing(a, b limit, change float64) {
	nowhere := fmt.Sprintf("the control holds nowhere (%s)", a.Line)
	target := CapacityTarget(a.Fail-1, change)
	c.Change, c.pFail = metric.None(nowhere), 0
	if b.Pass > 0 {
		c.Candidate = metric.Some(float64(b.Pass))
	}
	c.Message = fmt.Sprintf("capacity: %s; the candidate is certified to %d", nowhere, b.Pass)
	if b.Fail > 0 {
		c.Message += fmt.Sprintf(", fails at %d", b.Fail)
	}
	switch {
	case b.Pass >= target:
		c.Outcome, c.Direction = Pass, Better
	case !c.Improve:
		c.Outcome, c.Why = Skipped, "not applicable: "+nowhere
		c.Message = c.Why
	case b.Fail > 0 && b.Fail <= 1:
		c.Outcome = Fail
	default:
		c.Outcome = Inconclusive
		c.Needs = fmt.Sprintf("needs a search that begins below %d", a.Fail)
	}
}

// limitOf is the capacity of a server as judged anew.
func (x *comparison) limitOf(run *metric.Run, server string, w *plan.Workload) limit {
	j := x.judge
	if run != x.run {
		j = &judge{plan: x.judge.plan, run: run, levels: map[levelKey]*metric.Level{}, recorded: map[levelKey]*metric.Level{}}
		for _, l := range run.Levels {
			if l != nil {
				j.recorded[levelKey{l.Server, l.Workload, l.Name}] = sound(l)
			}
		}
	}
	for _, c := range run.Capacities {
		if c != nil && c.Server == server && c.Workload == w.Address() {
			if len(w.SLAs) == 0 {
				return limit{Capacity: c} // without a plan the record is believed
			}
			return j.limit(w, c)
		}
	}
	return limit{}
}

// unfounded makes an error of a required change that applied nowhere: nothing
// was judged by it.
func (x *comparison) unfounded() {
	applied := map[*plan.Change]bool{}
	for _, c := range x.claims {
		row := &x.out.Changes[c.index]
		applied[c.change] = applied[c.change] || row.Outcome != Skipped || row.Why == leftOut
	}
	for _, c := range x.claims {
		if row := &x.out.Changes[c.index]; !applied[c.change] {
			row.Outcome = Error
			row.Why = strings.TrimPrefix(row.Why, "not applicable: ")
			row.Message = row.Why
		}
	}
}

// settle applies Holm's rule to the failures: one that would fail by itself,
// but is one of many, is undecided.
func (x *comparison) settle() {
	p := make([]float64, len(x.claims))
	for i, c := range x.claims {
		p[i] = x.out.Changes[c.index].pFail
	}
	for i, certain := range stat.Holm(p, x.alpha) {
		row := &x.out.Changes[x.claims[i].index]
		if row.Outcome == Fail && row.pFail > 0 && !certain && x.plan.Policy.Decide != plan.Estimate {
			row.Outcome = Inconclusive
			row.Needs = "needs more rounds"
			row.Notes = append(row.Notes, fmt.Sprintf("it would fail if it were the only one, but is one of %s (Holm): p = %.2g", count(len(p), "required changes"), row.pFail))
		}
	}
}

// verdicts gives one for every required change, at its line of the plan.
func (x *comparison) verdicts(whole Verdict) {
	if whole.Outcome != Pass || x.plan.Unchanged {
		for _, claim := range x.plan.Claims {
			for _, w := range claim.Workloads {
				for _, ch := range claim.Changes {
					if !applies(ch, w) {
						continue
					}
					levels := claim.At
					if ch.Metric.Name == "capacity" {
						levels = []string{"capacity"}
					}
					for _, level := range levels {
						if level != "capacity" && fixed(w, level) == nil {
							continue
						}
						row := Change{Workload: w.Address(), Level: level, Metric: ch.Metric, Stat: ch.Stat}
						x.add(x.verdict(&row, claim, ch, Skipped, whole.Message), x.plan.Policy.OnInconclusive)
					}
				}
			}
		}
		return
	}
	for _, c := range x.claims {
		row := &x.out.Changes[c.index]
		v := x.verdict(row, c.claim, c.change, row.Outcome, row.Message)
		v.Needs, v.Notes = row.Needs, append(v.Notes, row.Notes...)
		v.Value, v.Low, v.High, v.N = row.Change, row.Low, row.High, len(row.Pairs)
		if !v.Value.OK {
			v.Value = metric.None(cmp.Or(row.Why, "not compared"))
		}
		if !x.out.Paired {
			v.Notes = append(v.Notes, drifting)
		}
		if x.out.Paired && x.plan.Restart == plan.RestartNever {
			v.Notes = append(v.Notes, startedOnce)
		}
		if row.Severity != plan.SeverityWarn && row.Outcome != Skipped {
			o := row.Outcome
			if o == Inconclusive && x.plan.Policy.OnInconclusive == plan.Warn {
				o = Pass
			}
			x.out.Outcome = max(x.out.Outcome, o)
		}
		x.add(v, x.plan.Policy.OnInconclusive)
	}
}

func (x *comparison) verdict(row *Change, claim *plan.Claim, ch *plan.Change, o Outcome, message string) Verdict {
	kind := "tolerate"
	if claim.Improve {
		kind = "improve"
	}
	name := strings.Join(slices.DeleteFunc([]string{"compare", x.plan.Name, kind, ch.Metric.Name, ch.Stat.String()}, func(s string) bool { return s == "" }), ".")
	if row.Level != "capacity" {
		name += " at " + row.Level
	}
	return Verdict{Kind: KindCompare, Server: x.out.Candidate, Workload: row.Workload, Level: levelOrNone(row.Level), Name: name, Outcome: o, Message: message,
		Severity: claim.Severity, Decide: x.plan.Policy.Decide, Confidence: 1 - x.alpha, Value: metric.None("not compared"), File: ch.Range.Filename, Line: ch.Range.Start.Line}
}

func levelOrNone(level string) string {
	if level == "capacity" {
		return ""
	}
	return level
}

// decide answers for each workload and level whether the candidate is better.
// Of all the tests behind the answers of one comparison, the chance that one of
// them sees a difference where there is none is the error of the plan (Holm).
func (x *comparison) decide() {
	type side struct {
		row   int
		worse bool
	}
	var p []float64
	var of []side
	for i := range x.out.Changes {
		c := &x.out.Changes[i]
		if c.Level == "capacity" || !c.Change.OK && !c.delta.infinite() {
			continue
		}
		if x.repeats(i) {
			continue
		}
		p = append(p, c.delta.pAbove(0), c.delta.mirrored().pAbove(0))
		of = append(of, side{i, true}, side{i, false})
	}
	way := map[int]Direction{}
	for i, certain := range stat.Holm(p, x.alpha) {
		if certain {
			way[of[i].row] = map[bool]Direction{true: Worse, false: Better}[of[i].worse]
		}
	}
	type place struct{ workload, level string }
	type tally struct {
		better, worse, failed, tolerated []string
		mainBetter, mainWorse            bool
		widest                           float64
	}
	var order []place
	tallies := map[place]*tally{}
	for i := range x.out.Changes {
		c := &x.out.Changes[i]
		if c.Level == "capacity" {
			continue
		}
		at := place{c.Workload, c.Level}
		t := tallies[at]
		if t == nil {
			t = &tally{}
			tallies[at], order = t, append(order, at)
		}
		words := c.name()
		if c.Change.OK {
			words += " " + c.percent(c.Change.V)
		}
		if c.Limit.OK && c.Outcome == Fail && c.Severity != plan.SeverityWarn {
			t.failed = append(t.failed, words)
		}
		if x.repeats(i) {
			continue
		}
		main := c.Metric.Name == "throughput" || c.Metric.Name == "e2e"
		if c.Change.OK && main {
			t.widest = max(t.widest, math.Abs(c.Low.V), math.Abs(c.High.V))
		}
		switch way[i] {
		case Better:
			t.better = append(t.better, words)
			t.mainBetter = t.mainBetter || main
		case Worse:
			if c.Limit.OK && !c.Improve && c.Outcome == Pass {
				t.tolerated = append(t.tolerated, words)
				break
			}
			t.worse = append(t.worse, words)
			t.mainWorse = t.mainWorse || main
		}
	}
	for _, at := range order {
		if slices.ContainsFunc(x.out.Decisions, func(d Decision) bool { return d.Workload == at.workload && d.Level == at.level }) {
			continue
		}
		t := tallies[at]
		better, worse := strings.Join(t.better, ", "), strings.Join(t.worse, ", ")
		up, down := t.mainBetter, t.mainWorse
		if !up && !down && len(t.tolerated) == 0 {
			up, down = better != "", worse != ""
		}
		d := Decision{Workload: at.workload, Level: at.level}
		both := func(first, second string) string {
			if second == "" {
				return first
			}
			return first + "; but " + second
		}
		switch {
		case len(t.failed) > 0:
			d.Answer, d.Why = AnswerNo, "fails what is required: "+strings.Join(t.failed, ", ")
		case up && down:
			d.Answer, d.Why = AnswerMixed, both(better, worse)
		case up:
			d.Answer, d.Why = AnswerYes, both(better, worse)
		case down:
			d.Answer, d.Why = AnswerNo, both(worse, better)
		case len(t.tolerated) > 0:
			d.Answer, d.Why = AnswerNone, "none but what is tolerated: "+strings.Join(append(t.tolerated, t.worse...), ", ")
		default:
			d.Answer, d.Why = AnswerNone, "none was found"
			if t.widest > 0 {
				d.Why += "; e2e and throughput are within " + strings.TrimPrefix(FormatChange(t.widest, false), "+")
			}
		}
		x.out.Decisions = append(x.out.Decisions, d)
	}
	x.out.Line = x.sentence()
}

// repeats says whether an earlier row is of the same statistic: two blocks may
// bound it.
func (x *comparison) repeats(i int) bool {
	c := &x.out.Changes[i]
	return slices.ContainsFunc(x.out.Changes[:i], func(o Change) bool {
		return o.Workload == c.Workload && o.Level == c.Level && o.name() == c.name()
	})
}

// sentence is the decision table in one line: "mtp: yes for decode; no for
// prefill at 4".
func (x *comparison) sentence() string {
	var words []string
	for _, answer := range []string{AnswerYes, AnswerNo, AnswerMixed, AnswerNone, AnswerUnknown} {
		var places []string
		byWorkload := map[string][]string{}
		whole := map[string]bool{}
		for _, d := range x.out.Decisions {
			if _, seen := whole[d.Workload]; !seen {
				whole[d.Workload] = true
			}
			if d.Answer != answer {
				whole[d.Workload] = false
				continue
			}
			if byWorkload[d.Workload] == nil {
				places = append(places, d.Workload)
			}
			byWorkload[d.Workload] = append(byWorkload[d.Workload], d.Level)
		}
		for i, w := range places {
			if !whole[w] {
				places[i] += " at " + strings.Join(byWorkload[w], ", ")
			}
		}
		if len(places) == 0 {
			continue
		}
		said := map[string]string{AnswerYes: "yes for", AnswerNo: "no for", AnswerMixed: "mixed for", AnswerNone: "no difference that counts for", AnswerUnknown: "unknown for"}[answer]
		words = append(words, said+" "+enumerate(places))
	}
	if len(words) == 0 {
		return ""
	}
	return x.plan.Name + ": " + strings.Join(words, "; ")
}

func enumerate(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}

// ComparisonLook is what a look at a comparison came to while it ran.
type ComparisonLook struct {
	Outcome Outcome // the worst of what it requires
	// More says that further rounds could settle it.
	More bool
}

// JudgeComparison judges a comparison before it is over: the rounds that both
// sides have. run holds the comparison with the look that is held now.
func JudgeComparison(p *plan.Plan, c *plan.Compare, run *metric.Run) ComparisonLook {
	v := Judge(&plan.Plan{Gate: p.Gate, Servers: p.Servers, Workloads: p.Workloads, Compares: []*plan.Compare{c}}, run, Options{})
	if len(v.Comparisons) == 0 {
		return ComparisonLook{Outcome: Error}
	}
	x := v.Comparisons[0] // the only one of this plan
	out := ComparisonLook{Outcome: x.Outcome}
	for _, row := range x.Changes {
		if row.Limit.OK && row.Level != "capacity" && row.Outcome == Inconclusive && row.Severity != plan.SeverityWarn {
			out.More = true
		}
	}
	return out
}
