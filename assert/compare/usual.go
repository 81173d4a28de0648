package compare

import (
	"math"
	"slices"

	"github.com/tokgate/tokgate/metric"
)

// group is a set of the control's answers that are alike: of one workload and level, and either all
// measured or all at temperature 0.
type group struct {
	workload, level string
	sampled         bool
}

// usual knows how likely the control finds its own answers. What it finds much less likely in the
// candidate's answers is odd.
type usual struct {
	answers map[group][]*metric.PairedAnswer // those that were scored
	known   map[group]map[int]bounds         // by the length of an answer
}

// bounds says how unlikely an answer of some length may be, in nats. The bounds are infinite if the
// control has too few answers.
type bounds struct {
	worst  float64 // for the least likely token
	mean   float64 // for the mean of all tokens
	median float64 // the median of the means of the control's own answers
}

func newUsual(r *metric.PairedAnswers) *usual {
	u := &usual{answers: map[group][]*metric.PairedAnswer{}, known: map[group]map[int]bounds{}}
	add := func(of group, a *metric.PairedAnswer) {
		if a != nil && a.Scored > 0 {
			u.answers[of] = append(u.answers[of], a)
		}
	}
	for _, p := range r.Pairs {
		of := group{p.Workload, p.Level, false}
		add(of, p.Control)
		add(of, p.Again)
	}
	for i := range r.Sampled {
		if s := &r.Sampled[i]; !s.Candidate {
			add(group{s.Workload, s.Level, true}, &s.PairedAnswer)
		}
	}
	return u
}

const (
	// rareShare is the share of the control's own answers that exceed a bound.
	rareShare = 0.001
	// leastWorst is the smallest bound for the least likely token of an answer, in nats. At a
	// temperature of 0, servers choose tokens of up to about 3 nats. A harmless change of kernels
	// may lead to such a token where the control chose another.
	leastWorst = 4.0
	// leastTail is the smallest number of answers from which a tail is estimated, and leastAlike
	// the smallest number of answers of like length.
	leastTail, leastAlike = 5, 20
)

// boundsFor returns the bounds for an answer with the given number of tokens.
func (u *usual) boundsFor(of group, tokens int) bounds {
	if b, ok := u.known[of][tokens]; ok {
		return b
	}
	var means, worst []float64
	for _, a := range u.alike(of, tokens) {
		x, _ := a.PerToken()
		means, worst = append(means, x), append(worst, a.Worst)
	}
	b := bounds{worst: max(rare(worst), leastWorst), mean: rare(means), median: median(means)}
	if u.known[of] == nil {
		u.known[of] = map[int]bounds{}
	}
	u.known[of][tokens] = b
	return b
}

// alike returns the control's answers of like length: at least half and at most twice as long. If
// they are few, it returns all that are at least half as long, since longer answers have less likely
// tokens. If these are few, it returns all.
func (u *usual) alike(of group, tokens int) []*metric.PairedAnswer {
	longer := slices.DeleteFunc(slices.Clone(u.answers[of]), func(a *metric.PairedAnswer) bool { return 2*a.Scored < tokens })
	alike := slices.DeleteFunc(slices.Clone(longer), func(a *metric.PairedAnswer) bool { return a.Scored > 2*tokens })
	for _, list := range [][]*metric.PairedAnswer{alike, longer} {
		if len(list) >= leastAlike {
			return list
		}
	}
	return u.answers[of]
}

// rare estimates the value that the share rareShare of such values exceeds. It takes the largest
// tenth of the values, but at least leastTail, and assumes that their distances from the next value
// are exponentially distributed. The result is infinite if there are not more than leastTail values.
func rare(xs []float64) float64 {
	k := max(len(xs)/10, leastTail)
	if len(xs) <= k {
		return math.Inf(1)
	}
	sorted := slices.Sorted(slices.Values(xs))
	from, sum := sorted[len(xs)-k-1], 0.0
	for _, x := range sorted[len(xs)-k:] {
		sum += x - from
	}
	return from + sum/float64(k)*math.Log(float64(k)/float64(len(xs))/rareShare)
}
