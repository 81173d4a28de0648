package nights

import (
	"math"

	"github.com/tokgate/tokgate/assert/stat"
)

const (
	// leastReference is the minimum number of reference nights for a judgement.
	leastReference = 10
	// leastKnown is the same if the noise is known from at least leastReference other nights.
	leastKnown = 4
	// mostReference is the maximum number of reference nights. Later nights do not join the
	// reference.
	mostReference = 90
	// undecided is the number of last nights that say nothing of the noise of the plan. If all series
	// changed together on one of them, the noise would look correlated and skewed, and so hide the
	// change: the nights would join the reference.
	undecided = 5
	// perPlan is the chance of a false alarm for the worse in one night, in all series of a plan
	// together. It assumes that the values are normally distributed.
	perPlan = 0.007
)

// windows lists the tests of one night: the mean of the last nights is compared with the reference.
// Two and three nights show a change that is large enough; longer windows show one that grows
// slowly. No window has a single night, because real series have single bad nights. share is the
// window's share of the allowed false alarms. The shares may add up to more than one, because the
// windows overlap.
var windows = []struct {
	nights int
	share  float64
}{
	{2, 0.45}, {3, 0.8}, {5, 0.03}, {8, 0.03}, {13, 0.03}, {21, 0.03}, {34, 0.03},
}

const (
	// mostNight limits how far one night may deviate from the reference, in standard deviations. A
	// larger deviation counts as this one, so no single night decides alone.
	mostNight = 3
	// lasting is how many nights in a row count as much as the least of them, up to mostLasting
	// standard deviations, if all deviate further than mostNight: without that, no change would be an
	// alarm soon after ten reference nights in a plan of several series. Nights of several machines are
	// left out: three in a row may be those of one slow machine.
	lasting, mostLasting = 3, 4
	// ofSingle is the share of the allowed false alarms at which a single night is suspect.
	ofSingle = 0.3
	// beyondWorst says how far beyond the worst night that did not last a suspect night must be.
	beyondWorst = 1.25
)

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
	// wait means that a better level becomes the reference only by a pin.
	wait bool
	// before is what is known of the series from nights before the first one.
	before memory
	// from is the first night that may be judged. Earlier nights only join the reference.
	from int
	// common means that the column holds nights of several runners.
	common bool
	// others are the indices of the columns of the same series on other runners; for a common column,
	// of all runners.
	others []int
	// lasting reports whether an alarm that began on the night from still counts tonight; nil if it
	// always does.
	lasting func(from, tonight int) bool
}

func (c column) lasts(from, tonight int) bool { return c.lasting == nil || c.lasting(from, tonight) }

// memory is what is known of a series from nights with which later ones are not compared.
type memory struct {
	noise moments // of their reference
	worst float64 // largest deviation of a night that did not last, in standard deviations
}

// night is the result for one series on one night.
type night struct {
	Reference int  // number of nights in the reference
	Judged    bool // there were enough of them
	// Moved is the first night of the reference if the reference was moved behind a change; 0 if
	// not. Adopted means that the change was for the better and lasted.
	Moved    int
	Adopted  bool
	Expected prediction
	// Correlation is the correlation from one night to the next that the prediction assumes.
	Correlation float64
	// Level is the one-sided significance that tonight allows for this series.
	Level float64
	// Suspect means that tonight alone is significantly worse. One night never raises an alarm.
	Suspect bool
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
	half := stat.StudentQuantile(1-n.Level*ofSingle, n.Expected.Freedom) * n.Expected.Error
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
	out, _ := watchAll(columns)
	return out
}

// watchAll does what watch does, and also returns the state of the series after the last night.
func watchAll(columns []column) ([][]night, []*watched) {
	series := make([]*watched, len(columns))
	out := make([][]night, len(columns))
	nights := 0
	for i, c := range columns {
		out[i] = make([]night, len(c.values))
		series[i] = &watched{column: c, nights: out[i], worst: c.before.worst}
		nights = max(nights, len(c.values))
	}
	for _, s := range series {
		for _, k := range s.column.others {
			s.siblings = append(s.siblings, series[k])
		}
	}
	for tonight := range nights {
		watchNight(series, tonight)
	}
	return out, series
}

func watchNight(series []*watched, tonight int) {
	plan, worst := surroundings{series, map[int]noise{}}, 0.0
	for _, s := range series {
		s.worstSettled()
		worst = max(worst, s.worst)
	}
	var measured, judged []*watched
	var looks []look
	var worse, better, alone []float64
	for _, s := range series {
		if math.IsNaN(s.values[tonight]) {
			continue
		}
		measured = append(measured, s)
		s.forget(tonight)
		s.seen = append(s.seen, tonight)
		l := s.look(tonight, plan, worst)
		if n := &s.nights[tonight]; n.Reference >= s.least() && tonight >= s.from {
			n.Judged = true
			judged, looks = append(judged, s), append(looks, l)
			worse, better, alone = append(worse, l.worse.p), append(better, l.better.p), append(alone, min(l.worse.p, l.alone/ofSingle))
		}
	}
	isWorse, isBetter, isSuspect := stat.Holm(worse, perPlan), stat.Holm(better, perPlan), stat.Holm(alone, perPlan)
	for i, s := range judged {
		s.nights[tonight].Level = perPlan / float64(len(judged))
		switch {
		case s.change.on && s.change.worse: // red already
		case isWorse[i]:
			s.alarm(looks[i].worse.nights, true)
		default:
			s.nights[tonight].Suspect = isSuspect[i]
			if isBetter[i] && !s.change.on {
				s.alarm(looks[i].better.nights, false)
			}
		}
	}
	for _, s := range measured {
		s.settle(tonight)
	}
}

// ofSteps is the share of steps that soon finds.
const ofSteps = 0.8

// soon returns the smallest step for the worse of which at least ofSteps are found within three
// nights, on the scale of the values: a window of two nights may find more. It is +Inf if there is no
// prediction.
func (n night) soon() float64 {
	p, three := n.Expected, windows[1]
	if p.Freedom < 1 {
		return math.Inf(1)
	}
	k, m := float64(three.nights), float64(n.Reference)
	err := math.Sqrt(inflation(n.Correlation, three.nights)/k + inflation(n.Correlation, n.Reference)/m)
	// In standard deviations of one night: a mean must reach limit, and nights count as at most
	// mostNight, unless all three reach limit.
	limit := stat.StudentQuantile(1-n.Level*three.share, p.Freedom) * err
	all := limit + stat.NormalQuantile(math.Pow(ofSteps, 1/k))
	need, size := limit+stat.NormalQuantile(ofSteps)*err, 0.0
	for ; size < all; size += 0.01 {
		over := mostNight - size // the mean that the limit of a night takes away (a normal loss function)
		loss := math.Exp(-over*over/2)/math.Sqrt(2*math.Pi) - over*math.Erfc(over/math.Sqrt2)/2
		if size-loss >= need {
			break
		}
	}
	return size * p.Sigma
}
