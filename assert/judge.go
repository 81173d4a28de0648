package assert

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Options is how a run is judged beyond what the plan says.
type Options struct {
	// Partial labels the verdict: cases were left out by request.
	Partial bool
	// Baselines are the recorded runs of stored controls, by the name of the
	// comparison.
	Baselines map[string]*metric.Run
}

// Judge judges everything that p promises by what run observed. It never
// panics on what a record may hold, and never passes where nothing was
// measured; a nil plan or run is an error.
//
//  1. Of each server: was it there, and the declared one, to the end?
//  2. Of each case: was the measurement valid? (the load verdict)
//  3. Of each threshold of a valid case: pass, fail or inconclusive, by exact
//     tests at the plan's confidence, or by the point estimate where the plan
//     says so.
//  4. Of each assert: does its condition hold for the point estimates?
//  5. Of each comparison: were the two comparable, and how did each metric change?
//  6. Together: the largest outcome counts, under the plan's policy.
func Judge(p *plan.Plan, run *metric.Run, opts Options) Verdicts {
	v := Verdicts{Outcome: Error, Partial: opts.Partial, List: []Verdict{}}
	if p == nil || run == nil {
		v.Why = "there is no plan or no run to judge"
		return v
	}
	j := newJudge(p, run)
	j.baselines = opts.Baselines
	for _, s := range p.Servers {
		j.server(s)
	}
	for _, s := range p.Servers {
		for _, w := range p.Workloads {
			if !slices.Contains(w.Servers, s) {
				continue
			}
			if p.Idle(s, w) {
				continue
			}
			for _, load := range w.Loads {
				for _, level := range load.Levels {
					j.measured(s, w, load, j.shed(w, level))
				}
			}
			if p.Searches(s, w) {
				j.capacity(s, w)
			}
		}
	}
	for _, c := range p.Compares {
		j.compare(j.comparison(c))
	}
	j.asserts()
	v.List, v.Comparisons = j.list, j.comparisons
	v.Partial = v.Partial || j.partial
	v.Outcome, v.Why = verdict.Combine(j.list, p.Gate.MeasureOnly)
	return v
}

// judge is one judgement under way.
type judge struct {
	plan   *plan.Plan
	run    *metric.Run
	levels map[levelKey]*metric.Level // as judged: up to its last look
	// recorded holds them whole.
	recorded map[levelKey]*metric.Level
	valid    map[levelKey]bool // the level was measured as it should be
	partial  bool
	list     []Verdict
	// baselines are recorded runs by the comparison that they are the control of.
	baselines   map[string]*metric.Run
	comparisons []*compare.Comparison
}

func newJudge(p *plan.Plan, run *metric.Run) *judge {
	j := &judge{plan: p, run: run, levels: map[levelKey]*metric.Level{}, valid: map[levelKey]bool{}, recorded: map[levelKey]*metric.Level{}}
	for _, l := range run.Levels {
		if l != nil {
			j.take(l)
			j.partial = j.partial || l.Skipped == metric.SkippedOnly
		}
	}
	return j
}

// take adds a level. One that appears twice keeps its first measurement; exec
// never writes one twice.
func (j *judge) take(l *metric.Level) {
	if k := (levelKey{l.Server, l.Workload, l.Name}); j.recorded[k] == nil {
		j.recorded[k] = sample.Sound(l)
		j.levels[k] = j.recorded[k]
	}
}

type levelKey struct{ server, workload, level string }

func (j *judge) add(v Verdict, on plan.OnInconclusive) {
	v.Warn = on == plan.Warn
	j.keep(v)
}

func (j *judge) keep(v Verdict) {
	v.Severity = cmp.Or(v.Severity, verdict.SeverityError)
	if v.Outcome == Error {
		v.Cause = cmp.Or(j.cause(&v), v.Cause, verdict.CauseInvalid)
	}
	j.list = append(j.list, v)
}

// cause is that of an error where the server was the matter, whatever else there
// was: it had an error, or the level was measured and nothing completed.
func (j *judge) cause(v *Verdict) verdict.Cause {
	if s := j.run.Server(v.Server); v.Kind == KindServer || s != nil && s.Error != "" || sample.Silent(j.recorded[levelKey{v.Server, v.Workload, v.Level}]) {
		return verdict.CauseServer
	}
	return ""
}

// serverError is why a server could not be measured; "" when it could.
func (j *judge) serverError(address string) string {
	if s := j.run.Server(address); s != nil {
		return s.Error
	}
	return "there is no record of it"
}

// server gives the verdict on a server that the plan runs something on.
func (j *judge) server(s *plan.Server) {
	v := Verdict{Kind: KindServer, Server: s.Address(), Name: "start", File: s.Range.Filename, Line: s.Range.Start.Line}
	used, left := false, true
	for _, w := range j.plan.Workloads {
		if !slices.Contains(w.Servers, s) || j.plan.Idle(s, w) {
			continue
		}
		for _, load := range w.Loads {
			for _, level := range load.Levels {
				used = true
				l := j.levels[levelKey{s.Address(), w.Address(), level.Name}]
				left = left && l != nil && l.Skipped == metric.SkippedOnly
			}
		}
		if j.plan.Searches(s, w) {
			used = true
			left = left && slices.ContainsFunc(j.run.Capacities, func(c *metric.Capacity) bool {
				return c != nil && c.Server == s.Address() && c.Workload == w.Address() && c.Reason == metric.SkippedOnly
			})
		}
	}
	if !used {
		return
	}
	switch run := j.run.Server(s.Address()); {
	case left && run == nil:
		v.Outcome, v.Message = Skipped, "left out: none of its cases was selected"
	case run == nil:
		v.Outcome, v.Message = Error, "the server was not started"+verdict.Because(j.run.Stopped)
	case run.Error != "":
		v.Outcome, v.Message = Error, verdict.OneLine(run.Error)
	case run.Unended:
		v.Outcome, v.Message = Error, "the recording ends before the server did: whether it was the same one at the end is not known"
	default:
		v.Outcome, v.Message = Pass, "ready, and the same server at the end"
	}
	j.add(v, plan.Stop)
}

// lookNote says at which look a level was judged.
func lookNote(l *metric.Level, last metric.Look, confidence float64) string {
	if last.Planned <= 1 {
		return ""
	}
	return fmt.Sprintf("judged at a planned look at the first %s by start, its error a %s of the whole: %s confidence",
		verdict.Count(l.Due(), "requests"), ordinal(last.Planned), metric.Format(metric.Ratio, confidence))
}

// ordinal names a part of n: "half", "third", "12th part".
func ordinal(n int) string {
	switch n {
	case 2:
		return "half"
	case 3:
		return "third"
	case 4:
		return "quarter"
	}
	return fmt.Sprintf("%dth part", n)
}

// measured gives the verdicts on one case: its load, its thresholds.
func (j *judge) measured(server *plan.Server, w *plan.Workload, load *plan.Load, level plan.Level) {
	key := levelKey{server.Address(), w.Address(), level.Name}
	l := j.levels[key]
	at := func(v Verdict, name string) Verdict {
		v.Server, v.Workload, v.Level = key.server, key.workload, key.level
		v.Name = name + " at " + level.Name
		return v
	}
	loadVerdict := Verdict{Kind: KindLoad, File: level.Range.Filename, Line: level.Range.Start.Line}
	if loadVerdict.Line == 0 {
		loadVerdict.File, loadVerdict.Line = load.Range.Filename, load.Range.Start.Line
	}

	// Not measured at all?
	why := ""
	switch lost := j.serverError(key.server); {
	case l != nil && l.Skipped == metric.SkippedOnly:
		why = "left out: not selected"
		loadVerdict.Outcome, loadVerdict.Message = Skipped, why
	case l != nil && lost != "":
		// The server's own verdict is the error.
		why = "the server could not be measured: " + verdict.OneLine(lost)
		loadVerdict.Outcome, loadVerdict.Message = Skipped, "because "+why
	case l == nil:
		loadVerdict.Outcome, loadVerdict.Cause, loadVerdict.Message = Error, verdict.CauseNotRun, "the run holds no such level"+verdict.Because(j.run.Stopped)
	case l.Skipped != "":
		loadVerdict.Outcome, loadVerdict.Cause, loadVerdict.Message = Error, verdict.CauseNotRun, "not run: "+verdict.OneLine(l.Skipped)
	}
	if loadVerdict.Outcome == Pending && l.Asked != nil {
		if differs := l.Asked.Differs(*w.Asked(server, load)); len(differs) > 0 {
			loadVerdict.Outcome = Error
			loadVerdict.Message = "the recording is of another workload: " + strings.Join(differs, "; ")
		}
	}
	subject := subject{workload: w, price: j.plan.PriceOf(key.server), policy: w.Policy, alpha: w.Policy.Alpha()}
	var list []required
	if !j.plan.ControlOnly(server, w) {
		list = binding(w, boundAt(level.Name))
	}
	var verdicts []Verdict
	looked := ""
	if loadVerdict.Outcome == Pending && len(l.Looks) > 0 {
		last := l.Looks[len(l.Looks)-1]
		part, problem := begun(l, last.Requests)
		if problem != "" {
			loadVerdict.Outcome, loadVerdict.Message = Error, "look at "+verdict.Count(last.Requests, "requests")+": "+problem
		} else {
			l, subject.alpha = part, stat.SplitAlpha(subject.alpha, last.Planned)
			level.Requests = min(level.Requests, l.Due())
			j.levels[key] = l
			looked = lookNote(l, last, 1-subject.alpha)
		}
	}
	if loadVerdict.Outcome == Pending {
		subject.evidence = gather(l)
		subject.one = j.levels[levelKey{key.server, key.workload, "1"}]
		verdicts = subject.thresholds(list)
		subject.load(&loadVerdict, load.Kind, level, pairs(list, verdicts))
		for _, note := range l.Notes {
			loadVerdict.Notes = append(loadVerdict.Notes, verdict.OneLine(note))
		}
		for i := range verdicts {
			if looked != "" {
				verdicts[i].Notes = append(verdicts[i].Notes, looked)
			}
		}
		j.valid[key] = loadVerdict.Outcome == Pass
	}
	switch {
	case loadVerdict.Outcome != Error:
	case loadVerdict.Cause == verdict.CauseNotRun:
		why = loadVerdict.Message
	default:
		why = "the measurement is not valid: " + loadVerdict.Message
	}
	j.add(at(loadVerdict, "load"), plan.Stop)
	for i, t := range list {
		v := t.unjudged(w.Policy)
		if loadVerdict.Outcome == Pass {
			v = verdicts[i]
		} else {
			v.Outcome, v.Message = Skipped, "because "+why
		}
		j.add(at(v, t.name()), w.Policy.OnInconclusive)
	}
}

// thresholds judges a list of thresholds, in its order. What leaves failed
// requests out of its number passes only if success does.
func (s *subject) thresholds(list []required) []Verdict {
	var out []Verdict
	success := Skipped
	for _, t := range list {
		v := s.judge(t.Threshold)
		v.Severity, v.Implied = t.severity, t.by != nil
		if v.Outcome == Fail && s.due > s.n && reversible(t.Threshold, v, s.due) {
			v.Outcome, v.More = Inconclusive, s.due-s.n
		}
		if why := t.why(); why != "" {
			v.Notes = append(v.Notes, why)
		} else if v.Outcome == Fail {
			if then := doing(s.level); then != "" {
				v.Notes = append(v.Notes, then)
			}
		}
		if t.Metric.Name == "success" {
			success = max(success, v.Outcome)
		}
		out = append(out, v)
	}
	for i := range out {
		if v := &out[i]; blind(list[i].Threshold) && v.Outcome == Pass && success != Pass {
			v.Outcome = success
			v.Message += ", but success does not pass"
			v.Notes = append(v.Notes, fmt.Sprintf("%s leaves failed requests out, so it passes only if success does", label(list[i].Threshold)))
			if v.Outcome == Inconclusive {
				v.Needs = "needs a decided success"
			}
		}
	}
	return out
}

// shed is the level with the requests that were left of it where a short budget
// had a comparison run fewer rounds than the plan asks for.
func (j *judge) shed(w *plan.Workload, level plan.Level) plan.Level {
	for _, c := range j.plan.Compares {
		i := slices.IndexFunc(j.run.Comparisons, func(r *metric.Comparison) bool { return r != nil && r.Name == c.Name })
		if i < 0 || len(j.run.Comparisons[i].Looks) == 0 || !slices.Contains(c.Workloads(j.plan), w) {
			continue
		}
		looks := j.run.Comparisons[i].Looks
		if n := looks[len(looks)-1].Rounds; n >= leastRounds && n < level.Rounds {
			requests := 0
			for r := range n {
				requests += level.RoundRequests(r)
			}
			level.Requests, level.Rounds = requests, n
		}
	}
	return level
}
