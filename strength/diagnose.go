package strength

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Each list has the metrics that show one kind of work. If a server becomes slower at that work, a
// threshold on one of these metrics fails sooner or later.
var (
	boundsDecode  = []string{"speed", "request_speed", "tpot", "itl", "e2e", "e2e_speed", "throughput", "goodput", "request_rate"}
	boundsPrefill = []string{"ttft", "ttft_turn_1", "ttft_later", "ttfa", "e2e", "e2e_speed", "input_throughput", "goodput"}
)

// Diagnose reports what the gate of a plan cannot notice. It reads only the plan. For example, it
// returns an error for a comparison that requires nothing, and a warning if a workload bounds the
// time of prefill but not of decoding.
func Diagnose(p *plan.Plan) hcl.Diagnostics {
	if p.Gate.MeasureOnly {
		return nil
	}
	var diags hcl.Diagnostics
	say := func(severity hcl.DiagnosticSeverity, rng hcl.Range, summary, format string, args ...any) {
		diags = append(diags, &hcl.Diagnostic{Severity: severity, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: &rng})
	}
	for _, c := range p.Compares {
		switch {
		case len(c.Claims) > 0 && !slices.ContainsFunc(c.Claims, (*plan.Claim).MustHold):
			say(hcl.DiagWarning, c.Range, "Comparison only warns", `Every tolerate and improve block of compare.%s has severity = "warn", so no change could fail it: it is required only that both servers were measured.`, c.Name)
		case requiresNothing(c):
			say(hcl.DiagError, c.Range, "Comparison requires nothing", `compare.%s has no tolerate and no improve block, so no change could fail it. Say what may change, such as tolerate { throughput = "-5%%" }, or gate { measure_only = true }.`, c.Name)
		}
	}
	diags = slices.Concat(diags, withoutBase(p), lenient(p), speedAlone(p))
	if len(p.Asserts) > 0 {
		return diags // asserts may require anything; their conditions are not analysed
	}
	if i := slices.IndexFunc(p.Compares, leftOut); i >= 0 && !p.Requires() {
		say(hcl.DiagWarning, p.Compares[i].Range, "Only what is implied is required", `compare.%s is left out (%s), and nothing else requires anything: a run passes as soon as its load is valid. Name a base with --base, or add an sla block.`, p.Compares[i].Name, p.Compares[i].Skip)
		return diags
	}
	gates := slices.ContainsFunc(p.Workloads,
		func(w *plan.Workload) bool { return boundBy(p, w, boundsDecode) || boundBy(p, w, boundsPrefill) })
	said := map[hcl.Range]bool{}
	for _, w := range p.Workloads {
		if !said[w.Range] { // for another instance of the same for_each
			diags = append(diags, unbounded(p, w, gates)...)
		}
		said[w.Range] = true
	}
	return diags
}

// unbounded warns of a workload if nothing bounds the time of its prefill, or of its decoding. gates
// reports whether some workload of the plan has a bound on either.
func unbounded(p *plan.Plan, w *plan.Workload, gates bool) hcl.Diagnostics {
	decode, prefill := boundBy(p, w, boundsDecode), boundBy(p, w, boundsPrefill)
	bounds := `ttft and speed, such as ttft = "p95 < 2s" and speed = "mean > 20 tok/s"`
	if w.API.Embeds() { // embeddings are all prefill
		bounds = `e2e or input_throughput, such as e2e = "p95 < 2s"`
		decode = decode || prefill
		prefill = decode
	}
	warn := func(summary, format string, args ...any) hcl.Diagnostics {
		return hcl.Diagnostics{{Severity: hcl.DiagWarning, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: w.Range.Ptr()}}
	}
	switch {
	case decode && prefill || len(w.SLAs) == 0:
		return nil
	case !decode && !prefill && gates:
		// This workload only requires that requests succeed. Another workload of the plan bounds
		// speed.
		return nil
	case prefill:
		return warn("Nothing bounds decoding", `A server that writes its answers ten times slower would pass workload.%s. Bound speed, tpot, itl, e2e or throughput, such as speed = "mean > 20 tok/s"; `+"`tokgate strength`"+` shows what is noticed.`, w.Address())
	case decode:
		return warn("Nothing bounds prefill", `A server that reads its prompts ten times slower could pass workload.%s. Bound ttft, e2e or input_throughput, such as ttft = "p95 < 2s"; `+"`tokgate strength`"+` shows what is noticed.`, w.Address())
	}
	return warn("Nothing bounds speed", `A server that is ten times slower would pass workload.%s. Bound %s.`, w.Address(), bounds)
}

// leastSuccess is the smallest share of requests that a plan may require to succeed without a
// warning.
const leastSuccess = 0.95

// lenient warns of thresholds on success that let a server refuse many requests.
func lenient(p *plan.Plan) hcl.Diagnostics {
	var diags hcl.Diagnostics
	said := map[hcl.Range]bool{}
	for _, w := range p.Workloads {
		for _, s := range w.SLAs {
			for _, t := range s.Thresholds {
				if t.Metric.Name != "success" || t.Op == "" || t.Limit >= leastSuccess || s.Severity == plan.SeverityWarn || said[t.Range] {
					continue
				}
				said[t.Range] = true
				diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: "Many requests may fail", Subject: t.Range.Ptr(),
					Detail: fmt.Sprintf("success %s lets a server refuse %s of the requests of workload.%s and still meet its other thresholds. Without it, at most 2%% may fail. Require at least %s, unless the load is meant to be too much.",
						t.Text, metric.Format(metric.Ratio, t.Allowed()), w.Address(), metric.Format(metric.Ratio, leastSuccess))})
			}
		}
	}
	return diags
}

// speedAlone warns of comparisons of embeddings that do not compare the vectors.
func speedAlone(p *plan.Plan) (diags hcl.Diagnostics) {
	said := map[hcl.Range]bool{}
	for _, c := range p.Compares {
		i := slices.IndexFunc(c.Workloads(p), func(w *plan.Workload) bool { return w.API.Embeds() })
		if i < 0 || c.Answers != nil || said[c.Range] {
			continue
		}
		said[c.Range] = true
		add := "Add answers {} to it, which compares the vectors of both servers for the same inputs."
		if c.Control.Baseline != "" {
			add = "answers {} compares vectors, but needs a control that is a server."
		}
		diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: "Vectors are not compared", Subject: &c.Range,
			Detail: fmt.Sprintf("compare.%s compares how fast the embeddings of workload.%s come, so other vectors would pass, as of another model. %s",
				c.Name, c.Workloads(p)[i].Address(), add)})
	}
	return diags
}

func requiresNothing(c *plan.Compare) bool { return len(c.Claims) == 0 && c.Answers == nil }

// leftOut reports whether a comparison is left out for another reason than withoutBase warns of.
func leftOut(c *plan.Compare) bool { return c.Skip != "" && c.BaseMissing == "" }

// withoutBase warns of each comparison whose plan or server the base branch lacks, and says what it
// decides.
func withoutBase(p *plan.Plan) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, c := range p.Compares {
		means := ""
		switch {
		case c.BaseMissing == "":
			continue
		case c.BaseMissing == plan.BaseMissingFail:
			means = "A run fails, because base-missing is fail."
		case c.BaseMissing == plan.BaseMissingPass:
			means = "A run can pass without it, because base-missing is pass."
		case p.Requires():
			means = "Only the other requirements of the plan decide a run."
		default:
			means = "Nothing else is required, so a run is inconclusive. Add an sla block, or --base-missing=pass."
		}
		diags = append(diags, &hcl.Diagnostic{
			Severity: hcl.DiagWarning, Summary: "Nothing to compare with", Subject: &c.Range,
			Detail: fmt.Sprintf("compare.%s compares nothing: %s. %s", c.Name, c.Skip, means),
		})
	}
	return diags
}

func boundBy(p *plan.Plan, w *plan.Workload, metrics []string) bool {
	for _, s := range w.SLAs {
		if s.Severity == plan.SeverityError && (len(s.At) > 0 || w.Capacity != nil && w.Capacity.Require > 0) &&
			slices.ContainsFunc(s.Thresholds, func(t *plan.Threshold) bool { return slices.Contains(metrics, t.Metric.Name) }) {
			return true
		}
	}
	for _, c := range p.Compares {
		for _, claim := range c.Claims {
			if claim.MustHold() && slices.Contains(claim.Workloads, w) &&
				slices.ContainsFunc(claim.Changes, func(x *plan.ChangeBound) bool { return slices.Contains(metrics, x.Metric.Name) }) {
				return true
			}
		}
	}
	return false
}
