package chart

import (
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// Values that are equal except for rounding get an axis with a few ticks around them.
func TestScaleOfOneValue(t *testing.T) {
	for _, values := range [][]float64{
		{0.2036}, {0.2036, 0.20360000000001}, {7200.2036, 7200.2036 + 1e-12}, {-3, -3 - 1e-13}, {0, 0}, {0, 1e-300},
	} {
		for _, a := range []Axis{{}, {Zero: true}} {
			s := a.scale(values, 7)
			must.Hold(t, len(s.ticks) >= 2 && len(s.ticks) <= 20, "%v: %d ticks", values, len(s.ticks))
			must.Hold(t, s.min <= values[0] && s.max >= values[0] && s.min < s.max, "%v: from %v to %v", values, s.min, s.max)
		}
	}
}
