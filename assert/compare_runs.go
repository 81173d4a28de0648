package assert

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

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
