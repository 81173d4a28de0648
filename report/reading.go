package report

import (
	"math"
	"strings"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Reading is the value of a metric at one probe of a capacity search. Low and High are its
// one-sided bounds.
type Reading struct {
	Metric  string `json:"metric"`
	Stat    string `json:"stat"` // "" for a metric of the whole level
	Outcome string `json:"outcome"`
	Value   Number `json:"value"`
	Low     Number `json:"low"`  // null if the data give none
	High    Number `json:"high"` // null if the data give none
}

// readings judges a probe again, as the capacity search did, and returns the values. It returns nil
// if the plan is missing, or if the probe shares its requests with a level of the plan.
func (b *builder) readings(c *metric.Capacity, p *metric.CapacityProbe) []Reading {
	if b.declared == nil || p.With != "" || p.Requests == 0 {
		return nil
	}
	w := b.workloadAt(c.Workload)
	var l *metric.Level
	for _, x := range b.run.Levels {
		if x.Server == c.Server && x.Workload == c.Workload && x.Name == p.Level && x.N == p.N && x.Probe != nil {
			l = x
		}
	}
	if w == nil || l == nil {
		return nil
	}
	judged := assert.JudgeLook(b.declared, w, l, metric.Look{Requests: p.Requests, Planned: p.Planned})
	bounds := capacityBounds(w)
	var out []Reading
	for _, t := range judged.Thresholds {
		if th := bounds[t.Name]; th != nil {
			out = append(out, reading(th, t))
		}
	}
	return out
}

// capacityBounds returns the thresholds at the capacity by metric and statistic, such as "ttft
// p95".
func capacityBounds(w *plan.Workload) map[string]*plan.Threshold {
	bounds := map[string]*plan.Threshold{}
	for _, sla := range w.SLAs {
		for _, th := range sla.Thresholds {
			// Skip a limit of 100% on a share: its distance from an estimate is not defined.
			if sla.AtCapacity && th.Limit > 0 && (!isShare(th) || th.Limit < 1) {
				bounds[strings.TrimSpace(th.Metric.Name+" "+th.Stat.String())] = th
			}
		}
	}
	return bounds
}

// isShare reports whether the threshold is on a share of the requests.
func isShare(th *plan.Threshold) bool {
	return th.Metric.Name == "success" || th.Stat.IsShare()
}

// farthest is just below the largest distance from the limit that a LookThreshold records. A value
// at a larger distance may be infinite, so it is not shown.
const farthest = 4.999

// reading returns a threshold's value and bounds. t has their distances from the limit.
func reading(th *plan.Threshold, t assert.LookThreshold) Reading {
	out := Reading{Metric: th.Metric.Name, Stat: th.Stat.String(), Outcome: t.Outcome.String()}
	upward := isShare(th) && th.Metric.Better != metric.LowerIsBetter || th.Op == plan.Greater || th.Op == plan.GreaterEqual
	at := func(log float64) Number {
		switch {
		case math.Abs(log) > farthest:
			return Number{}
		case isShare(th) && upward:
			return numberOf(1 - (1-th.Limit)*math.Exp(log))
		case upward:
			return numberOf(th.Limit * math.Exp(-log))
		}
		return numberOf(th.Limit * math.Exp(log))
	}
	out.Value, out.Low, out.High = at(t.Log), at(t.Low), at(t.High)
	if upward { // if the limit is a lower limit, the bounds change places

		out.Low, out.High = out.High, out.Low
	}
	return out
}
