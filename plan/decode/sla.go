package decode

import (
	"math"
	"strconv"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// slas reads the sla blocks of a workload and what its preset requires of the
// metrics that they do not bound.
func (b *body) slas(w *plan.Workload, p *preset) {
	levels := levelIndex(w)
	bounded := map[string][]*plan.SLA{}
	for i, blk := range b.blocksOf("sla") {
		path := b.path + ".sla"
		if len(b.blocksOf("sla")) > 1 {
			path += "[" + strconv.Itoa(i) + "]"
		}
		s := b.d.open(slaBlock, blk, b.scope, path)
		sla := s.sla(w, levels)
		for _, t := range sla.Thresholds {
			bounded[t.Metric.Name] = append(bounded[t.Metric.Name], sla)
		}
		// Every threshold may be null: then there is nothing to judge.
		if len(sla.Thresholds) > 0 {
			w.SLAs = append(w.SLAs, sla)
		}
	}
	if p != nil {
		b.presetSLA(w, p, levels, bounded)
	}
}

func (b *body) sla(w *plan.Workload, levels levelSet) *plan.SLA {
	sla := &plan.SLA{Range: b.rng}
	sla.At = b.at(sla, levels, w.Capacity != nil)
	b.bind(sla)
	sla.Thresholds = b.thresholds(false)
	if len(sla.Thresholds) == 0 && !b.later && !b.stray && !b.anyMetric() {
		b.d.errorf(b.rng, sumEmptySLA, `An sla block needs a threshold, such as ttft = "p95 < 2s".`)
	}
	for _, t := range sla.Thresholds {
		b.d.betterHalf(t)
		switch t.Metric.Name {
		case "goodput":
			if len(w.Good) == 0 {
				b.d.errorf(t.Range, sumNoGood, `goodput counts good requests; workload.%s has no good block that says what one is: good { ttft = "< 2s" }.`, w.Address())
			}
		case "scaling_efficiency":
			if !levels.have["1"] {
				b.d.errorf(t.Range, sumNoLevelOne, "scaling_efficiency compares with concurrency 1, which workload.%s does not run: add it to concurrency.", w.Address())
			}
		}
	}
	return sla
}

// betterHalf warns of a threshold that the worse requests may miss: "p95 > 40
// tok/s" of a speed asks it of the fastest 5% alone.
func (d *decoder) betterHalf(t *plan.Threshold) {
	higher := t.Metric.Better == metric.HigherIsBetter
	switch {
	case t.Metric.Scope != metric.PerRequest && t.Metric.Scope != metric.PerGap || t.Metric.Better == metric.Neutral:
	case t.Stat.Kind == metric.Percentile && higher && t.Stat.P > 50, t.Stat.Kind == metric.Percentile && !higher && t.Stat.P < 50:
		// 100 − 99.9 is 0.0999….
		other := metric.Stat{Kind: metric.Percentile, P: math.Round((100-t.Stat.P)*1000) / 1000}
		share := other.P
		if !higher {
			share = t.Stat.P
		}
		d.warnf(t.Range, sumBetterHalf, "%s of %s is met when %v%% of the requests do; what all but %v%% of them reach is %s.", t.Stat, t.Metric.Name, share, share, other)
	case t.Stat.Kind == metric.Max && higher:
		d.warnf(t.Range, sumBetterHalf, "max of %s is met when a single request does; what all of them reach is min, or every.", t.Metric.Name)
	case t.Stat.Kind == metric.Min && !higher:
		d.warnf(t.Range, sumBetterHalf, "min of %s is met when a single request does; what all of them stay below is max, or every.", t.Metric.Name)
	}
}
