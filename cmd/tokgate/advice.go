package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/telemetry"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/strength"
)

// A moment is when tokgate says something about a plan, before its run.
type moment int

const (
	loading  moment = iota // whenever the plan is read; an error then refuses the plan
	checking               // in validate
	planning               // in plan
)

// advices lists what is said about a plan before its run. A function gets the plan and its last run,
// which is nil if there is none, or if it does not matter.
var advices = []struct {
	at   moment
	give func(*plan.Plan, *lastRun) hcl.Diagnostics
}{
	{loading, always(assert.CertifyDiagnostics)},
	{loading, always(untold)},
	{loading, always(unsimulated)},
	{loading, always(strength.Diagnose)},
	{loading, always(underBudget)},
	{checking, always(shortLoads)},
	{checking, always(inStep)},
	{checking, always(lostCaches)},
	{checking, movingTogether},
	{checking, tooSmall},
	{checking, tooLate},
	{planning, overBudget},
	{planning, cutOff},
}

// lostCaches warns of folders of a pod that are empty at each start.
func lostCaches(p *plan.Plan) (diags hcl.Diagnostics) {
	for _, s := range p.Servers {
		if s.Pod == nil || len(s.Pod.Lost()) == 0 {
			continue
		}
		diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: "A cache is lost at each start", Subject: &s.Pod.Range,
			Detail: fmt.Sprintf("%s mounts an emptyDir at %s, so each of the %s of server.%s begins with an empty folder: weights are downloaded again, and kernels compiled. Mount a persistentVolumeClaim, or a hostPath of the node.",
				s.Pod.File, strings.Join(s.Pod.Lost(), " and "), verdict.Count(exec.Starts(p, s), "starts"), s.Address())})
	}
	return diags
}

func always(give func(*plan.Plan) hcl.Diagnostics) func(*plan.Plan, *lastRun) hcl.Diagnostics {
	return func(p *plan.Plan, _ *lastRun) hcl.Diagnostics { return give(p) }
}

func advise(at moment, p *plan.Plan, last *lastRun) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, a := range advices {
		if a.at == at {
			diags = append(diags, a.give(p, last)...)
		}
	}
	return diags
}

func expected(p *plan.Plan, last *lastRun) time.Duration {
	f := last.forecast(p, nil, startTimes(p, last))
	sum, _ := f.Total()
	return sum
}

func overBudget(p *plan.Plan, last *lastRun) hcl.Diagnostics {
	b, takes := p.Gate.Budget, last.takes(p, startTimes(p, last))
	detail := fmt.Sprintf("the run takes longer than its budget of %s, so it will leave out extensions and rounds.", plan.PlainDuration(b))
	switch {
	case b == 0 || takes.most.took <= b, takes.expected.took <= b && len(plan.Groups(p)) == 0:
		return nil
	case takes.expected.took <= b:
		detail = fmt.Sprintf("if its comparison is not decided early, the run takes longer than its budget of %s. It will then leave out the last looks.", plan.PlainDuration(b))
	}
	return hcl.Diagnostics{{Severity: hcl.DiagWarning, Summary: "Longer than its budget", Subject: p.Gate.Range.Ptr(), Detail: detail}}
}

// underBudget refuses a budget that is shorter than the least load that can decide. It counts what the
// plan itself says: rates, users and durations.
func underBudget(p *plan.Plan) hcl.Diagnostics {
	if p.Gate.Budget == 0 || p.Gate.MeasureOnly {
		return nil
	}
	var least time.Duration
	for _, c := range exec.Cases(p) {
		least += exec.LeastLoad(p, c)
	}
	if least <= p.Gate.Budget {
		return nil
	}
	return hcl.Diagnostics{{
		Severity: hcl.DiagError, Summary: "Budget too short", Subject: p.Gate.Range.Ptr(),
		Detail: fmt.Sprintf("The budget is %s, but the load that can decide takes at least %s without starts and warm-up. Raise the budget, or shorten the levels (duration, requests).",
			plan.PlainDuration(p.Gate.Budget), roundTime(least)),
	}}
}

// leastLoad is the shortest load of a level without a warning.
const leastLoad = time.Minute

// shortLoads warns of levels whose load takes less than a minute on a server that meets its limits. It
// gives at most one warning for a plan. It computes the time from the load's duration, or from the
// thresholds on the time of a request.
func shortLoads(p *plan.Plan) hcl.Diagnostics {
	cases := exec.Cases(p)
	var first *exec.Case
	short, longest, confidence := 0, time.Duration(0), 0.0
	for _, c := range cases {
		took, ok := longestLoad(c)
		if !ok || took >= leastLoad {
			continue
		}
		if short++; first == nil {
			first = &c
		}
		longest, confidence = max(longest, took), max(confidence, c.Workload.Policy.Confidence)
	}
	if short == 0 || p.Gate.MeasureOnly {
		return nil
	}
	more := `Set a duration, such as "2m", instead of requests`
	if first.Level.Speedup > 0 {
		more = "Replay a longer stretch of the trace"
	}
	unseen := time.Duration(float64(longest) / -math.Log(1-confidence))
	return hcl.Diagnostics{{
		Severity: hcl.DiagWarning,
		Summary:  "Less than a minute of load",
		Detail: fmt.Sprintf("%d of %s end within %s on a server that meets its limits. An event rarer than once in %s, such as a freeze, may be missed. %s.",
			short, verdict.Count(len(cases), "cases"), roundTime(longest), roundTime(unseen), more),
		Subject: first.Load.Range.Ptr(),
	}}
}

// untold finds thresholds on metrics that a server will not report. It finds them before the load,
// because without a value they would become errors only after it.
func untold(p *plan.Plan) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, w := range p.Workloads {
		diags = append(diags, unseen(p, w)...)
		for _, sla := range w.SLAs {
			for _, t := range sla.Thresholds {
				for _, s := range w.Servers {
					why := untoldBy(p, s, t.Metric)
					if why == "" {
						continue
					}
					severity := hcl.DiagError
					if sla.Severity == plan.SeverityWarn {
						severity = hcl.DiagWarning
					}
					rng := t.Range
					diags = append(diags, &hcl.Diagnostic{
						Severity: severity,
						Summary:  "Threshold can never be judged",
						Detail:   fmt.Sprintf("%s of %s will have no value: %s.", t.Metric.Name, s.Address(), why),
						Subject:  &rng,
					})
					break // one diagnostic for each threshold is enough, so skip the other servers
				}
			}
		}
	}
	return diags
}

func untoldBy(p *plan.Plan, s *plan.Server, m metric.Def) string {
	switch t := s.Telemetry; m.Source {
	case metric.Server:
		switch {
		case t.Off:
			return telemetryOff
		case m.Name == "imbalance":
			if s.Endpoint == nil || len(s.Endpoint.Replicas) < 2 {
				return m.NoValue
			}
		case t.URL == "" && (s.Started() || s.Endpoint != nil) && !telemetry.Tells(s.Engine, m.Name):
			return fmt.Sprintf("engine %q does not report it; the metrics of each engine are in docs/metrics.md", s.Engine)
		}
	case metric.Queried:
		switch {
		case t.Off:
			return telemetryOff
		case !slices.ContainsFunc(t.Prometheus.Defs(), func(d metric.Def) bool { return d.Name == m.Name }):
			return "its telemetry has no series of this name"
		}
	case metric.GPU:
		return untoldByGPUs(s)
	case metric.Prices:
		price := p.PriceOf(s.Address())
		if price == (metric.Price{}) {
			return "prices says nothing of it"
		}
		if why := untoldByGPUs(s); price.Electricity > 0 && why != "" {
			return "electricity has a price, but the power is not known: " + why
		}
	}
	return ""
}

const telemetryOff = "telemetry is off there"

func untoldByGPUs(s *plan.Server) string {
	t := s.Telemetry
	switch {
	case t.Off:
		return telemetryOff
	case t.DCGM != "" || len(t.GPUs) > 0:
		return ""
	case s.BuiltIn():
		return "the built-in server has no GPU"
	case !s.Local():
		return "tokgate does not start this server on this machine, so it does not know its GPUs: list them in telemetry { gpus = [0] }, or set dcgm_url"
	}
	if g := s.GPUs(); t.GPUs != nil || g != nil && !g.All && g.Count == 0 && len(g.IDs) == 0 {
		return "it has no GPU"
	}
	return ""
}

// leastSpread is the smallest jitter of answers with which the slots of a closed loop soon send at
// different times.
const leastSpread = 0.05

// inStep warns if a time to the first token is bounded in a closed loop whose answers are about equally
// long: its slots then send at the same times.
func inStep(p *plan.Plan) (diags hcl.Diagnostics) {
	for _, w := range p.Workloads {
		together := func(l *plan.Load) bool {
			several := func(at plan.Level) bool { return at.N > 1 }
			return l.Kind == metric.ClosedLoop && l.Pause == 0 && slices.ContainsFunc(l.Levels, several)
		}
		alike := !w.Output.Natural && w.Output.Mean > 1 && w.Output.Jitter <= leastSpread
		if !alike || w.Prompt.Turns.Several() || !slices.ContainsFunc(w.Loads, together) {
			continue
		}
		limits := bounding(w, func(*plan.SLA) bool { return true })
		i := slices.IndexFunc(limits, func(t *plan.Threshold) bool { return t.Metric.Name == "ttft" || t.Metric.Name == "ttfa" })
		if i < 0 {
			continue
		}
		diags = append(diags, &hcl.Diagnostic{
			Severity: hcl.DiagWarning, Summary: "Answers of one length", Subject: limits[i].Range.Ptr(),
			Detail: fmt.Sprintf("The slots of a closed loop whose answers are equally long send at the same times, so %s is longer than for requests that are spread over time. Let the lengths differ: output_tokens = { mean = %d, jitter = \"10%%\" }.",
				limits[i].Metric.Name, w.Output.Mean),
		})
	}
	return diags
}
