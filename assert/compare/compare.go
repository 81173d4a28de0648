// Package compare judges a candidate against a control: whether the two can be
// compared, how each metric changed, and whether the changes that are required
// hold.
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
	Outcome     verdict.Outcome
	Skipped     string // why nothing was compared; ""
	LeftOut     bool   // the user did not select it
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

// Input is what a comparison is judged by: the plan with the compare block, the
// run, and what has been judged of its levels and capacities already.
type Input struct {
	Plan  *plan.Plan
	Block *plan.Compare
	Run   *metric.Run
	// Baseline is the recorded run of a stored control; nil: none was read.
	Baseline *metric.Run
	// Planless: two servers of a record are compared that no plan compared.
	Planless bool
	Unrun    string // why their record lacks a level that was to be run; ""
	// Level is a level of the run as recorded, without what a damaged record may
	// hold; nil: there is none. Valid says whether it was measured as it should be.
	Level func(server, workload, level string) *metric.Level
	Valid func(server, workload, level string) bool
	// Invalid says why a level of the baseline cannot be used; "" when it can.
	Invalid func(*metric.Level, *plan.Workload) string
	// Limit is the capacity of a server in a run, judged anew from its samples.
	Limit func(run *metric.Run, server string, w *plan.Workload) Limit
}

// Limit is a capacity as judged anew.
type Limit struct {
	*metric.Capacity        // nil: there was no search
	Problem          string // why nothing can be said; ""
}

// comparison is one compare block under judgement.
type comparison struct {
	Input
	out     *Comparison
	alpha   float64
	control *metric.Run // that holds the control
	address string      // of the control in it
	look    *metric.ComparisonLook
	record  *metric.Comparison // nil: the run has none
	claims  []claimed
	list    []verdict.Verdict
}

// claimed is a required change and where it stands.
type claimed struct {
	index  int // in out.Changes
	claim  *plan.Claim
	change *plan.Change
}

// Judge judges one compare block: a verdict on the whole, whether there was
// anything to compare, and one on each change that it requires.
func Judge(in Input) (*Comparison, []verdict.Verdict) {
	c := in.Block
	x := comparison{Input: in, alpha: c.Policy.Alpha(), out: &Comparison{
		Name: c.Name, Control: c.Control.Baseline, Candidate: c.Candidate.Address(), Paired: c.Control.Baseline == "",
	}}
	if c.Control.Server != nil {
		x.out.Control = c.Control.Server.Address()
	}
	if x.out.Paired {
		x.out.Restart = c.Restart
	}
	confidence := 1 - x.alpha
	outcome, message := x.comparable()
	if outcome == verdict.Pass && !c.Unchanged {
		x.measure()
		x.unfounded()
		x.decide()
		x.settle()
	} else {
		x.out.Skipped = message
	}
	if outcome == verdict.Pass && x.out.Line != "" {
		message = x.out.Line
	}
	x.out.Outcome = outcome
	x.list = []verdict.Verdict{{
		Kind: verdict.KindCompare, Server: x.out.Candidate, Comparison: c.Name, Unchanged: c.Unchanged, Name: "compare." + c.Name,
		Outcome: outcome, Message: message, Notes: x.notes(), Value: metric.None("a comparison has no value of its own"), Confidence: confidence,
		File: c.Range.Filename, Line: c.Range.Start.Line,
	}}
	if outcome != verdict.Pass || c.Unchanged {
		x.skip(message)
	} else {
		x.require()
	}
	return x.out, x.list
}

// notes are those of the whole: the differences of the servers come first.
func (x *comparison) notes() []string {
	var notes []string
	for _, d := range x.out.Differences {
		allowed := "allowed by changed"
		if !d.Allowed {
			allowed = "not in changed"
		}
		notes = append(notes, fmt.Sprintf("%s: %s → %s (%s)", d.Key, cmp.Or(verdict.OneLine(d.Control), "not set"), cmp.Or(verdict.OneLine(d.Candidate), "not set"), allowed))
	}
	return append(notes, x.out.Notes...)
}

// measure compares every workload at every level.
func (x *comparison) measure() {
	x.out.Changes = []Change{}
	var control, candidate oddities
	for _, w := range x.Block.Workloads(x.Plan) {
		for _, load := range w.Loads {
			for _, level := range load.Levels {
				if x.leftOut(w, level.Name) {
					rows := x.without(w, level.Name, "left out: not selected")
					for i := range rows {
						rows[i].Outcome, rows[i].LeftOut = verdict.Skipped, true
					}
					x.out.Changes = append(x.out.Changes, rows...)
					continue
				}
				m, problem := x.match(w, level)
				if problem != "" {
					x.out.Changes = append(x.out.Changes, x.without(w, level.Name, problem)...)
					x.out.Decisions = append(x.out.Decisions, Decision{w.Address(), level.Name, AnswerUnknown, problem})
					continue
				}
				x.changes(m)
				control.look(w, m.control)
				candidate.look(w, m.candidate)
			}
		}
		x.capacity(w)
	}
	for _, side := range []struct {
		name string
		oddities
	}{{"control", control}, {"candidate", candidate}} {
		if len(side.inPhase) > 0 {
			x.out.Notes = append(x.out.Notes, fmt.Sprintf("lock-step: on the %s the slots of %s start in phase: TTFT is that of bursts there, and changes of it may be changes of phase", side.name, verdict.Enumerate(side.inPhase)))
		}
	}
	for _, side := range []struct {
		name string
		cold int
	}{{"candidate", candidate.cold}, {"control", control.cold}} {
		if side.cold > 0 {
			x.out.Notes = append(x.out.Notes, fmt.Sprintf("in %s on the %s the first measured request took more than %d times the median ttft; such requests are measured and judged like all others", verdict.Count(side.cold, "legs"), side.name, coldTimes))
		}
	}
}

// oddities are what the levels of one side show that its figures may come from.
type oddities struct {
	inPhase []string // places where the slots start in phase
	cold    int      // legs with a cold first request
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

// changes adds the rows of one level: what is required of it, and what is shown
// besides.
func (x *comparison) changes(m matched) {
	required := map[string]bool{}
	begin := len(x.out.Changes)
	for _, claim := range x.Block.Claims {
		if !slices.Contains(claim.Workloads, m.workload) || !slices.Contains(claim.At, m.level) {
			continue
		}
		for _, ch := range claim.Changes {
			if ofCapacity(ch) || !applies(ch, m.workload) {
				continue
			}
			row := Change{Metric: ch.Metric, Stat: ch.Stat, Points: ch.Points}
			m.measure(&row, x.alpha)
			row.require(ch, claim, x.Block.Policy, x.alpha)
			m.outliers(&row)
			required[row.Name()] = true
			x.claims = append(x.claims, claimed{len(x.out.Changes), claim, ch})
			x.out.Changes = append(x.out.Changes, row)
		}
	}
	for _, s := range shown {
		row := Change{Metric: metric.MustLookup(s.metric), Stat: s.stat, Points: s.metric == "success", Limit: metric.None(""), Outcome: verdict.Skipped}
		if required[row.Name()] {
			continue
		}
		m.measure(&row, x.alpha)
		if row.Outcome == verdict.Error {
			row.Outcome = verdict.Skipped // nothing is required of it
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
	success := Change{Metric: metric.MustLookup("success"), Stat: metric.Stat{Kind: metric.Rate}, Points: true}
	m.measure(&success, x.alpha)
	outcome := verdict.Pass
	for _, row := range x.out.Changes[begin:] {
		if row.Metric.Name == "success" && row.Limit.OK && !row.Improve {
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
		if row.Outcome == verdict.Pass && outcome != verdict.Pass && (row.Stat.Kind == metric.Mean || row.Metric.Scope == metric.PerGap) {
			row.Outcome = outcome
			row.Message += ", but the candidate fails more requests"
			row.Notes = append(row.Notes, fmt.Sprintf("%s leaves failed requests out, so it passes only if success does (%s); tolerate success to allow some", row.Name(), success.line()))
			if outcome == verdict.Inconclusive {
				row.Needs = "needs a decided success"
			}
			row.pFail = 0 // its failure is that of success
		}
	}
}

// without lists the required rows of a level that could not be compared.
func (x *comparison) without(w *plan.Workload, level, why string) []Change {
	var out []Change
	for _, claim := range x.Block.Claims {
		if !slices.Contains(claim.Workloads, w) || !slices.Contains(claim.At, level) {
			continue
		}
		for _, ch := range claim.Changes {
			if ofCapacity(ch) || !applies(ch, w) {
				continue
			}
			row := Change{Workload: w.Address(), Level: level, Metric: ch.Metric, Stat: ch.Stat, Points: ch.Points, Confidence: 1 - x.alpha,
				Limit: metric.Some(ch.Limit), Improve: claim.Improve, Severity: verdict.Severity(claim.Severity), bound: ch, Outcome: verdict.Error, Message: why, Why: why}
			x.claims = append(x.claims, claimed{len(x.out.Changes) + len(out), claim, ch})
			out = append(out, row)
		}
	}
	return out
}

// ofCapacity says whether the change is one of the capacity, and so of no level.
func ofCapacity(ch *plan.Change) bool { return ch.Metric.Name == "capacity" }

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
