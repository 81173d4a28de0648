package report

import (
	"fmt"

	"github.com/tokgate/tokgate/metric"
)

// Summary returns the case's summary of a metric, or nil if the case has none.
func (c *Case) Summary(name string) *Summary {
	for i := range c.Metrics {
		if c.Metrics[i].Metric == name {
			return &c.Metrics[i]
		}
	}
	return nil
}

// Stat returns a statistic by its name in a plan, such as "mean" or "p99.9". A metric of the whole
// level has one value, which Stat returns for any name. The result is missing if s is nil or if the
// statistic was not kept.
func (s *Summary) Stat(name string) metric.Value {
	switch {
	case s == nil:
		return metric.Value{}
	case s.Value.OK:
		return s.Value
	case name == "mean":
		return s.Mean
	case name == "min":
		return s.Min
	case name == "max":
		return s.Max
	case s.Percentiles != nil:
		for p, n := range s.Percentiles.each() {
			if name == fmt.Sprintf("p%g", p) {
				return *n
			}
		}
	}
	return metric.Value{}
}

// Sent is the number of measured requests that the case adds to the total of the run. For a part of
// a mix it is 0, because the mix counts the requests of its parts.
func (c *Case) Sent() int {
	if !c.Alone() {
		return 0
	}
	return c.Due()
}
