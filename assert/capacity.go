package assert

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/search"
)

// capacity adds the verdicts on a capacity search: on the required load, and on the thresholds at
// the found limit. The limit counts only if its samples, judged again, confirm it.
func (j *judge) capacity(server *plan.Server, w *plan.Workload) {
	v := verdict.Verdict{Kind: verdict.KindCapacity, Server: server.Address(), Workload: w.Address(), Name: "capacity",
		Test:     untested(w.Policy),
		Demanded: w.Capacity.Require > 0, Place: verdict.Place{File: w.Capacity.Range.Filename, Line: w.Capacity.Range.Start.Line}}
	c := j.search(server, w)
	lost := j.serverError(v.Server)
	var limit limit
	switch {
	case c != nil && c.Reason == metric.SkippedOnly:
		v.Outcome, v.Message = verdict.Skipped, "left out: not selected"
		j.partial = true
	case c == nil && j.partial && !j.ran(server):
		v.Outcome, v.Message = verdict.Skipped, "left out: no case of this server was selected"
	case lost != "":
		v.Outcome, v.Message = verdict.Skipped, "because the server could not be measured: "+verdict.OneLine(lost)
	case c == nil:
		v.Outcome, v.Message = verdict.Error, "the run holds no search"+verdict.Because(j.run.Stopped)
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

func (j *judge) ran(s *plan.Server) bool {
	return slices.ContainsFunc(j.run.Servers, func(r *metric.ServerRun) bool { return r != nil && r.Address == s.Address() })
}

// limit is the result of a search, judged again from its samples.
type limit struct {
	*metric.Capacity
	problem string // why the search has no result; "" if it has one
	why     string // why a probe has another outcome than in the search; "" if none has
	n       int    // requests that were judged
	// verdicts holds the verdicts at the load Pass. level is the name of the level that they
	// judged.
	verdicts map[*plan.Workload][]verdict.Verdict
	level    string
	// doing describes the server at the load Fail, such as its queue. It is "" if the server did
	// not report that.
	doing string
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

// limit judges every probe of a search again, on the same requests, and feeds the results to a
// search as the run did. Each look gets the same part of the allowed error as in the run.
func (j *judge) limit(w *plan.Workload, recorded *metric.Capacity) limit {
	c := *recorded
	out := limit{Capacity: &c}
	c.Probes = slices.Clone(c.Probes)
	probes := make([]probe, len(c.Probes))
	counted := map[string]int{}
	for i := range c.Probes {
		p, v := &c.Probes[i], &probes[i]
		if *v = j.visit(w, &c, c.Probes[i]); v.level == nil {
			out.problem = fmt.Sprintf("the record lacks the requests of probe %d (level %s)", i+1, verdict.OneLine(p.Level))
			return out
		}
		counted[p.Level] = max(counted[p.Level], p.Requests)
		if now := v.result.Outcome; now != p.Outcome {
			out.differs(p.N, v.invalid)
			p.Outcome = now
		}
		p.Binding, p.Values = v.result.Binding, v.values(w, *p)
		if k := slices.IndexFunc(v.thresholds, func(t search.Margin) bool { return t.Threshold == p.Binding }); k >= 0 {
			p.Shown, p.Note = v.thresholds[k].Shown, cmp.Or(p.Note, v.thresholds[k].Why)
		}
	}
	for _, n := range counted {
		out.n += n
	}
	found := again(w.Capacity, recorded, probes)
	if found.Pass > 0 {
		out.level, out.verdicts = probes[found.PassBy].level.Name, probes[found.PassBy].verdicts
	}
	if found.Fail > 0 {
		out.doing = doing(probes[found.FailBy].level)
	}
	if out.problem = j.rambling(c.Server, w, j.recorded[levelKey{c.Server, c.Workload, out.level}]); out.problem != "" {
		return out
	}
	out.restate(recorded, found)
	return out
}

// capacitySearch is a search over any kind of load.
type capacitySearch interface {
	Take(search.Probe, search.Result)
	Limit() search.Limit
}

// again returns what the search claims after the probes, judged again.
func again(asked *plan.Capacity, c *metric.Capacity, probes []probe) search.Limit {
	opts := search.Options{Over: c.Over, Step: max(c.Step, 0), From: max(c.From, 1), UpTo: max(c.UpTo, c.From, 1),
		Resolution: asked.Resolution, Relative: asked.Relative}
	var s capacitySearch
	if c.Over == metric.OpenLoop {
		rates := search.RateOptions{Options: opts, Largest: float64(asked.Largest)}
		rates.Step = cmp.Or(opts.Step, plan.RateStep)
		for _, v := range probes {
			if v.Purpose != search.Known && len(v.level.Saturation) > 0 {
				rates.Largest, _ = search.Sustained(v.level.Saturation)
				rates.Largest /= rates.Step
			}
		}
		if asked.Load != nil && asked.Load.Open != nil {
			rates.Scatter = 1 / asked.Load.Open.Shape()
		}
		s = search.NewRates(rates)
	} else {
		s = search.New(opts)
	}
	for _, v := range probes {
		s.Take(v.Probe, v.result)
	}
	return s.Limit()
}

// differs records that a probe, judged again, has another outcome than in the search. Either the
// thresholds have changed since, or the probe cannot be judged.
func (l *limit) differs(n int, invalid string) {
	if invalid != "" {
		l.why = cmp.Or(l.why, fmt.Sprintf("the probe at load %s cannot be judged: %s", l.Named(n), verdict.OneLine(invalid)))
	} else {
		l.why = "the search chose its probes by verdicts of the run that have changed since"
	}
}

// probe is one probe of a search, judged again.
type probe struct {
	search.Probe
	result     search.Result
	invalid    string // why it cannot be judged; "" if it can
	thresholds []search.Margin
	verdicts   map[*plan.Workload][]verdict.Verdict
	level      *metric.Level // nil if the record lacks it
}

func (j *judge) visit(w *plan.Workload, c *metric.Capacity, p metric.CapacityProbe) probe {
	out := probe{Probe: search.Probe{N: p.N, Purpose: search.Purpose(p.Purpose), Set: p.Set}}
	whole := j.recorded[levelKey{c.Server, c.Workload, p.Level}]
	if whole == nil || p.N < 1 || !c.Probed(p, whole) {
		return out
	}
	if p.Requests < 1 {
		if out.level, out.result = whole, search.CutShort(p.N, whole); out.result.Outcome == metric.Fail {
			out.thresholds = []search.Margin{{Threshold: out.result.Binding, Shown: metric.Format(metric.Ratio, 0)}}
		}
		return out.recorded(p)
	}
	if p.With != "" {
		before := j.recorded[levelKey{c.Server, c.Workload, p.With}]
		if before == nil || !c.Probed(p, before) {
			return out
		}
		both := *whole
		both.Rounds = slices.Concat(slices.DeleteFunc(slices.Clone(before.Rounds), func(r *metric.Round) bool { return !r.Complete }),
			whole.Rounds)
		whole = &both
	}
	if whole.Skipped != "" {
		return out
	}
	l, problem := begun(whole, p.Requests)
	seen := sight{Judgement: search.Invalid(problem, false)}
	if problem == "" {
		looks := probeLooks(whole, p)
		seen = lookAt(w, l, j.promised.PriceOf(c.Server), boundAtCapacity,
			func(p plan.Policy) float64 { return errorAt(p.Alpha(), looks) },
			func(x *plan.Workload, l *metric.Level) int { return dueAtProbe(w, x, l) })
	} else {
		l = whole
	}
	out.level, out.invalid, out.thresholds, out.verdicts = l, seen.Invalid, seen.Margins, seen.verdicts
	out.result = seen.Result(p.N, p.Requests, l)
	return out.recorded(p)
}

// values returns the values of the thresholds at a probe. It returns nil if the probe shares its
// requests with a level of the plan, or if it was cut short.
func (v *probe) values(w *plan.Workload, p metric.CapacityProbe) (out []metric.ProbeValue) {
	if p.With != "" || p.Requests == 0 || v.level.N != p.N || v.level.Probe == nil {
		return nil
	}
	bounds := capacityBounds(w)
	for _, t := range v.thresholds {
		if th := bounds[t.Threshold]; th != nil {
			out = append(out, probeValue(th, t))
		}
	}
	return out
}

// recorded keeps the outcome of a probe during which the generator was saturated: the search may
// have known more about the generator than the record does.
func (v probe) recorded(p metric.CapacityProbe) probe {
	if p.Outcome == metric.Saturated {
		v.result.Outcome = metric.Saturated
	}
	return v
}

// probeLooks returns the looks at a probe up to the one that the record of the search names.
func probeLooks(l *metric.Level, p metric.CapacityProbe) []metric.Look {
	for i, look := range l.Looks {
		if l.Probe != nil && look.Requests == p.Requests && look.Spent > 0 {
			return l.Looks[:i+1]
		}
	}
	return []metric.Look{{Planned: plannedLooks(l, p)}}
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

// restate describes the limit anew, if judging the probes again gave another limit than the search.
func (l *limit) restate(recorded *metric.Capacity, found search.Limit) {
	c := l.Capacity
	if l.why == "" && found.Kind == c.Kind && found.Pass == c.Pass && found.Fail == c.Fail && found.Confirmed == c.Confirmed {
		return
	}
	found.Reason, found.Spent = cmp.Or(l.why, "not every probe could be confirmed on fresh requests"), recorded.Spent
	switch {
	case l.why == "" && found.Pass == c.Pass && found.Fail == c.Fail:
		found.Reason = recorded.Reason
	case found.Kind == metric.CapacityUnknown:
		found.Reason = "no probe passed or failed with certainty"
	case found.Kind == metric.CapacityAtLeast && found.Pass >= c.UpTo:
		found.Reason = "the search goes up to " + c.Named(c.UpTo)
	}
	found.Fill(c)
	c.Notes = nil
	for _, note := range recorded.Notes {
		c.Notes = append(c.Notes, "when it ran: "+note)
	}
	before := fmt.Sprintf("%s, pass %s, fail %s", recorded.Kind, c.Named(recorded.Pass), c.Named(recorded.Fail))
	c.Notes = append(c.Notes, "this capacity was judged again from the samples; the run itself had found another capacity: "+before)
}

// judge gives the verdict on the required capacity. If none is required, the search must have found
// a limit. A note says that a threshold with the statistic "observed" covers only the requests of
// the probes.
func (l *limit) judge(v *verdict.Verdict, w *plan.Workload, observed []*plan.Threshold) {
	if l.problem != "" {
		v.Outcome, v.Message, v.Value = verdict.Error, "unknown: "+l.problem, metric.None(l.problem)
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
	v.Note(l.notes(w, observed)...)
	r := w.Capacity.Require
	switch {
	case c.Pass == 0 && c.Fail == 0:
		v.Outcome = verdict.Error
	case r == 0 && c.Pass == 0:
		v.Outcome = verdict.Fail
	case r == 0:
		v.Outcome = verdict.Pass
	case c.Pass > 0 && r <= c.Pass:
		v.Outcome = verdict.Pass
	case c.Fail > 0 && r >= c.Fail, c.Kind == metric.CapacityServerCap:
		v.Outcome = verdict.Fail
	default:
		v.Outcome = verdict.Inconclusive
		v.Needs = "needs a larger budget, or more requests, to decide whether the capacity is at least " + w.Capacity.Amount(r)
	}
	if r > 0 {
		v.Message = fmt.Sprintf("%s; the plan requires %s", v.Message, w.Capacity.Amount(r))
	}
}

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
	if w.Policy.Estimates() {
		notes = append(notes, `point estimates (decide = "estimate"): the capacity is not certified`)
	}
	for _, t := range observed {
		notes = append(notes, fmt.Sprintf("the threshold on %s judges only the requests that the probes sent, and certifies nothing about other requests", label(t)))
	}
	return notes
}

// atCapacity judges the thresholds that must hold at the capacity. It does so at the highest level
// that is certified to pass.
func (j *judge) atCapacity(of verdict.Verdict, w *plan.Workload, l limit) {
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
			v.Outcome, v.Message = verdict.Skipped, message
		}
		v.Server, v.Workload, v.Name, v.Threshold.AtCapacity = of.Server, w.Address(), t.name()+" at capacity", true
		if l.level != "" && v.Outcome != verdict.Skipped {
			v.Level = l.level
			at := "at the certified limit, "
			if w.Policy.Estimates() {
				at = "at the limit, "
			}
			v.Note(at + w.Root().Capacity.Amount(l.Pass))
		}
		j.add(v, w.Policy.OnInconclusive)
	}
}
