package assert

import (
	"slices"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Options holds settings for judging a run that are not in the plan.
type Options struct {
	// Partial marks the verdict as partial, because the user did not run all cases.
	Partial bool
	// Baselines holds the recorded run of each stored control, by the name of the comparison.
	Baselines map[string]*metric.Run
	// Rambling holds the shares of empty or repeating answers in the plan's last green run; see
	// metric.Night.
	Rambling []metric.Figure
	// Each runs the functions that judge the cases; nil runs them one after another.
	Each metric.Each
}

// Judge judges everything that the plan p requires, by what the run observed. It never panics,
// and it never passes if nothing was measured. A nil plan or run is an error.
//
//  1. Each server: was it the declared server, from start to end?
//  2. Each case: was the measurement valid? (the load verdict)
//  3. Each threshold of a valid case: does it pass, fail, or stay inconclusive? An exact test at
//     the plan's confidence decides, or the point estimate if the plan says so.
//  4. Each comparison: could the servers be compared, and how did each metric change?
//  5. Each assert: does its condition hold for the point estimates?
//  6. The run: the worst outcome counts, under the plan's policy.
func Judge(p *plan.Plan, run *metric.Run, opts Options) Verdicts {
	v := Verdicts{Outcome: verdict.Error, Partial: opts.Partial, List: []verdict.Verdict{}}
	if p == nil || run == nil {
		v.Why = "there is no plan or no run to judge"
		return v
	}
	j := newJudge(p, run)
	j.baselines, j.ramblings = opts.Baselines, opts.Rambling
	for _, s := range p.Servers {
		j.server(s)
	}
	j.cases(opts.Each)
	j.residues()
	for _, c := range p.Compares {
		j.compare(j.comparison(c))
	}
	j.asserts()
	j.accepts()
	v.List, v.Comparisons = j.list, j.comparisons
	v.Partial = v.Partial || j.partial
	v.Outcome, v.Why = verdict.Combine(j.list, p.Gate.MeasureOnly)
	return v
}

// cases judges every case and every capacity search. They may be judged in any order and
// concurrently. The verdicts are added in the order of the plan.
func (j *judge) cases(each metric.Each) {
	var all []func() (conclude func())
	for _, s := range j.promised.Servers {
		for _, w := range j.promised.Workloads {
			if !slices.Contains(w.Servers, s) || j.promised.Idle(s, w) {
				continue
			}
			for load, level := range w.Levels() {
				all = append(all, func() func() { return j.measured(s, w, load, level) })
			}
			if j.promised.Searches(s, w) {
				all = append(all, func() func() { return j.searched(s, w) })
			}
		}
	}
	concluded := make([]func(), len(all))
	each.Do(len(all), func(i int) { concluded[i] = all[i]() })
	for _, conclude := range concluded {
		conclude()
	}
}

func (j *judge) server(s *plan.Server) {
	v := verdict.Verdict{
		Kind: verdict.KindServer, Server: s.Address(), Name: "start", Place: verdict.Place{File: s.Range.Filename, Line: s.Range.Start.Line},
	}
	used, left := false, true
	for _, w := range j.promised.Workloads {
		if !slices.Contains(w.Servers, s) || j.promised.Idle(s, w) {
			continue
		}
		for _, level := range w.Levels() {
			used = true
			l := j.levels[levelKey{s.Address(), w.Address(), level.Name}]
			left = left && l != nil && l.Skipped == metric.SkippedOnly
		}
		if j.promised.Searches(s, w) {
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
		v.Outcome, v.Message = verdict.Skipped, "left out: no case of this server was selected"
	case run == nil:
		v.Outcome, v.Message = verdict.Error, "the server was not started"+verdict.Because(j.run.Stopped)
	case run.Error != "":
		v.Outcome, v.Message = verdict.Error, verdict.OneLine(run.Error)
	case run.Unended:
		v.Outcome, v.Message = verdict.Error, "the recording ends before the server was stopped, so it is not known whether the same server ran until the end"
	case run.EndUnknown != "":
		v.Outcome, v.Message = verdict.Pass, "ready; "+verdict.OneLine(run.EndUnknown)
	default:
		v.Outcome, v.Message = verdict.Pass, "ready; the same server was still running at the end"
	}
	j.add(v, plan.Stop)
}

// Awaited lists the verdicts that a run of the whole plan will have, in the same order. Each
// verdict is pending, except that of a comparison that the plan leaves out, which is skipped.
func Awaited(p *plan.Plan) []verdict.Verdict {
	// A verdict has the same name before and after the measurement.
	list := slices.DeleteFunc(Judge(p, &metric.Run{}, Options{}).List, func(v verdict.Verdict) bool { return v.Kind == verdict.KindAccept })
	for i := range list {
		v := &list[i]
		outcome := verdict.Pending
		if slices.ContainsFunc(p.Compares,
			func(c *plan.Compare) bool {
				return c.Skip != "" && v.Kind == verdict.KindCompare && v.Comparison == c.Name
			}) {
			outcome = verdict.Skipped
		}
		v.Outcome, v.Cause, v.Message, v.Needs, v.Notes = outcome, "", "", "", nil
		soften(p, v)
	}
	return list
}

// JudgeComparison judges a comparison before its end, on the rounds that both servers have completed.
// The argument run holds the record of the comparison, whose last look is the current one. stop means
// that no further round is worth its cost.
func JudgeComparison(p *plan.Plan, c *plan.Compare, run *metric.Run) (outcome verdict.Outcome, stop bool) {
	v := Judge(&plan.Plan{Gate: p.Gate, Servers: p.Servers, Workloads: p.Workloads, Compares: []*plan.Compare{c}}, run, Options{})
	if len(v.Comparisons) == 0 {
		return verdict.Error, true
	}
	x := v.Comparisons[0] // Judge gets a plan with only this comparison
	if x.Stage != nil {
		return x.Outcome, x.Stage.Stop
	}
	return x.Outcome, !slices.ContainsFunc(x.Changes, func(row compare.Change) bool {
		return row.Limit.OK && !row.OfCapacity && !row.OfAnswers && row.Outcome == verdict.Inconclusive &&
			row.Severity != verdict.SeverityWarn
	})
}
