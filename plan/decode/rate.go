package decode

import (
	"fmt"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// readRates reads a load with a rate.
func readRates(b *body, l *plan.Load, p *preset) {
	l.Open = readOpen(b)
	addLevels(b, l, "rate", func(e item) (plan.Level, bool) {
		rate, ok := e.rate()
		return plan.Level{Name: plan.RateName(rate), Rate: rate}, ok
	})
	readArrivals(b, l, p)
}

func readOpen(b *body) *plan.Open {
	o := &plan.Open{Warmup: readOpenWarmup(b)}
	b.bind(o)
	return o
}

// rate reads "4 req/s" or "240 req/min" as requests per second, within the attribute's bounds.
func (x item) rate() (float64, bool) {
	switch {
	case x.unknown():
		return 0, false
	case x.value.IsNull() || x.value.Type() != cty.Number && x.value.Type() != cty.String:
		x.wrongType(`a rate such as "4 req/s"`)
		return 0, false
	case x.value.Type() == cty.Number:
		x.errorf(sumMissingUnit, `%s needs a unit: "%s req/s".`, x.name, x.value.AsBigFloat().Text('g', 6))
		return 0, false
	}
	rate, p := parseRate(x.name, x.value.AsString())
	if p != nil && p.summary != sumOutOfRange {
		x.errorf(p.summary, "%s", p.detail)
		return 0, false
	}
	return rate, x.within(rate, func(f float64) string { return fmt.Sprint(f, " req/s") }, "")
}

// parseRate reads a rate in any unit, and returns requests per second.
func parseRate(name, text string) (float64, *problem) {
	return parseLimit(strings.TrimSpace(text), metric.PerSecond, metric.Def{Name: name, Unit: metric.PerSecond})
}

// readArrivals sets how many requests to measure at each level with a rate. The plan gives this
// number, or a duration.
func readArrivals(b *body, l *plan.Load, p *preset) {
	if b.given("requests") {
		n, ok := b.integer("requests")
		for i := range l.Levels {
			if ok {
				l.Levels[i].Requests = n
				l.Levels[i].Part()
			}
		}
		return
	}
	length := plan.DefaultOpenSeconds * time.Second
	given := b.given("duration")
	if given {
		x, ok := b.item("duration")
		if ok {
			length, ok = x.like(stageBlock.attr("duration")).duration()
		}
		if !ok {
			return
		}
	} else {
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
	x, ok := b.item("warmup")
	if !ok || x.auto() {
		return plan.OpenWarmupAuto
	}
	if x.value.Type() == cty.Number {
		x.errorf(sumWrongType, `The warm-up of a rate is a duration such as "30s", or "auto".`)
		return plan.OpenWarmupAuto
	}
	if d, ok := x.like(loadBlock.attr("stagger")).duration(); ok {
		return d
	}
	return plan.OpenWarmupAuto
}

// levelName returns the name of a level in its standard form. For example, "240 req/min" becomes "4
// req/s".
func levelName(text string) string {
	if rate, p := parseRate("rate", text); p == nil {
		return plan.RateName(rate)
	}
	return text
}
