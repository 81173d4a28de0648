package strength

import (
	"slices"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// batches returns the batches of a closed loop with slower requests. A slower answer delays all
// later requests of its slot, and so the later batches: the whole window is slowed down, and then
// cut anew by order of start.
func (w *warp) batches(l *metric.Level) (rounds, voided []*metric.Round) {
	units := slices.Concat(l.Rounds, l.Voided)
	slices.SortStableFunc(units, func(a, b *metric.Round) int { return a.Index - b.Index })
	if len(units) == 0 {
		return nil, nil
	}
	whole := l.Window()
	slow := w.round(whole, whole)
	measured := slices.Clone(slow.MeasuredSamples())
	slices.SortStableFunc(measured, func(a, b *metric.Sample) int { return int(a.Sent - b.Sent) })
	var out []*metric.Round
	for _, r := range units {
		n := min(len(r.MeasuredSamples()), len(measured))
		of := measured[:n:n]
		measured = measured[n:]
		next := r.With(of)
		if len(out) > 0 && n > 0 {
			next.WindowStart = of[0].Sent
			out[len(out)-1].WindowEnd = of[0].Sent
		} else {
			next.WindowStart = slow.WindowStart
		}
		next.WindowEnd, next.End = slow.WindowEnd, next.WindowStart
		for i, s := range of {
			s.Round, s.Order = r.Index, i
			next.End = max(next.End, s.End)
			next.Start = of[0].Scheduled
		}
		out = append(out, next)
	}
	for _, s := range slow.Samples { // what was not measured belongs to the whole window
		if s.Phase != metric.Measured {
			of := out[0]
			if s.Phase == metric.Filler {
				of = out[len(out)-1]
			}
			s.Round = of.Index
			of.Samples = append(of.Samples, s)
		}
	}
	for i, r := range out {
		if units[i].Void != "" {
			voided = append(voided, r)
		} else {
			rounds = append(rounds, r)
		}
	}
	return rounds, voided
}

// drawn returns a window of as many batches as there are picks, one after the other. Each is a copy
// of the batch of that number.
func drawn(batches []*metric.Round, picks []int) []*metric.Round {
	var out []*metric.Round
	var at time.Duration
	if len(batches) > 0 {
		at = batches[0].WindowStart
	}
	for i, pick := range picks {
		r := batches[pick]
		by := at - r.WindowStart
		next := r.With(nil)
		next.Index = i
		for _, t := range []*time.Duration{&next.Start, &next.End, &next.WindowStart, &next.WindowEnd} {
			*t += by
		}
		for _, s := range r.All() {
			if s.Phase == metric.Measured {
				n := *s
				n.Round = i
				shift(&n, by)
				next.Samples = append(next.Samples, &n)
			}
		}
		out, at = append(out, next), next.WindowEnd
	}
	return out
}

// planned returns how many batches the plan has for a level; 0 if it is not a level of the plan.
func (rec *Recording) planned(l *metric.Level) int {
	for _, w := range rec.of.Workloads {
		if level := w.Fixed(l.Name); w.Address() == l.Workload && level != nil {
			return level.Rounds
		}
	}
	return 0
}
