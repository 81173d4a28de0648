package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Spent is what a level, or the whole run, cost, and how much of that was measured. It does not
// count requests that are not recorded, such as those that fill a cache before the load.
type Spent struct {
	Sent     int `json:"sent"`     // requests: measured ones, warm-up, fillers, and those of voided rounds
	Measured int `json:"measured"` // requests that were judged
	// Load is the time under load in seconds, without the pauses between rounds. Judged is the part
	// of it from the start of the first judged request of a round to the end of its last. Servers
	// that run side by side count once each.
	Load   float64 `json:"load_s"`
	Judged float64 `json:"measured_s"`
	Starts int     `json:"starts,omitempty"` // starts of servers by tokgate; only of a whole run
}

// spentOn returns what the level all cost, of which the requests of judged count. A part of a mix
// costs nothing, because its mix counts.
func spentOn(all, judged *metric.Level) (s Spent) {
	if !judged.Alone() {
		return s
	}
	var load, counted []metric.Stretch
	for _, r := range slices.Concat(all.Rounds, all.Voided) {
		span := metric.Stretch{From: r.Start, To: max(r.End, r.WindowEnd)}
		for _, x := range r.All() {
			s.Sent++
			span.From, span.To = min(span.From, cmp.Or(x.Sent, x.Scheduled)), max(span.To, x.End)
		}
		load = append(load, span)
	}
	for _, r := range judged.Rounds {
		s.Measured += len(r.MeasuredSamples())
		counted = append(counted, metric.Stretch{From: r.Start, To: r.End})
	}
	s.Load, s.Judged = covered(load), covered(counted)
	return s
}

// covered returns how many seconds lie in at least one of the stretches.
func covered(list []metric.Stretch) float64 {
	slices.SortFunc(list, func(a, b metric.Stretch) int { return cmp.Compare(a.From, b.From) })
	var sum, until time.Duration
	for _, x := range list {
		from := max(x.From, until)
		sum, until = sum+max(x.To-from, 0), max(x.To, until)
	}
	return sum.Seconds()
}

// Add adds what something else cost, but for starts.
func (s *Spent) Add(x Spent) {
	s.Sent, s.Measured, s.Load, s.Judged = s.Sent+x.Sent, s.Measured+x.Measured, s.Load+x.Load, s.Judged+x.Judged
}

func (d *Document) spent() (sum Spent) {
	for i := range d.Cases {
		sum.Add(d.Cases[i].Spent)
	}
	for _, s := range d.Run.Servers {
		if s.Program() != "" { // else it was running already
			sum.Starts += len(s.Starts)
		}
	}
	return sum
}
