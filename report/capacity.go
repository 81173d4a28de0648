package report

import (
	"cmp"
	"fmt"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/text"
)

func (d *Document) capacityOf(v *verdict.Verdict) *metric.Capacity {
	if v.Kind != "capacity" {
		return nil
	}
	return d.Capacity(v.Workload, v.Server)
}

// Capacity returns the result of a search; nil if there was none.
func (d *Document) Capacity(workload, server string) *metric.Capacity {
	for _, c := range d.Run.Capacities {
		if c.Workload == workload && c.Server == server {
			return c
		}
	}
	return nil
}

// States reports whether the verdict states the result of the search. It does not if nothing was
// judged, or if the record contradicts the result.
func States(v *verdict.Verdict, c *metric.Capacity) bool {
	switch v.Outcome {
	case verdict.Pass, verdict.Fail, verdict.Inconclusive:
		return true
	case verdict.Error:
		return c.Kind == metric.CapacityUnknown
	}
	return false
}

// Largest returns the largest rate that the server of a search over rates can sustain, in requests
// per second. It is 0 if unknown, and if the search does not vary a rate.
func (d *Document) Largest(c *metric.Capacity) float64 {
	for _, x := range d.CasesOf(c.Workload, c.Server) {
		if c.Over == metric.OpenLoop && x.Largest() > 0 {
			return x.Largest()
		}
	}
	return 0
}

// Facts returns sentences with what people need to know to trust the result.
func (d *Document) Facts(c *metric.Capacity) []string {
	var list []string
	if said := c.Estimated(); said != "" {
		list = append(list, said)
	}
	if top := d.Largest(c); top > 0 {
		list = append(list, "the largest rate that the server can sustain is "+metric.Format(metric.PerSecond, top))
	}
	for _, n := range c.NonMonotone {
		list = append(list, fmt.Sprintf("not monotone: %s fails, but the larger load %s passes; the failure at the smaller load counts", c.Named(n[0]), c.Named(n[1])))
	}
	if c.Pass > 0 && !c.OfRate() {
		if c.Confirmed {
			list = append(list, "confirmed: "+c.Amount(c.Pass)+" held again on fresh requests")
		} else {
			list = append(list, "the capacity "+c.Amount(c.Pass)+" was not confirmed on fresh requests")
		}
	}
	end := fmt.Sprintf("%s in %s", verdict.Count(len(c.Probes), "probes"), text.Clock(c.Spent.Seconds()))
	if c.Reason != "" {
		end += "; ended: " + c.Reason
	}
	return append(append(list, end), c.Notes...)
}

// purpose returns why a capacity search measured this case; "" for a level that the plan lists.
func (c *Case) purpose() string {
	if c.Probe == nil {
		return ""
	}
	return cmp.Or(c.Probe.Purpose, "probe")
}
