package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// comparable returns Pass without a reason if the two servers can be compared: both were measured,
// and they differ only where the plan allows it. Otherwise it returns the outcome of the comparison
// and the reason.
func (x *comparison) comparable() (verdict.Outcome, string) {
	x.recorded()
	if outcome, message := x.skipped(); outcome != verdict.Pending {
		return outcome, message
	}
	// Rounds recorded side by side depend on each other, even if the plan no longer says
	// side_by_side.
	x.out.SideBySide = x.out.Paired && (x.Block.SideBySide || x.record != nil && x.record.SideBySide)
	x.control, x.address = x.Run, x.out.Control
	problem := x.looked()
	if problem == "" && !x.out.Paired {
		problem = x.baseline()
	}
	if problem == "" && x.control.Simulated != x.Run.Simulated {
		problem = fmt.Sprintf("the control was %s, but the candidate was %s", measuredOr(x.control), measuredOr(x.Run))
	}
	if problem == "" && x.Planless {
		if problem = x.Unrun; x.Run.Stopped != "" {
			problem = "the candidate's run did not end: " + verdict.OneLine(x.Run.Stopped)
		}
		if problem == "" {
			x.noteControlOnly()
			x.noteUnscored()
		}
	}
	if problem == "" {
		problem = x.servers()
	}
	if problem != "" {
		return verdict.Error, problem
	}
	if x.out.SideBySide {
		x.out.Notes = append(x.out.Notes, "side by side: the servers swapped their GPUs after every round, so two rounds count as one observation")
	}
	if x.out.Paired && x.Block.Restart == plan.RestartNever {
		x.out.Notes = append(x.out.Notes, startedOnce+", even if the change is certified")
	}
	return verdict.Pass, ""
}

// recorded finds the run's record of this comparison. It also finds the look at which the
// comparison ended.
func (x *comparison) recorded() {
	i := slices.IndexFunc(x.Run.Comparisons, func(r *metric.Comparison) bool { return r != nil && r.Name == x.Block.Name })
	if i < 0 {
		return
	}
	x.record = x.Run.Comparisons[i]
	if n := len(x.record.Looks); n > 0 {
		x.look = &x.record.Looks[n-1]
	}
	x.nominal = nominal(x.Plan, x.record, x.Block)
	x.alpha = x.nominal(x.whole)
	for _, note := range x.record.Notes {
		x.out.Notes = append(x.out.Notes, verdict.OneLine(note))
	}
}

// looked explains why the record of a comparison cannot be judged as it was looked at; "" if it can.
func (x *comparison) looked() string {
	switch {
	case x.record == nil:
	case x.record.Restart == "order":
		return `the run restarted its servers with restart = "order", which was removed. Judge it with the version that recorded it`
	case len(x.record.Planned) > 0 && (x.look == nil || !slices.Contains(x.record.Planned, x.look.Rounds)):
		return "the record does not say at which of its planned looks the comparison ended"
	case !slices.IsSorted(x.record.Planned):
		return "the planned looks of the record are not in order"
	}
	return ""
}

// skipped returns the outcome of a comparison for which nothing was measured, and the reason. It
// returns Pending if something was measured.
func (x *comparison) skipped() (verdict.Outcome, string) {
	c := x.Block
	switch {
	case c.Unchanged:
		if slices.ContainsFunc(c.Claims, func(claim *plan.Claim) bool { return claim.Improve && claim.Severity == plan.SeverityError }) {
			return verdict.Fail, c.Skip + ", so nothing improved"
		}
		return verdict.Pass, c.Skip
	case c.BaseMissing == plan.BaseMissingFail:
		return verdict.Fail, c.Skip + ", and base-missing is fail"
	case c.BaseMissing == plan.BaseMissingPass:
		return verdict.Pass, c.Skip + ", and base-missing is pass"
	case c.BaseMissing != "" && !x.Plan.Requires() && !x.Plan.Gate.MeasureOnly:
		return verdict.Inconclusive, c.Skip + ", and nothing else is required"
	case c.Skip != "":
		return verdict.Skipped, c.Skip
	case x.record != nil && x.record.Skipped == metric.SkippedOnly:
		x.out.LeftOut = true
		return verdict.Skipped, "left out: not selected"
	case x.record != nil && x.record.Skipped != "":
		return verdict.Error, "not compared: " + verdict.OneLine(x.record.Skipped)
	case x.record == nil && x.out.Paired && !x.Planless:
		return verdict.Error, "the run did not make this comparison" + verdict.Because(x.Run.Stopped)
	}
	return verdict.Pending, ""
}

// baseline finds the recorded run that a comparison uses as its control. It returns "", or the
// reason why this run cannot be used.
func (x *comparison) baseline() string {
	c := x.Block
	if x.control = x.Baseline; x.control == nil {
		return "the recorded run of the control could not be read: " + c.Control.Baseline
	}
	if SameRun(x.control, x.Run) {
		return fmt.Sprintf("%s holds the candidate's own run, %s: a run cannot be compared with itself", c.Control.Baseline, verdict.OneLine(x.Run.ID))
	}
	var problem string
	if x.address, problem = storedServer(c, x.control); problem == "" {
		x.out.Notes = append(x.out.Notes, fmt.Sprintf("%s: the control was recorded in %s (run %s)", drifting, c.Control.Baseline, verdict.OneLine(x.control.ID)))
		if x.control.SaltedLengths || x.Run.SaltedLengths {
			x.out.Notes = append(x.out.Notes, "the answers' lengths were drawn anew in each run, so part of a change may come from them. The runs of a plan with a compare or history block ask for the same lengths")
		}
	}
	return problem
}

// noteUnscored adds a note if a run has scored answers that this comparison cannot use. Scores are
// comparable only if the control also scored the candidate's answers.
func (x *comparison) noteUnscored() {
	read := func(run *metric.Run) bool {
		return slices.ContainsFunc(run.Comparisons, func(c *metric.Comparison) bool { return c != nil && c.Answers != nil })
	}
	if x.Block.Answers == nil && (read(x.Run) || read(x.control)) {
		x.out.Notes = append(x.out.Notes, "odd_answers and answer_nll are not compared: the control of this comparison did not score the candidate's answers. Compare two servers of one run, or name them with --control and --candidate")
	}
}

// servers explains why the two servers cannot be compared; "" if they can. They may not differ in
// more than the plan allows.
func (x *comparison) servers() string {
	control, candidate := x.control.Server(x.address), x.Run.Server(x.out.Candidate)
	for _, s := range []struct {
		what string
		run  *metric.ServerRun
	}{{"control", control}, {"candidate", candidate}} {
		switch {
		case s.run == nil:
			return "there is no record of the " + s.what + verdict.Because(x.Run.Stopped)
		case s.run.Error != "":
			return fmt.Sprintf("because the %s could not be measured: %s", s.what, verdict.OneLine(s.run.Error))
		case s.run.Unended:
			return fmt.Sprintf("the recording ends before the %s was stopped, so it is not known whether the same server ran until the end", s.what)
		}
	}
	if problem := x.transports(control.Path, candidate.Path); problem != "" {
		return problem
	}
	x.out.Differences = plan.Apart(x.Block.Changed, control, candidate)
	if why := plan.Incomparable(x.Block.Changed, x.out.Differences, control, candidate); why != "" {
		return why
	}
	x.cold(control, candidate)
	return ""
}

// transports compares how the streams of control and candidate were read. net/http stamps chunks later
// than tokgate's own transport if many come at once. If only one side was recorded with --transport
// net/http, the result is a reason not to compare them; any other difference is a note.
func (x *comparison) transports(control, candidate string) string {
	if control == "" || candidate == "" || (control == metric.PathOwn) == (candidate == metric.PathOwn) {
		return ""
	}
	words := fmt.Sprintf("the streams of the control were read by %s, those of the candidate by %s, and net/http stamps chunks later when many come at once",
		verdict.OneLine(control), verdict.OneLine(candidate))
	if (control == metric.PathChosen) != (candidate == metric.PathChosen) {
		return words + "; record both with the same --transport"
	}
	x.out.Notes = append(x.out.Notes, words+"; with --transport net/http both are read alike")
	return ""
}

// noteControlOnly is for comparisons of stored runs. It adds a note for each level that was
// measured on the control alone.
func (x *comparison) noteControlOnly() {
	for _, l := range x.levels() {
		if l == nil || l.Server != x.address || l.Probe != nil || l.Skipped != "" {
			continue
		}
		if o := x.Level(x.out.Candidate, l.Workload, l.Name); o == nil || o.Skipped != "" {
			x.out.Notes = append(x.out.Notes, fmt.Sprintf("%s at %s is not compared, because only the control was measured at this level", l.Workload, l.Name))
		}
	}
}

func measuredOr(run *metric.Run) string {
	if run.Simulated {
		return "simulated"
	}
	return "measured"
}

// storedServer returns the address of the control in a recorded run. If it cannot tell which server
// is the control, it returns the problem.
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
	return "", fmt.Sprintf("the recorded run %s has no server %s; its servers: %s", c.Control.Baseline, want, strings.Join(have, ", "))
}

// cold adds a note on how long the first request after each start of a server took. This request
// counts in no metric of the comparison.
func (x *comparison) cold(a, b *metric.ServerRun) {
	words := func(s *metric.ServerRun) string {
		var times []float64
		for _, start := range s.Starts {
			if start.Cold > 0 {
				times = append(times, start.Cold.Seconds())
			}
		}
		if len(times) == 0 {
			return ""
		}
		return fmt.Sprintf("%s (median of %s)", metric.Format(metric.Seconds, median(times)), verdict.Count(len(times), "starts"))
	}
	if was, is := words(a), words(b); was != "" && is != "" {
		x.out.Notes = append(x.out.Notes, fmt.Sprintf("cold: the first request after a start got its first token after %s on the control and %s on the candidate; no metric includes this request", was, is))
	}
}
