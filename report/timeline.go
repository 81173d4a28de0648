package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// Limits on the number of timelines in a document, and on the size of one timeline.
const (
	mostTimelines = 6
	mostSlots     = 48
	mostBars      = 200
)

// timelines returns a timeline of one level for each workload and server. The method telling
// chooses the level. Levels with a problem come first.
func (b *builder) timelines(d *Document) []Timeline {
	var bad, good []Timeline
	for _, g := range Groups(d) {
		level, why, failed := b.telling(d, g)
		if level == nil {
			continue
		}
		t, ok := b.timeline(level, why)
		switch {
		case !ok:
		case failed:
			bad = append(bad, t)
		default:
			good = append(good, t)
		}
	}
	all := append(bad, good...)
	return all[:min(len(all), mostTimelines)]
}

// telling chooses the level whose timeline is shown. It is the smallest level at which a
// requirement did not hold. If all requirements held, it is the smallest load that failed in the
// capacity search, or else the largest level.
func (b *builder) telling(d *Document, g *Group) (l *metric.Level, why string, failed bool) {
	wrong, past := troubled(d, g)
	var first, over, largest *metric.Level
	for _, x := range b.levels {
		if x.Server != g.Server || x.Workload != g.Workload || len(x.Rounds) == 0 || x.Saturates() {
			continue
		}
		name := x.Name
		if wrong[name] && (first == nil || x.Load() < first.Load()) {
			first = x
		}
		if past[name] && over == nil {
			over = x
		}
		if largest == nil || x.Load() > largest.Load() {
			largest = x
		}
	}
	switch {
	case first != nil:
		return first, "the smallest level at which a requirement did not hold", true
	case over != nil:
		return over, "the smallest load that failed in the capacity search", false
	}
	return largest, "the largest level measured", false
}

// troubled returns two sets of a group's levels. The set wrong has the levels at which a
// requirement did not hold. The set past has the smallest failed level of each capacity search.
func troubled(d *Document, g *Group) (wrong, past map[string]bool) {
	wrong, past = map[string]bool{}, map[string]bool{}
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if v.Server == g.Server && v.Workload == g.Workload && v.Level != "" && v.Status() < verdict.StatusSkipped {
			wrong[v.Level] = true
		}
	}
	for _, c := range g.Capacities {
		for _, p := range c.Probes {
			if c.Fail > 0 && p.N == c.Fail {
				past[p.Level] = true
			}
		}
	}
	return wrong, past
}

// timeline shows the requests of a round, without warm-up. It chooses the first round of the level
// that has requests.
func (b *builder) timeline(l *metric.Level, why string) (Timeline, bool) {
	t := Timeline{Server: l.Server, Workload: l.Workload, Level: l.Name, Why: why, Slots: l.N, Requests: []Bar{}}
	i := slices.IndexFunc(l.Rounds, func(r *metric.Round) bool { return len(r.MeasuredSamples()) > 0 })
	if i < 0 {
		return t, false
	}
	var samples []*metric.Sample
	for _, s := range l.Rounds[i].All() {
		if s.Phase == metric.Warmup {
			continue
		}
		if s.Slot >= mostSlots {
			t.Left++
			continue
		}
		samples = append(samples, s)
	}
	if len(samples) == 0 {
		return t, false
	}
	begin := func(s *metric.Sample) time.Duration { return cmp.Or(s.Sent, s.Scheduled) }
	slices.SortStableFunc(samples, func(x, y *metric.Sample) int {
		return cmp.Or(cmp.Compare(begin(x), begin(y)), cmp.Compare(x.Slot, y.Slot))
	})
	if len(samples) > mostBars {
		t.Left += len(samples) - mostBars
		samples = samples[:mostBars]
	}
	from := begin(samples[0])
	t.Round, t.From, t.To = l.Rounds[i].Index, from.Seconds(), from.Seconds()
	for _, s := range samples {
		end := max(s.End, s.Last, begin(s))
		t.To = max(t.To, end.Seconds())
		bar := Bar{Slot: s.Slot, Phase: string(s.Phase), Sent: (begin(s) - from).Seconds(), End: (end - from).Seconds()}
		if s.First > 0 {
			bar.First = metric.Some((s.First - from).Seconds())
		}
		if s.Failure != nil {
			bar.Failure = string(s.Failure.Kind)
		}
		t.Requests = append(t.Requests, bar)
	}
	return t, true
}
