package plan

import (
	"slices"

	"github.com/tokgate/tokgate/metric"
)

// Halved returns a copy of the plan in which each level has half of its requests, or half of its
// duration. Compared workloads and capacity searches keep theirs.
func (p *Plan) Halved() *Plan {
	out := *p
	out.Workloads = slices.Clone(p.Workloads)
	of := map[*Workload]*Workload{}
	for i, w := range out.Workloads {
		x := *w
		out.Workloads[i], of[w] = &x, &x
		if !p.compared(w) {
			x.Loads = slices.Clone(w.Loads)
			for j, l := range x.Loads {
				load := *l
				load.Levels = slices.Clone(l.Levels)
				for k := range load.Levels {
					load.Levels[k].halve(l.Kind)
				}
				x.Loads[j] = &load
			}
		}
	}
	for _, w := range out.Workloads {
		w.join(of)
		if !p.compared(w) {
			w.ShareOut()
		}
	}
	return &out
}

func (p *Plan) compared(w *Workload) bool {
	return slices.ContainsFunc(p.Compares, func(c *Compare) bool {
		return c.Skip == "" && slices.ContainsFunc(c.Workloads(p), func(x *Workload) bool { return x.Address() == w.Address() })
	})
}

// halve leaves the level half of its requests, and at least one request in each round.
func (l *Level) halve(kind metric.LoadKind) {
	l.Duration /= 2
	if l.Duration > 0 {
		return
	}
	l.Requests = max(l.Requests/2, 1)
	switch {
	case l.Batches:
		l.Cut()
	case kind == metric.Burst, l.Stage != nil:
		l.Rounds = max(l.Rounds/2, 1)
		l.Requests = max(l.Requests, l.Rounds*max(l.N, 1))
	case kind.Windowed():
		l.Part()
	default:
		l.Rounds = max(min(l.Rounds, l.Requests/max(l.N, 1)), 1)
	}
}
