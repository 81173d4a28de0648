package assert

import (
	"fmt"
	"math"
	"time"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// grown describes how much a backlog grew, and how the rate compares with the server's largest
// rate.
type grown struct {
	low, high, half float64
	most, least     float64 // largest rate of the server and its lower bound; 0 if unknown
	beyond          float64 // growth that chance and the first filling of the server do not explain
	known           bool
	below           bool // requests certainly arrive more slowly than at the largest rate
	over            bool // the rate is certainly above the server's largest rate
	slower          bool // the server answered more slowly than it can with as many in flight
	fills           bool // no more requests are in flight than the server answers at the same time
}

func (s *subject) bounded(g metric.Growth) (x grown) {
	above := 0.0
	x.most, x.least, above, x.known = largest(s.level.Saturation, s.alpha)
	x.half = stat.NormalQuantile(1-s.alpha) * g.Error
	x.low, x.high = g.Share-x.half, g.Share+x.half
	if !x.known {
		return x
	}
	x.below = s.level.Rate < x.least
	// A backlog can be stable by chance at a rate above the largest rate, if fewer requests
	// arrived. So the rate of answers must also be at most the largest rate.
	x.over = s.level.Rate > above && answered(s.level) <= above
	x.fills = s.level.Rate < above && float64(g.End) <= s.level.SaturationAt
	if x.fills { // the server answers all requests in flight at the same time, so none need wait
		x.low = min(x.low, 0)
	}
	if x.below {
		// Near the largest rate, chance moves a backlog like a random walk. This is more than the
		// distances from its fitted line show. Growth that only fills the server up is subtracted
		// first.
		chance := stat.NormalQuantile(1-s.alpha) * math.Sqrt((s.scatter()+0.5)/float64(g.Arrivals))
		x.low = min(x.low, queued(s.level)-chance)
		x.beyond = g.Share - max(x.half, chance)
		// With fewer requests in flight, a server answers fewer per second. If its rate is below
		// the share g.End/SaturationAt of the largest rate, it slowed down.
		x.slower = answered(s.level)*s.level.SaturationAt < x.least*min(float64(g.End), s.level.SaturationAt)
	}
	return x
}

// slowed reports whether the backlog certainly grew by more than the limit. Growth that only fills
// the server up does not count.
func (x grown) slowed(t *plan.Threshold) bool {
	return x.slower && !sample.Meets(x.beyond, t.Op, t.Limit)
}

// unclear returns notes on why the verdict on the backlog's growth is inconclusive.
func (x grown) unclear(l *metric.Level, t *plan.Threshold, g metric.Growth) []string {
	if x.over {
		return []string{"the rate is above the largest rate that the server can sustain, but by chance too few requests arrived to show that the backlog grows"}
	}
	notes := []string{fmt.Sprintf("these requests certify only that the backlog grows by less than %s", metric.Format(metric.Ratio, max(x.high, 0)))}
	if x.slowed(t) {
		notes = append(notes, "the rate is below the largest rate that the server can sustain, but the backlog grew by more than chance explains. The server answered fewer requests per second than it did when it was saturated, with the same number of requests in flight")
	} else if x.fills {
		notes = append(notes, fmt.Sprintf("the %d requests in flight at the end need not be a queue, because the saturated server answered %.0f requests at a time", g.End, l.SaturationAt))
	}
	return notes
}

// queued returns the share of the arrivals that must be a growing queue. It counts requests that
// timed out, and requests in flight beyond SaturationAt, the number that the saturated server
// answered at the same time.
func queued(l *metric.Level) float64 {
	grew, arrivals := 0.0, 0
	for _, p := range l.Passages() {
		grew += float64(p.Lost) + max(float64(p.End), l.SaturationAt) - max(float64(p.Begin), l.SaturationAt)
		arrivals += p.Arrivals
	}
	return grew / float64(arrivals)
}

// answered returns how many requests per second ended while a rate was sent. Requests that timed
// out do not count.
func answered(l *metric.Level) float64 {
	n, length := 0, time.Duration(0)
	for _, p := range l.Passages() {
		n += p.Arrivals - (p.End + p.Lost - p.Begin)
		length += p.To - p.From
	}
	return float64(n) / length.Seconds()
}
