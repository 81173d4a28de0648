package nights

import (
	"math"

	"github.com/tokgate/tokgate/assert/stat"
)

const (
	// leastReference is how many reference nights it takes to say anything.
	leastReference = 10
	// mostReference is the largest number of reference nights; later nights are only watched.
	mostReference = 90
	// perPlan is the chance of a false alarm on one night, for the worse, in a
	// plan whose series are normal and do not change: all of them together.
	perPlan = 0.007
	// RedByChance is the share of mornings on which such a plan is red at most,
	// those until it is back among them (`make characteristics`).
	RedByChance = 0.04
)

// windows are the stretches that end tonight and are compared with the
// reference. A large change is found by one night, a small one by three, and
// one that creeps by the longer ones. Each has its share of the false alarms;
// they overlap, so that the shares may come to a little more than one.
var windows = []struct {
	nights int
	share  float64
}{
	{1, 0.3}, {2, 0.2}, {3, 0.45}, {5, 0.03}, {8, 0.03}, {13, 0.03}, {21, 0.03}, {34, 0.03},
}

// oneNight is the significance of one night alone, of all series together.
var oneNight = windows[0].share * perPlan

// column is one series as it is watched: a number for each night of the plan,
// NaN where there is none.
type column struct {
	values []float64
	// worse is +1 where higher is worse, -1 where lower is, 0 where every change
	// is.
	worse int
	// floor is the least standard deviation that the numbers can have: what is
	// smaller is their rounding, not the server; it keeps a series that said the same
	// every night (a success of 100 %) from alarming at its first different digit.
	floor float64
	// ignore is the size of a shift below which nobody wants to be told.
	ignore float64
}

// night is what a series says of one night.
type night struct {
	Reference int // nights it is compared with; below leastReference: it is only recorded
	Expected  prediction
	// Correlation from one night to the next that was allowed for.
	Correlation float64
	// Level is the significance at which tonight alone would alarm on one side.
	Level float64
	// Changed: an alarm of tonight, or of an earlier night that has latched.
	Changed bool
	Worse   bool    // of a change: for the worse
	From    int     // of a change: its first night, an index into the values
	Shift   float64 // mean of the nights since From, or tonight, less the reference's mean
	New     bool    // the alarm is tonight's
	Back    bool    // tonight ended an alarm for the worse
}

// bounds is tonight's prediction interval; infinite where nothing is expected.
func (n night) bounds() (low, high float64) {
	if n.Expected.Freedom < 1 {
		return math.Inf(-1), math.Inf(1)
	}
	half := stat.StudentQuantile(1-n.Level, n.Expected.Freedom) * n.Expected.Error
	return n.Expected.Center - half, n.Expected.Center + half
}

// watch holds every night of a plan against those before it, series by series,
// and returns what each says of each night; a night without a value says
// nothing. What is said of a night never depends on later ones.
//
// An alarm latches (see latch). No night of a change joins the reference, so
// that a change does not become what later nights are compared with before
// somebody accepts it. The chance of a false alarm is for all series of the
// plan together (Holm), and correlation from night to night is allowed for.
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

// watchNight says of every series what tonight is.
func watchNight(series []*watched, tonight int) {
	shared := sharedCorrelation(series)
	var measured, judged []*watched
	var worse, better []float64
	var windows [][2]int // of the evidence for worse, and for better
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
