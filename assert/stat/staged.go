package stat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
)

// Timed holds the values of one side of a comparison, and the time of each in any unit. A value is
// that of one start of a server.
type Timed struct{ Values, At []float64 }

// Design says how the values of two sides are compared.
type Design string

const (
	// Groups compares two groups of independent values.
	Groups Design = "groups"
	// Pairs compares each value with that of the same place on the other side. It is for values that
	// share something with their pair that other pairs lack, such as the prompts that were sent.
	Pairs Design = "pairs"
)

// Drift is the difference of two sides' means beside a linear drift that both sides share.
type Drift struct {
	Design
	Diff float64 // mean of the second side minus that of the first, at the same time
	SE   float64 // standard error of Diff
	DF   float64 // degrees of freedom of SE
	// Spread is the standard deviation of one value about its side and the drift. Of pairs it is
	// that of their differences, divided by √2.
	Spread float64
	later  int // sessions after the first, each of which costs a degree of freedom
}

// Drifting estimates the difference between two sides by least squares. As groups: value = side +
// slope·time, with one variance for both sides (Fisher's analysis of covariance, Statistical Methods
// for Research Workers, 1932). As pairs: difference = change + slope·(difference in time). With fewer
// than three values on a side there is no slope, nor for pairs that are all equally far apart.
//
// sessions lists after how many values of each side a later session began. As groups each session
// has a level of its own: what happened between them is a step that both sides share. Of pairs it
// cancels.
//
// ok is false with fewer than two values on a side, with unequal numbers of values of pairs or in
// sessions, or if a result is not finite.
func (g Design) Drifting(a, b Timed, sessions ...int) (d Drift, ok bool) {
	if len(a.Values) < 2 || len(b.Values) < 2 || (g == Pairs || len(sessions) > 0) && len(a.Values) != len(b.Values) {
		return Drift{}, false
	}
	if g == Groups {
		a, b, d.later = levelled(a, b, sessions)
	}
	later := d.later
	var s sides
	for i, v := range a.Values {
		s[0].add(v, a.At[i])
		if g == Pairs {
			s[2].add(b.Values[i]-v, b.At[i]-a.At[i])
		}
	}
	for i, v := range b.Values {
		s[1].add(v, b.At[i])
	}
	d = s.drifting(g)
	if d.later = later; later > 0 {
		rest := math.Sqrt(d.DF / (d.DF - float64(later))) // NaN if nothing is left
		d.DF, d.Spread, d.SE = d.DF-float64(later), d.Spread*rest, d.SE*rest
	}
	if math.IsNaN(d.Diff) || math.IsInf(d.Diff, 0) || math.IsNaN(d.SE) || math.IsInf(d.SE, 0) {
		return Drift{}, false
	}
	return d, true
}

// levelled subtracts from the values and times of each session their means over both sides. Both sides
// have as many values in a session, so what is left is orthogonal to the sessions' levels. later is
// the number of sessions after the first that have values.
func levelled(a, b Timed, sessions []int) (x, y Timed, later int) {
	n, from := len(a.Values), 0
	if len(sessions) == 0 {
		return a, b, 0
	}
	for _, to := range append(slices.Clone(sessions), n) {
		if to = min(to, n); to <= from {
			continue
		}
		if from > 0 {
			later++
		}
		for _, of := range []struct{ a, b, x, y *[]float64 }{{&a.Values, &b.Values, &x.Values, &y.Values}, {&a.At, &b.At, &x.At, &y.At}} {
			mean, _ := Moments(slices.Concat((*of.a)[from:to], (*of.b)[from:to]))
			for i := from; i < to; i++ {
				*of.x, *of.y = append(*of.x, (*of.a)[i]-mean), append(*of.y, (*of.b)[i]-mean)
			}
		}
		from = to
	}
	return x, y, later
}

// Above returns the p-value of the claim that the true difference lies above the limit.
func (d Drift) Above(limit float64) float64 {
	switch {
	case d.SE > 0:
		return StudentCDF(-(d.Diff-limit)/d.SE, d.DF)
	case d.Diff > limit:
		return 0
	}
	return 1
}

// Bounds returns one-sided bounds of the difference, each of which errs with probability alpha.
func (d Drift) Bounds(alpha float64) (low, high float64) {
	half := StudentQuantile(1-alpha, d.DF) * d.SE
	return d.Diff - half, d.Diff + half
}

// StartsNeeded returns how many values a side takes to tell the difference from the limit, if the
// difference and the spread stay the same. ok is false if a thousand would not suffice.
func (d Drift) StartsNeeded(limit, alpha float64) (n int, ok bool) {
	const most = 1000
	n = 3 + sort.Search(most-2, func(i int) bool { return d.Half(3+i, alpha) < math.Abs(d.Diff-limit) })
	return n, n <= most
}

// Half returns the distance from the estimate to its bound after n values a side, at least 2, if the
// spread stays the same. The bound errs with probability alpha.
func (d Drift) Half(n int, alpha float64) float64 {
	return StudentQuantile(1-alpha, d.df(n)-float64(d.later)) * d.Spread * math.Sqrt(2/float64(n))
}

// df returns the degrees of freedom after n values a side.
func (g Design) df(n int) float64 {
	df := n - 1
	if g != Pairs {
		df *= 2
	}
	if n >= 3 {
		df-- // of the slope
	}
	return float64(df)
}

// sides holds the sums of both sides, and of the differences between them.
type sides [3]sums

func (s *sides) drifting(g Design) Drift {
	if g == Pairs {
		return paired(s[2])
	}
	return grouped(s[0], s[1])
}

// sums holds what Drifting needs of one side. The first value is subtracted from all values, so that
// the squares stay small.
type sums struct{ n, first, y, yy, t, tt, ty float64 }

func (s *sums) add(y, t float64) {
	if s.n == 0 {
		s.first = y
	}
	y -= s.first
	s.n, s.y, s.yy, s.t, s.tt, s.ty = s.n+1, s.y+y, s.yy+y*y, s.t+t, s.tt+t*t, s.ty+t*y
}

// about returns the mean, and the sums of squares and products about the means.
func (s *sums) about() (y, t, yy, tt, ty float64) {
	y, t = s.y/s.n, s.t/s.n
	return y + s.first, t, s.yy - s.y*y, s.tt - s.t*t, s.ty - s.t*y
}

func grouped(a, b sums) Drift {
	ya, ta, yya, tta, tya := a.about()
	yb, tb, yyb, ttb, tyb := b.about()
	yy, tt, ty := yya+yyb, tta+ttb, tya+tyb
	d := Drift{Design: Groups, Diff: yb - ya, DF: a.n + b.n - 2}
	per := 1/a.n + 1/b.n
	if min(a.n, b.n) >= 3 && tt > 0 {
		slope := ty / tt
		d.Diff -= slope * (tb - ta)
		yy -= slope * ty
		per += (tb - ta) * (tb - ta) / tt
		d.DF--
	}
	// Equal values leave a rest of the order of rounding errors.
	if yy <= 1e-24*(a.n+b.n) {
		yy = 0
	}
	d.Spread = math.Sqrt(yy / d.DF)
	d.SE = d.Spread * math.Sqrt(per)
	return d
}

func paired(s sums) Drift {
	y, t, yy, tt, ty := s.about()
	d := Drift{Design: Pairs, Diff: y, DF: s.n - 1}
	per := 1 / s.n
	if s.n >= 3 && tt > 0 {
		slope := ty / tt
		d.Diff -= slope * t
		yy -= slope * ty
		per += t * t / tt
		d.DF--
	}
	if yy <= 1e-24*s.n { // as in grouped
		yy = 0
	}
	d.Spread = math.Sqrt(yy / d.DF / 2)
	d.SE = math.Sqrt(yy / d.DF * per)
	return d
}

// Boundary returns the error that each of several looks at a comparison may use, so that all looks
// together err with probability alpha. Each look tests all values so far by this design, and looks
// lists after how many values a side. All looks get the same error (Pocock, Biometrika 64, 1977).
//
// The statistics of the looks do not depend on the spread of the values, so their joint
// distribution is found by drawing normal values with a fixed seed: the same arguments give the same
// result. The draws are for the order A B B A A B B A of the two sides.
//
// looks must ascend from at least 2. Boundary returns 0 if they do not.
func (g Design) Boundary(looks []int, alpha float64) float64 {
	for i, n := range looks {
		if n < 2 || i > 0 && n <= looks[i-1] {
			return 0
		}
	}
	switch len(looks) {
	case 0:
		return 0
	case 1:
		return alpha
	}
	key := fmt.Sprint(g, looks, alpha)
	if found, ok := boundaries.Load(key); ok {
		return found.(float64)
	}
	drawn, _ := looksDrawn.LoadOrStore(fmt.Sprint(g, looks), sync.OnceValue(func() [][]float32 { return g.drawLooks(looks) }))
	t := drawn.(func() [][]float32)()
	allowed := int(alpha * float64(len(t[0])))
	within := func(p float64) bool {
		most := make([]float32, len(looks))
		for k, n := range looks {
			most[k] = float32(StudentQuantile(1-p, g.df(n)))
		}
		crossed := 0
		for i := range t[0] {
			for k := range t {
				if t[k][i] >= most[k] {
					crossed++
					break
				}
			}
		}
		return crossed <= allowed
	}
	// Any error up to alpha divided by the number of looks is safe; a larger one must be shown to be.
	low, high := alpha/float64(len(looks)), alpha
	for range 22 {
		if mid := math.Sqrt(low * high); within(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	boundaries.Store(key, low)
	return low
}

var boundaries, looksDrawn sync.Map

// drawLooks draws comparisons of equal servers. Element [k][i] of the result is the t statistic of
// comparison i at look k.
func (g Design) drawLooks(looks []int) [][]float32 {
	last := looks[len(looks)-1]
	draws := max(20_000, min(100_000, 2_400_000/last))
	out := make([][]float32, len(looks))
	for k := range out {
		out[k] = make([]float32, draws)
	}
	r := rand.New(rand.NewPCG(12, 3))
	for i := range draws {
		var s sides
		k := 0
		for round := range last {
			var pair [2]float64
			for turn := range 2 {
				side := (turn + round) % 2
				pair[side] = r.NormFloat64()
				s[side].add(pair[side], float64(2*round+turn))
			}
			s[2].add(pair[1]-pair[0], float64(1-round%2*2))
			if round+1 == looks[k] {
				d := s.drifting(g)
				out[k][i] = float32(d.Diff / d.SE)
				k++
			}
		}
	}
	return out
}
