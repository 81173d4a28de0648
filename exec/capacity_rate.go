package exec

import (
	"time"

	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/search"
)

// rates searches for the capacity as a request rate. Before the search it measures the largest rate
// that the saturated server reaches, unless the plan says what it is. It returns an error only if the
// server is lost.
func (h *hunt) rates(budget time.Duration) (lost error) {
	c := h.capacity
	largest, least := float64(c.Largest), float64(c.Largest)
	if c.Largest == 0 {
		largest, least, budget, lost = h.saturates(budget)
	}
	short := c.Level(c.From).Requests
	h.levelSearch = search.NewRates(search.RateOptions{
		Options: h.options(budget), Largest: largest, Least: least, Scatter: 1 / c.Load.Open.Shape(), Unsaturated: c.Largest > 0,
		Effective: h.workload.Independent(), Short: short, Most: h.workload.MostRequests(short),
	})
	return lost
}

// saturates measures the largest rate of the server, and a lower bound of it, in steps of
// plan.RateStep. left is what it leaves of the budget.
func (h *hunt) saturates(budget time.Duration) (largest, least float64, left time.Duration, lost error) {
	c := h.capacity
	begin := h.Clock.Now()
	h.saturation, lost = h.saturated(h.target, Case{Server: h.server, Workload: h.workload, Load: c.Load, Level: c.Level(c.From)})
	if budget > 0 {
		// The saturation's time counts against the budget. Keep at least 1 ns, because 0 would mean
		// that there is no limit.
		budget = max(budget-(h.Clock.Now()-begin), 1)
	}
	largest, least = search.Sustained(h.saturation.Saturation)
	return largest / plan.RateStep, least / plan.RateStep, budget, lost
}

// share divides the requests of a probe into rounds. It returns the number of requests in each.
func (h *hunt) share(s *levelRun, requests int) []int {
	if !h.counts().Rates {
		return s.Level.More(requests)
	}
	l := plan.Level{Requests: requests}
	l.Part()
	return l.More(requests)
}
