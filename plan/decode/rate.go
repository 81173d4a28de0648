package decode

import (
	"fmt"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/plan"
)

func readRates(b *body, l *plan.Load, p *preset) {
	l.Open = readOpen(b)
	l.Open.Unsaturated = !b.boolean("saturate")
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
