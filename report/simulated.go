package report

import (
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/text"
)

// simulated is what a simulated run is worth.
const simulated = "The servers were the built-in simulator, in virtual time, in which the load generator is never late. This says nothing about a real server."

// Took is how long the run took.
func (d *Document) Took() string {
	if !d.Simulated {
		return "took " + text.Clock(d.Duration)
	}
	took := "took " + text.Clock(d.Duration) + " of virtual time"
	if d.Wall > 0 {
		took += ", " + metric.Format(metric.Seconds, d.Wall) + " on the wall"
	}
	return took
}
