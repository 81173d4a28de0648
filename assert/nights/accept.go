package nights

import "math"

// beyondErrors is how far the last nights must be beyond what is accepted, in standard errors. All
// nights since the change together need no margin.
const beyondErrors = 2

// beyond reports whether a series is worse than is allowed. worse holds how much worse than the
// reference each night since the change is, the last night first, and sigma is the noise of a night. It
// asks all nights together, and the last two, three or five, which show that a change has grown.
func beyond(worse []float64, sigma, allowed float64) bool {
	sum := 0.0
	for i, x := range worse {
		sum += x
		n := float64(i + 1)
		switch i + 1 {
		case 2, 3, 5:
			if sum/n > allowed+beyondErrors*sigma/math.Sqrt(n) {
				return true
			}
		}
	}
	return len(worse) == 0 || sum/float64(len(worse)) > allowed
}
