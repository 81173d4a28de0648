package verdict

import (
	"fmt"
	"strings"

	"github.com/tokgate/tokgate/metric"
)

// Count returns a number with its noun, such as "1 round" or "12 rounds".
func Count(n int, plural string) string {
	if one, ok := strings.CutSuffix(plural, "s"); ok && n == 1 && plural != "series" {
		if strings.HasSuffix(one, "che") {
			one = strings.TrimSuffix(one, "e")
		}
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, plural)
}

// ByEstimate is the note on a verdict that the point estimate decides.
const ByEstimate = `point estimate (decide = "estimate"): the verdict is not certified`

// Bounds writes the two bounds with their confidence.
func (x Interval) Bounds(write func(float64) string) string {
	words := metric.Format(metric.Ratio, x.Confidence) + " bounds"
	if !x.Low.OK || !x.High.OK {
		return "no " + words
	}
	return words + " " + x.Span(write)
}

// Span writes the interval, such as "1.2 s to 1.4 s".
func (x Interval) Span(write func(float64) string) string {
	return write(x.Low.V) + " to " + write(x.High.V)
}

// NeedsMore says about how many more observations would decide a verdict.
func NeedsMore(n int, plural string) string { return "needs about " + Count(n, "more "+plural) }

// Enumerate returns a list as text, such as "a", "a and b" or "a, b and c".
func Enumerate(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}

// Like joins remarks that are alike, of which it quotes three. The noun names what each is about.
func Like(said []string, plural string) string {
	if left := len(said) - 3; left > 0 {
		said = append(said[:3:3], "and "+Count(left, "more "+plural)+" like these")
	}
	return strings.Join(said, "; ")
}

// OneLine makes a text from outside fit for a message: valid, on one line, and short.
func OneLine(s string) string {
	const most = 300
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	if runes := []rune(s); len(runes) > most {
		s = string(runes[:most]) + "…"
	}
	return s
}

// Because returns the end of a message that states a reason; "" if there is no reason.
func Because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + OneLine(reason)
}
