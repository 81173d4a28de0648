package assert

import (
	"fmt"
	"math"
	"strings"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// lookNote returns a note that a level was judged at one of several planned looks. It returns "" if
// only one look was planned.
func lookNote(l *metric.Level, last metric.Look, confidence float64) string {
	switch {
	case last.Planned <= 1:
		return ""
	case last.Spent == 0 && last.Outcome == verdict.Fail:
		return fmt.Sprintf("judged on the %s that started first, at an early look that could only fail the level; its confidence is %s",
			verdict.Count(l.Due(), "requests"), metric.Format(metric.Ratio, confidence))
	}
	return fmt.Sprintf("judged on the %s that started first, at one of %d planned looks; the confidence is %s, because the looks share the allowed error",
		verdict.Count(l.Due(), "requests"), last.Planned, metric.Format(metric.Ratio, confidence))
}

// measured judges the load and the thresholds of one level on one server. It returns the function
// that adds the verdicts.
func (j *judge) measured(server *plan.Server, w *plan.Workload, load *plan.Load, level plan.Level) (conclude func()) {
	key := levelKey{server.Address(), w.Address(), level.Name}
	planned := level
	level = shed(w, looksAt(j.promised, j.run, key.server, w), level)
	v := verdict.Verdict{Kind: verdict.KindLoad, Place: verdict.Place{File: level.Range.Filename, Line: level.Range.Start.Line}}
	if v.Line == 0 {
		v.File, v.Line = load.Range.Filename, load.Range.Start.Line
	}
	why := j.unmeasured(&v, key)
	if l := j.levels[key]; v.Outcome == verdict.Pending && l.Asked != nil {
		if differs := l.Asked.Differs(*w.Asked(server, load)); len(differs) > 0 {
			v.Outcome, v.Message = verdict.Error, "the recording is of another workload: "+strings.Join(differs, "; ")
		}
	}
	var list []required
	if !j.promised.ControlOnly(server, w) {
		list = requirements(w, boundAt(level.Name), load.Kind, level, j.implied())
	}
	var verdicts []verdict.Verdict
	l, valid := j.levels[key], false
	if v.Outcome == verdict.Pending {
		l, verdicts = j.valued(&v, w, load.Kind, level, planned, list, key)
		if why := j.rambling(key.server, w, l); v.Outcome == verdict.Pass && why != "" {
			v.Outcome, v.Message = verdict.Error, why
		}
		valid = v.Outcome == verdict.Pass
	}
	switch {
	case v.Outcome != verdict.Error:
	case v.Cause == verdict.CauseNotRun:
		why = v.Message
	default:
		why = "the measurement is not valid: " + v.Message
	}
	at := func(v verdict.Verdict, name string) verdict.Verdict {
		v.Server, v.Workload, v.Level = key.server, key.workload, key.level
		v.Name = verdict.NameAt(name, level.Name)
		return v
	}
	return func() {
		j.levels[key], j.valid[key] = l, valid
		j.add(at(v, "load"), plan.Stop)
		for i, t := range list {
			judged := t.unjudged(w.Policy)
			if v.Outcome == verdict.Pass {
				judged = verdicts[i]
			} else {
				judged.Outcome, judged.Message = verdict.Skipped, "because "+why
			}
			j.add(at(judged, t.name()), w.Policy.OnInconclusive)
		}
	}
}

// unmeasured sets the verdict on the load if a level was not measured, and returns the reason. The
// thresholds of the level are skipped for this reason. If the level was measured, the reason is "".
func (j *judge) unmeasured(v *verdict.Verdict, key levelKey) (why string) {
	l := j.levels[key]
	switch lost := j.serverError(key.server); {
	case l == nil:
		v.Outcome, v.Cause, v.Message = verdict.Error, verdict.CauseNotRun, "the run did not measure this level"+verdict.Because(j.run.Stopped)
	case l.Skipped == metric.SkippedOnly:
		why = "left out: not selected"
		v.Outcome, v.Message = verdict.Skipped, why
	case lost != "":
		// The verdict on the server reports the error once, so this case is skipped.
		why = "the server could not be measured: " + verdict.OneLine(lost)
		v.Outcome, v.Message = verdict.Skipped, "because "+why
	case l.Skipped != "":
		v.Outcome, v.Cause, v.Message = verdict.Error, verdict.CauseNotRun, "not run: "+verdict.OneLine(l.Skipped)
	}
	return why
}

// valued judges the load and the thresholds of a measured level. It returns the level with only the
// requests that its last look covers, and the verdicts on the thresholds.
func (j *judge) valued(v *verdict.Verdict, w *plan.Workload, kind metric.LoadKind, level, planned plan.Level, list []required,
	key levelKey) (*metric.Level, []verdict.Verdict) {
	l, problem := j.lookedAt(key, w)
	if problem != "" {
		v.Outcome, v.Message = verdict.Error, problem
		return l, nil
	}
	s := subject{workload: w, price: j.promised.PriceOf(key.server), policy: w.Policy, alpha: w.Policy.Alpha()}
	looked := ""
	if whole := j.recorded[key]; len(whole.Looks) > 0 {
		s.alpha = errorAt(s.alpha, whole.Looks)
		if whole.Shed == 0 {
			s.due = dueIn(level, l)
		}
		level.Requests, level.Duration = min(level.Requests, l.Due()), min(level.Duration, timed(l.Rounds))
		looked = lookNote(l, whole.Looks[len(whole.Looks)-1], 1-s.alpha)
	}
	s.evidence, s.pairs = gather(l.InMemory()), j.pairs(key)
	s.mixed = j.mixedLifetime(key, w)
	s.one = s.level
	if one := (levelKey{key.server, key.workload, "1"}); key != one {
		s.one, _ = j.lookedAt(one, w)
	}
	fail, staged := s.stagedError(j.promised, looksAt(j.promised, j.run, key.server, w), planned)
	var verdicts []verdict.Verdict
	if staged {
		verdicts = s.inStages(list, fail)
	} else {
		verdicts = s.thresholds(list)
	}
	judged := pairs(list, verdicts)
	s.load(v, kind, level, judged)
	if over := l.Overran(); len(over) > 0 {
		v.Note(compare.Overran(over))
		for i := range verdicts {
			if verdicts[i].Outcome == verdict.Pass {
				verdicts[i].Outcome, verdicts[i].Needs = verdict.Inconclusive, compare.NeedsEnd
			}
		}
	}
	if looked := s.seconds(); looked > 0 && v.Outcome == verdict.Pass {
		v.Message += fmt.Sprintf("; the load lasted %s, so an event rarer than once in %s may have been missed",
			metric.FormatDigits(metric.Seconds, looked, 2), metric.FormatDigits(metric.Seconds, looked/-math.Log(s.policy.Alpha()), 2))
	}
	s.stoodStill(v, judged)
	for _, note := range l.Notes {
		v.Note(verdict.OneLine(note))
	}
	for i := range verdicts {
		if looked != "" {
			verdicts[i].Note(looked)
		}
	}
	return l, verdicts
}

// lookedAt returns a recorded level with only the requests that its last look covers. It returns
// nil if the record lacks the level. If these requests cannot be found, it returns the whole level,
// and problem says why.
func (j *judge) lookedAt(key levelKey, w *plan.Workload) (l *metric.Level, problem string) {
	l = j.recorded[key]
	if l == nil || len(l.Looks) == 0 {
		return l, ""
	}
	requests := l.Looks[len(l.Looks)-1].Requests
	part, problem := j.upToLook(key, w, requests)
	if problem != "" {
		return l, "look at " + verdict.Count(requests, "requests") + ": " + problem
	}
	return part, ""
}

// dueIn returns the planned number of requests of a level. For a level with a planned duration it
// estimates the number from the pace so far.
func dueIn(level plan.Level, l *metric.Level) int {
	if level.Duration == 0 || len(l.Rounds) == 0 {
		return level.Requests
	}
	return l.Due() * max(level.Rounds, len(l.Rounds)) / len(l.Rounds)
}

// pairs returns the same level of the same workload on all other servers. Such servers may have
// taken turns with the given one.
func (j *judge) pairs(of levelKey) []*metric.Level {
	var out []*metric.Level
	for key, l := range j.recorded {
		if key.server != of.server && key.workload == of.workload && key.level == of.level {
			out = append(out, l)
		}
	}
	return out
}

// mixedLifetime returns the lifetime of a request of the whole mix at a level of its part w, in
// seconds; 0 if w is no part or the mix was not measured.
func (j *judge) mixedLifetime(key levelKey, w *plan.Workload) float64 {
	root := w.Root()
	if root == w {
		return 0
	}
	key.workload = root.Address()
	if mix, _ := j.lookedAt(key, root); mix != nil {
		return gather(mix.InMemory()).lifetime()
	}
	return 0
}

// upToLook returns the level with the requests that a look covers. For a part
// of a mix it returns the requests of that part, up to the same look at the mix. If the record
// lacks these requests, problem says so.
func (j *judge) upToLook(key levelKey, w *plan.Workload, requests int) (l *metric.Level, problem string) {
	root := w.Root()
	if root == w {
		return begun(j.recorded[key], requests)
	}
	mix := j.recorded[levelKey{key.server, root.Address(), key.level}]
	if mix == nil {
		return nil, "the record lacks the mix of this workload, workload." + root.Address()
	}
	if mix, problem = begun(mix, requests); problem != "" {
		return nil, problem
	}
	if l = partAt(mix, w); l == nil {
		return nil, "the record lacks this part of the mix workload." + root.Address()
	}
	return l, ""
}
