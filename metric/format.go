package metric

import (
	"math"
	"strconv"
	"strings"
)

// Format writes v, in the base unit, for people: three significant digits and a prefix that fits.
// It writes 0.00912 s as "9.12 ms", infinity as "∞", a ratio as a percentage, and a time per token
// as "12.3 ms/token".
func Format(unit Unit, v float64) string { return FormatDigits(unit, v, 3) }

// In returns Format for one unit.
func In(unit Unit) func(float64) string {
	return func(v float64) string { return Format(unit, v) }
}

// FormatDigits writes a value like Format, but with the given number of significant digits, at
// least 2. Whole numbers below a million keep every digit.
func FormatDigits(unit Unit, v float64, digits int) string {
	digits = max(digits, 2)
	switch {
	case math.IsNaN(v):
		return "no value"
	case math.IsInf(v, 1):
		return "∞"
	case math.IsInf(v, -1):
		return "-∞"
	}
	switch unit {
	case Seconds:
		return seconds(v, "", digits)
	case SecondsPerToken:
		return seconds(v, "/token", digits)
	case Ratio:
		return percentage(v, digits)
	case Count, "":
		return significant(v, digits)
	case Watts, JoulesPerToken:
		return prefixed(v, string(unit), digits)
	case Bytes:
		return scaled(v, digits, []string{"B", "KiB", "MiB", "GiB", "TiB"}, 1024)
	case Hertz:
		return scaled(v, digits, []string{"Hz", "kHz", "MHz", "GHz"}, 1000)
	}
	n := significant(v, digits)
	if n == "1" && (unit == Tokens || unit == Requests) {
		return n + " " + strings.TrimSuffix(string(unit), "s")
	}
	return n + " " + string(unit)
}

// FormatPair writes a value and its limit. The limit is written as given, with up to six digits.
// The value gets enough digits to show on which side of the limit it lies: "8.0004 s > 8 s", never
// "8 s > 8 s".
func FormatPair(unit Unit, v, limit float64) (value, bound string) {
	bound = FormatDigits(unit, limit, 6)
	for digits := 3; digits <= 15; digits++ {
		value = FormatDigits(unit, v, digits)
		if v == limit || value != bound && (rounded(v, digits) > limit) == (v > limit) {
			break
		}
	}
	return value, bound
}

// seconds writes a time in ns, µs, ms or s. The parameter per follows the unit, such as "/token".
func seconds(v float64, per string, digits int) string {
	for _, u := range []struct {
		name  string
		scale float64
	}{{"s", 1}, {"ms", 1e3}, {"µs", 1e6}} {
		// Take the first unit in which the rounded value is at least 1.
		if rounded(v*u.scale, digits) >= 1 || rounded(v*u.scale, digits) <= -1 {
			return significant(v*u.scale, digits) + " " + u.name + per
		}
	}
	if v == 0 {
		return "0 s" + per
	}
	return significant(v*1e9, digits) + " ns" + per
}

// prefixed writes watts and joules with the prefix m or k, or without a prefix.
func prefixed(v float64, unit string, digits int) string {
	switch a := math.Abs(rounded(v, digits)); {
	case a >= 1000:
		return significant(v/1000, digits) + " k" + unit
	case a >= 1 || v == 0:
		return significant(v, digits) + " " + unit
	}
	return significant(v*1000, digits) + " m" + unit
}

// scaled writes v in the largest of the units in which the number is at least 1. The parameter step
// is the factor between two units.
func scaled(v float64, digits int, units []string, step float64) string {
	for len(units) > 1 && math.Abs(rounded(v, digits)) >= step {
		v, units = v/step, units[1:]
	}
	return significant(v, digits) + " " + units[0]
}

// percentage writes a ratio as a percentage. A ratio below 1 never becomes 100%, and a ratio above
// 0 never becomes 0%. So one failed request of 10,000 shows.
func percentage(v float64, digits int) string {
	p := v * 100
	if v > 0 && v < 1 {
		for ; digits < 6 && rounded(p, digits) >= 100; digits++ {
		}
		if rounded(p, digits) >= 100 {
			return "<100%"
		}
	}
	return significant(p, digits) + "%"
}

// rounded returns v rounded to the given number of significant digits.
func rounded(v float64, digits int) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	return r
}

// significant writes v with the given number of significant digits, without trailing zeros. Whole
// numbers below a million keep every digit. Very large and very small numbers get an exponent.
func significant(v float64, digits int) string {
	a := math.Abs(v)
	switch {
	case a == 0:
		return "0"
	case a >= 1e15 || a < 1e-6:
		return strconv.FormatFloat(v, 'g', digits, 64)
	case a == math.Trunc(a) && a < 1e6:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	r := rounded(v, digits)
	decimals := max(digits-1-int(math.Floor(math.Log10(math.Abs(r)))), 0)
	s := strconv.FormatFloat(r, 'f', decimals, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}
