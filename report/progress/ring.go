package progress

import (
	"slices"

	"github.com/tokgate/tokgate/metric"
)

// ring holds the last observations.
type ring struct {
	values []float64
	next   int
}

func (r *ring) add(v float64) {
	if len(r.values) < window {
		r.values = append(r.values, v)
		return
	}
	r.values[r.next] = v
	r.next = (r.next + 1) % window
}

func (r *ring) sum() float64 {
	total := 0.0
	for _, v := range r.values {
		total += v
	}
	return total
}

// distribution returns the distribution of the values of completed requests. Failed requests are
// left out, because the display shows what users with an answer experienced.
func (r *ring) distribution() metric.Distribution {
	return metric.NewDistribution(slices.Clone(r.values), 0, metric.LowerIsBetter)
}
