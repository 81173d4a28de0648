package chart

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// scale converts the values of one axis to pixels.
type scale struct {
	axis     *Axis
	min, max float64 // smallest and largest value on the axis, or their logarithms if Log is set
	from, to float64 // pixels
	across   float64 // width of the picture
	ticks    []float64
}

func (a *Axis) scale(values []float64, n int) *scale {
	s := &scale{axis: a, min: math.Inf(1), max: math.Inf(-1), across: Width}
	for _, v := range slices.Concat(values, a.Include) {
		if finite(v) && (!a.Log || v > 0) {
			s.min, s.max = min(s.min, v), max(s.max, v)
		}
	}
	if a.Min < a.Max {
		s.min, s.max = a.Min, a.Max
	}
	switch {
	case s.min > s.max && a.Log:
		s.min, s.max = 1, 10
	case s.min > s.max:
		s.min, s.max = 0, 1
	}
	if a.Zero && !a.Log {
		s.min = min(s.min, 0)
		s.max = max(s.max, 0)
	}
	if s.max-s.min <= 1e-6*max(math.Abs(s.min), math.Abs(s.max)) {
		// All values are equal, apart from rounding, so widen the axis. Without this, the ticks
		// could not be told apart. A very small step would not change a value, so the loop over the
		// ticks would never end.
		switch {
		case a.Log:
			s.min, s.max = s.min/2, s.max*2
		case s.min == 0:
			s.max = 1
		default:
			s.min, s.max = s.min-math.Abs(s.min)/2, s.max+math.Abs(s.max)/2
		}
	}
	s.divide(n)
	if a.Log {
		s.min, s.max = math.Log(s.min), math.Log(s.max)
		room := (s.max - s.min) * 0.04
		if a.Ticks == nil {
			s.min, s.max = s.min-room, s.max+room
		}
	}
	return s
}

func (s *scale) divide(n int) {
	a := s.axis
	switch {
	case a.Ticks != nil:
		s.ticks = slices.Compact(slices.Sorted(slices.Values(a.Ticks)))
	case a.Log:
		s.ticks = decades(s.min, s.max)
	default:
		step := nice((s.max - s.min) / float64(max(n, 2)))
		if a.Whole && step != math.Round(step) {
			step = nice(math.Ceil(step))
		}
		if a.Min == a.Max {
			// Let the axis end at a tick, so that no point is at the edge of the picture.
			s.min, s.max = math.Floor(s.min/step+1e-9)*step, math.Ceil(s.max/step-1e-9)*step
		}
		for i := math.Ceil(s.min/step - 1e-9); i*step <= s.max+step*1e-9 && len(s.ticks) < 100; i++ {
			s.ticks = append(s.ticks, i*step)
		}
	}
}

// nice is the smallest of 1, 2, 2.5 and 5 times a power of ten that is at least
// v.
func nice(v float64) float64 {
	if v <= 0 || !finite(v) {
		return 1
	}
	base := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if m*base >= v*(1-1e-9) {
			return m * base
		}
	}
	return 10 * base
}

// decades returns ticks within [low, high]: powers of ten times 1, 2 and 5, or only powers of ten
// if the range is large. It returns at least two ticks.
func decades(low, high float64) []float64 {
	steps := []float64{1, 2, 5}
	if high/low > 1e4 {
		steps = []float64{1}
	}
	var out []float64
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for _, m := range steps {
			// Parse the number as decimal text, because a floating-point product may not be exact.
			v, _ := strconv.ParseFloat(strconv.FormatFloat(m, 'f', -1, 64)+"e"+strconv.Itoa(int(e)), 64)
			if v >= low*(1-1e-9) && v <= high*(1+1e-9) {
				out = append(out, v)
			}
		}
	}
	if len(out) < 2 {
		return []float64{low, high}
	}
	return out
}

func (s *scale) place(from, to float64) { s.from, s.to = from, to }

// pad moves both ends of the axis inwards, by the given number of pixels.
func (s *scale) pad(pixels float64) { s.from, s.to = s.from+pixels, s.to-pixels }

func (s *scale) at(v float64) float64 {
	if s.axis.Log {
		if v <= 0 {
			return s.from
		}
		v = math.Log(v)
	}
	return s.from + (v-s.min)/(s.max-s.min)*(s.to-s.from)
}

func (s *scale) format(v float64) string {
	if s.axis.Format != nil {
		return s.axis.Format(v)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// labelCenter returns the centre of a tick's label. The label is moved if it would extend beyond
// the picture.
func (s *scale) labelCenter(v float64) float64 {
	half := width(s.format(v)) / 2
	return min(max(s.at(v), half+1), s.across-half-1)
}

// everyNth returns every n-th tick of the axis. It returns nil if the labels of these ticks would
// overlap.
func (s *scale) everyNth(n int) []float64 {
	var out []float64
	end := math.Inf(-1)
	for i := 0; i < len(s.ticks); i += n {
		v := s.ticks[i]
		half := width(s.format(v))/2 + 5
		if s.labelCenter(v)-half < end {
			return nil
		}
		out, end = append(out, v), s.labelCenter(v)+half
	}
	return out
}

// separateTicks returns ticks whose labels do not overlap. It keeps the first and the last tick,
// and as many others as fit.
func (s *scale) separateTicks() []float64 {
	type label struct{ at, half float64 }
	var kept []float64
	var labels []label
	// Ticks at round numbers keep an even distance. Try every second tick, then every third, and so
	// on.
	for stride := 2; s.axis.Ticks == nil && !s.axis.Log && stride <= len(s.ticks); stride++ {
		if even := s.everyNth(stride - 1); even != nil {
			return even
		}
	}
	try := func(v float64) {
		if slices.Contains(kept, v) {
			return
		}
		if at := s.at(v); at < min(s.from, s.to)-1 || at > max(s.from, s.to)+1 {
			return
		}
		l := label{s.labelCenter(v), width(s.format(v))/2 + 5}
		for _, o := range labels {
			if math.Abs(o.at-l.at) < o.half+l.half {
				return
			}
		}
		kept, labels = append(kept, v), append(labels, l)
	}
	for _, t := range s.axis.First {
		if slices.Contains(s.ticks, t) {
			try(t)
		}
	}
	if n := len(s.ticks); n > 0 {
		try(s.ticks[n-1])
		for _, t := range s.ticks[:n-1] {
			try(t)
		}
	}
	slices.Sort(kept)
	return kept
}

// Clock formats seconds as on a clock: 90 is "1:30".
func Clock(seconds float64) string {
	n := int(seconds)
	if n >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", n/3600, n/60%60, n%60)
	}
	return fmt.Sprintf("%d:%02d", n/60, n%60)
}

// Time is an axis of the given seconds, with ticks at whole steps of a clock.
func Time(length float64) Axis {
	a := Axis{Title: "Minutes:seconds", Zero: true, Format: Clock, Include: []float64{length}}
	if !(length > 0) || !finite(length) {
		return a
	}
	step := 0.0
	for _, s := range []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400} {
		if step = s; length/s <= 6 {
			break
		}
	}
	for at := 0.0; at <= length && len(a.Ticks) < 100; at += step {
		a.Ticks = append(a.Ticks, at)
	}
	return a
}
