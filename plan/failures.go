package plan

import "github.com/tokgate/tokgate/metric"

// MostFailed is the share of the measured requests that may fail where a plan does not say how many
// may.
const MostFailed = 0.02

// IgnoresFailures reports whether a threshold hardly sees failed requests. A mean covers only
// completed requests. A failed request has few gaps between tokens, so statistics of gaps miss it.
// Under such a threshold every request must succeed, unless a threshold on success allows failures.
func (t *Threshold) IgnoresFailures() bool {
	if t.Metric.Name == "success" || t.Metric.Scope == metric.PerReading {
		return false
	}
	return t.Stat.Kind == metric.Mean || t.Metric.Scope == metric.PerGap || t.Metric.Scope == metric.Counted
}

// BoundsFailures reports whether a threshold itself says how many requests may fail. Under all
// other thresholds at most MostFailed of the requests may.
func (t *Threshold) BoundsFailures() bool {
	return t.Metric.Name == "success" || t.Metric.Name == "goodput" && t.Stat.IsShare()
}
