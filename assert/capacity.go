package assert

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// capacity adds the verdicts on a capacity search: on the required load, and on the thresholds at
// the found limit. The limit counts only if its samples, judged again, confirm it.
func (j *judge) capacity(server *plan.Server, w *plan.Workload) {
	v := Verdict{Kind: KindCapacity, Server: server.Address(), Workload: w.Address(), Name: "capacity", Decide: string(w.Policy.Decide), Demanded: w.Capacity.Require > 0,
		Confidence: 1 - w.Policy.Alpha(), File: w.Capacity.Range.Filename, Line: w.Capacity.Range.Start.Line, Value: metric.None("not judged")}
	c := j.search(server, w)
	lost := j.serverError(v.Server)
	var limit limit
	switch {
	case c != nil && c.Reason == metric.SkippedOnly:
		v.Outcome, v.Message = Skipped, "left out: not selected"
		j.partial = true
	case c == nil && j.partial && !j.ran(server):
		v.Outcome, v.Message = Skipped, "left out: no case of this server was selected"
	case lost != "":
		v.Outcome, v.Message = Skipped, "because the server could not be measured: "+verdict.OneLine(lost)
	case c == nil:
		v.Outcome, v.Message = Error, "the run holds no search"+verdict.Because(j.run.Stopped)
	default:
		limit = j.limitOf(w, c)
		var observed []*plan.Threshold
		for _, x := range w.Whole() {
			for _, r := range declared(x, boundAtCapacity) {
				if r.severity != verdict.SeverityWarn && r.Stat.Kind == metric.Observed {
					observed = append(observed, r.Threshold)
				}
			}
		}
		limit.judge(&v, w, observed)
	}
	if j.promised.ControlOnly(server, w) {
		// A server that is only a control is searched too. Its verdict only warns, because the
		// required load applies to the candidate.
		v.Severity = verdict.SeverityWarn
		j.add(v, w.Policy.OnInconclusive)
		return
	}
	j.add(v, w.Policy.OnInconclusive)
	for _, x := range w.Whole() {
		j.atCapacity(v, x, limit)
	}
}

// search returns the record of a capacity search; nil if there is none.
func (j *judge) search(server *plan.Server, w *plan.Workload) *metric.Capacity {
	i := slices.IndexFunc(j.run.Capacities, func(c *metric.Capacity) bool {
		return c != nil && c.Server == server.Address() && c.Workload == w.Address()
	})
	if i < 0 {
		return nil
	}
	return j.run.Capacities[i]
}

// searched judges the probes of a capacity search now. The returned function conclude adds the
// verdicts later.
func (j *judge) searched(server *plan.Server, w *plan.Workload) (conclude func()) {
	c := j.search(server, w)
	if c == nil || c.Reason == metric.SkippedOnly || j.serverError(c.Server) != "" {
		return func() { j.capacity(server, w) }
	}
	judged := j.limit(w, c)
	return func() {
		j.limits[c] = judged
		j.capacity(server, w)
	}
}

// ran reports whether the run's record contains the server.
func (j *judge) ran(s *plan.Server) bool {
	return slices.ContainsFunc(j.run.Servers, func(r *metric.ServerRun) bool { return r != nil && r.Address == s.Address() })
}

// limit is the result of a search, judged again from its samples.
type limit struct {
	*metric.Capacity
	problem string // why the search has no result; "" if it has one
	changed bool   // the limit differs from the limit that the search found
	why     string // why the limit differs; "" if each probe has the search's outcome
	n       int    // requests that were judged
	// verdicts holds the verdicts at the load Pass. level is the name of the level that they
	// judged.
	verdicts map[*plan.Workload][]Verdict
	level    string
	// doing describes the server at the load Fail, such as its queue. It is "" if the server did
	// not report that.
	doing string
}

// standing is the outcome of one level after its probes so far.
type standing struct {
	outcome   string
	confirmed bool
	level     *metric.Level
	verdicts  map[*plan.Workload][]Verdict
}

// visited adds a probe of the level. The latest verdict on the level counts. A retry without a
// verdict changes nothing. A confirmation can withdraw an earlier pass, but never makes a pass of a
// level that did not pass before it.
func (s *standing) visited(p *metric.CapacityProbe, l *metric.Level, verdicts map[*plan.Workload][]Verdict) {
	switch {
	case p.Purpose == "retry" && (p.Outcome == "saturated" || p.Outcome == "inconclusive" || p.Outcome == "capped"):
		return
	case (p.Purpose == "confirm" || p.Purpose == "deep") && (p.Outcome == "saturated" || p.Outcome == "capped"):
		return
	case p.Purpose == "confirm" && s.outcome != "pass":
		return
	case p.Purpose == "confirm":
		s.confirmed = p.Outcome == "pass"
	}
	s.outcome, s.level, s.verdicts = p.Outcome, l, verdicts
}

// limitOf returns the limit of a search, judged again from its samples. Each search is judged only
// once.
func (j *judge) limitOf(w *plan.Workload, c *metric.Capacity) limit {
	l, known := j.limits[c]
	if !known {
		l = j.limit(w, c)
		j.limits[c] = l
	}
	return l
}

// limit judges every probe of a search again, on the same requests. Each look gets the same part of
// the allowed error as in the search.
func (j *judge) limit(w *plan.Workload, recorded *metric.Capacity) limit {
	c := *recorded
	out := limit{Capacity: &c}
	levels := map[int]*standing{}
	c.Probes = slices.Clone(c.Probes)
	counted := map[string]int{}
	for i := range c.Probes {
		p := &c.Probes[i]
		v, verdicts, l := j.visit(w, &c, *p)
		if l == nil {
			out.problem = fmt.Sprintf("the record lacks the requests of probe %d (level %s)", i+1, verdict.OneLine(p.Level))
			return out
		}
		counted[p.Level] = max(counted[p.Level], p.Requests)
		outcome := probed(v, p.Outcome, l)
		if outcome != p.Outcome {
			out.differs(p.N, v)
		}
		p.Outcome = outcome
		if p.Binding = v.Binding; p.Binding != "" {
			k := slices.IndexFunc(v.Thresholds, func(t LookThreshold) bool { return t.Name == v.Binding })
			p.Shown, p.Note = v.Thresholds[k].Shown, cmp.Or(p.Note, v.Thresholds[k].Why)
		}
		if p.Purpose == estimates {
			continue // a probe for an estimate neither passes nor fails
		}
		if levels[p.N] == nil {
			levels[p.N] = &standing{}
		}
		levels[p.N].visited(p, l, verdicts)
	}
	for _, n := range counted {
		out.n += n
	}
	out.bracket(levels)
	if out.problem = j.rambling(c.Server, w, j.recorded[levelKey{c.Server, c.Workload, out.level}]); out.problem != "" {
		return out
	}
	out.changed = out.changed || c.Pass != recorded.Pass || c.Fail != recorded.Fail
	if out.changed {
		out.restate(recorded, w.Capacity)
	}
	return out
}

// estimates is the purpose of a probe that only estimates the load to try next.
const estimates = "estimate"

// within reports whether an estimate of the limit agrees with the search. It must lie between the
// highest load that passes and the lowest load that fails.
func (l *limit) within(crossing float64) bool {
	return crossing >= float64(l.Pass) && (l.Fail == 0 || crossing <= float64(l.Fail))
}

// differs records that a probe, judged again, has another outcome than in the search. Either the
// thresholds have changed since, or the probe cannot be judged.
func (l *limit) differs(n int, v LookVerdict) {
	l.changed = true
	if v.Invalid != "" {
		l.why = cmp.Or(l.why, fmt.Sprintf("the probe at load %s cannot be judged: %s", l.Named(n), verdict.OneLine(v.Invalid)))
	} else {
		l.why = "the search chose its probes by verdicts of the run that have changed since"
	}
}

// probed returns a probe's outcome in the words of a search. recorded is the outcome in the record
// of the run.
func probed(v LookVerdict, recorded string, l *metric.Level) string {
	switch {
	case recorded == "saturated", v.Cause == verdict.CauseGenerator:
		return "saturated" // the search may know more about the generator than the record does
	case v.Invalid != "":
		return "inconclusive" // it bounds nothing
	case recorded == "capped" && (v.Outcome != Fail || turnedAway(l)):
		return recorded
	}
	return v.Outcome.String()
}

// bracket finds the largest load that passes and the smallest load that fails.
func (l *limit) bracket(levels map[int]*standing) {
	c := l.Capacity
	c.Pass, c.Fail, c.Confirmed = 0, 0, false
	for _, n := range slices.Sorted(maps.Keys(levels)) {
		switch s := levels[n]; {
		case n < c.From || n > c.UpTo || c.Fail > 0:
		case s.outcome == "pass":
			c.Pass, c.Confirmed = n, s.confirmed
			l.level, l.verdicts = s.level.Name, s.verdicts
		case s.outcome == "fail":
			c.Fail = n
			l.doing = doing(s.level)
		}
	}
}

// visit judges one probe of the search. The returned level is nil if the record lacks it.
func (j *judge) visit(w *plan.Workload, c *metric.Capacity, p metric.CapacityProbe) (LookVerdict, map[*plan.Workload][]Verdict, *metric.Level) {
	whole := j.recorded[levelKey{c.Server, c.Workload, p.Level}]
	if p.Requests < 1 && whole != nil && c.Probed(p, whole) {
		return cutShort(whole), nil, whole
	}
	if p.With != "" && whole != nil {
		before := j.recorded[levelKey{c.Server, c.Workload, p.With}]
		if before == nil || !c.Probed(p, before) {
			return LookVerdict{}, nil, nil
		}
		both := *whole
		both.Rounds = slices.Concat(slices.DeleteFunc(slices.Clone(before.Rounds), func(r *metric.Round) bool { return !r.Complete }), whole.Rounds)
		whole = &both
	}
	if whole == nil || whole.Skipped != "" || p.Requests < 1 || !c.Probed(p, whole) {
		if whole != nil && (p.Outcome == "saturated" || p.Outcome == "pending") {
			return LookVerdict{Outcome: Error, Cause: verdict.CauseNotRun, Invalid: "it was not measured"}, nil, whole
		}
		return LookVerdict{}, nil, nil
	}
	l, problem := begun(whole, p.Requests)
	if problem != "" {
		return LookVerdict{Outcome: Error, Invalid: problem}, nil, whole
	}
	looks := []metric.Look{{Planned: plannedLooks(whole, p)}}
	v := lookAt(w, l, j.promised.PriceOf(c.Server), boundAtCapacity,
		func(p plan.Policy) float64 { return errorAt(p.Alpha(), looks) },
		func(*plan.Workload, *metric.Level) int { return 0 })
	return v.LookVerdict, v.verdicts, l
}

// plannedLooks returns the number of planned looks, which share the allowed error of a probe. If
// the probe's record lacks the number, the record of the level's look with as many requests has it.
// Without such a look, the result is the largest number in the records of the level's looks.
func plannedLooks(l *metric.Level, p metric.CapacityProbe) int {
	if p.Planned > 0 {
		return p.Planned
	}
	planned := 1
	for _, look := range l.Looks {
		if look.Requests == p.Requests {
			return max(look.Planned, 1)
		}
		planned = max(planned, look.Planned)
	}
	return planned
}

// cutShort judges a probe that ended before its first look. A look judges the requests so far. The
// probe fails if enough requests were sent and none completed. Otherwise it is inconclusive.
func cutShort(l *metric.Level) LookVerdict {
	failed := 0
	for _, r := range l.Rounds {
		for _, x := range r.All() {
			switch {
			case x.Completed():
				return LookVerdict{Outcome: Inconclusive, Needs: -1}
			case x.Failure.Kind != metric.FailCanceled && x.Failure.Kind != metric.FailConnect && x.Failure.Kind != metric.FailLocal:
				failed++
			}
		}
	}
	if failed < max(10, 2*l.N) {
		return LookVerdict{Outcome: Inconclusive, Needs: -1}
	}
	return LookVerdict{Outcome: Fail, Binding: "success", Thresholds: []LookThreshold{{
		Name: "success", Outcome: Fail, Log: maxLog, Low: maxLog, High: maxLog, Shown: metric.Format(metric.Ratio, 0),
	}}}
}

// turnedAway reports whether the server refused every failed request because it was full (status
// 429 or 503).
func turnedAway(l *metric.Level) bool {
	n := 0
	for _, r := range l.Rounds {
		for _, x := range r.All() {
			switch {
			case x.Completed() || x.Canceled():
			case x.Status == 429 || x.Status == 503:
				n++
			default:
				return false
			}
		}
	}
	return n > 0
}

// restate describes the limit anew, if judging the probes again gave another limit than the search.
func (l *limit) restate(recorded *metric.Capacity, asked *plan.Capacity) {
	c := l.Capacity
	c.Kind = kindOf(c, recorded, max(asked.Resolution, int(math.Ceil(asked.Relative*float64(c.Pass))), 1))
	switch {
	case c.Kind == metric.CapacityUnknown:
		c.Reason = "no probe passed or failed with certainty"
	case c.Kind == metric.CapacityServerCap:
	case c.Kind == metric.CapacityAtLeast && c.Pass >= c.UpTo:
		c.Reason = "the search goes up to " + c.Named(c.UpTo)
	default:
		c.Reason = cmp.Or(l.why, "not every probe could be confirmed on fresh requests")
	}
	if c.Over != metric.OpenLoop || !l.within(c.Crossing) {
		c.Crossing, c.CrossingLow, c.CrossingHigh = 0, 0, 0
	}
	c.Binding, c.AtPass, c.AtFail, c.NonMonotone = "", "", "", nil
	for _, p := range c.Probes {
		switch {
		case p.N == c.Fail && p.Outcome == "fail":
			c.Binding, c.AtFail = p.Binding, p.Shown
		case p.N > c.Fail && c.Fail > 0 && p.Outcome == "pass":
			c.NonMonotone = append(c.NonMonotone, [2]int{c.Fail, p.N})
		}
	}
	c.Line = c.Words()
	before := fmt.Sprintf("%s, pass %s, fail %s", recorded.Kind, c.Named(recorded.Pass), c.Named(recorded.Fail))
	c.Notes = nil
	for _, note := range recorded.Notes {
		c.Notes = append(c.Notes, "when it ran: "+note)
	}
	c.Notes = append(c.Notes, "this capacity was judged again from the samples; the run itself had found another capacity: "+before)
}

// kindOf returns how precisely the limit of a capacity search is known. It is exact if the highest
// load that passes and the lowest load that fails differ by at most width.
func kindOf(c, recorded *metric.Capacity, width int) metric.CapacityKind {
	switch {
	case c.Pass > 0 && c.Fail > 0 && c.Fail-c.Pass <= width:
		return metric.CapacityExact
	case c.Pass > 0 && c.Fail > 0, c.Pass > 0 && c.Over == metric.OpenLoop && c.Pass < c.UpTo:
		return metric.CapacityInterpolated
	case c.Pass > 0 && recorded.Kind == metric.CapacityServerCap && c.Pass == recorded.Pass:
		return recorded.Kind
	case c.Pass > 0:
		return metric.CapacityAtLeast
	case c.Fail > 0:
		return metric.CapacityBelow
	}
	return metric.CapacityUnknown
}

// judge gives the verdict on the required capacity. If none is required, the search must have found
// a limit. A note says that a threshold with the statistic "observed" covers only the requests of
// the probes.
func (l *limit) judge(v *Verdict, w *plan.Workload, observed []*plan.Threshold) {
	if l.problem != "" {
		v.Outcome, v.Message, v.Value = Error, "unknown: "+l.problem, metric.None(l.problem)
		return
	}
	c := l.Capacity
	v.Capacity, v.N, v.Message = c, l.n, verdict.OneLine(c.Line)
	v.Value = metric.None("the capacity search found no level that passes")
	if c.Pass > 0 {
		v.Value, v.Low = metric.Some(c.Load(c.Pass)), metric.Some(c.Load(c.Pass))
	}
	if c.Fail > 0 {
		v.High = metric.Some(c.Load(c.Fail - 1))
	}
	v.Notes = append(v.Notes, l.notes(w, observed)...)
	r := w.Capacity.Require
	switch {
	case c.Pass == 0 && c.Fail == 0:
		v.Outcome = Error
	case r == 0 && c.Pass == 0:
		v.Outcome = Fail
	case r == 0:
		v.Outcome = Pass
	case c.Pass > 0 && r <= c.Pass:
		v.Outcome = Pass
	case c.Fail > 0 && r >= c.Fail, c.Kind == metric.CapacityServerCap:
		v.Outcome = Fail
	default:
		v.Outcome = Inconclusive
		v.Needs = "needs a larger budget, or more requests, to decide whether the capacity is at least " + w.Capacity.Amount(r)
	}
	if r > 0 {
		v.Message = fmt.Sprintf("%s; the plan requires %s", v.Message, w.Capacity.Amount(r))
	}
}

// notes lists remarks on a capacity, such as on the server's queue.
func (l *limit) notes(w *plan.Workload, observed []*plan.Threshold) (notes []string) {
	c := l.Capacity
	for _, note := range c.Notes {
		notes = append(notes, verdict.OneLine(note))
	}
	if l.doing != "" {
		notes = append(notes, fmt.Sprintf("at %s %s", w.Capacity.Amount(c.Fail), l.doing))
	}
	if c.Reason != "" && (c.Kind == metric.CapacityAtLeast || c.Over == metric.OpenLoop && c.Pass > 0) {
		notes = append(notes, "ended: "+verdict.OneLine(c.Reason))
	}
	if c.Pass > 0 && w.Capacity.Confirm && !c.Confirmed {
		notes = append(notes, "the capacity "+c.Named(c.Pass)+" was not confirmed on fresh requests")
	}
	if w.Policy.Decide == plan.Estimate {
		notes = append(notes, `point estimates (decide = "estimate"): the capacity is not certified`)
	}
	for _, t := range observed {
		notes = append(notes, fmt.Sprintf("the threshold on %s judges only the requests that the probes sent, and certifies nothing about other requests", label(t)))
	}
	return notes
}

// atCapacity judges the thresholds that must hold at the capacity. It does so at the highest level
// that is certified to pass.
func (j *judge) atCapacity(of Verdict, w *plan.Workload, l limit) {
	list, verdicts := atCapacity(w), l.verdicts[w]
	judged := len(verdicts) == len(list) && l.problem == ""
	message := "because the capacity search found no level that passes"
	if l.Capacity == nil || l.problem != "" {
		message = "because there is no capacity: " + of.Message
	}
	for i, t := range list {
		v := t.unjudged(w.Policy)
		if judged {
			v = verdicts[i]
		} else {
			v.Outcome, v.Message = Skipped, message
		}
		v.Server, v.Workload, v.Name = of.Server, w.Address(), t.name()+" at capacity"
		if l.level != "" && v.Outcome != Skipped {
			v.Level = l.level
			at := "at the certified limit, "
			if w.Policy.Decide == plan.Estimate {
				at = "at the limit, "
			}
			v.Notes = append(v.Notes, at+searchOf(w).Amount(l.Pass))
		}
		j.add(v, w.Policy.OnInconclusive)
	}
}
