package decode

import (
	"regexp"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

var ofStages = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// No stage may have such a name.
var taken = map[string]bool{"capacity": true, "trace": true, "probe": true, "burst": true, metric.SaturationName: true}

func readStages(b *body, l *plan.Load, _ *preset) {
	l.Open = readOpen(b)
	if !l.Seeded {
		l.Seeds = l.Seeds[:min(plan.StagePasses, len(l.Seeds))]
	}
	for _, s := range b.children("stage") {
		name, rng := s.labels[0], s.rng
		if !ofStages.MatchString(name) || taken[name] {
			s.d.errorf(rng, sumOutOfRange, "The name of a stage begins with a letter, and has only letters, digits, - and _. These names are reserved: capacity, trace, probe, burst, saturation.")
		}
		stage, ok := readStageRate(s)
		length, timed := s.duration("duration")
		if !ok || !timed || !s.d.countLevel(s.rng) {
			continue
		}
		level := plan.Level{Name: name, Rate: (stage.From + stage.To) / 2, Rounds: len(l.Seeds), Stage: &stage, Range: rng}
		each := max(1, int(level.Rate*length.Seconds()+0.5))
		if level.Requests = each * level.Rounds; level.Requests > maxCount {
			s.d.errorf(rng, sumOutOfRange, "The stage %s would send more than %d requests. Lower its rate or its duration.", name, maxCount)
			continue
		}
		l.Levels = append(l.Levels, level)
	}
}

func readStageRate(b *body) (out metric.Stage, ok bool) {
	o := b.object("rate")
	if o == nil {
		return out, false
	}
	if out.From, ok = get(o, "from", item.rate); !ok || o.bare {
		out.To = out.From
		return out, ok
	}
	out.To, ok = get(o, "to", item.rate)
	return out, ok
}

func (d *decoder) checkStages(w *plan.Workload) {
	staged := map[string]bool{}
	for _, level := range w.Levels() {
		if level.Stage != nil {
			staged[level.Name] = true
		}
	}
	for _, sla := range w.SLAs {
		single := len(w.Good) > 0
		for _, t := range sla.Thresholds {
			single = single || t.Metric.Scope == metric.PerRequest
		}
		at := ""
		for _, name := range sla.At {
			if staged[name] {
				at = name
			}
		}
		for _, t := range sla.Thresholds {
			d.checkStage(t, at, single, len(sla.At) > 0 && at == "" || sla.AtCapacity)
		}
	}
}

func (d *decoder) checkStage(t *plan.Threshold, at string, single, elsewhere bool) {
	switch recovers := t.Metric.Name == "recovery"; {
	case recovers && (at == "" || elsewhere):
		d.errorf(t.Range, sumConflict, `recovery is measured for one stage. Move it to an sla block of its own, with at = "NAME OF THE STAGE".`)
	case recovers && !single:
		d.errorf(t.Range, sumMissing, "recovery is the time until requests are good again, but the plan does not define good requests. Add a threshold such as ttft = \"p95 < 2s\", or a `good` block.")
	case at != "" && !metric.OfStages(t.Metric.Name) && !(t.Metric.Name == "goodput" && t.Stat.IsShare()):
		d.errorf(t.Range, sumConflict, "%s cannot be measured for one stage, because the stage %s overlaps with the stages around it. Move the threshold to an sla block for a level without stages.", t.Metric.Name, at)
	}
}

// checkCompared refuses stages in a compared workload. A leg runs one level alone, but stages
// overlap.
func (d *decoder) checkCompared() {
	for _, c := range d.out.Compares {
		for _, w := range c.Workloads(d.out) {
			for _, l := range w.Loads {
				if len(l.Levels) > 0 && l.Levels[0].Stage != nil {
					d.errorf(l.Range, sumConflict, "compare.%s cannot compare workload.%s, because the workload has stages. Run the workload on one server only, or use rates without stages.", c.Name, w.Address())
				}
			}
		}
	}
}
