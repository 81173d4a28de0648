package assert

import (
	"fmt"
	"slices"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// required is a threshold that must hold, with its severity.
type required struct {
	*plan.Threshold
	severity verdict.Severity
	// impliedBy is the threshold that implies this one; nil if the plan itself declares it.
	impliedBy *plan.Threshold
}

// name returns the name of the verdict, such as "sla.ttft.p95". It is stable across runs.
func (r required) name() string {
	name := "sla." + r.Metric.Name
	if stat := r.Stat.String(); stat != "" {
		name += "." + stat
	}
	return name
}

// why says why tokgate adds the threshold; "" if the plan declares it.
func (r required) why() string {
	if r.impliedBy == nil {
		return ""
	}
	if r.Metric.Name == growing {
		return "tokgate adds this threshold because a server must keep up with the rate. To allow a growing backlog, set a threshold on backlog_growth"
	}
	if r.Stat.Kind == metric.Implied {
		return fmt.Sprintf("tokgate adds this threshold because a server must not meet %s by refusing requests. To allow more failures, set a threshold on success", label(r.impliedBy))
	}
	return fmt.Sprintf("tokgate adds this threshold because %s ignores failed requests. To allow some failures, set a threshold on success", label(r.impliedBy))
}

func (r required) unjudged(policy plan.Policy) verdict.Verdict {
	t := ThresholdOf(r.Threshold)
	t.Implied = r.impliedBy != nil
	return verdict.Verdict{Kind: verdict.KindSLA, Severity: r.severity, Threshold: t, Test: untested(policy),
		Place: verdict.Place{File: r.Range.Filename, Line: r.Range.Start.Line}}
}

// untested is the result of a test that has no value yet.
func untested(p plan.Policy) verdict.Test {
	return verdict.Test{Decide: string(p.Decide), Interval: verdict.Interval{Confidence: 1 - p.Alpha()}, Value: metric.None("not judged")}
}

// requirements lists what one level of a workload must meet: the thresholds that the plan declares,
// in plan order, and those that tokgate adds. The parameter severity is that of a rate that must be
// sustained.
func requirements(w *plan.Workload, binds func(*plan.SLA) bool, kind metric.LoadKind, level plan.Level,
	severity verdict.Severity) []required {
	list := declared(w, binds)
	all := withGrowth(w, list, kind, level, severity)
	bounds := all
	if root := w.Root(); root != w { // each part of a mix must meet what the mix implies
		bounds = append(slices.Clone(all), withGrowth(root, declared(root, binds), kind, level, severity)...)
	}
	return slices.Insert(all, len(list), succeeding(all, bounds)...)
}

// declared lists the thresholds of those sla blocks that apply, in plan order.
func declared(w *plan.Workload, binds func(*plan.SLA) bool) []required {
	var out []required
	for _, sla := range w.SLAs {
		if !binds(sla) {
			continue
		}
		for _, t := range sla.Thresholds {
			out = append(out, required{Threshold: t, severity: verdict.Severity(sla.Severity)})
		}
	}
	return out
}

// succeeding lists the requirements on success that other thresholds imply. Otherwise a server
// could pass because it refuses requests.
//
// Means and gaps ignore failed requests, so every request must succeed. Under all other thresholds
// at most the share plan.MostFailed of the requests may fail. A threshold on success replaces both. If
// it only warns, it replaces the second only for thresholds that only warn too.
//
// own holds the thresholds of the workload itself. all holds those of its mix as well, which imply
// the second requirement only.
func succeeding(own, all []required) []required {
	every := strictest(own, func(r required) bool { return r.IgnoresFailures() })
	some := strictest(all, func(r required) bool {
		return !r.IgnoresFailures() && !r.BoundsFailures() && r.Metric.Source != metric.Starts
	})
	written := strictest(all, func(r required) bool { return r.Metric.Name == "success" })
	success := metric.MustLookup("success")
	var out []required
	if every != nil && strictest(own, func(r required) bool { return r.Metric.Name == "success" }) == nil {
		t := &plan.Threshold{Metric: success, Stat: metric.Stat{Kind: metric.Every}, Text: "every", Range: every.Range}
		out, written = append(out, required{t, every.severity, every.Threshold}), every
	}
	if some != nil && (written == nil || written.severity == verdict.SeverityWarn && some.severity != verdict.SeverityWarn) {
		limit := 1 - plan.MostFailed
		t := &plan.Threshold{Metric: success, Stat: metric.Stat{Kind: metric.Implied}, Op: plan.GreaterEqual, Limit: limit,
			Text: ">= " + metric.Format(metric.Ratio, limit), Range: some.Range}
		out = append(out, required{t, some.severity, some.Threshold})
	}
	return out
}

// strictest returns the first requirement for which the function is holds, of those that fail the
// gate if there is one; nil if there is none.
func strictest(list []required, is func(required) bool) *required {
	var out *required
	for i, r := range list {
		if is(r) && (out == nil || out.severity == verdict.SeverityWarn && r.severity != verdict.SeverityWarn) {
			out = &list[i]
		}
	}
	return out
}

func boundAtCapacity(sla *plan.SLA) bool { return sla.AtCapacity }

func boundAt(level string) func(*plan.SLA) bool {
	return func(sla *plan.SLA) bool { return slices.Contains(sla.At, level) }
}

// limits reports whether a threshold can decide a search or a look. A look judges a level before
// its end.
func (r required) limits() bool {
	return r.severity != verdict.SeverityWarn && r.Metric.Name != "scaling_efficiency"
}

// atCapacity lists the thresholds that decide the capacity of a workload.
func atCapacity(w *plan.Workload) []required {
	c := w.Root().Capacity
	list := requirements(w, boundAtCapacity, c.Over, plan.Level{Range: c.Range}, verdict.SeverityError)
	return slices.DeleteFunc(list, func(r required) bool { return !r.limits() })
}

// judgedThreshold is a threshold with its verdict.
type judgedThreshold struct {
	threshold *plan.Threshold
	*verdict.Verdict
}

func pairs(list []required, verdicts []verdict.Verdict) []judgedThreshold {
	out := make([]judgedThreshold, len(verdicts))
	for i := range verdicts {
		out[i] = judgedThreshold{list[i].Threshold, &verdicts[i]}
	}
	return out
}

// growing is the name of the metric that decides whether a rate is sustained.
const growing = "backlog_growth"

// withGrowth adds the requirement that the server sustains the rate, unless the plan has a
// threshold on backlog_growth. For a part of a mix it adds nothing, because the mix has the
// requirement.
func withGrowth(w *plan.Workload, list []required, kind metric.LoadKind, level plan.Level, severity verdict.Severity) []required {
	// joint means that the level has no constant rate of its own. It has stages, replays a trace,
	// or is of one part of a mix.
	joint := level.Stage != nil || level.Speedup > 0 || w.Root() != w
	if kind != metric.OpenLoop || joint || slices.ContainsFunc(list, func(r required) bool { return r.Metric.Name == growing }) {
		return list
	}
	t := &plan.Threshold{
		Metric: metric.MustLookup(growing), Op: plan.Less, Limit: plan.DefaultGrowth,
		Text: "< " + metric.Format(metric.Ratio, plan.DefaultGrowth), Range: level.Range,
	}
	return append(slices.Clip(list), required{t, severity, t})
}
