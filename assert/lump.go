package assert

import (
	"fmt"

	"github.com/tokgate/tokgate/metric"
)

// An answer that streams faster than this, in tokens a second, came in one
// piece: a proxy held it back, or this process did not get to read it in time.
// The fastest servers stream a few thousand to one user. Of such answers the
// end is known, but not the speed; a few of them lift a mean beyond all
// bounds.
const (
	lumpSpeed = 10_000
	lumpShare = 0.01 // of the completed requests; below it a mean is left alone
)

// lumps counts the answers of the level that came in one piece, and says so
// when there are too many for a mean of the metric to mean anything; "" when
// not.
func (s *subject) lumps(def metric.Def) string {
	if def.Name != "speed" && def.Name != "tpot" {
		return ""
	}
	lumps, completed := 0, 0
	for _, b := range s.blocks {
		for _, x := range b.samples {
			if !x.Completed() {
				continue
			}
			completed++
			if v, ok := x.Value("speed"); ok && v > lumpSpeed {
				lumps++
			}
		}
	}
	if float64(lumps) <= lumpShare*float64(completed) {
		return ""
	}
	return fmt.Sprintf("%d of %d answers came in one piece, which says nothing of the speed at which they were made: does a proxy hold streams back, or is the load generator short of time?",
		lumps, completed)
}
