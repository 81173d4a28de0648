package nights

import (
	"math"
	"strings"

	"github.com/tokgate/tokgate/metric"
)

// scale describes how two values of a metric are compared: by their difference, or by their ratio.
type scale struct {
	log    bool
	signed bool // values may be negative, as for the growth of a backlog
}

// scaleOf returns the scale on which two nights are compared. Shares are compared by their
// difference, and all other metrics by their ratio.
func scaleOf(def metric.Def) scale {
	return scale{log: def.Unit != metric.Ratio, signed: def.Name == "backlog_growth"}
}

func (s scale) takes(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (v >= 0 || s.signed) && (v > 0 || !s.log)
}

func (s scale) transform(v float64) float64 {
	if s.log {
		return math.Log(v)
	}
	return v
}

func (s scale) invert(x float64) float64 {
	if s.log {
		return math.Exp(x)
	}
	return x
}

// within limits x to [0, 1] if the metric is a share.
func (s scale) within(x float64) float64 {
	if s.log || s.signed {
		return x
	}
	return min(max(x, 0), 1)
}

// allowed returns an accepted change as a difference on the scale.
func (s scale) allowed(limit float64) float64 {
	if s.log {
		return math.Abs(math.Log1p(limit))
	}
	return math.Abs(limit)
}

func (s scale) size(x float64) float64 {
	if s.log {
		return math.Abs(math.Expm1(x))
	}
	return math.Abs(x)
}

// shift writes the size of a change: "4.2%" of the value, or "4.2 points" for metrics that are
// shares.
func (s scale) shift(x float64) string {
	if s.log {
		return metric.Format(metric.Ratio, s.size(x))
	}
	return strings.TrimSuffix(metric.Format(metric.Ratio, s.size(x)), "%") + " points"
}
