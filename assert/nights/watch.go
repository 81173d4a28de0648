package nights

import (
	"math"
	"sync"

	"github.com/tokgate/tokgate/assert/stat"
)

const (
	// leastReference is how many reference nights it takes to say anything.
	leastReference = 10
	// mostReference is how many the reference holds; later nights are only watched.
	mostReference = 90
	// perNight is the rate of false alarms of one series of normal,
	// independent nights: one in two hundred.
	perNight = 1.0 / 200
)

// windows are the stretches that end tonight and are held against the
// reference, each with its own share of false alarms. They overlap, so that
// together they come to perNight, not to their sum; the shares are those with
// which shifts of 1.5, 2.5 and 5 standard deviations are found within three, two
// and one nights most often (the characteristics in the tests).
var windows = []struct {
	nights int
	alpha  float64
}{
	{1, perNight * 0.42},
	{2, perNight * 0.28},
	{3, perNight * 0.48},
}

// factors are, for each window and number of reference nights, the half width
// of the prediction interval in standard deviations.
var factors = sync.OnceValue(func() (table [][mostReference + 1]float64) {
	for _, w := range windows {
		var row [mostReference + 1]float64
		for n := 2; n <= mostReference; n++ {
			t := stat.StudentQuantile(1-w.alpha/2, float64(n-1))
			row[n] = t * math.Sqrt(1/float64(w.nights)+1/float64(n))
		}
		table = append(table, row)
	}
	return table
})

// night is what a series says of one night. The zero value: nothing, since
// there is no reference yet.
type night struct {
	Reference int     // nights it is held against; below leastReference: it is only recorded
	Mean      float64 // of the reference; NaN without one
	Sigma     float64 // standard deviation from night to night, the noise floor; NaN below two nights
	Low, High float64 // tonight's prediction interval; infinite below two nights
	Alarm     int     // the stretch of nights up to tonight that has changed; 0: none
	Shift     float64 // mean of that stretch, or of tonight alone, less Mean
}

// watch holds every night against those before it and returns as many.
// floor is the least standard deviation that the numbers can have, in their
// unit: what is smaller is their rounding, not the server; it keeps a series
// that said the same every night (a success of 100 %) from alarming at its first
// different digit. ignore is the size of a shift below which nobody wants to be
// told. Both are 0 or more.
//
// A night in an alarm never joins the reference, so that a change does not
// become what later nights are held against before somebody accepts it.
//
// The prediction interval for the mean of w further nights of n normal ones is
// m ± t(n−1, 1−α/2)·s·√(1/w + 1/n) (Hahn and Meeker, Statistical Intervals,
// 1991, section 4.7).
func watch(series []float64, floor, ignore float64) []night {
	nights := make([]night, len(series))
	alarmed := make([]bool, len(series))
	since := 0 // a stretch starts after the last alarm
	for i, tonight := range series {
		n := &nights[i]
		known := reference(series[:i], alarmed)
		n.Reference = len(known)
		n.Mean, n.Sigma = moments(known, floor)
		n.Low, n.High = predict(known, 0, floor)
		n.Shift = tonight - n.Mean
		for k, w := range windows {
			from := i + 1 - w.nights
			if from < since {
				break
			}
			known := reference(series[:from], alarmed)
			if len(known) < leastReference {
				break
			}
			low, high := predict(known, k, floor)
			center, _ := moments(known, floor)
			m, _ := stat.Moments(series[from : i+1])
			if (m < low || m > high) && math.Abs(m-center) >= ignore {
				n.Alarm, n.Shift = w.nights, m-center
				break
			}
		}
		for k := i + 1 - n.Alarm; k <= i; k++ {
			alarmed[k] = true
			since = i + 1
		}
	}
	return nights
}

// reference is what the nights after these are held against.
func reference(nights []float64, alarmed []bool) []float64 {
	var known []float64
	for i, x := range nights {
		if !alarmed[i] && len(known) < mostReference {
			known = append(known, x)
		}
	}
	return known
}

// predict is the interval for the mean of a window after the known nights;
// without bounds when there are too few to say.
func predict(known []float64, window int, floor float64) (low, high float64) {
	if len(known) < 2 {
		return math.Inf(-1), math.Inf(1)
	}
	m, s := moments(known, floor)
	half := factors()[window][len(known)] * s
	return m - half, m + half
}

// moments is the mean, NaN of none, and the standard deviation, no less than
// floor and NaN of fewer than two.
func moments(xs []float64, floor float64) (mean, sigma float64) {
	mean, variance := stat.Moments(xs)
	return mean, math.Max(math.Sqrt(variance), floor)
}
