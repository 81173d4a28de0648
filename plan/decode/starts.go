package decode

import (
	"slices"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// How long the starts of a server took belongs to no level. So a bound on it gets an sla or a claim of
// its own, at one level of one workload: it is judged once.

func (d *decoder) readStarts() {
	for _, w := range d.out.Workloads {
		var own []*plan.SLA
		for _, sla := range w.SLAs {
			limits, others := apart(sla.Thresholds, func(t *plan.Threshold) metric.Def { return t.Metric })
			if len(limits) == 0 {
				continue
			}
			sla.Thresholds = others
			once := *sla
			once.Thresholds, once.AtCapacity, once.At = limits, false, sla.At[:min(1, len(sla.At))]
			for _, t := range limits {
				d.checkStart(t, w, &once)
			}
			own = append(own, &once)
		}
		w.SLAs = append(slices.DeleteFunc(w.SLAs, func(sla *plan.SLA) bool { return len(sla.Thresholds) == 0 }), own...)
	}
	for _, c := range d.out.Compares {
		var own []*plan.Claim
		for _, claim := range c.Claims {
			changes, others := apart(claim.Changes, func(ch *plan.ChangeBound) metric.Def { return ch.Metric })
			claim.Changes = others
			for _, ch := range changes {
				d.checkStartChange(ch, c)
			}
			once := *claim
			once.Changes = changes
			for _, w := range claim.Workloads {
				at := slices.DeleteFunc(slices.Clone(claim.At), func(level string) bool { return w.Fixed(level) == nil })
				if len(at) > 0 && len(changes) > 0 {
					once.Workloads, once.At = []*plan.Workload{w}, at[:1]
					own = append(own, &once)
					break
				}
			}
		}
		c.Claims = append(slices.DeleteFunc(c.Claims, func(claim *plan.Claim) bool { return len(claim.Changes) == 0 }), own...)
	}
}

// apart separates the bounds on starts from the others.
func apart[T any](bounds []T, of func(T) metric.Def) (starts, others []T) {
	for _, x := range bounds {
		if of(x).Source == metric.Starts {
			starts = append(starts, x)
		} else {
			others = append(others, x)
		}
	}
	return starts, others
}

func startStat(def metric.Def, stat metric.Stat, text string) *problem {
	if def.Source != metric.Starts || stat.Kind == metric.Mean || stat.Kind == metric.Max {
		return nil
	}
	return problemf(sumStatNotAllowed, "A run has few starts, so %s has no %s. Write max in an sla block, or mean in a tolerate block.", def.Name, text)
}

// checkStart checks a threshold on the starts of the servers of a workload.
func (d *decoder) checkStart(t *plan.Threshold, w *plan.Workload, sla *plan.SLA) {
	if t.Stat.Kind != metric.Max {
		d.errorf(t.Range, sumStatNotAllowed, `An sla block limits the slowest start. Write %s = "max < 5m".`, t.Metric.Name)
	}
	if len(sla.At) == 0 {
		d.errorf(t.Range, sumMissing, "%s is judged beside a level, but this block names none. A capacity search alone has no such level: add a load block.", t.Metric.Name)
	}
	for _, s := range w.Servers {
		if s.Endpoint != nil {
			d.errorf(t.Range, sumConflict, "tokgate does not start server.%s, because it is an endpoint. So %s has no value there. Remove it, or give the server a process or container block.", s.Address(), t.Metric.Name)
			return
		}
	}
}

// fewestStarts is the number of starts of a server from which warm starts are compared. The first is
// cold, and three are the fewest with a trend.
const fewestStarts = 4

// checkStartChange checks a bound on the change of how long starts take.
func (d *decoder) checkStartChange(ch *plan.ChangeBound, c *plan.Compare) {
	switch {
	case ch.Metric.Name == "start_cold":
		d.errorf(ch.Range, sumStatNotAllowed, "Cold starts are not compared: the first start of one server reads the weights from disk, and that of the other finds them in memory. Compare start_warm, or limit start_cold in an sla block.")
	case c.Control.Baseline != "" || c.Restart != plan.RestartLeg:
		d.errorf(ch.Range, sumConflict, `start_warm is compared only where both servers are started for each leg (restart = "leg"). An endpoint and a recorded control are not started. Remove start_warm.`)
	case max(c.Rounds, c.MostRounds) < fewestStarts*c.Unit():
		d.errorf(ch.Range, sumOutOfRange, "start_warm needs a fourth start of each server, because the first is cold, and two warm starts decide nothing. Write rounds = %d or more.", fewestStarts*c.Unit())
	}
}
