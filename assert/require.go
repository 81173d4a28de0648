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
	return fmt.Sprintf("tokgate adds this threshold because %s ignores failed requests. To allow some failures, set a threshold on success", label(r.impliedBy))
}

// unjudged returns the verdict on a threshold before anything is measured.
func (r required) unjudged(policy plan.Policy) Verdict {
	return Verdict{Kind: KindSLA, Severity: r.severity, Threshold: ThresholdOf(r.Threshold), Implied: r.impliedBy != nil, Decide: string(policy.Decide), Confidence: 1 - policy.Alpha(),
		Value: metric.None("not judged"), File: r.Range.Filename, Line: r.Range.Start.Line}
}

// binding lists the thresholds of those sla blocks that apply, in plan order. If one of them
// ignores failed requests, and none is on success, it adds a requirement: every request must
// succeed. Otherwise a server that completes few requests could pass.
func binding(w *plan.Workload, binds func(*plan.SLA) bool) []required {
	var out []required
	var by *plan.Threshold
	severity, success := verdict.SeverityWarn, false
	for _, sla := range w.SLAs {
		if !binds(sla) {
			continue
		}
		for _, t := range sla.Thresholds {
			out = append(out, required{Threshold: t, severity: verdict.Severity(sla.Severity)})
			success = success || t.Metric.Name == "success"
			if !blind(t) {
				continue
			}
			if by == nil {
				by = t
			}
			if sla.Severity != plan.SeverityWarn {
				severity = verdict.SeverityError
			}
		}
	}
	if by == nil || success {
		return out
	}
	every := &plan.Threshold{Metric: metric.MustLookup("success"), Stat: metric.Stat{Kind: metric.Every}, Text: "every", Range: by.Range}
	return append(out, required{every, severity, by})
}

// blind reports whether a threshold hardly sees failed requests. A mean covers only completed
// requests. A failed request has few gaps between tokens, so statistics of gaps miss it.
func blind(t *plan.Threshold) bool {
	if t.Metric.Name == "success" || t.Metric.Scope == metric.PerReading {
		return false
	}
	return t.Stat.Kind == metric.Mean || t.Metric.Scope == metric.PerGap || t.Metric.Scope == metric.Counted
}

func boundAtCapacity(sla *plan.SLA) bool { return sla.AtCapacity }

// boundAt returns a filter for the sla blocks that apply to the level of this name.
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
	c := searchOf(w)
	list := withGrowth(binding(w, boundAtCapacity), c.Over, w.Portion(plan.Level{Range: c.Range}), verdict.SeverityError)
	return slices.DeleteFunc(list, func(r required) bool { return !r.limits() })
}

// judgedThreshold is a threshold with its verdict.
type judgedThreshold struct {
	threshold *plan.Threshold
	*Verdict
}

func pairs(list []required, verdicts []Verdict) []judgedThreshold {
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
func withGrowth(list []required, kind metric.LoadKind, level plan.Level, severity verdict.Severity) []required {
	// joint means that the level has no constant rate of its own. It has stages, replays a trace,
	// or is of one part of a mix.
	joint := level.Stage != nil || level.Speedup > 0 || level.Share > 0
	if kind != metric.OpenLoop || joint || slices.ContainsFunc(list, func(r required) bool { return r.Metric.Name == growing }) {
		return list
	}
	t := &plan.Threshold{
		Metric: metric.MustLookup(growing), Op: plan.Less, Limit: plan.DefaultGrowth,
		Text: "< " + metric.Format(metric.Ratio, plan.DefaultGrowth), Range: level.Range,
	}
	return append(list, required{t, severity, t})
}

// searchOf returns the capacity search of a workload. A part of a mix has the search of its mix.
func searchOf(w *plan.Workload) *plan.Capacity {
	if w.Of != nil {
		return w.Of.Capacity
	}
	return w.Capacity
}
