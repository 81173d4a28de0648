package decode

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

func (d *decoder) checkPlan() {
	if len(d.blocks["server"]) == 0 && len(d.blocks["workload"]) > 0 && !d.misread() {
		d.errorf(d.blocks["workload"][0].DefRange, sumNoServer, `The plan has no server. Add server "NAME" { endpoint { url = "http://127.0.0.1:8000" } }.`)
	}
	d.checkRequires()
	d.checkCompared()
	d.checkResidues()
	if d.diags.HasErrors() {
		// These warnings may be wrong after an error: a name may be unused only because of the
		// error.
		return
	}
	d.checkTime()
	d.checkDrafts()
	for _, name := range slices.Sorted(maps.Keys(d.names["var"])) {
		if v := d.names["var"][name]; !v.used {
			d.warnf(v.rng, sumVariableUnused, "Nothing refers to var.%s.", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.servers)) {
		f := d.servers[name]
		for _, s := range f.members {
			if !slices.ContainsFunc(d.out.Workloads, func(w *plan.Workload) bool { return slices.Contains(w.Servers, s) }) {
				d.warnf(f.rng, sumServerUnused, "No workload runs on server.%s, so it is not started.", s.Address())
			}
		}
	}
}

// checkDrafts warns of thresholds whose values depend on the text of prompts. They do if the server
// decodes speculatively and tokgate makes the prompts.
func (d *decoder) checkDrafts() {
	if d.opts.lenient {
		return
	}
	for _, w := range d.out.Workloads {
		for _, s := range w.Servers {
			drafts := s.Drafts()
			if drafts == "" && s.BuiltIn() && d.opts.Drafts != nil && d.opts.Drafts(s.Simulator.Profile) {
				drafts = "by its profile"
			}
			if drafts == "" || w.Prompt.Dataset != nil {
				continue
			}
			for _, sla := range w.SLAs {
				for _, t := range sla.Thresholds {
					if plan.ByDrafts(t.Metric.Name) {
						d.warnf(t.Range, sumDrafts, `server.%s uses speculative decoding (%s), so its speed depends on the text. tokgate generates prompts of random words, and %s may differ on your traffic. Send your own prompts: prompt { dataset = "prompts.jsonl" }.`, s.Address(), drafts, t.Metric.Name)
					}
				}
			}
		}
	}
}

// checkTime warns of requests with long timeouts in a plan without a budget. A server that never
// ends a request would otherwise run, and cost money, until every request has timed out.
func (d *decoder) checkTime() {
	const long = 6 * time.Hour
	if hanging := d.out.Hanging(); hanging > long && d.out.Gate.Budget == 0 && !d.opts.lenient {
		rng := hcl.Range{Filename: d.opts.Path, Start: hcl.InitialPos, End: hcl.InitialPos}
		if len(d.blocks["workload"]) > 0 {
			rng = d.blocks["workload"][0].DefRange
		}
		d.warnf(rng, sumNoBudget, "If the server accepts requests but never answers, this plan gives up only after %.0f hours. Set gate.budget, or a shorter load.timeout.", hanging.Hours())
	}
}

func (d *decoder) checkRequires() {
	if d.out.Gate.MeasureOnly || len(d.out.Asserts) > 0 || d.opts.lenient {
		return
	}
	for _, w := range d.out.Workloads {
		for _, s := range w.SLAs {
			if s.Severity == plan.SeverityError && len(s.At) > 0 {
				return
			}
		}
		if slices.ContainsFunc(w.Loads, func(l *plan.Load) bool { return l.Kind == metric.OpenLoop }) {
			return // tokgate limits the backlog of every rate, so the plan has a requirement
		}
		if w.Capacity != nil && w.Capacity.Require > 0 || slices.ContainsFunc(d.out.Residuals(w), (*plan.Residue).MustHold) {
			return
		}
	}
	for _, c := range d.out.Compares {
		if c.Answers != nil || slices.ContainsFunc(c.Claims, func(c *plan.Claim) bool { return c.Severity == plan.SeverityError }) {
			return
		}
	}
	if d.diags.HasErrors() && d.meansToRequire() {
		return
	}
	rng := hcl.Range{Filename: d.opts.Path, Start: hcl.InitialPos, End: hcl.InitialPos}
	if len(d.blocks["workload"]) > 0 {
		rng = d.blocks["workload"][0].DefRange
	}
	add := "Add an sla block"
	if slices.ContainsFunc(d.out.Workloads, func(w *plan.Workload) bool { return w.Capacity != nil }) {
		add = "Add require to the capacity block"
	}
	d.errorf(rng, sumRequiresNothing, "This plan would always pass, because no threshold can fail. %s, or write gate { measure_only = true }.", add)
}

// meansToRequire reports whether a plan with errors would require something after they are fixed.
func (d *decoder) meansToRequire() bool {
	if len(d.blocks["assert"])+len(d.blocks["compare"]) > 0 {
		return true
	}
	if d.misread() {
		return true
	}
	schema := &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "preset"}}, Blocks: []hcl.BlockHeaderSchema{{Type: "sla"}, {Type: "capacity"}}}
	return slices.ContainsFunc(d.blocks["workload"], func(b *hcl.Block) bool {
		content, _, _ := b.Body.PartialContent(schema)
		return len(content.Attributes)+len(content.Blocks) > 0
	})
}

// misread reports whether the plan has a block that could not be read. No block can then be called
// missing, because the unread block may be the missing one.
func (d *decoder) misread() bool {
	return slices.ContainsFunc(d.diags, func(diag *hcl.Diagnostic) bool {
		return diag.Summary == hclUnsupportedBlock || strings.HasPrefix(diag.Summary, "Missing name for ")
	})
}

func (d *decoder) checkExtension(w *plan.Workload) {
	if w.Policy.OnInconclusive != plan.Extend || w.Policy.MaxRequests == 0 {
		return
	}
	for l, level := range w.Levels() {
		if level.Requests > w.Policy.MaxRequests {
			d.errorf(l.Range, sumConflict, "The level %s of workload.%s has %d requests, but max_requests allows only %d. Raise max_requests, or set fewer requests.", level.Name, w.Address(), level.Requests, w.Policy.MaxRequests)
			return
		}
	}
}

// The context length is the one that the server's flags set.
func (d *decoder) checkContext(rng hcl.Range, w *plan.Workload) {
	longest := w.Longest()
	if w.Input == 0 || w.Output.Mean == 0 {
		return
	}
	parts := fmt.Sprintf("%d in, up to %d out", w.Input, w.Output.Max())
	if n := w.Prompt.Turns.Max; n > 1 {
		parts += fmt.Sprintf(", in each of up to %d turns", n)
	}
	if n := w.Prompt.System.Tokens; n > 0 {
		parts += fmt.Sprintf(", after %d of system prompt", n)
	}
	for _, s := range w.Servers {
		limit, flag := contextLimit(s)
		if limit == 0 || longest <= limit {
			continue
		}
		d.errorf(rng, sumContextLength, "A request of workload.%s has up to %d tokens (%s), but server.%s allows only %d (%s at %s). Shorten the request, or raise the limit.",
			w.Address(), longest, parts, s.Address(), limit, flag.Name, flag.Range)
	}
}

// contextLimit returns the context length that the server's flags set for one request, in tokens.
// It also returns the flag. The length is 0 if no flag sets it.
func contextLimit(s *plan.Server) (int, plan.Flag) {
	known := engine.Of(s.Engine).Flags
	flag, ok := s.FirstFlag(known.Context)
	if !ok {
		return 0, plan.Flag{}
	}
	limit := tokenCount(flag.Value)
	slots, _ := s.FirstFlag(known.Slots)
	if n := tokenCount(slots.Value); n > 1 && !s.SwitchedOn(known.Unified) {
		limit /= n
	}
	return limit, flag
}

// tokenCount reads a number of tokens, as vLLM does: 32768, "32768", "32k" (32·1000) or "32K"
// (32·1024). It returns 0 for any other value.
func tokenCount(v cty.Value) int {
	if v == cty.NilVal || !v.IsKnown() || v.IsNull() {
		return 0
	}
	switch v.Type() {
	case cty.Number:
		if n, ok := plan.WholeNumber(v); ok && n > 0 && n <= maxTokens {
			return int(n)
		}
	case cty.String:
		s := v.AsString()
		if s == "" {
			return 0
		}
		factor := map[byte]float64{'k': 1e3, 'K': 1 << 10, 'm': 1e6, 'M': 1 << 20}[s[len(s)-1]]
		if factor == 0 {
			factor = 1
		} else {
			s = s[:len(s)-1]
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil && f > 0 && f*factor <= maxTokens {
			return int(f * factor)
		}
	}
	return 0
}
