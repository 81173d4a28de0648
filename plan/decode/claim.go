package decode

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/suggest"
)

func readClaim(b *body, c *plan.Compare, work []*plan.Workload, improve bool) *plan.Claim {
	out := &plan.Claim{Improve: improve, Range: b.rng, Workloads: work}
	if b.given("workloads") {
		out.Workloads = readWorkloads(b, "workloads", work, c)
	}
	out.At = readClaimAt(b, out)
	b.bind(out)
	out.Changes = readChanges(b, out)
	if len(out.Changes) == 0 {
		if !b.stray && !b.anyMetric() && !b.isSet("capacity") {
			b.d.errorf(b.rng, sumEmptySLA, `The block needs a change, such as ttft = "p95 %s10%%".`, map[bool]string{true: "-", false: "+"}[improve])
		}
		return nil
	}
	return out
}

func readChanges(b *body, c *plan.Claim) []*plan.ChangeBound {
	var out []*plan.ChangeBound
	for _, attr := range sortedAttributes(b.attrs) {
		def, ok := b.d.out.Metric(attr.Name)
		if attr.Name == "capacity" {
			def, ok = capacityDef, true
		}
		if !ok {
			continue
		}
		b.bounds(attr.Name, "a sign", exampleChange(def, c.Improve), func(text string) (string, func(hcl.Range), *problem) {
			ch, p := parseChange(def, text, c.Improve)
			return "on " + cmp.Or(ch.Stat.String(), "its value"), func(rng hcl.Range) {
				if ch.Range = rng; b.applies(c, ch) && embeddable(b, c, &ch) {
					out = append(out, &ch)
				}
			}, p
		})
	}
	return out
}

// applies reports whether the workloads of a claim have the metric: each of them, if the block names
// them, and otherwise one.
func (b *body) applies(c *plan.Claim, ch plan.ChangeBound) bool {
	some := slices.ContainsFunc(c.Workloads, func(w *plan.Workload) bool { return lacks(w, ch.Metric) == nil })
	for _, w := range c.Workloads {
		if p := lacks(w, ch.Metric); p != nil && (!some || b.given("workloads")) {
			b.d.errorf(ch.Range, p.summary, "%s", p.detail)
			return false
		}
	}
	return true
}

// parseChange parses one limit on a change, written as [statistic] sign number unit.
func parseChange(def metric.Def, text string, improve bool) (plan.ChangeBound, *problem) {
	c := plan.ChangeBound{Metric: def, Text: text}
	if def.Paired {
		return parsePaired(def, text)
	}
	at := strings.IndexAny(text, "+-−±<>=")
	if at < 0 {
		return c, problemf(sumChange, "%s = %q has no sign. Write %s.", def.Name, text, exampleChange(def, improve))
	}
	sign, rest := text[at:], ""
	if def.TwoSided && !improve {
		sign, c.TwoSided = bothSides(sign)
	}
	switch {
	case def.TwoSided && !c.TwoSided:
		return c, problemf(sumChange, "%s = %q allows a change in one direction only, but this metric is bounded in both. Write %s in a tolerate block.", def.Name, text, exampleChange(def, false))
	case strings.HasPrefix(sign, "+"), strings.HasPrefix(sign, "-"):
		rest = strings.TrimSpace(sign[1:])
	default:
		return c, problemf(sumChange, "%s = %q: write a change with + or -, such as %s.", def.Name, text, exampleChange(def, improve))
	}
	stat, p := thresholdStat(def, strings.TrimSpace(text[:at]), false)
	if p != nil {
		if p.summary == sumMissingStat {
			p.detail = fmt.Sprintf("%s needs the statistic to compare. Write, for example, %s.", def.Name, exampleChange(def, improve))
		}
		return c, p
	}
	if stat.Exact() {
		return c, problemf(sumStatNotAllowed, "%s: min and max cannot be compared, because they depend on chance. Compare the mean or a percentile, such as %s.", def.Name, exampleChange(def, improve))
	}
	c.Stat = stat
	c.Points = def.UnitOf(stat) == metric.Ratio
	n, p := changeLimit(def, text, rest, c.Points, improve)
	if p != nil {
		return c, p
	}
	down := sign[0] == '-'
	if c.Limit = n; down {
		c.Limit = -n
	}
	return c, misjudged(c, n, down, improve)
}

// The bound is a difference in the metric's unit, not a percentage: "count +2" or "mean +0.05".
func parsePaired(def metric.Def, text string) (plan.ChangeBound, *problem) {
	c := plan.ChangeBound{Metric: def, Text: text, Points: true}
	word := "count"
	if def.Unit != metric.Count {
		word, c.Stat.Kind = "mean", metric.Mean
	}
	rest, ok := strings.CutPrefix(text, word)
	rest, plus := strings.CutPrefix(strings.TrimSpace(rest), "+")
	n, err := parseDecimal(strings.TrimSpace(rest), 0)
	switch {
	case !ok || !plus || err != nil, word == "count" && n != math.Trunc(n):
		return c, problemf(sumChange, "%s = %q is not a valid bound. Write %s.", def.Name, text, exampleChange(def, false))
	case word == "mean" && n == 0:
		return c, problemf(sumOutOfRange, "%s: no test can show that two servers are exactly equal. Allow a tolerance above zero.", def.Name)
	case n > 1000:
		return c, problemf(sumOutOfRange, "%s: a change of %s is too large. Write a smaller one.", def.Name, text)
	}
	c.Limit = n
	return c, nil
}

func misjudged(c plan.ChangeBound, n float64, down, improve bool) *problem {
	def := c.Metric
	better := down == (def.Better == metric.LowerIsBetter) && !c.TwoSided
	switch {
	case math.IsInf(n, 0) || n > 10 || down && n >= 1:
		return problemf(sumOutOfRange, "%s: a change of %s is too large. Write a smaller one.", def.Name, c.Text)
	case n == 0 && !improve:
		return problemf(sumOutOfRange, "%s: no test can show that two servers are exactly equal. Allow a tolerance, such as \"+5%%\", or use improve.", def.Name)
	case n > 0 && better != improve:
		word, block := "worse", "tolerate"
		if better {
			word, block = "better", "improve"
		}
		article := map[bool]string{true: "Lower", false: "Higher"}[down]
		return problemf(sumWrongWay, "%s %s is %s. Move this bound to %s.", article, def.Name, word, block+" { … }")
	}
	return nil
}

func bothSides(sign string) (string, bool) {
	for _, both := range []string{"+-", "±"} {
		if after, ok := strings.CutPrefix(sign, both); ok {
			return "+" + after, true
		}
	}
	return sign, false
}

// changeLimit reads the size of a change: "10%", or "1pp" (percentage points) if the metric is a
// share.
func changeLimit(def metric.Def, text, rest string, points, improve bool) (float64, *problem) {
	unit, other, means := "%", "pp", "percent of the control's value"
	if points {
		unit, other, means = "pp", "%", "percentage points (pp), because the metric is a share itself"
	}
	digits, ok := strings.CutSuffix(rest, unit)
	if !ok {
		if strings.HasSuffix(rest, other) {
			return 0, problemf(sumWrongUnit, "Write a change of %s in %s, such as %s.", def.Name, means, exampleChange(def, improve))
		}
		return 0, problemf(sumMissingUnit, "%s: the change has no unit. Write it in %s, such as %s.", def.Name, means, exampleChange(def, improve))
	}
	n, err := parseDecimal(strings.TrimSpace(digits), -2)
	if err != nil {
		return 0, problemf(sumChange, "%s: %q is not a valid change. Write %s.", def.Name, text, exampleChange(def, improve))
	}
	return n, nil
}

// ParseChange parses a bound on the change of a metric, such as "p95 +10%". The syntax is the same
// as in tolerate and improve blocks. The error explains what is wrong.
func ParseChange(name, text string, improve bool) (*plan.ChangeBound, error) {
	def, ok := metric.Lookup(name)
	if name == capacityDef.Name {
		def, ok = capacityDef, true
	}
	paired := def.Paired && def.Better != metric.Neutral
	if !ok || !comparable(def) && !paired && def.Name != capacityDef.Name {
		return nil, fmt.Errorf("%q is not a metric that can be compared.%s", name, suggest.DidYouMean(name, append(metric.Names(comparable), capacityDef.Name)))
	}
	c, p := parseChange(def, text, improve)
	if p != nil {
		return nil, errors.New(p.detail)
	}
	return &c, nil
}

func exampleChange(def metric.Def, improve bool) string {
	sign := "+"
	if (def.Better == metric.HigherIsBetter) != improve {
		sign = "-"
	}
	switch {
	case def.Name == "odd_answers":
		return `"count +2"`
	case def.Paired && def.OfEmbeddings():
		return `"mean +0.0005"`
	case def.Paired:
		return `"mean +0.05"`
	case def.TwoSided:
		return `"mean +-10%"`
	case def.Name == "success", def.OfAnswers:
		return `"rate ` + sign + `1pp"`
	case def.Name == "goodput":
		return `"` + sign + `5%" or "share ` + sign + `2pp"`
	case def.Unit == metric.Ratio:
		return `"` + sign + `5pp"`
	case def.Scope == metric.PerLevel:
		return `"` + sign + `5%"`
	case def.Source == metric.Starts:
		return `"mean ` + sign + `10%"`
	case def.Better == metric.HigherIsBetter:
		return `"mean ` + sign + `5%"`
	}
	return `"p95 ` + sign + `10%"`
}
