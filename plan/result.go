package plan

import (
	"maps"
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/metric"
)

// A result also has the percentiles that an assert of the plan names.
var resultStats = []string{"mean", "min", "max", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99"}

var readingStats = []string{"mean", "min", "max"}

// acceptRateAt names a result: the acceptance rates of draft tokens, a list with one number for
// each draft position.
const acceptRateAt = "accept_rate_at"

// ResultNames are the results of a level that are no metrics.
var ResultNames = append([]string{acceptRateAt}, resultCounts...)

var resultCounts = []string{
	"requests",      // that were due
	"completed",     // of them
	"failed",        // of them
	"goodput_share", // share of good requests among those that were due, from 0 to 1
}

// ResultType is the type of result in an assert:
//
//	result.SERVER.WORKLOAD.level[N].METRIC.STATISTIC   number, in base units
//	result.SERVER.WORKLOAD.level[N].METRIC             number, of a level-wide metric
//	result.SERVER.WORKLOAD.level[N].requests           likewise completed, failed, goodput_share
//	result.SERVER.WORKLOAD.level[N].accept_rate_at     list of numbers, by draft position
//
// SERVER and WORKLOAD are a name, or name["key"] under for_each. A level name that is no number is
// quoted: level["burst 8"]. Statistics are mean, min, max, p1, p5, p10, p25, p50, p75, p90, p95,
// p99 and every other percentile that an assert of the plan names, such as ["p99.9"]. A value that
// does not exist is null, so a condition on it is an error and never holds.
func ResultType(p *Plan) cty.Type { return UnknownResult(p).Type() }

// UnknownResult is a value of type ResultType in which all numbers are unknown. Evaluating a
// condition on it finds wrong names, even inside a for expression.
func UnknownResult(p *Plan) cty.Value {
	level := unknownLevelValue(p)
	servers := instances{}
	for _, s := range p.Servers {
		workloads := instances{}
		for _, w := range p.Workloads {
			if !slices.Contains(w.Servers, s) {
				continue
			}
			levels := map[string]cty.Value{}
			for _, lv := range w.Levels() {
				levels[lv.Name] = level
			}
			workloads.put(w.Name, w.Key, cty.ObjectVal(map[string]cty.Value{"level": cty.ObjectVal(levels)}))
		}
		servers.put(s.Name, s.Key, workloads.value())
	}
	return servers.value()
}

// instances holds values by name and by for_each key. The key is "" without for_each.
type instances map[string]map[string]cty.Value

func (in instances) put(name, key string, v cty.Value) {
	if in[name] == nil {
		in[name] = map[string]cty.Value{}
	}
	in[name][key] = v
}

func (in instances) value() cty.Value {
	all := map[string]cty.Value{}
	for name, byKey := range in {
		if single, ok := byKey[""]; ok {
			all[name] = single
		} else {
			all[name] = cty.ObjectVal(byKey)
		}
	}
	return cty.ObjectVal(all)
}

func unknownLevelValue(p *Plan) cty.Value {
	number := cty.UnknownVal(cty.Number)
	stats := map[string]cty.Value{}
	for _, s := range append(namedPercentiles(p), resultStats...) {
		stats[s] = number
	}
	perRequest := cty.ObjectVal(stats)
	counted := map[string]cty.Value{}
	for name := range stats {
		if name != "min" && name != "max" {
			counted[name] = number
		}
	}
	read := map[string]cty.Value{}
	for _, s := range readingStats {
		read[s] = number
	}
	attrs := map[string]cty.Value{}
	for _, d := range slices.Concat(metric.Defs, p.Queried()) {
		switch {
		case d.Scope == metric.PerLevel:
			attrs[d.Name] = number
		case d.Scope == metric.Counted:
			attrs[d.Name] = cty.ObjectVal(counted)
		case d.Scope == metric.PerReading:
			attrs[d.Name] = cty.ObjectVal(read)
		default:
			attrs[d.Name] = perRequest
		}
	}
	attrs[acceptRateAt] = cty.UnknownVal(cty.List(number.Type()))
	for _, c := range resultCounts {
		attrs[c] = number
	}
	return cty.ObjectVal(attrs)
}

func namedPercentiles(p *Plan) []string {
	found := map[string]bool{}
	for _, a := range p.Asserts {
		for _, expr := range []hcl.Expression{a.Condition, a.ErrorMessage} {
			for _, t := range expr.Variables() {
				if t.RootName() != "result" {
					continue
				}
				for i := range t[1:] {
					name := StepName(t, i+1)
					if s, err := metric.ParseStat(name); err == nil && s.Kind == metric.Percentile && s.String() == name {
						found[name] = true
					}
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// StepName returns the name or the constant index of step i; "" for any other step.
func StepName(t hcl.Traversal, i int) string {
	if i >= len(t) {
		return ""
	}
	switch s := t[i].(type) {
	case hcl.TraverseAttr:
		return s.Name
	case hcl.TraverseIndex:
		switch {
		case s.Key.IsNull() || !s.Key.IsKnown():
		case s.Key.Type() == cty.String:
			return s.Key.AsString()
		case s.Key.Type() == cty.Number:
			if n, ok := WholeNumber(s.Key); ok {
				return strconv.FormatInt(n, 10)
			}
		}
	}
	return ""
}

// WholeNumber returns v as an integer. It returns false if v is not an integer.
func WholeNumber(v cty.Value) (int64, bool) {
	f := v.AsBigFloat()
	if !f.IsInt() {
		return 0, false
	}
	n, accuracy := f.Int64()
	return n, accuracy == 0
}

// Queried returns the definitions of all series of the plan's servers.
func (p *Plan) Queried() (out []metric.Def) {
	for _, s := range p.Servers {
		for _, d := range s.Telemetry.Prometheus.Defs() {
			if !slices.ContainsFunc(out, func(x metric.Def) bool { return x.Name == d.Name }) {
				out = append(out, d)
			}
		}
	}
	return out
}

// Metric returns the definition of a metric, or of a series of the plan's servers.
func (p *Plan) Metric(name string) (metric.Def, bool) {
	queried := p.Queried()
	if i := slices.IndexFunc(queried, func(d metric.Def) bool { return d.Name == name }); i >= 0 {
		return queried[i], true
	}
	return metric.Lookup(name)
}
