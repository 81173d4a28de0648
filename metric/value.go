package metric

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
)

// Value is a measured value, or the reason why there is none. In JSON it is a number, "+Inf" or
// "-Inf", and without a value null or {"why": "the reason"}. The zero Value has no value.
type Value struct {
	V   float64
	OK  bool
	Why string // reason why OK is false, in words; "" if it is true, or if no reason is known
}

// Some returns a value. A v that is not a number is no value.
func Some(v float64) Value { return Value{V: v, OK: !math.IsNaN(v)} }

// None returns a missing value with the reason.
func None(why string) Value { return Value{Why: why} }

// Format formats a value with a unit for people. A missing value is "–".
func (v Value) Format(unit Unit) string {
	if !v.OK {
		return "–"
	}
	return Format(unit, v.V)
}

// MarshalJSON never fails. JSON has no infinities, so they are written as strings.
func (v Value) MarshalJSON() ([]byte, error) {
	switch {
	case !v.OK && v.Why != "":
		return json.Marshal(map[string]string{"why": v.Why})
	case !v.OK || math.IsNaN(v.V):
		return []byte("null"), nil
	case math.IsInf(v.V, 1):
		return []byte(`"+Inf"`), nil
	case math.IsInf(v.V, -1):
		return []byte(`"-Inf"`), nil
	}
	return json.Marshal(v.V)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (v *Value) UnmarshalJSON(b []byte) error {
	*v = Value{}
	var err error
	switch text := string(bytes.TrimSpace(b)); {
	case text == "null":
	case text == `"+Inf"`:
		*v = Some(math.Inf(1))
	case text == `"-Inf"`:
		*v = Some(math.Inf(-1))
	case strings.HasPrefix(text, "{"):
		err = json.Unmarshal(b, &struct{ Why *string }{&v.Why})
	default:
		v.OK, err = true, json.Unmarshal(b, &v.V)
	}
	if err != nil {
		return errors.New(`a value is a number, "+Inf", "-Inf", null or {"why": …}`)
	}
	return nil
}
