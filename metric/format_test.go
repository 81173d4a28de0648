package metric

import (
	"fmt"
	"math"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		unit Unit
		v    float64
		want string
	}{
		{Seconds, 0, "0 s"},
		{Seconds, 9.12, "9.12 s"},
		{Seconds, 8, "8 s"},
		{Seconds, 0.00912, "9.12 ms"},
		{Seconds, 0.0199999, "20 ms"},
		// A value that rounds to 1 in a unit is written in that unit.
		{Seconds, 1, "1 s"}, {Seconds, 0.9996, "1 s"}, {Seconds, 0.9994, "999 ms"},
		{Seconds, 0.001, "1 ms"}, {Seconds, 0.0009996, "1 ms"}, {Seconds, 0.0009994, "999 µs"},
		{Seconds, 0.000001, "1 µs"}, {Seconds, 0.00000012, "120 ns"},
		{Seconds, 12.345, "12.3 s"}, {Seconds, 99.96, "100 s"}, {Seconds, 1234.5, "1230 s"}, {Seconds, 3600, "3600 s"},
		{Seconds, -0.5, "-500 ms"},
		{Seconds, math.Inf(1), "∞"}, {Seconds, math.Inf(-1), "-∞"}, {Seconds, math.NaN(), "no value"},
		{SecondsPerToken, 0.0123, "12.3 ms/token"}, {SecondsPerToken, 1.5, "1.5 s/token"}, {SecondsPerToken, 0, "0 s/token"},
		{TokensPerSecond, 15, "15 tok/s"}, {TokensPerSecond, 15.04, "15 tok/s"}, {TokensPerSecond, 0.123456, "0.123 tok/s"}, {TokensPerSecond, 2939.7, "2940 tok/s"},
		{PerSecond, 3.5, "3.5 req/s"},
		{Ratio, 0, "0%"}, {Ratio, 1, "100%"}, {Ratio, 0.07625, "7.62%"}, {Ratio, 0.05, "5%"},
		{Ratio, 0.9999, "99.99%"}, {Ratio, 0.0001, "0.01%"}, {Ratio, 0.99949, "99.9%"}, {Ratio, 0.9995, "99.95%"}, {Ratio, 1.25, "125%"}, {Ratio, 0.999999, "99.9999%"}, {Ratio, 0.9999999, "<100%"},
		{Tokens, 2.43, "2.43 tokens"}, {Tokens, 1, "1 token"}, {Tokens, 1.001, "1 token"}, {Requests, 1, "1 request"}, {Requests, 39, "39 requests"}, {Count, 3, "3"},
		{Watts, 350.2, "350 W"}, {Watts, 1500, "1.5 kW"}, {Watts, 999.4, "999 W"}, {Watts, 999.6, "1 kW"},
		{JoulesPerToken, 0.25, "250 mJ/token"}, {JoulesPerToken, 1, "1 J/token"},
		{Count, 123456, "123456"}, {Count, 1e15, "1e+15"}, {Count, 1e-7, "1e-07"},
	} {
		must.Same(t, fmt.Sprintf("Format(%q, %v)", c.unit, c.v), c.want, Format(c.unit, c.v))
	}
}

func TestFormatPair(t *testing.T) {
	for _, c := range []struct {
		v, limit    float64
		value, want string
	}{
		{9.12, 8, "9.12 s", "8 s"},
		{8.0004, 8, "8.0004 s", "8 s"},
		{8, 8, "8 s", "8 s"},
		{1.2346, 1.2345, "1.235 s", "1.2345 s"},
		{1.2311, 1.2345, "1.23 s", "1.2345 s"},
		{math.Inf(1), 8, "∞", "8 s"},
	} {
		value, limit := FormatPair(Seconds, c.v, c.limit)
		must.Hold(t, value == c.value && limit == c.want, "FormatPair(%v, %v) = %q, %q, want %q, %q", c.v, c.limit, value, limit, c.value, c.want)
	}
}

func TestBand(t *testing.T) {
	for _, c := range []struct {
		name string
		v    float64
		want string
	}{
		{"ttft", 0.499, "instant"}, {"ttft", 0.5, "responsive"}, {"ttft", 2, "noticeable"}, {"ttft", 5, "slow"}, {"ttft", 9.99, "slow"}, {"ttft", 10, "frustrating"}, {"ttft", math.Inf(1), "frustrating"},
		{"speed", 14.9, "slow"}, {"speed", 15, "acceptable"}, {"speed", 25, "fast"}, {"speed", 50, "very fast"},
		{"itl", 0.0199, "instant"}, {"itl", 0.020, "acceptable"}, {"itl", 0.070, "sluggish"},
		{"ttft", math.NaN(), ""}, {"e2e", 1, ""},
	} {
		must.Same(t, fmt.Sprintf("Band(%s, %v)", c.name, c.v), c.want, Band(c.name, c.v))
	}
}
