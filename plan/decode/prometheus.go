package decode

import (
	"slices"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

func readSeries(b *body, out *plan.Prometheus) {
	for _, s := range b.children("series") {
		def := metric.Def{Name: s.labels[0], Title: s.labels[0], Scope: metric.PerReading, Source: metric.Queried,
			Unit: metric.Unit(s.oneOf("unit")), Doc: "A series of the plan, read from Prometheus.", NoValue: "Prometheus has no sample of it"}
		switch s.oneOf("better") {
		case "lower":
			def.Better = metric.LowerIsBetter
		case "higher":
			def.Better = metric.HigherIsBetter
		}
		if b.d.seriesFits(s, def, out) {
			out.Series = append(out.Series, plan.Query{Def: def, PromQL: s.text("promql")})
		}
	}
}

// seriesFits checks the name of a series. The same series of several servers must be defined alike,
// because one threshold may judge them all.
func (d *decoder) seriesFits(s *body, def metric.Def, beside *plan.Prometheus) bool {
	named := func(x metric.Def) bool { return x.Name == def.Name }
	queried := d.out.Queried()
	i := slices.IndexFunc(queried, named)
	switch {
	case !d.checkName(def.Name, s.rng):
		return false
	case reservedSeries(def.Name):
		d.errorf(s.rng, sumInvalidName, "%s has a meaning of its own in thresholds or results. Give the series another name.", def.Name)
		return false
	case slices.ContainsFunc(beside.Defs(), named):
		d.errorf(s.rng, sumConflict, "The series %s is declared twice. Give one of them another name.", def.Name)
		return false
	case i >= 0 && (queried[i].Unit != def.Unit || queried[i].Better != def.Better):
		d.errorf(s.rng, sumConflict, "The series %s has another unit or direction at another server. Define it alike, or give it another name.", def.Name)
		return false
	}
	return true
}

func reservedSeries(name string) bool {
	_, isMetric := metric.Lookup(name)
	return isMetric || slices.Contains(plan.ResultNames, name) || slaBlock.attr(name) != nil ||
		slices.ContainsFunc(compareBlock.Blocks, func(b *Block) bool { return b.attr(name) != nil })
}
