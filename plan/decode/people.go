package decode

import (
	"slices"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

// notOfUsers lists the attributes of a load block that do not apply to a load of users.
var notOfUsers = map[string]string{
	"requests": "Set duration instead of requests. The number of messages that users send depends on how fast the server answers.",
	"bursts":   "`bursts` applies only to a load with `burst`. Remove it. For users, set `duration` instead.",
	"stagger":  "stagger applies only to a closed loop. Remove it. For users, ramp_up sets how long it takes until all have started.",
	"pause":    "pause applies only to a closed loop. Remove it. For users, think_time is the time between messages.",
}

// readUsers reads a load of users.
func readUsers(b *body, l *plan.Load) {
	refuseOpen(b)
	for name, why := range notOfUsers {
		if b.given(name) {
			b.d.errorf(b.attrs[name].NameRange, sumConflict, "%s", why)
		}
	}
	l.People = &plan.People{Warmup: readOpenWarmup(b)}
	b.bind(l.People)
	l.Levels = readLevels(b, "users", metric.Users)
	length, ok := b.duration("duration", time.Second, time.Duration(maxDuration))
	if !ok {
		length = plan.DefaultOpenSeconds * time.Second
		if !b.given("duration") {
			b.note("duration", `"`+plan.PlainDuration(length)+`"`, "")
		}
	}
	l.People.Window = length
	for i := range l.Levels {
		l.People.Part(&l.Levels[i])
	}
	b.bind(l)
}

// thinkKeys lists the keys of think_time.
var thinkKeys = []string{"mean", "cv"}

// readThink reads think_time, which is a duration such as "20s", or { mean = "20s", cv = 1 }.
func readThink(b *body, l *plan.Load) {
	const name = "think_time"
	if !b.given(name) {
		return
	}
	if !l.Kind.Windowed() {
		b.d.errorf(b.attrs[name].NameRange, sumConflict, "think_time applies only to users, and to a rate with turns. For a closed loop set pause.")
		return
	}
	v, ok := b.value(name)
	rng := b.rangeOf(name)
	if !ok || b.isUnknown(rng, name, v) {
		return
	}
	if !v.Type().IsObjectType() && !v.Type().IsMapType() {
		l.Think.Mean, _ = b.asDuration(rng, name, v, 0, time.Duration(day))
		return
	}
	set := settings(b, name, v, thinkKeys)
	if _, ok := set["mean"]; !ok {
		b.d.errorf(rng, sumMissing, "%s needs mean.", name)
		return
	}
	l.Think.Mean, _ = b.asDuration(rng, name+".mean", set["mean"], 0, time.Duration(day))
	if cv, ok := set["cv"]; ok {
		if cv.Type() != cty.Number {
			b.wrongType(rng, name+".cv", "a number", cv)
			return
		}
		if l.Think.CV, _ = cv.AsBigFloat().Float64(); !(l.Think.CV >= 0 && l.Think.CV <= 10) {
			b.d.errorf(rng, sumOutOfRange, "%s.cv must be from 0 to 10.", name)
		}
	}
}

// turnKeys lists the keys of turns.
var turnKeys = []string{"mean", "max"}

// mostTurns is the largest number of turns of a conversation.
const mostTurns = 1000

// readTurns reads the number of turns of a conversation: 6, or { mean = 6, max = 20 }.
func readTurns(p *body, w *plan.Workload) traffic.Turns {
	const name = "turns"
	if !p.given(name) {
		return traffic.Turns{}
	}
	v, ok := p.value(name)
	rng := p.rangeOf(name)
	if !ok || p.isUnknown(rng, name, v) {
		return traffic.Turns{}
	}
	if w.API != plan.Chat {
		p.d.errorf(rng, sumConflict, `turns need api = "chat".`)
	}
	if !v.Type().IsObjectType() && !v.Type().IsMapType() {
		n, _ := p.asInteger(rng, name, v, 1, mostTurns)
		return traffic.Turns{Mean: float64(n), Max: int(n)}
	}
	set := settings(p, name, v, turnKeys)
	mean, ok := set["mean"]
	most, ok2 := set["max"]
	if !ok || !ok2 {
		p.d.errorf(rng, sumMissing, "%s needs mean and max: { mean = 6, max = 20 }.", name)
		return traffic.Turns{}
	}
	n, ok := p.asInteger(rng, name+".max", most, 1, mostTurns)
	if !ok {
		return traffic.Turns{}
	}
	if mean.Type() != cty.Number {
		p.wrongType(rng, name+".mean", "a number", mean)
		return traffic.Turns{}
	}
	out := traffic.Turns{Max: int(n)}
	out.Mean, _ = mean.AsBigFloat().Float64()
	if !(out.Mean >= 1 && (out.Mean <= float64(n+1)/2 || out.Mean == float64(n))) {
		p.d.errorf(rng, sumOutOfRange, "%s.mean must be from 1 to (max + 1) / 2, because turns are drawn from a geometric distribution. For a fixed number write turns = %d.", name, n)
		return traffic.Turns{}
	}
	return out
}

// checkTurns reports an error for conversations in a load that cannot have them. A thinking time
// needs conversations too.
func (d *decoder) checkTurns(w *plan.Workload) {
	for _, l := range w.Loads {
		if w.Prompt.Turns.Several() && !l.Kind.Windowed() {
			d.errorf(l.Range, sumConflict, `workload.%s has conversations (turns), which need users or a rate. Write users = [50], or rate = ["4 req/s"] for four new conversations per second.`, w.Address())
		}
		if w.Prompt.Turns.Several() && slices.ContainsFunc(l.Levels, func(l plan.Level) bool { return l.Stage != nil }) {
			d.errorf(l.Range, sumConflict, "Stages send single requests, but workload.%s has conversations (turns), which may last longer than a stage. Use a rate without stages.", w.Address())
		}
		if l.Kind == metric.OpenLoop && l.Think.Mean > 0 && !w.Prompt.Turns.Several() {
			d.errorf(l.Range, sumConflict, "With a rate, think_time is the time between two turns, but workload.%s has no turns. Add prompt { turns = 6 }, or remove think_time.", w.Address())
		}
	}
	if c := w.Capacity; c != nil && c.Over != metric.Users && w.Prompt.Turns.Several() {
		d.errorf(c.Range, sumConflict, `A search over %s sends single requests, but workload.%s has conversations (turns). Write over = "users".`, c.Over.Searched(), w.Address())
	}
}
