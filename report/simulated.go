package report

import (
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/text"
)

// simulated is what a simulated run is worth.
const simulated = "The servers were the built-in simulator, in virtual time. This says nothing about a real server."

// took is how long the run took.
func (d *Document) took() string {
	if !d.Simulated {
		return "took " + text.Clock(d.Duration)
	}
	took := "took " + text.Clock(d.Duration) + " of virtual time"
	if d.Wall > 0 {
		took += ", " + metric.Format(metric.Seconds, d.Wall) + " on the wall"
	}
	return took
}
