package assert

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// unfounded makes an error of a required change that applied nowhere: nothing
// was judged by it.
func (x *comparison) unfounded() {
	applied := map[*plan.Change]bool{}
	for _, c := range x.claims {
		row := &x.out.Changes[c.index]
		applied[c.change] = applied[c.change] || row.Outcome != Skipped || row.LeftOut
	}
	for _, c := range x.claims {
		if row := &x.out.Changes[c.index]; !applied[c.change] {
			row.Outcome, row.Why = Error, cmp.Or(row.lacks, row.Why)
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
					row := Change{Workload: w.Address(), Metric: ch.Metric, Stat: ch.Stat, OfCapacity: ch.Metric.Name == "capacity"}
					levels := []string{""}
					if !row.OfCapacity {
						levels = slices.DeleteFunc(slices.Clone(claim.At), func(level string) bool { return fixed(w, level) == nil })
					}
					for _, row.Level = range levels {
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
		if row.Severity != verdict.SeverityWarn && row.Outcome != Skipped {
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
	level := ""
	if !row.OfCapacity {
		level = row.Level
		name += " at " + level
	}
	return Verdict{Kind: KindCompare, Server: x.out.Candidate, Comparison: x.plan.Name, Workload: row.Workload, Level: level, Name: name, Outcome: o, Message: message,
		Severity: verdict.Severity(claim.Severity), Decide: string(x.plan.Policy.Decide), Confidence: 1 - x.alpha, Value: metric.None("not compared"), File: ch.Range.Filename, Line: ch.Range.Start.Line}
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
		if c.OfCapacity || !c.Change.OK && !c.delta.infinite() {
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
		if c.OfCapacity {
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
		if c.Limit.OK && c.Outcome == Fail && c.Severity != verdict.SeverityWarn {
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
