package decode

import (
	"slices"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// checkAPI refuses what the API of a workload cannot do: to force the length of an answer, or to stream
// one.
func (d *decoder) checkAPI(b *body, w *plan.Workload) {
	for _, s := range w.Servers {
		e := engine.Of(s.Engine)
		if w.Output.Mean > 0 && !w.Output.Natural && !e.Dialect.Forces(w.API) {
			d.errorf(b.rangeOf("output_tokens"), sumConflict, "%s, which is server.%s, cannot force the length of an answer through api = %q: its requests there have neither ignore_eos nor min_tokens. Write output_tokens = { natural = true, max = %d }, or api = \"chat\".",
				e.Title, s.Address(), w.API, w.Output.Mean)
			break
		}
	}
	if !w.API.Embeds() {
		return
	}
	if !b.given("preset") { // whose own thresholds would be named
		for _, sla := range w.SLAs {
			d.checkEmbedded(sla.Thresholds)
		}
	}
	d.checkEmbedded(w.Good)
}

// checkEmbedded refuses thresholds on what embeddings do not have.
func (d *decoder) checkEmbedded(list []*plan.Threshold) {
	for _, t := range list {
		if !t.Metric.OfEmbeddings() {
			d.errorf(t.Range, sumConflict, "%s", ofEmbeddings(t.Metric))
		}
	}
}

func ofEmbeddings(def metric.Def) string {
	return "Embeddings come whole and without output tokens, so " + def.Name + ` has no value with api = "embeddings". Bound e2e, request_rate or input_throughput.`
}

// embeddable refuses a change of what the embeddings among the compared workloads do not have.
func embeddable(b *body, c *plan.Claim, ch *plan.ChangeBound) bool {
	embeds := func(w *plan.Workload) bool { return w.API.Embeds() }
	if ch.Metric.OfEmbeddings() || ch.Metric.Name == capacityDef.Name || !slices.ContainsFunc(c.Workloads, embeds) {
		return true
	}
	if some := slices.ContainsFunc(c.Workloads, func(w *plan.Workload) bool { return !w.API.Embeds() }); some && !b.given("workloads") {
		return true
	}
	b.d.errorf(ch.Range, sumConflict, "%s", ofEmbeddings(ch.Metric))
	return false
}
