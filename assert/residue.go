package assert

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

const (
	// mostWasted is the largest share of the tokens that clients did not wait for, which a server may
	// make all the same. An engine that stops a request within a few steps makes far fewer.
	mostWasted = 0.25
	// leastTaken is the smallest share of the requests that a server answered at once before the level,
	// which it must still answer after it.
	leastTaken = 0.9
)

// residues judges what the servers kept of each level, if the plan asks for that.
func (j *judge) residues() {
	for _, s := range j.promised.Servers {
		for _, w := range j.promised.Workloads {
			if !slices.Contains(w.Servers, s) {
				continue
			}
			for _, level := range w.Levels() {
				if of := j.promised.Residual(s, w, level); of != nil {
					j.add(j.residue(s, w, level.Name, of), plan.Stop)
				}
			}
		}
	}
}

func (j *judge) residue(s *plan.Server, w *plan.Workload, level string, of *plan.Residue) verdict.Verdict {
	v := verdict.Verdict{Kind: verdict.KindResidue, Server: s.Address(), Workload: w.Address(), Level: level, Name: "residue at " + level,
		Severity: verdict.Severity(of.Severity), Test: verdict.Test{Value: metric.None("a residue has no single value")},
		Place: verdict.Place{File: of.Range.Filename, Line: of.Range.Start.Line}}
	const unknown = "what the server kept of the load is not known: "
	switch l := j.recorded[levelKey{s.Address(), w.Address(), level}]; {
	case l != nil && l.Skipped == metric.SkippedOnly:
		v.Outcome, v.Message = verdict.Skipped, "left out: not selected"
	case l == nil || l.Residue == nil:
		v.Outcome, v.Message = verdict.Error, "what the server kept of the load was not measured"+verdict.Because(j.serverError(s.Address()))
	case l.Residue.Why != "":
		v.Outcome, v.Message = verdict.Error, unknown+verdict.OneLine(l.Residue.Why)
	default:
		judgeResidue(&v, l.Residue)
		if v.Outcome == verdict.Pass && w.Leaving() > 0 && l.Departures() == nil {
			v.Outcome, v.Message = verdict.Error, unknown+"no client left. Let clients leave earlier, or send more requests"
		}
	}
	return v
}

// judgeResidue compares what a server takes after a level with what it took before.
func judgeResidue(v *verdict.Verdict, r *metric.Residue) {
	left, unknown := kept(r)
	switch wasted := r.Wasted(); {
	case !r.Made.OK && r.Left > 0:
		unknown = append(unknown, "tokens made for nobody")
	case wasted.V > mostWasted:
		left = append(left, fmt.Sprintf("it made %s of the tokens that clients who left did not wait for", metric.Format(metric.Ratio, min(wasted.V, 1))))
	}
	switch {
	case r.After.Alone == 0 || r.Before.Alone == 0:
		left = append(left, "a request alone gets no answer")
	case !metric.Recovered(r.Before.Alone, r.After.Alone):
		left = append(left, fmt.Sprintf("a request alone waits %s for its first token, at most %s before",
			metric.Format(metric.Seconds, r.After.Alone.Seconds()), metric.Format(metric.Seconds, r.Before.Alone.Seconds())))
	}
	if was, is := r.Before.AtOnce, r.After.AtOnce; r.Burst > 0 && float64(is) < leastTaken*float64(was) {
		left = append(left, fmt.Sprintf("of %d requests at once it answers %d together, %d before", r.Burst, is, was))
	} else if r.Burst > 0 {
		v.Note(fmt.Sprintf("of %d requests at once the server answered %d together, %d before", r.Burst, is, was))
	}
	after := fmt.Sprintf("%s after the load, in which tokgate cancelled %s", metric.Format(metric.Seconds, r.Settled.Seconds()), verdict.Count(r.Left, "requests"))
	switch {
	case len(left) > 0:
		v.Outcome, v.Message = verdict.Fail, after+": "+strings.Join(left, "; ")
	case !r.Before.Running.OK || !r.After.Running.OK:
		why := r.Before.Running.Why
		if r.Before.Running.OK {
			why = r.After.Running.Why
		}
		v.Outcome, v.Message = verdict.Error, "what the server kept of the load is not known: "+verdict.OneLine(why)
		return
	default:
		v.Outcome, v.Message = verdict.Pass, after+", the server is as before"
	}
	if r.Left > 0 {
		v.Note(fmt.Sprintf("a leak in fewer than %s of the cancelled requests may go unnoticed", metric.FormatDigits(metric.Ratio, min(3/float64(r.Left), 1), 2)))
	}
	if len(unknown) > 0 {
		v.Caution("the server does not report these, so they were not checked: " + strings.Join(unknown, ", "))
	}
}

// kept lists what a server says it holds more of than before, and what it says nothing of.
func kept(r *metric.Residue) (left, unknown []string) {
	for _, x := range []struct {
		name    string
		was, is metric.Value
		unit    metric.Unit
	}{
		{"requests running", r.Before.Running, r.After.Running, metric.Count},
		{"requests waiting", r.Before.Waiting, r.After.Waiting, metric.Count},
		{"KV cache in use", r.Before.KV, r.After.KV, metric.Ratio},
	} {
		switch {
		case !x.was.OK || !x.is.OK:
			unknown = append(unknown, x.name)
		case x.is.More(x.was):
			said := fmt.Sprintf("%s: %s, %s before", x.name, metric.FormatDigits(x.unit, x.is.V, 3), metric.FormatDigits(x.unit, x.was.V, 3))
			if r.Left > 0 {
				said += fmt.Sprintf(" (%s for each cancelled request)", metric.FormatDigits(x.unit, (x.is.V-x.was.V)/float64(r.Left), 2))
			}
			left = append(left, said)
		}
	}
	return left, unknown
}
