package decode

import (
	"slices"
	"time"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

func readUsers(b *body, l *plan.Load, _ *preset) {
	l.People = &plan.People{Warmup: readOpenWarmup(b)}
	b.bind(l.People)
	addCounts(b, l, "users")
	length, ok := b.duration("duration")
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
}

func readTurns(p *body) (turns traffic.Turns) {
	if !p.given("turns") {
		return turns
	}
	o := p.object("turns")
	if o == nil {
		return turns
	}
	o.bind(&turns)
	if o.bare {
		turns.Mean = float64(turns.Max)
	}
	if n := float64(turns.Max); turns.Mean > 0 && n > 0 && turns.Mean > (n+1)/2 && turns.Mean != n {
		p.d.errorf(o.rng, sumOutOfRange, "turns.mean must be from 1 to (max + 1) / 2, because turns are drawn from a geometric distribution. For a fixed number write turns = %d.", turns.Max)
		return traffic.Turns{}
	}
	return turns
}

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
