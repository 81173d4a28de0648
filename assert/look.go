package assert

import (
	"math"
	"slices"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// LookVerdict is the result of one look at a level.
type LookVerdict struct {
	// Outcome of all thresholds that bind: Fail as soon as one certifiably
	// fails, Pass once all certifiably hold, else Inconclusive; also where
	// none binds. Error when Invalid.
	Outcome Outcome
	// Invalid says why the measurement cannot be judged, and Cause who has to act
	// on it; "" when it can.
	Invalid string
	Cause   verdict.Cause
	// Needs is about how many more requests would settle an Inconclusive
	// outcome; 0: unknown, -1: no number would.
	Needs int
	// Binding names the threshold that failed, or is nearest to its limit.
	Binding    string
	Thresholds []LookThreshold // in order of the plan
}

// LookThreshold is one threshold at a look.
type LookThreshold struct {
	Name    string // "ttft p95"
	Outcome Outcome
	// Log is ln(estimate/limit), turned where higher is better, so that a
	// positive one is over the limit; of a share that of the bad ones. Low and
	// High are its bounds, each at the confidence of the look. All are kept in
	// [-maxLog, maxLog], where no bound and infinity are.
	Log, Low, High float64
	Shown          string // the estimate as a person reads it: "7.9 s"
}

// maxLog is a factor of about 150: further from its limit nothing needs to be
// told apart.
const maxLog = 5

// JudgeLook judges a level before it is over, or a probe: on so many measured
// requests, the first ones by start, all of which must have ended (0: on all there
// are), with the part of the plan's error that the look may spend. Looks that are
// planned in advance and share it may each decide without erring more often in
// all than one look would.
//
// At a level of the workload the sla blocks for it bind, at a probe (its Probe is
// set, or the workload has no such level) those for the capacity; blocks that
// only warn bind nowhere. scaling_efficiency, which takes another level too, is
// left to Judge.
func JudgeLook(p *plan.Plan, w *plan.Workload, l *metric.Level, at metric.Look) LookVerdict {
	if p == nil || w == nil || l == nil {
		return LookVerdict{Outcome: Error, Invalid: "there is nothing to judge"}
	}
	if l.Skipped != "" {
		return LookVerdict{Outcome: Error, Cause: verdict.CauseNotRun, Invalid: "not run: " + verdict.OneLine(l.Skipped)}
	}
	looks := append(slices.Clone(l.Looks), at)
	l, problem := begun(sample.Sound(l), at.Requests)
	if problem != "" {
		return LookVerdict{Outcome: Error, Invalid: problem}
	}
	binds, level := boundAt(l.Name), w.Fixed(l.Name)
	if l.Probe != nil || level == nil {
		binds, level = boundAtCapacity, nil
	}
	return lookAt(w, l, p.PriceOf(l.Server), binds,
		func(p plan.Policy) float64 { return errorAt(p.Alpha(), looks) },
		func(x *plan.Workload, l *metric.Level) int {
			if level == nil {
				return 0
			}
			return dueIn(x.Portion(*level), l)
		}).LookVerdict
}

// look judges all of a level at an error. Of due requests in all, some may be
// still to come.
func look(w *plan.Workload, l *metric.Level, price metric.Price, binds func(*plan.SLA) bool, alpha float64, due int) (LookVerdict, []Verdict) {
	s := subject{evidence: gather(l), workload: w, price: price, policy: w.Policy, alpha: alpha, due: due}
	// What only warns is judged too: a mean passes only if success does.
	list := withGrowth(binding(w, binds), l.Kind, plan.Level{Name: l.Name, Stage: l.Stage, Speedup: l.Speedup, Share: l.Share}, verdict.SeverityError)
	verdicts := s.thresholds(list)
	for i := len(list) - 1; i >= 0; i-- {
		if !list[i].limits() {
			list, verdicts = slices.Delete(list, i, i+1), slices.Delete(verdicts, i, i+1)
		}
	}
	load := Verdict{Kind: KindLoad}
	s.load(&load, l.Kind, plan.Level{Name: l.Name, N: l.N, Rate: l.Rate, Requests: s.n}, pairs(list, verdicts))
	if load.Outcome != Pass {
		return LookVerdict{Outcome: Error, Cause: load.Cause, Invalid: load.Message}, verdicts
	}
	out := LookVerdict{Outcome: Pass}
	if len(verdicts) == 0 {
		out.Outcome, out.Needs = Inconclusive, -1
	}
	for i := range verdicts {
		v := &verdicts[i]
		if v.Outcome == Error {
			if failed := slices.IndexFunc(verdicts, func(v Verdict) bool { return v.Outcome == Fail }); v.Cause == verdict.CauseGenerator && failed >= 0 {
				continue // another fails, and lateness is not why
			}
			return LookVerdict{Outcome: Error, Cause: v.Cause, Invalid: v.Message}, verdicts
		}
		t := distance(list[i].Threshold, v)
		out.Thresholds = append(out.Thresholds, t)
		out.Outcome = max(out.Outcome, v.Outcome)
		if v.Outcome == Inconclusive && out.Needs >= 0 {
			out.Needs = max(out.Needs, v.More)
			if v.More < 0 {
				out.Needs = v.More
			}
		}
	}
	out.bind()
	return out, verdicts
}

// distance is how far a judged threshold is from its limit.
func distance(t *plan.Threshold, v *Verdict) LookThreshold {
	out := LookThreshold{Name: label(t), Outcome: v.Outcome, Shown: metric.Format(t.Metric.UnitOf(t.Stat), v.Value.V)}
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
				ratio = -maxLog
			}
		case share: // of the bad ones
			ratio = math.Log((1 - x) / (1 - limit))
			if x >= 1 && limit >= 1 {
				ratio = -maxLog
			}
		case sample.Upward(t.Op):
			ratio = -ratio
		}
		if x < 0 && !share && !sample.Upward(t.Op) {
			return -maxLog // a backlog that shrank
		}
		if math.IsNaN(ratio) {
			return 0
		}
		return min(max(ratio, -maxLog), maxLog)
	}
	out.Log, out.Low, out.High = log(v.Value.V), -maxLog, maxLog
	if v.Low.OK && v.High.OK {
		a, b := log(v.Low.V), log(v.High.V)
		out.Low, out.High = min(a, b, out.Log), max(a, b, out.Log)
	}
	if t.Stat.Exact() {
		out.Low, out.High = out.Log, out.Log // exact
	}
	return out
}
