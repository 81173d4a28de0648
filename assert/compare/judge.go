package compare

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Judge judges one compare block. The first verdict says whether the two servers could be compared.
// Then each required change has one verdict.
func Judge(in Input) (*Comparison, []verdict.Verdict) {
	c := in.Block
	x := comparison{Input: in, alpha: c.Policy.Alpha(), whole: c.Policy.Alpha(), nominal: once, out: &Comparison{
		Name: c.Name, Control: c.Control.Baseline, Candidate: c.Candidate.Address(), Paired: c.Control.Baseline == "",
	}}
	x.failures = succeeding(in.Plan, c)
	x.required = slices.Concat(c.Claims, x.failures)
	if usual := implied(in.Plan, c); usual != nil && !in.Planless {
		x.required, x.usual = append(x.required, usual), usual
	}
	x.reads = x.readings()
	if c.Control.Server != nil {
		x.out.Control = c.Control.Server.Address()
	}
	if x.out.Paired {
		x.out.Restart = c.Restart
	}
	confidence := 1 - x.whole
	outcome, message := x.comparable()
	if outcome == verdict.Pass && c.Skip == "" {
		x.measure()
		x.read()
		x.unfounded()
		x.settle()
		x.decide()
	} else {
		x.out.Skipped = message
	}
	if outcome == verdict.Pass && x.out.Line != "" {
		message = x.out.Line
	}
	x.out.Outcome = outcome
	x.list = []verdict.Verdict{{
		Kind: verdict.KindCompare, Server: x.out.Candidate, Compares: verdict.Compares{Comparison: c.Name, Unchanged: c.Unchanged,
			BaseMissing: c.BaseMissing != ""}, Name: "compare." + c.Name,
		Outcome: outcome, Message: message, Test: verdict.Test{Value: metric.None("a comparison has no value of its own"), Interval: verdict.Interval{Confidence: confidence}},
		Place: verdict.Place{File: c.Range.Filename, Line: c.Range.Start.Line},
	}}
	x.list[0].Note(x.notes()...)
	if outcome == verdict.Inconclusive {
		x.list[0].Warn = c.Policy.OnInconclusive == plan.Warn
		x.list[0].Needs = "needs another requirement, such as an sla block, or --base-missing=pass"
	}
	if outcome != verdict.Pass || c.Skip != "" {
		x.skip(message)
		return x.out, x.list
	}
	x.require()
	if x.unmatched {
		x.out.Outcome = verdict.Error
	}
	x.list[0].Outcome = x.out.Outcome
	x.stage()
	if held := x.held(); held != "" && x.out.Line != "" {
		x.out.Line += ". " + held
		x.list[0].Message = x.out.Line
	}
	return x.out, x.list
}

// notes returns the notes on the whole comparison. The notes on differences between the servers
// come first.
func (x *comparison) notes() []string {
	var notes []string
	for _, d := range x.out.Differences {
		allowed := "listed in changed"
		if !d.Allowed {
			allowed = "not in changed"
		}
		notes = append(notes,
			fmt.Sprintf("%s: %s → %s (%s)", d.Key, cmp.Or(verdict.OneLine(d.Control), "not set"), cmp.Or(verdict.OneLine(d.Candidate), "not set"), allowed))
	}
	return append(notes, x.out.Notes...)
}

func (x *comparison) measure() {
	x.out.Changes = []Change{}
	var control, candidate oddities
	for _, w := range x.Block.Workloads(x.Plan) {
		for _, level := range w.Levels() {
			if x.leftOut(w, level.Name) {
				rows := x.missingRows(w, level.Name, "left out: not selected")
				for i := range rows {
					rows[i].Outcome, rows[i].LeftOut = verdict.Skipped, true
				}
				x.out.Changes = append(x.out.Changes, rows...)
				continue
			}
			m, problem := x.match(w, level)
			if problem != "" {
				x.unmatched = true
				x.out.Changes = append(x.out.Changes, x.missingRows(w, level.Name, problem)...)
				x.out.Decisions = append(x.out.Decisions, Decision{w.Address(), level.Name, AnswerUnknown, problem})
				continue
			}
			x.changes(m)
			x.lose(m)
			control.look(w, m.control)
			candidate.look(w, m.candidate)
		}
		x.capacity(w)
	}
	slices.SortStableFunc(x.out.Lost, func(a, b Lost) int { return len(b.Metrics) - len(a.Metrics) })
	for _, side := range []struct {
		name string
		oddities
	}{{"control", control}, {"candidate", candidate}} {
		if len(side.inPhase) > 0 {
			x.out.Notes = append(x.out.Notes, fmt.Sprintf("lock-step: on the %s, the slots of %s send at the same times, so TTFT is longer than for requests that are spread over time. TTFT may have changed only because other slots send together", side.name, verdict.Enumerate(side.inPhase)))
		}
	}
	for _, side := range []struct {
		name string
		cold int
	}{{"candidate", candidate.cold}, {"control", control.cold}} {
		if side.cold > 0 {
			x.out.Notes = append(x.out.Notes, fmt.Sprintf("in %s on the %s, the ttft of the first measured request was more than %d times the median; these requests are judged like all others", verdict.Count(side.cold, "legs"), side.name, coldTimes))
		}
	}
}

// oddities lists conditions that may explain unusual values of one server.
type oddities struct {
	inPhase []string // workloads and levels whose slots send at the same times
	cold    int      // number of rounds with a far too long first TTFT
}

func (o *oddities) look(w *plan.Workload, l *metric.Level) {
	if sync := l.Synchrony(); l.Kind == metric.ClosedLoop && sync.OK && sync.V >= sample.LockStep {
		o.inPhase = append(o.inPhase, fmt.Sprintf("%s at %s (synchrony %.2f)", w.Address(), l.Name, sync.V))
	}
	for _, r := range l.Rounds {
		if coldFirst(r) > 0 {
			o.cold++
		}
	}
}

// changes adds the results of one level: first the required changes, then those that are only
// shown.
func (x *comparison) changes(m matched) {
	required, late := map[string]bool{}, m.lateRounds()
	if n := len(m.candidate.Voided); n > 0 && x.out.Paired {
		x.out.Notes = append(x.out.Notes, fmt.Sprintf("%s of %s at %s had to be measured again on both servers, because the generator's machine had disturbed the load on one of them", verdict.Count(n, "rounds"), m.workload.Address(), m.level))
	}
	if late != "" {
		x.out.Notes = append(x.out.Notes, fmt.Sprintf("%s at %s: %s", m.workload.Address(), m.level, late))
	}
	if over := m.candidate.Overran(); len(over) > 0 {
		x.slow = true
		x.out.Notes = append(x.out.Notes, fmt.Sprintf("%s at %s: %s", m.workload.Address(), m.level, Overran(over)))
	}
	begin := len(x.out.Changes)
	for _, claim := range x.required {
		if !slices.Contains(claim.Workloads, m.workload) || !slices.Contains(claim.At, m.level) {
			continue
		}
		for _, ch := range claim.Changes {
			if !ofLevel(ch) || !applies(ch, m.workload) {
				continue
			}
			row := x.judged(m, claim, ch)
			m.question(&row, late, func(m matched) verdict.Outcome { return x.judged(m, claim, ch).Outcome })
			m.outliers(&row)
			required[row.Name()] = true
			x.claim(claim, ch, &row)
		}
	}
	for _, s := range shown {
		row := Change{Metric: metric.MustLookup(s.name), Stat: s.stat, Shift: Shift{Points: s.name == "success"}, Limit: metric.None(""),
			Outcome: verdict.Skipped}
		if m.untold(required, row) {
			continue
		}
		m.measure(&row, x.alpha)
		if row.Outcome == verdict.Error {
			row.Outcome = verdict.Skipped // this change is only shown, so its error does not count
		}
		if s.name == "success" && row.Control.OK && row.Control.V == 1 && row.Candidate.OK && row.Candidate.V == 1 {
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

func (x *comparison) judged(m matched, claim *plan.Claim, ch *plan.ChangeBound) Change {
	if ch.Metric.Source == metric.Starts {
		return x.startsJudged(m, claim, ch)
	}
	alpha := x.errorOf(claim)
	row := Change{Metric: ch.Metric, Stat: ch.Stat, Shift: Shift{Points: ch.Points}}
	m.measure(&row, alpha)
	row.require(ch, claim, x.Block.Policy, alpha)
	if slices.Contains(x.failures, claim) {
		m.fewMore(&row)
	}
	if len(m.candidate.Overran()) > 0 && row.Outcome == verdict.Pass {
		row.Outcome, row.Needs = verdict.Inconclusive, NeedsEnd
	}
	return row
}

// claim adds a row for a change, and the requirement on it. A default requirement must not make a
// comparison of few answers inconclusive. So if its change is undecided but within the limit, the
// row is only shown.
func (x *comparison) claim(claim *plan.Claim, ch *plan.ChangeBound, row *Change) {
	if claim == x.usual && row.unsettled(x.whole) {
		row.showOnly()
	} else {
		x.claims = append(x.claims, claimed{len(x.out.Changes), claim, ch})
	}
	x.out.Changes = append(x.out.Changes, *row)
}

// blind changes a passed verdict on a mean or a gap if the candidate does not pass on success. Such
// metrics give failed requests little or no weight, so without this a candidate could pass because
// its slow requests failed.
func (x *comparison) blind(m matched, begin int) {
	success := Change{Metric: metric.MustLookup("success"), Stat: metric.Stat{Kind: metric.Rate}, Shift: Shift{Points: true}}
	m.measure(&success, x.alpha)
	outcome := verdict.Pass
	for _, row := range x.out.Changes[begin:] {
		if row.Metric.Name == "success" && row.Limit.OK && !row.Improve && !row.implied {
			outcome, success.Limit = row.Outcome, row.Limit
		}
	}
	if !success.Limit.OK && success.Change.OK && success.Change.V < 0 {
		outcome = verdict.Inconclusive
		if success.Direction == Worse {
			outcome = verdict.Fail
		}
	}
	for i := begin; i < len(x.out.Changes); i++ {
		row := &x.out.Changes[i]
		if row.Outcome == verdict.Pass && outcome != verdict.Pass && row.Metric.IgnoresFailures(row.Stat) {
			row.Outcome = outcome
			row.Message += ", but the candidate fails more requests"
			row.Notes = append(row.Notes, fmt.Sprintf("%s ignores failed requests, so it passes only if the change of success passes (%s). To allow failed requests, add success to a tolerate block", row.Name(), success.line()))
			if outcome == verdict.Inconclusive {
				row.Needs = "needs the change of success to be decided first"
			}
			row.pFail = 0 // the row of the metric success already counts this failure
		}
	}
}

// unmeasured is the size of a change without values.
func (x *comparison) unmeasured(points bool) Shift {
	return Shift{Points: points, Interval: verdict.Interval{Confidence: 1 - x.whole}}
}

func (x *comparison) missingRows(w *plan.Workload, level, why string) []Change {
	var out []Change
	for _, claim := range x.required {
		if !slices.Contains(claim.Workloads, w) || !slices.Contains(claim.At, level) {
			continue
		}
		for _, ch := range claim.Changes {
			if !ofLevel(ch) || !applies(ch, w) {
				continue
			}
			row := Change{Workload: w.Address(), Level: level, Metric: ch.Metric, Stat: ch.Stat,
				Shift: x.unmeasured(ch.Points),
				Limit: metric.Some(ch.Limit), Improve: claim.Improve, Severity: verdict.Severity(claim.Severity),
				judging: judging{bound: ch}, Outcome: verdict.Error, Message: why, Why: why}
			x.claims = append(x.claims, claimed{len(x.out.Changes) + len(out), claim, ch})
			out = append(out, row)
		}
	}
	return out
}

// untold reports whether a change is not shown: it is required, and shown as that, or the API of the
// workload does not have its metric.
func (m matched) untold(required map[string]bool, of Change) bool {
	return required[of.Name()] || !of.Metric.OfEmbeddings() && m.workload.API.Embeds()
}
