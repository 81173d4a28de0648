package plan

import (
	"github.com/tokgate/tokgate/traffic"
)

// ShareOut gives each part of a mix copies of the mix's loads. In these copies, each level has only
// the part's share of the requests. If the parts are the types of a trace, the first trace sets
// their shares.
func (w *Workload) ShareOut() {
	if w.Mix == nil {
		return
	}
	for _, part := range w.Mix {
		part.Loads = nil
	}
	for i, l := range w.Loads {
		levels := make([][]Level, len(w.Mix))
		for _, level := range l.Levels {
			given := w.dealt(l, level)
			for k, part := range w.Mix {
				own := level
				if w.ByType() && i == 0 { // round up, so that the method Own is exact
					part.Share = (given[k]*traffic.Whole + level.Requests - 1) / level.Requests
				}
				own.Requests, own.Share = given[k], part.share()
				if w.ByType() {
					own.Share = float64(given[k]) / float64(level.Requests)
				}
				levels[k] = append(levels[k], own)
			}
		}
		for k, part := range w.Mix {
			own := *l
			own.Levels = levels[k]
			part.Loads = append(part.Loads, &own)
		}
	}
}

func (w *Workload) dealt(l *Load, level Level) []int {
	given := make([]int, len(w.Mix))
	if w.ByType() {
		rows := l.Open.Trace.Measured()
		for i := range rows {
			given[w.PartOf(&rows[i])]++
		}
		return given
	}
	shares := w.Shares()
	level.Rounds = max(level.Rounds, 1)
	for i := range level.Rounds {
		for k, n := range shares.Counts(given, level.RoundRequests(i)) {
			given[k] += n
		}
	}
	return given
}

// Portion returns a level of the mix with only the requests that belong to the part w. For a
// workload that is not a part, it returns the whole level.
func (w *Workload) Portion(level Level) Level {
	if w.Of == nil {
		return level
	}
	if own := w.Fixed(level.Name); own != nil {
		return *own
	}
	level.Share = w.share()
	level.Requests = w.Own(level.Requests)
	return level
}
