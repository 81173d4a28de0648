package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/tokgate/tokgate/metric"
)

// Number is a number in the document, in base units and with all its digits. In JSON it is a
// number, "+Inf" or "-Inf", or null if it is missing. A field next to a missing number gives the
// reason. The zero Number is missing.
type Number struct {
	V  float64
	OK bool
}

func numberOf(v float64) Number {
	if math.IsNaN(v) {
		return Number{}
	}
	return Number{V: v, OK: true}
}

func number(v metric.Value) Number {
	if !v.OK {
		return Number{}
	}
	return numberOf(v.V)
}

// MarshalJSON never fails. JSON has no infinities, so they are written as strings.
func (n Number) MarshalJSON() ([]byte, error) {
	switch {
	case !n.OK || math.IsNaN(n.V):
		return []byte("null"), nil
	case math.IsInf(n.V, 1):
		return []byte(`"+Inf"`), nil
	case math.IsInf(n.V, -1):
		return []byte(`"-Inf"`), nil
	}
	return json.Marshal(n.V)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (n *Number) UnmarshalJSON(b []byte) error {
	switch string(bytes.TrimSpace(b)) {
	case "null":
		*n = Number{}
		return nil
	case `"+Inf"`:
		*n = numberOf(math.Inf(1))
		return nil
	case `"-Inf"`:
		*n = numberOf(math.Inf(-1))
		return nil
	}
	n.OK = true
	if err := json.Unmarshal(b, &n.V); err != nil {
		return fmt.Errorf("%s is not a number, \"+Inf\", \"-Inf\" or null", b)
	}
	return nil
}

// Format formats a number with a unit for people. A missing value is "–".
func (n Number) Format(unit string) string {
	if !n.OK {
		return "–"
	}
	return metric.Format(metric.Unit(unit), n.V)
}

// percent formats a share.
func percent(n Number) string {
	if !n.OK {
		return "unknown"
	}
	return metric.Format(metric.Ratio, n.V)
}

func orWhy(unit string, n Number, why string) string {
	switch {
	case n.OK:
		return n.Format(unit)
	case why == "":
		return "no value"
	}
	return "no value: " + why
}
