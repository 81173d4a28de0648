package assert

import (
	"math"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/search"
)

// JudgeLook judges a level before its end, or a probe of a capacity search. It judges the first
// at.Requests measured requests by start; 0 means all. All of them must have ended.
//
// The planned looks of a level share the allowed error, so together they err no more often than a
// single look.
//
// At a level of the workload, the sla blocks for that level decide. At a probe, the sla blocks for
// the capacity decide. A level is a probe if its field Probe is set, or if the workload has no such
// level. Blocks that only warn never decide. The metric scaling_efficiency also needs level 1, so
// only Judge judges it.
func JudgeLook(p *plan.Plan, w *plan.Workload, l *metric.Level, at metric.Look) search.Judgement {
	if p == nil || w == nil || l == nil {
		return search.Invalid("there is nothing to judge", false)
	}
	if l.Skipped != "" {
		return search.Invalid("not run: "+verdict.OneLine(l.Skipped), false)
	}
	looks := append(slices.Clone(l.Looks), at)
	l, problem := begun(sample.Sound(l), at.Requests)
	if problem != "" {
		return search.Invalid(problem, false)
	}
	binds, level := boundAt(l.Name), w.Fixed(l.Name)
	if l.Probe != nil || level == nil {
		binds, level = boundAtCapacity, nil
	}
	return lookAt(w, l, p.PriceOf(l.Server), binds,
		func(p plan.Policy) float64 { return errorAt(p.Alpha(), looks) },
		func(x *plan.Workload, l *metric.Level) int {
			if level == nil {
				return dueAtProbe(w, x, l)
			}
			return dueIn(x.Portion(*level), l)
		}).Judgement
}

// dueAtProbe returns how many requests of the workload x a probe of the search over w has by its first
// planned end. Before it a window passes only if it is clear of its limits. It is 0 for other loads,
// whose probes are judged alike at each look.
func dueAtProbe(w, x *plan.Workload, l *metric.Level) int {
	if !l.Batches || l.Probe == nil || w.Capacity == nil || w.Capacity.Over != metric.ClosedLoop {
		return 0
	}
	return x.Portion(w.Capacity.Level(l.N)).Requests
}

// look judges all requests of a level so far, with the allowed error alpha.
//
// The parameter due is the planned total number of requests, including those that were not sent
// yet. If l belongs to a mix of workloads, mixed is the lifetime of a request of the whole mix.
func look(w *plan.Workload, l *metric.Level, mixed float64, price metric.Price, binds func(*plan.SLA) bool, alpha float64,
	due int) (search.Judgement, []verdict.Verdict) {
	s := subject{evidence: gather(l.InMemory()), workload: w, mixed: mixed, price: price, policy: w.Policy, alpha: alpha, due: due}
	// Also judge thresholds that only warn. One of them may be success, and a mean passes only if
	// success passes.
	list := requirements(w, binds, l.Kind, plan.Level{Name: l.Name, Stage: l.Stage, Speedup: l.Speedup}, verdict.SeverityError)
	verdicts := s.thresholds(list)
	for i := len(list) - 1; i >= 0; i-- {
		if !list[i].limits() {
			list, verdicts = slices.Delete(list, i, i+1), slices.Delete(verdicts, i, i+1)
		}
	}
	load := verdict.Verdict{Kind: verdict.KindLoad}
	s.load(&load, l.Kind, plan.Level{Name: l.Name, N: l.N, Rate: l.Rate, Requests: s.n}, pairs(list, verdicts))
	if load.Outcome != verdict.Pass {
		return search.Invalid(load.Message, load.Cause == verdict.CauseGenerator), verdicts
	}
	out := search.Judgement{Outcome: verdict.Pass}
	if len(verdicts) == 0 {
		out.Outcome, out.Needs = verdict.Inconclusive, -1
	}
	for i := range verdicts {
		v := &verdicts[i]
		if v.Outcome == verdict.Error {
			failed := slices.IndexFunc(verdicts, func(v verdict.Verdict) bool { return v.Outcome == verdict.Fail })
			if v.Cause == verdict.CauseGenerator && failed >= 0 {
				continue // another threshold fails, and the generator is not the reason
			}
			return search.Invalid(v.Message, v.Cause == verdict.CauseGenerator), verdicts
		}
		out.Margins = append(out.Margins, distance(list[i].Threshold, v))
		out.Outcome = max(out.Outcome, v.Outcome)
		out.Follows = out.Follows || s.awaits(list[i].Threshold)
		out.ForGood = out.ForGood || s.forGood(v, list[i].Threshold)
		if v.Outcome == verdict.Inconclusive && out.Needs >= 0 {
			out.Needs = max(out.Needs, v.More)
			if v.More < 0 {
				out.Needs = v.More
			}
		}
	}
	out.Follows = out.Follows && out.Outcome != verdict.Fail
	bind(&out)
	return out, verdicts
}

// distance says how far the value of a threshold is from its limit at a look. The bounds have the
// confidence of the look; one that is missing is as far from the limit as can be.
func distance(t *plan.Threshold, v *verdict.Verdict) search.Margin {
	out := search.Margin{Threshold: label(t), Shown: metric.Format(t.Metric.UnitOf(t.Stat), v.Value.V), Outcome: v.Outcome}
	if v.Outcome == verdict.Inconclusive {
		out.Why = strings.Join(append([]string{v.Needs}, v.NotesOf()...), "; ")
	}
	limit, share := t.Limit, t.Metric.Name == "success" || t.Stat.IsShare()
	if t.Op == "" { // every request succeeds
		limit = 1
	}
	log := func(x float64) float64 {
		ratio := math.Log(x / limit)
		switch {
		case share && t.Metric.Better == metric.LowerIsBetter:
			ratio = math.Log(x / limit)
			if x <= 0 && limit <= 0 {
				ratio = -search.MaxLog
			}
		case share: // a share of good requests: compare the shares of bad ones
			ratio = math.Log((1 - x) / (1 - limit))
			if x >= 1 && limit >= 1 {
				ratio = -search.MaxLog
			}
		case sample.Upward(t.Op):
			ratio = -ratio
		}
		if x < 0 && !share && !sample.Upward(t.Op) {
			return -search.MaxLog // the backlog shrank
		}
		if math.IsNaN(ratio) {
			return 0
		}
		return min(max(ratio, -search.MaxLog), search.MaxLog)
	}
	out.Log, out.Low, out.High = log(v.Value.V), -search.MaxLog, search.MaxLog
	if v.Low.OK && v.High.OK {
		a, b := log(v.Low.V), log(v.High.V)
		out.Low, out.High = min(a, b, out.Log), max(a, b, out.Log)
	}
	if t.Stat.Exact() {
		out.Low, out.High = out.Log, out.Log // exact
	}
	return out
}

// capacityBounds returns the thresholds at the capacity by metric and statistic, such as "ttft
// p95".
func capacityBounds(w *plan.Workload) map[string]*plan.Threshold {
	bounds := map[string]*plan.Threshold{}
	for _, sla := range w.SLAs {
		for _, th := range sla.Thresholds {
			// Skip a limit of 100% on a share: its distance from an estimate is not defined.
			if sla.AtCapacity && th.Limit > 0 && (!isShare(th) || th.Limit < 1) {
				bounds[strings.TrimSpace(th.Metric.Name+" "+th.Stat.String())] = th
			}
		}
	}
	return bounds
}

func isShare(th *plan.Threshold) bool {
	return th.Metric.Name == "success" || th.Stat.IsShare()
}

// farthest is just below the largest distance from the limit that a margin records. A value
// at a larger distance may be infinite, so it is not shown.
const farthest = 4.999

// probeValue returns a threshold's value and bounds. t has their distances from the limit.
func probeValue(th *plan.Threshold, t search.Margin) metric.ProbeValue {
	out := metric.ProbeValue{Threshold: t.Threshold, Outcome: t.Outcome}
	upward := isShare(th) && th.Metric.Better != metric.LowerIsBetter || th.Op == plan.Greater || th.Op == plan.GreaterEqual
	at := func(log float64) metric.Value {
		switch {
		case math.Abs(log) > farthest:
			return metric.Value{}
		case isShare(th) && upward:
			return metric.Some(1 - (1-th.Limit)*math.Exp(log))
		case upward:
			return metric.Some(th.Limit * math.Exp(-log))
		}
		return metric.Some(th.Limit * math.Exp(log))
	}
	out.Value, out.Low, out.High = at(t.Log), at(t.Low), at(t.High)
	if upward { // if the limit is a lower limit, the bounds change places
		out.Low, out.High = out.High, out.Low
	}
	return out
}
