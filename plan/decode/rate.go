package decode

import (
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// ofRates lists the attributes of a load block that are allowed only for a rate.
var ofRates = []string{"arrivals", "burstiness", "max_in_flight"}

// notOfRates explains why some attributes of a load block do not apply to a rate.
var notOfRates = map[string]string{
	"bursts":  "`bursts` applies only to a load with `burst`. Remove it. For a rate, set `duration` or `requests` instead.",
	"stagger": "stagger applies only to a closed loop. Remove it. For a rate, `arrivals` sets how requests follow each other.",
	"pause":   "pause applies only to a closed loop. Remove it. For more time between requests lower the rate.",
}

// refuseOpen refuses attributes of rates in a load block without a rate.
func refuseOpen(b *body) {
	for _, name := range ofRates {
		if b.given(name) {
			b.d.errorf(b.attrs[name].NameRange, sumConflict, `%s applies only to a rate. Remove it, or write rate = ["4 req/s"].`, name)
		}
	}
}

// readOpen reads a load block with a rate.
func readOpen(b *body, l *plan.Load, p *preset) {
	for name, why := range notOfRates {
		if b.given(name) {
			b.d.errorf(b.attrs[name].NameRange, sumConflict, "%s", why)
		}
	}
	l.Open = &plan.Open{Warmup: readOpenWarmup(b)}
	b.bind(l.Open)
	if gamma := l.Open.Arrivals == plan.Gamma; gamma != b.given("burstiness") {
		if gamma {
			b.d.errorf(b.rangeOf("arrivals"), sumMissing, `arrivals = "gamma" needs burstiness, such as 0.5. (1 is the same as "poisson".)`)
		} else {
			b.d.errorf(b.attrs["burstiness"].NameRange, sumConflict, `burstiness applies only to arrivals = "gamma". Remove it, or write arrivals = "gamma".`)
		}
	}
	if b.given("burstiness") && !(l.Open.Burstiness >= leastBurstiness) && !b.d.diags.HasErrors() {
		b.d.errorf(b.rangeOf("burstiness"), sumOutOfRange, "burstiness must be from %v to 1000.", leastBurstiness)
	}
	if len(b.blocks["stage"]) > 0 {
		readStages(b, l)
		return
	}
	l.Levels = readRates(b)
	readArrivals(b, l, p)
}

// leastBurstiness is the smallest burstiness that a plan may set. At lower values nearly all
// requests would arrive at once.
const leastBurstiness = 0.05

// maxRate and leastRate are the highest and the lowest rate that a plan may set, in requests per
// second. At the lowest rate a level of a few requests takes less than a day.
const (
	maxRate   = 100_000
	leastRate = 0.001
)

// readRates reads the levels of a load block that has rates.
func readRates(b *body) []plan.Level {
	var levels []plan.Level
	elements := b.list("rate")
	if len(elements) == 0 {
		b.d.errorf(b.rangeOf("rate"), sumLoadShape, `rate is an empty list. Write at least one level, such as rate = ["4 req/s"].`)
	}
	for _, e := range elements {
		rate, ok := b.asRate(e.rng, "rate", e.value)
		if !ok {
			continue
		}
		if b.d.levels++; b.d.levels > maxLevels {
			b.d.errorf(b.rng, sumTooManyInstances, "A plan has at most %d levels.", maxLevels)
			return levels
		}
		levels = append(levels, plan.Level{Name: plan.RateName(rate), Rate: rate, Rounds: 1, Range: e.rng})
	}
	return levels
}

// asRate reads "4 req/s" or "240 req/min" and returns requests per second.
func (b *body) asRate(rng hcl.Range, name string, v cty.Value) (float64, bool) {
	switch {
	case b.isUnknown(rng, name, v):
		return 0, false
	case v.IsNull() || v.Type() != cty.Number && v.Type() != cty.String:
		b.wrongType(rng, name, `a rate such as "4 req/s"`, v)
		return 0, false
	case v.Type() == cty.Number:
		b.d.errorf(rng, sumMissingUnit, `%s needs a unit: "%s req/s".`, name, v.AsBigFloat().Text('g', 6))
		return 0, false
	}
	rate, p := parseRate(name, v.AsString())
	if p != nil && p.summary != sumOutOfRange {
		b.d.errorf(rng, p.summary, "%s", p.detail)
		return 0, false
	}
	if p != nil || rate < leastRate || rate > maxRate {
		b.d.errorf(rng, sumOutOfRange, "%s must be from %v to %d req/s.", name, leastRate, maxRate)
		return 0, false
	}
	return rate, true
}

// parseRate reads a rate in any unit, and returns requests per second.
func parseRate(name, text string) (float64, *problem) {
	return parseLimit(strings.TrimSpace(text), metric.PerSecond, metric.Def{Name: name, Unit: metric.PerSecond})
}

// readArrivals sets how many requests to measure at each level with a rate. The plan gives this
// number, or a duration.
func readArrivals(b *body, l *plan.Load, p *preset) {
	if b.given("duration") && b.given("requests") {
		b.d.errorf(b.attrs["requests"].NameRange, sumConflict, "A rate has either a duration or a number of requests. Remove one of them.")
		return
	}
	if b.given("requests") {
		n, ok := b.integer("requests", 1, maxCount)
		for i := range l.Levels {
			if ok {
				l.Levels[i].Requests = int(n)
				l.Levels[i].Part()
			}
		}
		return
	}
	length, ok := b.duration("duration", time.Second, 24*time.Hour)
	given := ok
	if !ok {
		length = plan.DefaultOpenSeconds * time.Second
		if b.given("duration") {
			return // the duration is wrong, and the error was already reported
		}
		b.note("duration", fmt.Sprintf("%q", plan.PlainDuration(length)), "")
	}
	for i := range l.Levels {
		level := &l.Levels[i]
		level.Over(length)
		if n := p.requests(); !given && level.Requests < n {
			level.Requests = n
			level.Part()
		}
		if level.Requests > maxCount {
			b.d.errorf(level.Range, sumOutOfRange, "The level %s would send more than %d requests. Lower the rate or the duration.", level.Name, maxCount)
			level.Requests = maxCount
		}
	}
}

// readOpenWarmup reads the warm-up of a load with a rate.
func readOpenWarmup(b *body) time.Duration {
	v, ok := b.value("warmup")
	if !ok || isAuto(v) {
		return plan.OpenWarmupAuto
	}
	if v.Type() == cty.Number {
		b.d.errorf(b.rangeOf("warmup"), sumWrongType, `The warm-up of a rate is a duration such as "30s", or "auto".`)
		return plan.OpenWarmupAuto
	}
	d, ok := b.asDuration(b.rangeOf("warmup"), "warmup", v, 0, time.Hour)
	if !ok {
		return plan.OpenWarmupAuto
	}
	return d
}

// levelName returns the name of a level in its standard form. For example, "240 req/min" becomes "4
// req/s".
func levelName(text string) string {
	if rate, p := parseRate("rate", text); p == nil {
		return plan.RateName(rate)
	}
	return text
}
