package plan

import (
	"slices"

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
	if w.ByType() {
		given, rows := make([]int, len(w.Mix)), l.Open.Trace.Measured()
		for i := range rows {
			given[w.PartOf(&rows[i])]++
		}
		return given
	}
	return w.dealtIn(level, max(level.Rounds, 1))
}

// dealtIn returns how many requests each part of a mix has in the first rounds of a level.
func (w *Workload) dealtIn(level Level, rounds int) []int {
	shares, given := w.Shares(), make([]int, len(w.Mix))
	level.Rounds = max(level.Rounds, 1)
	for i := range rounds {
		for k, n := range shares.Counts(given, level.RoundRequests(i%level.Rounds)) {
			given[k] += n
		}
	}
	return given
}

// SentIn returns how many requests the workload sends in the first rounds of a level. After its last
// round a level begins again with its first.
func (w *Workload) SentIn(level Level, rounds int) (n int) {
	root := w.Root()
	if whole, part := root.Fixed(level.Name), slices.Index(root.Mix, w); whole != nil && part >= 0 && !root.ByType() {
		return root.dealtIn(*whole, rounds)[part]
	}
	for r := range rounds {
		n += level.RoundRequests(r % max(level.Rounds, 1))
	}
	return n
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
