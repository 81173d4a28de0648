package plan

import "github.com/tokgate/tokgate/metric"

// Clusters says which requests are taken to fail together, as far as what was
// seen does not say otherwise: a certified share passes in spite of it.
type Clusters string

const (
	// ClustersWave: as many as are in flight at once, until failures are seen that come
	// alone. The default.
	ClustersWave Clusters = "wave"
	// ClustersRound: all of a round.
	ClustersRound Clusters = "round"
	// ClustersNone: none, unless rounds are seen to differ.
	ClustersNone Clusters = "none"
)

// Units is how many requests, no two of which are taken to fail together, so many
// in so many rounds are worth as long as none failed. Of a rate level is how many are in
// flight on average; 0, as long as that is not known: one.
func (c Clusters) Units(kind metric.LoadKind, level, rounds, requests int) int {
	switch {
	case c == ClustersNone:
		return requests
	case c == ClustersRound, kind == metric.Burst:
		return rounds
	}
	if kind == metric.Users {
		return requests // most of them think
	}
	return requests / max(level, 1)
}
