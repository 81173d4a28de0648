package decode

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/suggest"
)

// text returns a string. It returns "" if the plan does not set the attribute, or "(unknown)" if
// its value is still unknown.
func (b *body) text(name string) string {
	v, ok := b.value(name)
	if !ok {
		return ""
	}
	s, _ := b.asText(b.rangeOf(name), name, v)
	return s
}

func (b *body) asText(rng hcl.Range, name string, v cty.Value) (string, bool) {
	if v.IsNull() {
		b.wrongType(rng, name, "text", v)
		return "", false
	}
	if v.Type() != cty.String && v.Type() != cty.DynamicPseudoType {
		b.wrongType(rng, name, "text", v)
		return "", false
	}
	if !v.IsKnown() {
		return unknownText, true
	}
	return v.AsString(), true
}

// oneOf returns the attribute's value, which must be one of the given names.
func (b *body) oneOf(name string, names ...string) string {
	v, ok := b.value(name)
	if !ok || b.isUnknown(b.rangeOf(name), name, v) {
		return names[0]
	}
	s, ok := b.asText(b.rangeOf(name), name, v)
	if !ok || !b.isOneOf(b.rangeOf(name), name, s, names) {
		return names[0]
	}
	return s
}

func (b *body) isOneOf(rng hcl.Range, name, text string, names []string) bool {
	if slices.Contains(names, text) {
		return true
	}
	b.d.errorf(rng, sumOneOf, "%s is %s, not %q.%s", name, choices(names), text, suggest.DidYouMean(text, names))
	return false
}

// boolean returns a bool. It returns false if the plan does not set the attribute.
func (b *body) boolean(name string) bool {
	v, ok := b.value(name)
	if !ok || b.isUnknown(b.rangeOf(name), name, v) {
		return false
	}
	if v.Type() != cty.Bool {
		b.wrongType(b.rangeOf(name), name, "true or false", v)
		return false
	}
	return v.True()
}

// integer returns a whole number between low and high. ok is false if the attribute is not set or
// wrong.
func (b *body) integer(name string, low, high int64) (int64, bool) {
	v, ok := b.value(name)
	if !ok {
		return 0, false
	}
	return b.asInteger(b.rangeOf(name), name, v, low, high)
}

func (b *body) asInteger(rng hcl.Range, name string, v cty.Value, low, high int64) (int64, bool) {
	if b.isUnknown(rng, name, v) {
		return 0, false
	}
	if v.IsNull() || v.Type() != cty.Number {
		b.wrongType(rng, name, "a whole number", v)
		return 0, false
	}
	n, whole := plan.WholeNumber(v)
	if !whole || n < low || n > high {
		b.d.errorf(rng, sumOutOfRange, "%s must be a whole number from %d to %d.", name, low, high)
		return 0, false
	}
	return n, true
}

// number returns a finite number between low and high.
func (b *body) number(name string, low, high float64) (float64, bool) {
	v, ok := b.value(name)
	if !ok || b.isUnknown(b.rangeOf(name), name, v) {
		return 0, false
	}
	if v.Type() != cty.Number {
		b.wrongType(b.rangeOf(name), name, "a number", v)
		return 0, false
	}
	f, _ := v.AsBigFloat().Float64()
	if f < low || f > high || math.IsInf(f, 0) {
		hint := ""
		if high == 1 && f > 1 && f <= 100 {
			hint = fmt.Sprintf(" %v%% is %v.", f, f/100)
		}
		b.d.errorf(b.rangeOf(name), sumOutOfRange, "%s must be from %v to %v.%s", name, low, high, hint)
		return 0, false
	}
	return f, true
}

// asFraction reads a share, which is a number such as 0.05 or a text such as "5%".
func (b *body) asFraction(rng hcl.Range, name string, v cty.Value) (float64, bool) {
	if b.isUnknown(rng, name, v) {
		return 0, false
	}
	switch {
	case v.IsNull():
	case v.Type() == cty.Number:
		f, _ := v.AsBigFloat().Float64()
		return f, true
	case v.Type() == cty.String:
		if digits, ok := strings.CutSuffix(v.AsString(), "%"); ok {
			if f, err := parseDecimal(strings.TrimSpace(digits), -2); err == nil {
				return f, true
			}
		}
	}
	b.wrongType(rng, name, `a share such as "5%" or 0.05`, v)
	return 0, false
}

// duration returns the attribute's duration. If the plan does not set it, or if it is not between
// low and high, ok is false.
func (b *body) duration(name string, low, high time.Duration) (time.Duration, bool) {
	v, ok := b.value(name)
	if !ok {
		return 0, false
	}
	return b.asDuration(b.rangeOf(name), name, v, low, high)
}

func (b *body) asDuration(rng hcl.Range, name string, v cty.Value, low, high time.Duration) (time.Duration, bool) {
	if b.isUnknown(rng, name, v) {
		return 0, false
	}
	if v.Type() == cty.Number {
		n, _ := v.AsBigFloat().Float64()
		text := strconv.FormatFloat(n, 'f', -1, 64)
		b.d.errorf(rng, sumMissingUnit, `%s needs a unit: "%ss", "%sms" or "%sm".`, name, text, text, text)
		return 0, false
	}
	if v.IsNull() || v.Type() != cty.String {
		b.wrongType(rng, name, `a duration such as "90s"`, v)
		return 0, false
	}
	dur, err := time.ParseDuration(v.AsString())
	if err != nil {
		b.d.errorf(rng, sumDuration, `%s: %q is not a valid duration. Write one such as "90s", "250ms" or "1h30m".`, name, v.AsString())
		return 0, false
	}
	if dur < low || dur > high {
		b.d.errorf(rng, sumOutOfRange, "%s must be from %s to %s.", name, plan.PlainDuration(low), plan.PlainDuration(high))
		return 0, false
	}
	return dur, true
}

// parseDecimal reads a decimal number, and multiplies it by 10^power.
func parseDecimal(s string, power int) (float64, error) {
	if s == "" || strings.Trim(s, "0123456789.") != "" || len(s) > 32 {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(s+"e"+strconv.Itoa(power), 64)
}

// pathOf returns a path that the plan gives relative to its folder. It returns "" if the plan does
// not set the attribute. The method file opens such a file.
func (b *body) pathOf(name string) string {
	p := b.text(name)
	if p == "" || p == unknownText || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(b.d.dir, filepath.FromSlash(p))
}

// file opens a file that the plan names. The error does not quote the file.
func (b *body) file(name string) (*os.File, error) {
	p, err := b.d.within(b.d.dir, b.text(name))
	if err != nil {
		return nil, err
	}
	f, err := p.open()
	if err != nil {
		return nil, errors.New(readError(p.path, err))
	}
	return f, nil
}

// shareBelowOne returns a share in [0, 1). It returns 0 if the attribute is wrong or not set.
func (b *body) shareBelowOne(name string) float64 {
	v, ok := b.value(name)
	if !ok {
		return 0
	}
	rng := b.rangeOf(name)
	f, ok := b.asFraction(rng, name, v)
	if ok && !(f >= 0 && f < 1) {
		b.d.errorf(rng, sumOutOfRange, `%s must be at least "0%%" and below "100%%".`, name)
		return 0
	}
	return f
}

// isAuto reports whether a value is "auto".
func isAuto(v cty.Value) bool {
	return v.Type() == cty.String && v.IsKnown() && !v.IsNull() && v.AsString() == "auto"
}
