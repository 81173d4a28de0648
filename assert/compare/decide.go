package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

func (x *comparison) unfounded() {
	applied := map[*plan.ChangeBound]bool{}
	for _, c := range x.claims {
		row := &x.out.Changes[c.index]
		applied[c.change] = applied[c.change] || row.Outcome != verdict.Skipped || row.LeftOut
	}
	for _, c := range x.claims {
		if row := &x.out.Changes[c.index]; !applied[c.change] && c.claim != x.usual && c.claim != x.reading {
			row.Outcome, row.Why = verdict.Error, cmp.Or(row.lacks, row.Why)
			row.Message = row.Why
		}
	}
}

// settle takes into account how many changes were tested. Among many tests, one may fail by chance,
// so a failed change may become inconclusive. Changes that only warn do not count as tests. The
// default limits on the form of answers count if they fail: they fail the comparison if that is
// certain among all tests, and otherwise warn.
func (x *comparison) settle() {
	x.withdraw()
	var tests []test
	var rows []*Change
	forms := map[*Change]bool{}
	for _, c := range x.claims {
		row := &x.out.Changes[c.index]
		if x.onForm(c) && (row.Outcome == verdict.Fail || row.Outcome == verdict.Inconclusive) {
			row.Severity, forms[row] = verdict.SeverityWarn, true
			if row.pFail = row.delta.pAbove(row.limit); row.pFail > x.whole {
				continue
			}
		} else if row.Severity == verdict.SeverityWarn || row.Outcome == verdict.Pass || row.Outcome == verdict.Skipped {
			continue
		}
		tests, rows = append(tests, testOf(row.Workload, row.delta, row.limit, row.pFail)), append(rows, row)
	}
	many, certain := fmt.Sprintf("%s are tested together (%s)", verdict.Count(len(tests), "changes"), verdict.Count(len(factsOf(tests)), "independent facts")),
		certain(tests, x.whole, x.nominal)
	if x.staged() {
		many, certain = "all that the plan requires is tested together", x.certain(rows, forms)
	}
	for i, row := range rows {
		if forms[row] {
			if certain[i] {
				row.Severity = verdict.SeverityError
			}
			continue
		}
		if row.Outcome == verdict.Fail && row.pFail > 0 && !certain[i] && !x.Block.Policy.Estimates() {
			row.Outcome = verdict.Inconclusive
			row.Needs = "needs more rounds"
			row.Notes = append(row.Notes, fmt.Sprintf("judged alone, this change would fail (p = %.2g). But %s, so one of them may fail by chance", row.pFail, many))
		}
	}
}

// endedBefore says why a comparison that ended before its first look shows nothing about changes; "" if it
// did not.
func (x *comparison) endedBefore() string {
	if !x.staged() || x.look == nil || x.look.Rounds >= x.Block.LeastRounds {
		return ""
	}
	return fmt.Sprintf("it ended before its first look, which comes after %d rounds, because an exact threshold of the candidate had failed for good", x.Block.LeastRounds)
}

// withdraw makes passes inconclusive if the comparison ended before its first look.
func (x *comparison) withdraw() {
	why := x.endedBefore()
	for _, c := range x.claims {
		if row := &x.out.Changes[c.index]; why != "" && row.Outcome == verdict.Pass {
			row.Outcome, row.Needs = verdict.Inconclusive, "needs "+verdict.Count(x.Block.LeastRounds, "rounds")
		}
	}
}

func (x *comparison) skip(message string) {
	for _, claim := range x.required {
		for _, w := range claim.Workloads {
			for _, ch := range claim.Changes {
				if !applies(ch, w) || ch.Metric.Paired {
					continue
				}
				row := Change{Workload: w.Address(), Metric: ch.Metric, Stat: ch.Stat, OfCapacity: ofCapacity(ch)}
				levels := []string{""}
				if !row.OfCapacity {
					levels = slices.DeleteFunc(slices.Clone(claim.At), func(level string) bool { return w.Fixed(level) == nil })
				}
				for _, row.Level = range levels {
					x.list = append(x.list, x.verdictOn(&row, claim, ch, verdict.Skipped, message))
				}
			}
		}
	}
	for _, c := range x.reads {
		row := x.answersRow(c.change)
		x.list = append(x.list, x.verdictOn(&row, c.claim, c.change, verdict.Skipped, message))
	}
}

// require adds a verdict on each change that the plan requires. The verdict points to the
// requirement's line in the plan.
func (x *comparison) require() {
	before := len(x.list)
	for _, c := range x.claims {
		row := &x.out.Changes[c.index]
		v := x.verdictOn(row, c.claim, c.change, row.Outcome, cmp.Or(row.instead, row.Message))
		if x.onForm(c) && row.Severity != "" {
			v.Severity = row.Severity
		}
		v.Cause, v.Sure, v.Lack = row.cause, row.sure, row.Lack
		v.Note(row.Notes...)
		v.Value, v.Low, v.High, v.N = row.Change, row.Low, row.High, len(row.Pairs)
		if a := c.change.Accept; a != nil {
			worse := turned(row.Metric)
			v.Accept(&a.Accept, c.change.Own.Text, x.outcomeBy(c, row), worse*row.Change.V, worse*a.Limit)
		}
		if !v.Value.OK || row.instead != "" {
			v.Value = metric.None(cmp.Or(row.instead, row.Why, "not compared"))
		}
		if !x.out.Paired {
			v.Note(drifting)
		}
		if x.out.Paired && x.Block.Restart == plan.RestartNever {
			v.Note(startedOnce)
		}
		x.list = append(x.list, v)
	}
	if worst, cause := verdict.Worst(x.list[before:]); worst > x.out.Outcome {
		x.out.Outcome, x.list[0].Cause = worst, cause
	}
}

// outcomeBy returns the outcome of a change by the plan's own bound, in place of which one is accepted.
func (x *comparison) outcomeBy(c claimed, row *Change) verdict.Outcome {
	if row.Outcome == verdict.Error || row.Outcome == verdict.Skipped {
		return row.Outcome
	}
	own := Change{Workload: row.Workload, Metric: row.Metric, Stat: row.Stat, Shift: row.Shift, judging: judging{delta: row.delta}}
	if row.OfCapacity {
		for _, w := range c.claim.Workloads {
			x.certified(&own, w, c.change.Own.Limit)
		}
		return own.Outcome
	}
	own.require(c.change.Own, c.claim, x.Block.Policy, x.errorOf(c.claim))
	return own.Outcome
}

// verdictOn returns a verdict on a change that the plan limits. The verdict has no measured value
// yet.
func (x *comparison) verdictOn(row *Change, claim *plan.Claim, ch *plan.ChangeBound, o verdict.Outcome, message string) verdict.Verdict {
	kind := "tolerate"
	if claim.Improve {
		kind = "improve"
	}
	name := strings.Join(slices.DeleteFunc([]string{"compare", x.Block.Name, kind, ch.Metric.Name, ch.Stat.String()},
		func(s string) bool { return s == "" }), ".")
	level := ""
	if !row.OfCapacity && !row.OfAnswers {
		level = row.Level
		name = verdict.NameAt(name, level)
	}
	return verdict.Verdict{Kind: verdict.KindCompare, Server: x.out.Candidate,
		Compares: verdict.Compares{Comparison: x.Block.Name, Metric: ch.Metric.Name}, Workload: row.Workload, Level: level, Name: name,
		Outcome: o, Message: message, Severity: verdict.Severity(claim.Severity), Warn: x.Block.Policy.OnInconclusive == plan.Warn,
		Test:  verdict.Test{Decide: string(x.Block.Policy.Decide), Interval: x.unmeasured(false).Interval, Value: metric.None("not compared")},
		Place: verdict.Place{File: ch.Range.Filename, Line: ch.Range.Start.Line}}
}

func (x *comparison) decide() {
	way := x.ways()
	type place struct{ workload, level string }
	var order []place
	tallies := map[place]*tally{}
	for i := range x.out.Changes {
		c := &x.out.Changes[i]
		if c.OfCapacity || c.OfAnswers {
			continue
		}
		at := place{c.Workload, c.Level}
		if tallies[at] == nil {
			tallies[at], order = &tally{}, append(order, at)
		}
		// Show a direction only if it is certain when all rows are tested together. The row then
		// agrees with the answer of the comparison.
		if !x.repeats(i) {
			c.Direction = way[i]
		}
		tallies[at].add(c, way[i], x.repeats(i))
	}
	for _, at := range order {
		if slices.ContainsFunc(x.out.Decisions, func(d Decision) bool { return d.Workload == at.workload && d.Level == at.level }) {
			continue
		}
		answer, why := tallies[at].answer()
		if ended := x.endedBefore(); ended != "" && answer != AnswerNo {
			answer, why = AnswerUnknown, ended
		}
		x.out.Decisions = append(x.out.Decisions, Decision{at.workload, at.level, answer, why})
	}
	x.out.Line = x.sentence()
}

// ways returns the direction of each significant change. The key is the change's index in
// x.out.Changes. All tests of one comparison share the plan's error alpha, so the chance that even
// one direction is wrong is at most alpha.
func (x *comparison) ways() map[int]Direction {
	type side struct {
		row       int
		direction Direction
	}
	var tests []test
	var of []side
	for i := range x.out.Changes {
		c := &x.out.Changes[i]
		if c.OfCapacity || c.OfAnswers || !c.Change.OK && !c.delta.infinite() || x.repeats(i) {
			continue
		}
		for _, d := range []delta{c.delta, c.delta.mirrored()} {
			tests = append(tests, testOf(c.Workload, d, 0, d.pAbove(0)))
		}
		of = append(of, side{i, Worse}, side{i, Better})
	}
	way := map[int]Direction{}
	for i, certain := range certain(tests, x.whole, x.nominal) {
		if certain {
			way[of[i].row] = of[i].direction
		}
	}
	return way
}

// tally collects the changes of one level, to find the answer for the level.
type tally struct {
	better, worse, failed, tolerated []string
	mainBetter, mainWorse            bool
	// wide lists the changes of e2e and throughput that may be larger than the margin, by their
	// confidence bounds. within lists those that are certainly smaller. The margin is the plan's
	// tolerance, or usualMargin if there is none.
	wide, within []string
}

// usualMargin is the largest change of throughput or e2e that counts as no difference, as a share.
// It is used if the plan sets no tolerance.
const usualMargin = 0.05

func (t *tally) add(c *Change, way Direction, repeated bool) {
	words := c.Name()
	if c.Change.OK {
		words += " " + c.percent(c.Change.V)
	}
	if c.Limit.OK && c.Outcome == verdict.Fail && c.Severity != verdict.SeverityWarn {
		t.failed = append(t.failed, words)
	}
	if repeated {
		return
	}
	main := c.Metric.Name == "throughput" || c.Metric.Name == "e2e"
	if c.Change.OK && main {
		margin := usualMargin
		if c.Limit.OK && !c.Improve {
			margin = math.Abs(c.Limit.V)
		}
		if max(math.Abs(c.Low.V), math.Abs(c.High.V)) <= margin {
			t.within = append(t.within, fmt.Sprintf("%s is within %s", c.Name(), strings.TrimPrefix(FormatChange(c.Unit(), margin, c.Points), "+")))
		} else {
			t.wide = append(t.wide, words+" ("+c.Span(c.percent)+")")
		}
	}
	switch {
	case way == Better:
		t.better = append(t.better, words)
		t.mainBetter = t.mainBetter || main
	case way == Worse && c.Limit.OK && !c.Improve && c.Outcome == verdict.Pass:
		t.tolerated = append(t.tolerated, words)
	case way == Worse:
		t.worse = append(t.worse, words)
		t.mainWorse = t.mainWorse || main
	}
}

// answer returns the answer for a level and its reason. A failed requirement means no. Otherwise
// e2e (the whole request) and throughput (the whole server) decide. Other changes decide only if
// neither of these two changed.
func (t *tally) answer() (answer, why string) {
	better, worse := strings.Join(t.better, ", "), strings.Join(t.worse, ", ")
	up, down := t.mainBetter, t.mainWorse
	if !up && !down && len(t.tolerated) == 0 {
		up, down = better != "", worse != ""
	}
	both := func(first, second string) string {
		if second == "" {
			return first
		}
		return first + "; but " + second
	}
	switch {
	case len(t.failed) > 0:
		return AnswerNo, "fails its requirements: " + strings.Join(t.failed, ", ")
	case up && down:
		return AnswerMixed, both(better, worse)
	case up:
		return AnswerYes, both(better, worse)
	case down:
		return AnswerNo, both(worse, better)
	case len(t.tolerated) > 0 && worse != "":
		return AnswerNo, worse + "; within its tolerance: " + strings.Join(t.tolerated, ", ")
	case len(t.tolerated) > 0:
		return AnswerNone, "no change beyond the tolerance: " + strings.Join(t.tolerated, ", ")
	case len(t.wide) > 0:
		return AnswerUnknown, "too noisy to tell: " + strings.Join(t.wide, ", ")
	case len(t.within) > 0:
		return AnswerNone, strings.Join(t.within, ", ")
	}
	return AnswerUnknown, "neither throughput nor e2e has a value"
}

// repeats reports whether row i shows the same change as an earlier row. This happens if two blocks
// of the plan limit the change.
func (x *comparison) repeats(i int) bool {
	c := &x.out.Changes[i]
	return slices.ContainsFunc(x.out.Changes[:i], func(o Change) bool {
		return o.Workload == c.Workload && o.Level == c.Level && o.Name() == c.Name()
	})
}

// answers lists the possible answers in the order in which a sentence reports them, each with the
// words that begin its part of the sentence.
var answers = []struct{ answer, words string }{
	{AnswerYes, "yes for"}, {AnswerNo, "no for"}, {AnswerMixed, "mixed for"},
	{AnswerNone, "no meaningful difference for"}, {AnswerUnknown, "no certain difference for"},
}

// sentence writes the answers of the comparison in one line, such as "mtp: yes for decode; no for
// prefill at 4".
func (x *comparison) sentence() string {
	var parts []string
	for _, a := range answers {
		var workloads []string
		levels := map[string][]string{}
		others := map[string]bool{} // workloads that have another answer at some level
		for _, d := range x.out.Decisions {
			if d.Answer != a.answer {
				others[d.Workload] = true
				continue
			}
			if levels[d.Workload] == nil {
				workloads = append(workloads, d.Workload)
			}
			levels[d.Workload] = append(levels[d.Workload], d.Level)
		}
		for i, w := range workloads {
			if others[w] {
				workloads[i] += " at " + strings.Join(levels[w], ", ")
			}
		}
		if len(workloads) > 0 {
			parts = append(parts, a.words+" "+verdict.Enumerate(workloads))
		}
	}
	if wrong := x.wrong(); wrong != "" {
		parts = append([]string{"wrong answers (" + wrong + ")"}, parts...)
	}
	if len(parts) == 0 {
		return ""
	}
	return x.Block.Name + ": " + strings.Join(parts, "; ")
}

func (x *comparison) wrong() string {
	var out []string
	for i := range x.out.Changes {
		if c := &x.out.Changes[i]; c.OfAnswers && c.Outcome == verdict.Fail && c.Severity != verdict.SeverityWarn && c.Change.OK {
			out = append(out, c.Name()+" "+c.percent(c.Change.V))
		}
	}
	return strings.Join(out, ", ")
}
