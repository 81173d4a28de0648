package decode

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/suggest"
)

// item is a value in a plan with its row of the schema: the value of an attribute, an element of its
// list, or a setting of its object. Its methods read the value and report what is wrong with it.
type item struct {
	d     *decoder
	attr  *Attr
	name  string // in messages, such as output_tokens.mean
	value cty.Value
	rng   hcl.Range
}

func (x item) errorf(summary, format string, args ...any) {
	x.d.errorf(x.rng, summary, format, args...)
}

func (x item) like(a *Attr) item { x.attr = a; return x }

func (x item) wrongType(want string) {
	hint, got := "", x.value
	if got.Type() == cty.String && got.IsKnown() && !got.IsNull() && strings.HasSuffix(want, "number") {
		switch text := strings.TrimSpace(got.AsString()); {
		case thousands.MatchString(text):
			hint = " " + inThousands(text)
		case text != "" && strings.Trim(text, "0123456789") == "":
			hint = " Write it without quotes: " + text + "."
		}
	}
	x.errorf(sumWrongType, "%s must be %s, not %s.%s", x.name, want, got.Type().FriendlyNameForConstraint(), hint)
}

// unknown reports whether the value is unknown because the secrets of a run are not set. It then
// adds an error. It is called for values that must be known, such as numbers of requests.
func (x item) unknown() bool {
	if x.value.IsWhollyKnown() {
		return false
	}
	if x.d.diags.HasErrors() && hasUntyped(x.value) {
		return true // the error was already reported; an expression with an error has no type
	}
	x.errorf(sumUnknownValue, "%s depends on an environment variable or a sensitive variable that is not set. Set it, or write the value itself.", x.name)
	return true
}

func (x item) is(typ cty.Type, want string) bool {
	if x.unknown() {
		return false
	}
	if x.value.IsNull() || x.value.Type() != typ {
		x.wrongType(want)
		return false
	}
	return true
}

func (x item) isObject() bool { return x.value.Type().IsObjectType() || x.value.Type().IsMapType() }

func (x item) text() (string, bool) {
	if x.value.IsNull() || x.value.Type() != cty.String && x.value.Type() != cty.DynamicPseudoType {
		x.wrongType("text")
		return "", false
	}
	if !x.value.IsKnown() {
		return unknownText, true
	}
	return x.value.AsString(), true
}

func (x item) words() (string, bool) {
	if v := x.value; v.IsKnown() && (v.Type() == cty.Number || v.Type() == cty.Bool) {
		x.value, _ = convert.Convert(v, cty.String)
	}
	return x.text()
}

func (x item) path() (string, bool) {
	p, ok := x.text()
	if p == "" || p == unknownText || filepath.IsAbs(p) {
		return p, ok
	}
	return filepath.Join(x.d.dir, filepath.FromSlash(p)), ok
}

// url reads the base URL of a server, or the URL of one of its pages.
func (x item) url() (string, bool) {
	text, ok := x.text()
	if problem := URLProblem(text); ok && text != unknownText && problem != "" {
		x.errorf(sumURL, "%s", problem)
	}
	return text, ok
}

func (x item) word() (string, bool) { return x.wordOf(x.attr.OneOf) }

func (x item) wordOf(words []string) (string, bool) {
	if x.unknown() {
		return words[0], false
	}
	s, ok := x.text()
	switch {
	case !ok:
		return words[0], false
	case !slices.Contains(words, s):
		x.errorf(sumOneOf, "%s is %s, not %q.%s", x.name, choices(words), s, suggest.DidYouMean(s, words))
		return words[0], false
	}
	return s, true
}

func (x item) boolean() (bool, bool) {
	if !x.is(cty.Bool, "true or false") {
		return false, false
	}
	return x.value.True(), true
}

func (x item) integer() (int, bool) {
	if !x.is(cty.Number, "a whole number") {
		return 0, false
	}
	n, whole := plan.WholeNumber(x.value)
	if !whole || float64(n) < x.attr.Min || float64(n) > x.attr.Max {
		x.errorf(sumOutOfRange, "%s must be a whole number from %.0f to %.0f.", x.name, x.attr.Min, x.attr.Max)
		return 0, false
	}
	return int(n), true
}

func (x item) number() (float64, bool) {
	if !x.is(cty.Number, "a number") {
		return 0, false
	}
	f, _ := x.value.AsBigFloat().Float64()
	hint := ""
	if x.attr.Max == 1 && f > 1 && f <= 100 {
		hint = fmt.Sprintf(" %v%% is %v.", f, f/100)
	}
	return f, x.within(f, func(f float64) string { return fmt.Sprint(f) }, hint)
}

func (x item) share() (float64, bool) {
	if x.unknown() {
		return 0, false
	}
	show := func(f float64) string { return fmt.Sprintf(`"%v%%"`, 100*f) }
	switch v := x.value; {
	case v.IsNull():
	case v.Type() == cty.Number:
		f, _ := v.AsBigFloat().Float64()
		return f, x.within(f, show, "")
	case v.Type() == cty.String:
		if digits, ok := strings.CutSuffix(v.AsString(), "%"); ok {
			if f, err := parseDecimal(strings.TrimSpace(digits), -2); err == nil {
				return f, x.within(f, show, "")
			}
		}
	}
	x.wrongType(`a share such as "5%" or 0.05`)
	return 0, false
}

func (x item) duration() (time.Duration, bool) {
	if x.unknown() {
		return 0, false
	}
	if x.value.Type() == cty.Number && !x.value.IsNull() {
		n, _ := x.value.AsBigFloat().Float64()
		text := strconv.FormatFloat(n, 'f', -1, 64)
		x.errorf(sumMissingUnit, `%s needs a unit: "%ss", "%sms" or "%sm".`, x.name, text, text, text)
		return 0, false
	}
	if !x.is(cty.String, `a duration such as "90s"`) {
		return 0, false
	}
	dur, err := time.ParseDuration(x.value.AsString())
	if err != nil {
		x.errorf(sumDuration, `%s: %q is not a valid duration. Write one such as "90s", "250ms" or "1h30m".`, x.name, x.value.AsString())
		return 0, false
	}
	return dur, x.within(float64(dur), func(f float64) string { return plan.PlainDuration(time.Duration(f)) }, "")
}

func (x item) within(f float64, show func(float64) string, hint string) bool {
	a := x.attr
	if f > a.Min && f < a.Max || f == a.Min && !a.Above || f == a.Max && !a.Below && !math.IsInf(f, 0) {
		return true
	}
	bounds := "from " + show(a.Min) + " to " + show(a.Max)
	if a.Above || a.Below {
		low, high := "at least ", "at most "
		if a.Above {
			low = "above "
		}
		if a.Below {
			high = "below "
		}
		bounds = low + show(a.Min) + " and " + high + show(a.Max)
	}
	x.errorf(sumOutOfRange, "%s must be %s.%s", x.name, bounds, hint)
	return false
}

func (x item) auto() bool {
	return x.value.Type() == cty.String && x.value.IsKnown() && !x.value.IsNull() && x.value.AsString() == "auto"
}

func (x item) rate() (float64, bool) {
	switch {
	case x.unknown():
		return 0, false
	case x.value.IsNull() || x.value.Type() != cty.Number && x.value.Type() != cty.String:
		x.wrongType(`a rate such as "4 req/s"`)
		return 0, false
	case x.value.Type() == cty.Number:
		x.errorf(sumMissingUnit, `%s needs a unit: "%s req/s".`, x.name, x.value.AsBigFloat().Text('g', 6))
		return 0, false
	}
	rate, p := parseRate(x.name, x.value.AsString())
	if p != nil && p.summary != sumOutOfRange {
		x.errorf(p.summary, "%s", p.detail)
		return 0, false
	}
	return rate, x.within(rate, func(f float64) string { return fmt.Sprint(f, " req/s") }, "")
}

func parseRate(name, text string) (float64, *problem) {
	return parseLimit(strings.TrimSpace(text), metric.PerSecond, metric.Def{Name: name, Unit: metric.PerSecond})
}

func (x item) speedup() (float64, bool) {
	f, ok := x.number()
	return math.Round(f/plan.SpeedupStep) * plan.SpeedupStep, ok
}

// For example, "240 req/min" becomes "4 req/s".
func levelName(text string) string {
	if rate, p := parseRate("rate", text); p == nil {
		return plan.RateName(rate)
	}
	return text
}

func hasUntyped(v cty.Value) bool {
	found := false
	_ = cty.Walk(v, func(_ cty.Path, e cty.Value) (bool, error) {
		found = found || !e.IsKnown() && e.Type() == cty.DynamicPseudoType
		return !found, nil
	})
	return found
}
