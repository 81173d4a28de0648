package assert

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/tokgate/tokgate/assert/verdict"
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
	whole := Verdict{Kind: KindCompare, Server: x.out.Candidate, Comparison: c.Name, Unchanged: c.Unchanged, Name: "compare." + c.Name, File: c.Range.Filename, Line: c.Range.Start.Line,
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

// measure compares every workload at every level.
func (x *comparison) measure() {
	x.out.Changes = []Change{}
	colds, inPhase := map[string]int{}, map[string][]string{}
	for _, w := range x.plan.Workloads(x.judge.plan) {
		for _, load := range w.Loads {
			for _, level := range load.Levels {
				if x.leftOut(w, level.Name) {
					rows := x.without(w, level.Name, "left out: not selected")
					for i := range rows {
						rows[i].Outcome, rows[i].LeftOut = Skipped, true
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
				Limit: metric.Some(ch.Limit), Improve: claim.Improve, Severity: verdict.Severity(claim.Severity), bound: ch, Outcome: Error, Message: why, Why: why}
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
