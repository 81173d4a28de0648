package sample

import (
	"math"
	"slices"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/metric"
)

// manyBatches is the number of batches from which half a standard error of their autocorrelation
// suffices, because the window is long enough to show slow noise.
const manyBatches = 20

// Resemblance returns by which factor the variance of a mean over batches exceeds that of
// independent ones, because neighbouring batches resemble each other. units has a value for each
// batch. A rate of the level needs a whole standard error of the autocorrelation in any window,
// because its parts are equal times, of which a slow time has more. Rounds with a pause between them
// are independent, so for them it is 1.
func Resemblance(l *metric.Level, units []float64, rate bool) float64 {
	if !l.Batches {
		return 1
	}
	errors := 1.0
	if len(units) >= manyBatches && !rate {
		errors = 0.5
	}
	return stat.Inflation(units, errors)
}

// Apart moves values of batches away from their mean until their spread is that of independent
// ones; see Resemblance. Infinite values stay as they are.
func Apart(l *metric.Level, units []float64, rate bool) []float64 {
	if slices.ContainsFunc(units, func(x float64) bool { return math.IsInf(x, 0) || math.IsNaN(x) }) {
		return units
	}
	return stat.Stretched(units, math.Sqrt(Resemblance(l, units, rate)))
}
