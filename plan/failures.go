package plan

import "github.com/tokgate/tokgate/metric"

// MostFailed is the share of the measured requests that may fail where a plan does not say how many
// may.
const MostFailed = 0.02

// IgnoresFailures reports whether a threshold hardly sees failed requests; see metric.Def. Under such
// a threshold every request must succeed, unless a threshold on success allows failures. Readings of
// the server have no requests.
func (t *Threshold) IgnoresFailures() bool {
	return t.Metric.Scope != metric.PerReading && t.Metric.IgnoresFailures(t.Stat)
}

// BoundsFailures reports whether a threshold itself says how many requests may fail. Under all
// other thresholds at most MostFailed of the requests may.
func (t *Threshold) BoundsFailures() bool {
	return t.Metric.Name == "success" || t.Metric.Name == "goodput" && t.Stat.IsShare()
}
