package nights

import (
	"math"

	"github.com/tokgate/tokgate/assert/stat"
)

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
