package metric

import "math"

// Band returns an everyday word for the value v of a metric, such as "responsive". It returns "" if
// the metric has no such words, or if v is not a number.
//
//	ttft   < 0.5 s instant, < 2 s responsive, < 5 s noticeable, < 10 s slow, else frustrating
//	speed  < 15 tok/s slow, < 25 acceptable, < 50 fast, else very fast
//	itl    < 20 ms instant, < 70 ms acceptable, else sluggish
func Band(name string, v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	type step struct {
		below float64
		word  string
	}
	var steps []step
	switch name {
	case "ttft":
		steps = []step{{0.5, "instant"}, {2, "responsive"}, {5, "noticeable"}, {10, "slow"}, {math.Inf(1), "frustrating"}}
	case "speed":
		steps = []step{{15, "slow"}, {25, "acceptable"}, {50, "fast"}, {math.Inf(1), "very fast"}}
	case "itl":
		steps = []step{{0.020, "instant"}, {0.070, "acceptable"}, {math.Inf(1), "sluggish"}}
	}
	for i, s := range steps {
		if v < s.below || i == len(steps)-1 {
			return s.word
		}
	}
	return ""
}
