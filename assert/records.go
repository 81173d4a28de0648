package assert

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// CompareRecords judges a comparison of two recorded runs, in the same way as a run judges a
// comparison in its plan. It returns the plan that it made for the comparison. The error explains
// why the records cannot be compared.
func CompareRecords(r compare.Records) (*plan.Plan, Verdicts, error) {
	p, err := r.Plan()
	if err != nil {
		return nil, Verdicts{}, err
	}
	c := p.Compares[0]
	candidate := c.Candidate.Address()
	j := newJudge(p, &metric.Run{})
	j.run = r.Candidate
	if c.Control.Server == nil {
		j.baselines = map[string]*metric.Run{c.Name: r.Control}
	}
	unrun := ""
	for _, l := range r.Candidate.All() {
		switch {
		case l == nil:
		case l.Skipped == metric.SkippedOnly:
			j.partial = j.partial || l.Server == candidate
		case l.Skipped != "":
			if l.Server == candidate {
				unrun = cmp.Or(unrun, fmt.Sprintf("the candidate was not measured with workload %s at level %s: %s", l.Workload, l.Name, verdict.OneLine(l.Skipped)))
			}
		default:
			j.take(l)
		}
	}
	for key, l := range j.recorded {
		j.valid[key] = j.invalid(l, &plan.Workload{Policy: c.Policy}) == ""
	}
	in := j.comparison(c)
	in.Planless, in.Unrun = true, unrun
	j.compare(in)
	out := Verdicts{List: j.list, Comparisons: j.comparisons, Partial: j.partial}
	// Combine only the verdicts on the comparison. All else in the two records was judged earlier.
	out.Outcome, out.Why = verdict.Combine(append(j.list, verdict.Verdict{Kind: verdict.KindLoad, Outcome: verdict.Pass}), false)
	return p, out, nil
}

// invalid explains why a recorded level cannot be used; "" if it can.
func (j *judge) invalid(l *metric.Level, w *plan.Workload) string {
	s := subject{evidence: gather(l), pairs: j.pairs(levelKey{l.Server, l.Workload, l.Name}), workload: w, policy: w.Policy,
		alpha: w.Policy.Alpha()}
	var load verdict.Verdict
	s.load(&load, l.Kind, plan.Level{Name: l.Name, N: l.N, Requests: s.n}, nil)
	if load.Outcome != verdict.Pass {
		return load.Message
	}
	return ""
}

func (j *judge) comparison(c *plan.Compare) compare.Input {
	of := j
	if b := j.baselines[c.Name]; b != nil {
		of = newJudge(j.promised, b)
	}
	return compare.Input{
		Plan: j.promised, Block: c, Run: j.run, Baseline: j.baselines[c.Name],
		Level: func(server, workload, level string) *metric.Level {
			return j.recorded[levelKey{server, workload, level}]
		},
		Thresholds: j.thresholdsOf(c),
		Valid:      func(server, workload, level string) bool { return j.valid[levelKey{server, workload, level}] },
		Invalid:    of.invalid, Limit: j.limitIn,
	}
}

// thresholdsOf returns the verdicts on the candidate's thresholds that can fail the plan, of the
// compared workloads.
func (j *judge) thresholdsOf(c *plan.Compare) (out []verdict.Verdict) {
	for _, v := range j.list {
		if v.Kind == verdict.KindSLA && v.Server == c.Candidate.Address() && !(v.Threshold != nil && v.Threshold.Implied) &&
			v.Severity != verdict.SeverityWarn &&
			slices.ContainsFunc(c.Workloads(j.promised), func(w *plan.Workload) bool { return w.Address() == v.Workload }) {
			out = append(out, v)
		}
	}
	return out
}

func (j *judge) compare(in compare.Input) {
	c, list := compare.Judge(in)
	j.partial = j.partial || c.LeftOut
	j.comparisons = append(j.comparisons, c)
	for _, v := range list {
		j.keep(v)
	}
}

func (j *judge) limitIn(run *metric.Run, server string, w *plan.Workload) compare.Limit {
	if run != j.run {
		j = newJudge(j.promised, run)
	}
	for _, c := range run.Capacities {
		if c != nil && c.Server == server && c.Workload == w.Address() {
			if len(w.SLAs) == 0 {
				return compare.Limit{Capacity: c} // a record without a plan cannot be judged again, so the recorded capacity counts
			}
			l := j.limitOf(w, c)
			return compare.Limit{Capacity: l.Capacity, Problem: l.problem}
		}
	}
	return compare.Limit{}
}
