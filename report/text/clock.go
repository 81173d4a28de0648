package text

import (
	"fmt"
	"math"
)

// Clock formats seconds of a run, rounded to a second, as 42s, 3m05s or 2h03m.
func Clock(seconds float64) string {
	n := int64(math.Round(max(seconds, 0)))
	switch {
	case n < 60:
		return fmt.Sprintf("%ds", n)
	case n < 3600:
		return fmt.Sprintf("%dm%02ds", n/60, n%60)
	}
	return fmt.Sprintf("%dh%02dm", n/3600, n/60%60)
}
