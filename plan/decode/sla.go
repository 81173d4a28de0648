package decode

import (
	"fmt"
	"math"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// readSLAs reads the sla blocks of a workload. On metrics without a threshold there, it adds the
// thresholds of the preset.
func readSLAs(b *body, w *plan.Workload, p *preset) {
	levels := levelsOf(w)
	levels.stray = b.stray
	bounded := map[string][]*plan.SLA{}
	for _, s := range b.children("sla") {
		sla := readSLA(s, w, levels)
		for _, t := range sla.Thresholds {
			name := t.Metric.Name
			if name == "request_speed" {
				name = "speed" // published reports average the metric speed
			}
			bounded[name] = append(bounded[name], sla)
		}
		// An sla block whose thresholds are all null has nothing to judge.
		if len(sla.Thresholds) > 0 {
			w.SLAs = append(w.SLAs, sla)
		}
	}
	if p != nil {
		addPresetSLA(b, w, p, levels, bounded)
	}
}

func readSLA(b *body, w *plan.Workload, levels levelSet) *plan.SLA {
	sla := &plan.SLA{Range: b.rng}
	sla.At = readAt(b, sla, w, levels)
	b.bind(sla)
	sla.Thresholds = readThresholds(b, false)
	if len(sla.Thresholds) == 0 && !b.stray && !b.anyMetric() {
		b.d.errorf(b.rng, sumEmptySLA, `An sla block needs a threshold, such as ttft = "p95 < 2s".`)
	}
	for _, t := range sla.Thresholds {
		b.d.betterHalf(t)
		if p := lacks(w, t.Metric); p != nil && !(p.summary == sumNoLevelOne && b.d.isLoadless(w)) {
			b.d.errorf(t.Range, p.summary, "%s", p.detail)
		}
	}
	return sla
}

// betterHalf warns of a percentile that only limits the better requests. For example, "p95 > 40
// tok/s" requires this speed only of the fastest 5 %.
func (d *decoder) betterHalf(t *plan.Threshold) {
	higher := t.Metric.Better == metric.HigherIsBetter
	switch {
	case t.Metric.Scope != metric.PerRequest && t.Metric.Scope != metric.PerGap || t.Metric.Better == metric.Neutral:
	case t.Stat.Kind == metric.Percentile && higher && t.Stat.P > 50, t.Stat.Kind == metric.Percentile && !higher && t.Stat.P < 50:
		// Round, because 100 − 99.9 is 0.0999… in binary.
		other := metric.Stat{Kind: metric.Percentile, P: math.Round((100-t.Stat.P)*1000) / 1000}
		share := other.P
		if !higher {
			share = t.Stat.P
		}
		d.warnf(t.Range, sumBetterHalf, "%s of %s already holds if only %v%% of the requests meet the limit. To bound all but %v%% of the requests, use %s.", t.Stat, t.Metric.Name, share, share, other)
	case t.Stat.Kind == metric.Max && higher:
		d.warnf(t.Range, sumBetterHalf, "max of %s already holds if a single request reaches the limit. To bound every request, use min or every.", t.Metric.Name)
	case t.Stat.Kind == metric.Min && !higher:
		d.warnf(t.Range, sumBetterHalf, "min of %s already holds if a single request stays below the limit. To bound every request, use max or every.", t.Metric.Name)
	}
}

func readBounds(b *body) []*plan.Threshold {
	out := readThresholds(b, true)
	if len(b.attrs) == 0 && !b.stray {
		b.d.errorf(b.rng, sumEmptySLA, "A `good` block needs a bound, such as ttft = \"< 2s\".")
	}
	return out
}

func readThresholds(b *body, good bool) []*plan.Threshold {
	var out []*plan.Threshold
	for _, attr := range sortedAttributes(b.attrs) {
		def, ok := b.d.out.Metric(attr.Name)
		if !ok {
			continue
		}
		if def.Source == metric.Prices {
			if b.d.out.Prices == nil {
				b.d.errorf(attr.NameRange, sumMissing, "%s needs the price of the server. Add prices { per_hour = 2.5 }.", attr.Name)
				continue
			}
			def.Unit = b.d.out.Prices.Unit(def.Unit)
		}
		b.bounds(attr.Name, "a comparison", example(def, good), func(text string) (string, func(hcl.Range), *problem) {
			t, p := parseThreshold(def, text, good)
			return fmt.Sprintf("with %s %s", t.Stat, t.Op), func(rng hcl.Range) {
				t.Range = rng
				out = append(out, &t)
			}, p
		})
	}
	return out
}

// bounds reads the bounds on one metric. The function read tells what a bound is on, and keeps it.
func (b *body) bounds(name, needs, such string, read func(text string) (on string, keep func(hcl.Range), p *problem)) {
	seen := map[string]bool{}
	for _, e := range b.list(name) {
		if e.unknown() {
			continue
		}
		if e.value.Type() == cty.Number {
			e.errorf(sumMissingUnit, "%s needs %s and a unit: write %s.", name, needs, such)
			continue
		}
		text, ok := e.text()
		if !ok {
			continue
		}
		switch on, keep, p := read(text); {
		case p != nil:
			e.errorf(p.summary, "%s", p.detail)
		case seen[on]:
			e.errorf(sumDuplicateBound, "%s has two bounds %s. Keep the stricter one.", name, on)
		default:
			seen[on] = true
			keep(e.rng)
		}
	}
}

// lacks says what a workload needs so that a metric has a value there; nil if it has it.
func lacks(w *plan.Workload, def metric.Def) *problem {
	lack := func(summary, format string) *problem { return problemf(summary, format, w.Address()) }
	switch {
	case def.Name == capacityDef.Name && w.Capacity == nil:
		return lack(sumNoCapacity, "workload.%s has no capacity block, so tokgate does not measure its capacity. Add capacity { up_to = 64 }.")
	case def.Name == "goodput" && len(w.Good) == 0:
		return lack(sumNoGood, "goodput counts good requests, but workload.%s does not define them. Add a block such as good { ttft = \"< 2s\" }.")
	case def.Name == "accuracy" && w.Score == nil:
		return lack(sumNoScore, "accuracy counts right answers, but workload.%s does not define them. Add a block such as score { match = \"number\" }.")
	case def.Name == "scaling_efficiency" && !levelsOf(w).have["1"]:
		return lack(sumNoLevelOne, "scaling_efficiency compares with the level concurrency = 1, but workload.%s does not have that level. Put 1 in the list, such as concurrency = [1, 8].")
	}
	return nil
}
