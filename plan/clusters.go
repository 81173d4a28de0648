package plan

import "github.com/tokgate/tokgate/metric"

// Clusters is an assumption about which requests may fail together. A verdict uses it until the
// observed failures show how requests really fail. A threshold passes only if it also passes under
// this assumption.
type Clusters string

const (
	// ClustersWave assumes that all requests in flight may fail together, until
	// failures turn out to be isolated. It is the default.
	ClustersWave Clusters = "wave"
	// ClustersRound assumes that all requests of a round may fail together.
	ClustersRound Clusters = "round"
	// ClustersNone assumes that requests fail independently, unless rounds are seen to differ.
	ClustersNone Clusters = "none"
)

// Units returns how many independent observations the given requests count as, while no request has
// failed. The parameter level is the number of requests in flight; for a rate it is the mean
// number. 0 means that this number is not known, and counts as 1.
func (c Clusters) Units(kind metric.LoadKind, level, rounds, requests int) int {
	switch {
	case c == ClustersNone:
		return requests
	case c == ClustersRound, kind == metric.Burst:
		return rounds
	}
	if kind == metric.Users {
		return requests // users pause most of the time, so few have a request in flight
	}
	return requests / max(level, 1)
}
