package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

type builder struct {
	run      *metric.Run
	declared *plan.Plan // the plan; nil if it is not available
	redact   *strings.Replacer
}

// redactor returns a replacer of the plan's secrets. It leaves out secrets below four bytes: they
// protect nothing, and replacing them would damage numbers and words.
func redactor(p *plan.Plan, with string) *strings.Replacer {
	if p == nil {
		return strings.NewReplacer()
	}
	with = cmp.Or(with, "[redacted]")
	// Sort the longest secret first. If a secret begins with a shorter one, it must be removed as a
	// whole.
	secrets := slices.Clone(p.Secrets)
	slices.SortStableFunc(secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, s := range secrets {
		if len(s) >= 4 {
			pairs = append(pairs, s, with)
		}
	}
	return strings.NewReplacer(pairs...)
}

// clean makes text from outside valid UTF-8 and removes the plan's secrets. Each output escapes the
// text for its own format.
func (b *builder) clean(s string) string {
	return strings.ToValidUTF8(b.redact.Replace(s), "\uFFFD")
}

// cleanAll returns the cleaned texts; never nil.
func (b *builder) cleanAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = b.clean(s)
	}
	return out
}

func direction(d metric.Direction) string {
	switch d {
	case metric.LowerIsBetter:
		return "lower"
	case metric.HigherIsBetter:
		return "higher"
	}
	return "neutral"
}

// workloadAt returns the plan's workload with the given address; nil if there is no such workload.
func (b *builder) workloadAt(address string) *plan.Workload {
	if b.declared != nil {
		for _, w := range b.declared.Workloads {
			if w.Address() == address {
				return w
			}
		}
	}
	return nil
}

// window returns the part of a round in which the workload's rates are computed.
func (b *builder) window(workload string) metric.Window {
	if w := b.workloadAt(workload); w != nil {
		return cmp.Or(w.Policy.Window, metric.Steady)
	}
	return metric.Steady
}

// levelValue returns the value of a metric of the whole level. The plan says which requests are
// good.
func (b *builder) levelValue(def metric.Def, l *metric.Level) metric.Value {
	var good func(*metric.Sample) bool
	if w := b.workloadAt(l.Workload); w != nil {
		good = sample.Good(w)
	} else if b.declared == nil && def.Name == "goodput" {
		return metric.None("the plan, which defines good requests, is not available")
	}
	var one *metric.Level
	for _, x := range b.run.Levels {
		if x.Server == l.Server && x.Workload == l.Workload && x.Kind == metric.ClosedLoop && x.N == 1 {
			one = x
		}
	}
	if def.Source == metric.Prices {
		if b.declared == nil {
			return metric.None("the plan, which has the prices, is not available")
		}
		return l.Cost(def.Name, b.declared.PriceOf(l.Server), l.Windows(b.window(l.Workload)))
	}
	return l.Value(def.Name, b.window(l.Workload), good, one)
}
