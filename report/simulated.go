package report

import (
	"strings"

	"github.com/tokgate/tokgate/report/text"
)

// SimulatedNote says what a simulated run is worth.
const SimulatedNote = "Every server was the built-in simulator, in virtual time, and the load generator was never late. " +
	"These figures say nothing about a real server."

// Took writes the duration of the run.
func (d *Document) Took() string {
	if d.Run.Simulated {
		return "took " + text.Clock(d.Run.End.Seconds()) + " of virtual time"
	}
	return "took " + text.Clock(d.Run.End.Seconds())
}

// Date writes when the run started, in UTC; "" for a simulated run, which has no
// date.
func (d *Document) Date(layout string) string {
	if d.Run.Started.IsZero() {
		return ""
	}
	return d.Run.Started.UTC().Format(layout)
}

// When writes when the run started, to the second, and how long it took. It is "" for a simulated
// run.
func (d *Document) When() string {
	return strings.TrimPrefix(d.Date("2006-01-02 15:04:05 MST")+", "+d.Took(), ", ")
}
