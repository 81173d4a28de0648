package metric

import (
	"fmt"
	"slices"
)

// Outcome is the result of a check, of a look or of a probe. Outcomes are ordered: a run has the
// worst outcome of its checks, and Skipped does not count. The zero value is Pending, which is an
// error at the end of a run. In JSON an outcome is its name, and "" is Pending.
type Outcome int

const (
	Pending Outcome = iota
	Skipped         // not judged, for a stated reason; does not count in the outcome of a run
	Pass
	Inconclusive
	Fail
	Error // not measured, or the measurement is invalid

	// Only probes of a capacity search have these two.

	Saturated // the load generator was saturated, so the server's limit is unknown
	Capped    // the server admitted fewer requests than asked for, and no threshold failed
)

var outcomes = []string{"pending", "skipped", "pass", "inconclusive", "fail", "error", "saturated", "capped"}

func (o Outcome) String() string {
	if o < 0 || int(o) >= len(outcomes) {
		return fmt.Sprintf("Outcome(%d)", int(o))
	}
	return outcomes[o]
}

// MarshalText writes the name.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (o *Outcome) UnmarshalText(b []byte) error {
	i := slices.Index(outcomes, string(b))
	if i < 0 && len(b) > 0 {
		return fmt.Errorf("%.20q is not an outcome", b)
	}
	*o = Outcome(max(i, 0))
	return nil
}
