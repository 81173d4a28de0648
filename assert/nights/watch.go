package nights

import (
	"math"

	"github.com/tokgate/tokgate/assert/stat"
)

const (
	// leastReference is the minimum number of reference nights for a judgement.
	leastReference = 10
	// mostReference is the maximum number of reference nights. Later nights do not join the
	// reference.
	mostReference = 90
	// perPlan is the chance of a false alarm for the worse in one night, in all series of a plan
	// together. It assumes that the values are normally distributed.
	perPlan = 0.007
	// RedByChance limits the share of nights that fail although nothing changed. It is larger than
	// perPlan, because a false alarm lasts several nights. `make characteristics` measures the
	// share.
	RedByChance = 0.04
)

// windows lists the tests of one night: the mean of the last nights is compared with the reference.
// One night shows a large change, and three show a small one. Longer windows show a change that
// grows slowly. share is the window's share of the allowed false alarms. The shares may add up to a
// little more than one, because the windows overlap.
var windows = []struct {
	nights int
	share  float64
}{
	{1, 0.3}, {2, 0.2}, {3, 0.45}, {5, 0.03}, {8, 0.03}, {13, 0.03}, {21, 0.03}, {34, 0.03},
}

// oneNight is the chance that the test of a single night raises a false alarm, for all series
// together.
var oneNight = windows[0].share * perPlan

// column holds the values of one series, one for each night of the plan. The value is NaN if the
// night did not measure the series.
type column struct {
	values []float64
	// worse is +1 if a higher value is worse, -1 if a lower value is worse, and 0 if any change is
	// worse.
	worse int
	// floor is the smallest standard deviation that the prediction assumes. Differences below it
	// come from rounding. Without floor, a series that was the same every night (a success of 100
	// %) would raise an alarm at its first different digit.
	floor float64
	// ignore is the smallest shift that is reported; smaller ones raise no alarm.
	ignore float64
}

// night is the result for one series on one night.
type night struct {
	Reference int // number of nights in the reference; none is judged below leastReference
	Expected  prediction
	// Correlation is the correlation from one night to the next that the prediction assumes.
	Correlation float64
	// Level is the one-sided significance at which tonight alone would raise an alarm.
	Level float64
	// Changed is set if tonight raised an alarm, or an earlier alarm still stands.
	Changed bool
	Worse   bool    // the change is for the worse
	From    int     // first night of the change, an index into the values
	Shift   float64 // tonight's value, or the mean since a change, minus the reference's mean
	New     bool    // the alarm is tonight's
	Back    bool    // tonight ended an alarm that reported a change for the worse
}

// bounds returns tonight's prediction interval; it is infinite if there is no prediction.
func (n night) bounds() (low, high float64) {
	if n.Expected.Freedom < 1 {
		return math.Inf(-1), math.Inf(1)
	}
	half := stat.StudentQuantile(1-n.Level, n.Expected.Freedom) * n.Expected.Error
	return n.Expected.Center - half, n.Expected.Center + half
}

// watch compares each night of a plan with the nights before it, series by series. It returns the
// result of each series for each night. A night without a value has no result. Later nights do not
// change the result of a night.
//
// Nights after a change do not join the reference, because otherwise later nights would be compared
// with a change that nobody has accepted. The chance of a false alarm is limited for all series of
// the plan together, by Holm's rule.
func watch(columns []column) [][]night {
	series := make([]*watched, len(columns))
	out := make([][]night, len(columns))
	nights := 0
	for i, c := range columns {
		out[i] = make([]night, len(c.values))
		series[i] = &watched{column: c, nights: out[i]}
		nights = max(nights, len(c.values))
	}
	for tonight := range nights {
		watchNight(series, tonight)
	}
	return out
}

// watchNight computes the result of every series for tonight.
func watchNight(series []*watched, tonight int) {
	shared := sharedCorrelation(series)
	var measured, judged []*watched
	var worse, better []float64
	// For each series, windows has two lengths in nights: of the window with the strongest evidence
	// for a worse value, and of the one with the strongest evidence for a better value.
	var windows [][2]int
	for _, s := range series {
		if math.IsNaN(s.values[tonight]) {
			continue
		}
		measured = append(measured, s)
		s.seen = append(s.seen, tonight)
		w, b := s.look(tonight, shared)
		if s.nights[tonight].Reference >= leastReference {
			judged = append(judged, s)
			worse, better = append(worse, w.p), append(better, b.p)
			windows = append(windows, [2]int{w.nights, b.nights})
		}
	}
	isWorse, isBetter := stat.Holm(worse, perPlan), stat.Holm(better, perPlan)
	for i, s := range judged {
		s.nights[tonight].Level = oneNight / float64(len(judged))
		switch {
		case s.change.on && s.change.worse: // red already
		case isWorse[i]:
			s.alarm(windows[i][0], true)
		case isBetter[i] && !s.change.on:
			s.alarm(windows[i][1], false)
		}
	}
	for _, s := range measured {
		s.settle(tonight)
	}
}
