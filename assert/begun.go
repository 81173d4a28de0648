package assert

import (
	"fmt"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// begun returns the level as if only the n measured requests that started first had been planned.
// Later requests become fillers, which only keep up the load. If n is below 1, all requests count.
func begun(l *metric.Level, n int) (level *metric.Level, problem string) {
	if n < 1 {
		return l, ""
	}
	asked := n
	out := *l
	out.Rounds = nil
	round, _ := l.RoundNames()
	for _, r := range l.Rounds {
		if n == 0 {
			break
		}
		all := r.All()
		measured := metric.MeasuredOf(all)
		due := min(n, max(r.Due, len(measured)))
		n -= due
		if r.Complete && due == max(r.Due, len(measured)) {
			out.Rounds = append(out.Rounds, r)
			continue
		}
		if !r.Complete && len(measured) < due {
			return nil, fmt.Sprintf("only %d of the %d requests of %s %d have ended", len(measured), due, round, r.Index+1)
		}
		kept := measured[:min(due, len(measured))]
		if k := len(kept); k > 0 && kept[k-1].Order >= due {
			return nil, fmt.Sprintf("one of the requests of %s %d that started among the first %d has not ended", round, r.Index+1, due)
		}
		out.Rounds = append(out.Rounds, shortened(r, all, kept, due))
	}
	if n > 0 {
		return nil, fmt.Sprintf("the record holds only %d of %s", asked-n, verdict.Count(asked, "requests"))
	}
	return &out, ""
}

// shortened returns a copy of a round that ends with the last request in the list kept. The list
// all holds every request of the round. A measured request that is not in kept becomes a filler,
// which only keeps up the load.
func shortened(r *metric.Round, all, kept []*metric.Sample, due int) *metric.Round {
	out := r.With(make([]*metric.Sample, 0, len(all)))
	out.Due, out.Complete, out.Stopped = due, true, ""
	if !r.Complete {
		out.Busy = 1 // the busy share is not known before the end of the round
	}
	keep := make(map[*metric.Sample]bool, len(kept))
	out.End = r.Start
	for _, x := range kept {
		keep[x] = true
		out.End = max(out.End, x.End)
	}
	for _, x := range all {
		if x.Phase == metric.Measured && !keep[x] {
			c := *x
			c.Phase = metric.Filler
			x = &c
		}
		out.Samples = append(out.Samples, x)
	}
	if r.WindowEnd > r.WindowStart {
		out.WindowEnd = min(r.WindowEnd, out.End)
	} else if !r.Complete {
		out.WindowEnd = out.End
		out.WindowStart = max(r.WindowStart, r.Start)
	}
	return out
}
