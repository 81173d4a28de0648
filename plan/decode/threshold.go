package decode

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/suggest"
)

type problem struct{ summary, detail string }

func problemf(summary, format string, args ...any) *problem {
	return &problem{summary, fmt.Sprintf(format, args...)}
}

// parseThreshold reads one threshold: [statistic] operator number unit. In a good block there is no
// statistic, because every request must meet the threshold.
func parseThreshold(def metric.Def, text string, good bool) (plan.Threshold, *problem) {
	t := plan.Threshold{Metric: def, Text: text}
	if def.OfAnswers && good {
		return goodAnswer(def, text)
	}
	at := strings.IndexAny(text, "<>=!≤≥")
	if at < 0 {
		if def.Name == "success" && strings.TrimSpace(text) == "every" {
			t.Stat = metric.Stat{Kind: metric.Every}
			return t, nil
		}
		return t, problemf(sumThreshold, `%s = %q has no comparison. Write %s.`, def.Name, text, example(def, good))
	}
	left, rest := strings.TrimSpace(text[:at]), text[at:]

	op, limit := cutOperator(rest)
	if op == "" {
		return t, problemf(sumThreshold, `%s = %q: the comparison must be <, <=, > or >=. Write %s.`, def.Name, text, example(def, good))
	}
	t.Op = op
	var p *problem
	if t.Stat, p = thresholdStat(def, left, good); p != nil {
		return t, p
	}
	if t.Limit, p = parseLimit(strings.TrimSpace(limit), def.UnitOf(t.Stat), def); p != nil {
		return t, p
	}
	upper := op == plan.Less || op == plan.LessEqual
	if upper && def.Better == metric.HigherIsBetter || !upper && def.Better == metric.LowerIsBetter {
		better, use := "lower", "< or <="
		if def.Better == metric.HigherIsBetter {
			better, use = "higher", "> or >="
		}
		return t, problemf(sumWrongWay, "%s is better when it is %s, so compare with %s. For any other condition use an assert block.", def.Name, better, use)
	}
	return t, nil
}

// goodAnswer reads a line such as valid_json = true in a good block. The answer must have the
// property; or must not have it, if lower values of the metric are better.
func goodAnswer(def metric.Def, text string) (plan.Threshold, *problem) {
	t := plan.Threshold{Metric: def, Text: text, Stat: metric.Stat{Kind: metric.Every}, Op: plan.GreaterEqual, Limit: 1}
	if def.Better == metric.LowerIsBetter {
		t.Op, t.Limit = plan.LessEqual, 0
	}
	if want := example(def, true); strconv.Quote(strings.TrimSpace(text)) != want {
		return t, problemf(sumThreshold, "%s is true or false for each answer, so it has no limit. Write %s = %s.", def.Name, def.Name, want)
	}
	return t, nil
}

func cutOperator(s string) (plan.Op, string) {
	for _, op := range []plan.Op{plan.LessEqual, plan.GreaterEqual, plan.Less, plan.Greater} {
		if rest, ok := strings.CutPrefix(s, string(op)); ok {
			if rest == "" || !strings.ContainsAny(rest[:1], "<>=!") {
				return op, rest
			}
			return "", ""
		}
	}
	return "", ""
}

func thresholdStat(def metric.Def, text string, good bool) (metric.Stat, *problem) {
	if good {
		if text != "" && text != "every" {
			return metric.Stat{}, problemf(sumStatNotAllowed, "A bound in a `good` block holds for a single request, so it has no statistic. Write %s.", example(def, good))
		}
		return metric.Stat{Kind: metric.Every}, nil
	}
	if text == "" {
		return metric.Stat{}, missingStat(def, good)
	}
	stat, err := metric.ParseStat(text)
	if err != nil {
		if def.Scope == metric.PerLevel {
			return stat, problemf(sumUnknownStat, "%s: %q is not a statistic. Write %s.", def.Name, text, example(def, good))
		}
		hint := suggest.DidYouMean(text, []string{"mean", "min", "max", "every", "p50", "p90", "p95", "p99"})
		if ours, ok := elsewhere[text]; ok {
			hint = ` Write "` + ours + `".`
		}
		return stat, problemf(sumUnknownStat, "%s: %v.%s", def.Name, err, hint)
	}
	return stat, cmp.Or(startStat(def, stat, text), statAllowed(def, stat, text, good))
}

func missingStat(def metric.Def, good bool) *problem {
	choices := "mean, p0.1 to p99.9, min, max or every"
	switch {
	case def.OfAnswers:
		return problemf(sumMissingStat, `%s needs a statistic. "rate" judges the server's long-run share, and allows for chance. "observed" judges only the share in this run. Write %s.`, def.Name, example(def, good))
	case def.Name == "success":
		return problemf(sumMissingStat, `success needs a statistic. "rate >= 98%%" judges the server's long-run share, and allows for chance. "observed >= 98%%" and "every" judge only the requests of this run.`)
	case def.Scope == metric.PerLevel:
		return nil
	case def.Source == metric.Starts:
		return problemf(sumMissingStat, "%s needs a statistic: %s.", def.Name, example(def, good))
	case def.Scope == metric.PerReading:
		return problemf(sumMissingStat, "%s changes while the level runs, so the threshold needs a statistic (mean, min or max), such as %s.", def.Name, example(def, good))
	case def.Scope == metric.Counted:
		choices = "mean, or p0.1 to p99.9"
	}
	return problemf(sumMissingStat, "%s differs between requests, so the threshold needs a statistic (%s), such as %s.", def.Name, choices, example(def, good))
}

func statAllowed(def metric.Def, stat metric.Stat, text string, good bool) *problem {
	switch {
	case def.Scope == metric.Counted && stat.Kind != metric.Mean && stat.Kind != metric.Percentile && !stat.IsShare():
		return problemf(sumStatNotAllowed, "%s comes from a histogram of the server, and a histogram has no %s. Write %s.", def.Name, text, example(def, good))
	case def.Scope == metric.PerReading && stat.Kind != metric.Mean && stat.Kind != metric.Min &&
		stat.Kind != metric.Max && !stat.IsShare():
		return problemf(sumStatNotAllowed, "%s is read once a second, so its statistic must be mean, min or max, not %s. Write %s.", def.Name, text, example(def, good))
	case def.Name == "success" && stat.Kind != metric.Rate && stat.Kind != metric.Observed,
		def.Name == "goodput" && stat.Kind != metric.Share && stat.Kind != metric.Observed,
		def.OfAnswers && stat.Kind != metric.Rate && stat.Kind != metric.Observed,
		def.Scope == metric.PerLevel && !hasShare(def):
		return problemf(sumStatNotAllowed, "%s is one number for a whole level, so it takes no %s. Write %s.", def.Name, text, example(def, good))
	case def.Scope != metric.PerLevel && stat.IsShare():
		return problemf(sumStatNotAllowed, "%s is for metrics that are a share of the requests, such as success. Write %s.", text, example(def, good))
	}
	return nil
}

func hasShare(def metric.Def) bool {
	return def.Name == "success" || def.Name == "goodput" || def.OfAnswers
}

func example(def metric.Def, good bool) string {
	switch {
	case def.OfAnswers && good && def.Better == metric.LowerIsBetter:
		return `"no"`
	case def.OfAnswers && good:
		return `"yes"`
	case def.OfAnswers && def.Better == metric.LowerIsBetter:
		return `"rate <= 1%" or "observed <= 0%"`
	case def.OfAnswers:
		return `"rate >= 95%" or "observed >= 95%"`
	case good:
		return fmt.Sprintf("%q", operatorOf(def)+" "+exampleLimit(def.Unit))
	case def.Name == "success":
		return `"rate >= 98%", "observed >= 98%" or "every"`
	case def.Name == "goodput":
		return `"share >= 95%", "observed >= 95%" or "> 3 req/s"`
	case def.Scope == metric.PerLevel:
		return fmt.Sprintf("%q", operatorOf(def)+" "+exampleLimit(def.Unit))
	case def.Source == metric.Starts:
		return `"max < 5m"`
	case def.Scope == metric.PerReading && def.Better == metric.HigherIsBetter:
		return fmt.Sprintf("%q", "min > "+exampleLimit(def.Unit))
	case def.Scope == metric.PerReading:
		return fmt.Sprintf("%q or %q", "max < "+exampleLimit(def.Unit), "mean < "+exampleLimit(def.Unit))
	case def.Name == "itl":
		return `"p95 < 50ms" or "mean < 50ms"`
	case def.Better == metric.HigherIsBetter:
		return fmt.Sprintf("%q or %q", "mean > "+exampleLimit(def.Unit), "p5 > "+exampleLimit(def.Unit))
	}
	return fmt.Sprintf("%q or %q", "p95 < "+exampleLimit(def.Unit), "mean < "+exampleLimit(def.Unit))
}

func operatorOf(def metric.Def) string {
	if def.Better == metric.HigherIsBetter {
		return ">"
	}
	return "<"
}

func exampleLimit(unit metric.Unit) string {
	switch unit {
	case metric.Seconds:
		return "2s"
	case metric.SecondsPerToken:
		return "50ms"
	case metric.TokensPerSecond:
		return "15 tok/s"
	case metric.PerSecond:
		return "3 req/s"
	case metric.Ratio:
		return "95%"
	case metric.Tokens:
		return "2 tokens"
	case metric.Requests:
		return "10 requests"
	case metric.Watts:
		return "600 W"
	case metric.JoulesPerToken:
		return "2 J/token"
	case metric.Bytes:
		return "80 GB"
	case metric.Celsius:
		return "85 °C"
	case metric.Hertz:
		return "1500 MHz"
	}
	if currency, _, ok := money(unit); ok {
		return "2 " + currency
	}
	return "1"
}

// unit converts a number to the base unit: it multiplies by 10^power and divides by divisor.
// Shifting the decimal point by power is exact, unlike multiplying: in floating point 99.9 · 0.01
// differs from 0.999.
type unit struct{ power, divisor int }

// units lists the units of each base unit, by name. Durations are missing, because
// time.ParseDuration reads them.
var units = map[metric.Unit]map[string]unit{
	metric.TokensPerSecond: {"tok/s": {0, 1}, "tokens/s": {0, 1}},
	metric.PerSecond:       {"req/s": {0, 1}, "requests/s": {0, 1}, "req/min": {0, 60}},
	metric.Ratio:           {"%": {-2, 1}},
	metric.Tokens:          {"tokens": {0, 1}, "tok": {0, 1}},
	metric.Requests:        {"requests": {0, 1}, "req": {0, 1}},
	metric.Count:           {"": {0, 1}},
	metric.Watts:           {"W": {0, 1}, "kW": {3, 1}},
	metric.JoulesPerToken:  {"J/token": {0, 1}, "mJ/token": {-3, 1}},
	metric.Celsius:         {"°C": {0, 1}, "C": {0, 1}},
	metric.Hertz:           {"Hz": {0, 1}, "MHz": {6, 1}, "GHz": {9, 1}},
	metric.Bytes:           {"B": {0, 1}, "MB": {6, 1}, "GB": {9, 1}, "TB": {12, 1}, "MiB": {0, 1}, "GiB": {0, 1}, "TiB": {0, 1}},
}

var binary = map[string]float64{"MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}

// money splits the unit of a price, such as "USD/h", into its currency and the rest.
func money(u metric.Unit) (currency, per string, ok bool) {
	for _, base := range []metric.Unit{metric.MoneyPerHour, metric.MoneyPerMillionTokens} {
		per := strings.TrimPrefix(string(base), "money")
		if currency, ok := strings.CutSuffix(string(u), per); ok {
			return currency, per, true
		}
	}
	return "", "", false
}

var spellings = map[metric.Unit]map[string]string{
	metric.Seconds: {"sec": "s", "secs": "s", "second": "s", "seconds": "s", "msec": "ms", "millis": "ms", "millisecond": "ms", "milliseconds": "ms",
		"min": "m", "mins": "m", "minute": "m", "minutes": "m"},
	metric.SecondsPerToken: {"sec": "s", "second": "s", "seconds": "s", "msec": "ms", "millisecond": "ms", "milliseconds": "ms"},
	metric.TokensPerSecond: {"tps": " tok/s", "t/s": " tok/s", "tok/sec": " tok/s", "tokens/sec": " tok/s", "tokens per second": " tok/s"},
	metric.PerSecond:       {"rps": " req/s", "qps": " req/s", "r/s": " req/s", "req/sec": " req/s", "requests/sec": " req/s"},
	metric.Ratio:           {"percent": "%", "pct": "%"},
}

func splitLimit(s string) (digits, name string) {
	end := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end < 0 {
		end = len(s)
	}
	return s[:end], strings.TrimSpace(s[end:])
}

func parseLimit(s string, base metric.Unit, def metric.Def) (float64, *problem) {
	digits, name := splitLimit(s)
	if _, err := parseDecimal(digits, 0); err != nil || len(s) > 64 {
		return 0, noLimit(sumThreshold, s, base, def)
	}
	var limit float64
	var p *problem
	if base == metric.Seconds || base == metric.SecondsPerToken {
		limit, p = parseTime(s, base, def)
	} else {
		limit, p = parseAmount(s, digits, name, base, def)
	}
	switch {
	case p != nil:
		return 0, p
	case limit == 0 && def.OfAnswers && def.Better == metric.LowerIsBetter:
		return 0, nil
	case !(limit > 0) || math.IsInf(limit, 0):
		return 0, problemf(sumOutOfRange, "%s: the limit %q would always hold or never hold. Write a limit above zero.", def.Name, s)
	case base == metric.Ratio && limit > 1:
		return 0, problemf(sumOutOfRange, "%s is a share, so the limit must be at most 100%%, not %s%%.", def.Name, strconv.FormatFloat(limit*100, 'g', 4, 64))
	}
	return limit, nil
}

func noLimit(summary, s string, base metric.Unit, def metric.Def) *problem {
	switch {
	case strings.Contains(s, ",") && strings.ContainsAny(s, "<>"):
		return problemf(summary, `%s: write each threshold as a string of its own: %s = ["p95 < 2s", "p99 < 4s"].`, def.Name, def.Name)
	case strings.HasPrefix(s, "var.") || strings.HasPrefix(s, "local."):
		return problemf(summary, "%s: the quotes contain a name instead of a value. Write ${%s}.", def.Name, s)
	}
	digits, name := splitLimit(s)
	if u, ok := spellings[base][strings.ToLower(name)]; ok && digits != "" {
		return problemf(summary, "%s: unknown unit %q. Write %s.", def.Name, name, digits+u)
	}
	if base == metric.Count {
		return problemf(summary, "%s is a count, so %q is not a valid limit. Write a number without a unit, such as %s.", def.Name, s, exampleLimit(base))
	}
	return problemf(summary, "%s: %q is not a valid limit. Write a number with its unit, such as %s.", def.Name, s, exampleLimit(base))
}

func parseTime(s string, base metric.Unit, def metric.Def) (float64, *problem) {
	if digits, name := splitLimit(s); name == "" {
		return 0, problemf(sumMissingUnit, "%s: %s has no unit. Write %ss or %sms.", def.Name, digits, digits, digits)
	}
	text := strings.ReplaceAll(s, " ", "")
	if base == metric.SecondsPerToken {
		text = strings.TrimSuffix(strings.TrimSuffix(text, "/token"), "/tok")
	}
	limit, err := time.ParseDuration(text)
	if err != nil {
		return 0, noLimit(sumWrongUnit, s, base, def)
	}
	return limit.Seconds(), nil
}

func parseAmount(s, digits, name string, base metric.Unit, def metric.Def) (float64, *problem) {
	u, ok := units[base][name]
	if currency, per, priced := money(base); priced && (name == currency || name == currency+per) {
		u, ok = unit{0, 1}, true
	}
	switch {
	case !ok && name == "":
		if share, err := parseDecimal(digits, 2); base == metric.Ratio && err == nil && share <= 100 {
			return 0, problemf(sumMissingUnit, "%s: write a share in percent: %s%%.", def.Name, strconv.FormatFloat(share, 'f', -1, 64))
		}
		return 0, problemf(sumMissingUnit, "%s: %s has no unit. Write %s%s.", def.Name, digits, digits, strings.TrimLeft(exampleLimit(base), "0123456789"))
	case !ok:
		return 0, noLimit(sumWrongUnit, s, base, def)
	}
	number, err := parseDecimal(digits, u.power)
	if err != nil {
		return 0, noLimit(sumThreshold, s, base, def)
	}
	limit := number / float64(u.divisor)
	if times, ok := binary[name]; ok {
		limit *= times
	}
	return limit, nil
}

var elsewhere = map[string]string{
	"median": "p50", "med": "p50", "avg": "mean", "average": "mean", "minimum": "min", "maximum": "max", "all": "every",
}

func parseDecimal(s string, power int) (float64, error) {
	if s == "" || strings.Trim(s, "0123456789.") != "" || len(s) > 32 {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(s+"e"+strconv.Itoa(power), 64)
}
