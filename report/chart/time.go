package chart

import "fmt"

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
