package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// These standard deviations of logarithms are assumed for a server that was not measured yet.
// usualRequests is for the times of requests, and usualStarts for their means after different
// starts. Both servers get the same prompts, so most of what makes one request slower than another
// cancels in a difference of means. usualRepeats is for what is left: the times of one prompt when it
// is sent again. Percentiles are decided by few requests, and there nothing cancels.
const (
	usualRequests = 0.30
	usualRepeats  = 0.10
	usualStarts   = 0.01
	// usualDisagreement is the share of a task's items on which two runs of one server usually
	// differ. It is 3.5 % for GSM8K in 50 repeats (sglang#1382), and 0.6 to 5 % in other reports.
	usualDisagreement = 0.035
)

// Chance is the chance that an unchanged candidate passes a comparison.
type Chance struct {
	Compare *plan.Compare
	// Passes is the chance that all required changes pass, as if they were independent. They share
	// their requests, so the true chance is somewhat higher.
	Passes  float64
	Changes []ChangeChance
	// Unknown lists the required changes whose chance to pass cannot be computed before the run.
	Unknown []string
}

// ChangeChance is the chance that one required change passes at one level.
type ChangeChance struct {
	Workload, Level string
	Change          *plan.Change
	Passes          float64
	// Impossible means that the change can never be certified with the planned requests, whatever
	// their values.
	Impossible bool
	Severity   plan.Severity
	Improve    bool
}

// Name returns the change, its tolerance, the workload and the level, such as "ttft p95 +10% of
// chat at 8".
func (c ChangeChance) Name() string {
	return fmt.Sprintf("%s %s of %s at %s", c.Change.Metric.Name, c.Change.Text, c.Workload, c.Level)
}

// Assumed states, in words, what the chances assume about the server.
const Assumed = "assuming that times vary by 30 % between requests, by 10 % if a request is repeated, and by 1 % between server starts"

// Chances returns for each comparison that the plan does not skip the probability that it passes if
// nothing changed. It assumes a server that varies by usualRequests, usualRepeats and usualStarts. The
// probability for a change of a time is the power of a non-inferiority test.
func Chances(p *plan.Plan) []Chance {
	var out []Chance
	for _, c := range p.Compares {
		if c.Skip != "" {
			continue
		}
		x := Chance{Compare: c, Passes: 1}
		for _, claim := range c.Claims {
			for _, w := range claim.Workloads {
				for _, ch := range claim.Changes {
					if ch.Metric.Paired {
						continue // the chance of a scored metric cannot be computed
					}
					if ofCapacity(ch) {
						x.Unknown = append(x.Unknown, fmt.Sprintf("capacity %s of %s", ch.Text, w.Address()))
						continue
					}
					for _, load := range w.Loads {
						for _, level := range load.Levels {
							if !slices.Contains(claim.At, level.Name) {
								continue
							}
							one := ChangeChance{Workload: w.Address(), Level: level.Name, Change: ch, Severity: claim.Severity, Improve: claim.Improve}
							var known bool
							if one.Passes, one.Impossible, known = chance(c, w, ch, level); !known {
								x.Unknown = append(x.Unknown, one.Name())
								continue
							}
							if claim.Severity == plan.SeverityError {
								x.Passes *= one.Passes
							}
							x.Changes = append(x.Changes, one)
						}
					}
				}
			}
		}
		out = append(out, x)
	}
	return out
}

// chance returns the probability that an unchanged candidate passes one required change at one
// level. If impossible is true, no candidate can pass. If known is false, the probability cannot be
// computed.
func chance(c *plan.Compare, w *plan.Workload, ch *plan.Change, level plan.Level) (passes float64, impossible, known bool) {
	if level.Duration > 0 {
		return 0, false, false // with a duration, the number of requests is not known
	}
	alpha, rounds := c.Policy.Alpha(), max(level.Rounds, 1)
	n := float64(level.Requests) / float64(rounds)
	if c.Policy.OnInconclusive == plan.Extend && c.Live() && (c.Policy.MaxRequests == 0 || 2*level.Requests <= c.Policy.MaxRequests) {
		alpha, rounds = stat.SplitAlpha(alpha, 2), 2*rounds
	}
	if c.Policy.Decide == plan.Estimate {
		// A point estimate passes if its value is within the limit. This is the same as a test at
		// 50 % confidence, whose bound is the estimate itself.
		alpha, rounds = 0.5, max(level.Rounds, 1)
	}
	limit := (&Change{Metric: ch.Metric, Shift: Shift{Points: ch.Points}}).scaled(ch.Limit)
	var requests float64
	switch name := ch.Metric.Name; {
	case name == "accuracy":
		passes, impossible = chanceOfItems(w, int(n)*rounds, limit, alpha)
		return passes, impossible, true
	case name == "success" || ch.Stat.Kind == metric.Share:
		// Even the best result, without a failed request on either server, may be too uncertain to
		// pass.
		all := n * float64(rounds)
		low, _, ok := stat.ShareDifference(all, all, all, all, alpha)
		if !ok || -low >= limit {
			return 0, limit > 0, true
		}
		return 1, false, true
	case ch.Points, ch.Metric.Source != metric.Client:
		return 0, false, false
	case ch.Stat.Kind == metric.Percentile:
		q := ch.Stat.P / 100
		z := stat.NormalQuantile(q)
		density := math.Exp(-z*z/2) / math.Sqrt(2*math.Pi)
		requests = usualRequests * math.Sqrt(q*(1-q)/n) / density
	default: // a mean, or a value that is computed from means
		requests = math.Sqrt(math.Expm1(usualRepeats*usualRepeats) / n)
	}
	units := rounds
	variance := 2 * (requests*requests + usualStarts*usualStarts)
	switch {
	case c.Restart == plan.RestartOrder:
		// In two rounds with the order A B B A, both legs of B share one start of B. So the two
		// rounds count as one unit.
		units /= 2
		variance = requests*requests + 1.5*usualStarts*usualStarts
	case c.SideBySide:
		// The two rounds of a pair depend on each other, so only their mean is an independent
		// observation. It has half the variance, because each round has server starts of its own.
		units /= 2
		variance /= 2
	case c.Restart == plan.RestartNever && c.Live():
		return withOneStart(units, requests, limit, alpha), false, true
	}
	return stat.NonInferior(units, 0, math.Sqrt(variance), limit, alpha), false, true
}

// withOneStart returns the chance to pass if each server starts only once. The random difference
// between the two starts then does not average out.
func withOneStart(units int, requests, limit, alpha float64) float64 {
	sum, weights := 0.0, 0.0
	for z := -3.0; z <= 3; z += 0.25 {
		weight := math.Exp(-z * z / 2)
		sum += weight * stat.NonInferior(units, z*math.Sqrt2*usualStarts, math.Sqrt(2)*requests, limit, alpha)
		weights += weight
	}
	return sum / weights
}

// leastChance is the smallest chance of a pass for which tokgate gives no warning.
const leastChance = 0.8

// ChanceDiagnostics warns of changes that can never pass. It also warns of comparisons that would
// often be inconclusive although nothing changed. There is one diagnostic for each cause.
func ChanceDiagnostics(p *plan.Plan) hcl.Diagnostics {
	var diags hcl.Diagnostics
	type cause struct {
		severity plan.Severity
		items    bool
	}
	impossible, likewise := map[cause]*hcl.Diagnostic{}, map[*hcl.Diagnostic][]string{}
	// The key is the place of the compare block in the plan. Instances of a for_each share it.
	warned := map[hcl.Range]*hcl.Diagnostic{}
	for _, x := range Chances(p) {
		for _, c := range x.Changes {
			if !c.Impossible {
				continue
			}
			of := cause{c.Severity, c.Change.Metric.Name == "accuracy"}
			if d := impossible[of]; d != nil {
				likewise[d] = append(likewise[d], fmt.Sprintf("%s in compare.%s", c.Name(), x.Compare.Name))
				continue
			}
			impossible[of] = c.impossible(x.Compare)
			diags = append(diags, impossible[of])
		}
		d := x.rarePass()
		switch first := warned[x.Compare.Range]; {
		case d == nil:
		case first != nil:
			likewise[first] = append(likewise[first], fmt.Sprintf("compare.%s (%s)", x.Compare.Name, percentOf(x.Passes)))
		default:
			warned[x.Compare.Range] = d
			diags = append(diags, d)
		}
	}
	for d, others := range likewise {
		d.Detail += " " + Likewise(others)
	}
	return diags
}

// Likewise returns a sentence that lists further changes. They have the same problem as an earlier
// one.
func Likewise(others []string) string {
	const most = 4
	if left := len(others) - most; left > 1 {
		others = append(slices.Clone(others[:most]), fmt.Sprintf("and %d more", left))
	}
	return "Likewise " + strings.Join(others, ", ") + "."
}

// impossible is the diagnostic for a change that can never be certified. It is an error, or a
// warning if the change only warns.
func (c ChangeChance) impossible(x *plan.Compare) *hcl.Diagnostic {
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Change can never be certified", Subject: c.Change.Range.Ptr()}
	if c.Severity == plan.SeverityWarn {
		d.Severity = hcl.DiagWarning
	}
	d.Detail = c.Name() + " can never pass: even if no request failed on either server, there would be too few requests to certify the limit. Use more requests, more rounds, or a wider tolerance."
	if c.Change.Metric.Name == "accuracy" {
		d.Detail = c.Name() + " can never pass: even if both servers answered every item alike, there would be too few items to certify the limit." + c.itemsNeeded(x)
	}
	return d
}

// rarePass returns a warning if an unchanged candidate often does not pass the comparison,
// otherwise nil. It never warns of a comparison that requires an improvement.
func (x *Chance) rarePass() *hcl.Diagnostic {
	var least *ChangeChance
	for i, c := range x.Changes {
		if c.Improve || c.Impossible {
			return nil
		}
		if c.Severity == plan.SeverityError && (least == nil || c.Passes < least.Passes) {
			least = &x.Changes[i]
		}
	}
	if least == nil || x.Passes >= leastChance || x.Compare.Policy.Decide == plan.Estimate {
		return nil
	}
	return &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: "Comparison is often inconclusive", Subject: x.Compare.Range.Ptr(),
		Detail: fmt.Sprintf("The chance that an unchanged candidate passes all of compare.%s is only about %s, %s. The change that is least likely to pass is %s (%s). Use more rounds, more requests in each round, or a wider tolerance.%s",
			x.Compare.Name, percentOf(x.Passes), Assumed, least.Name(), percentOf(least.Passes), least.itemsNeeded(x.Compare))}
}

// chanceOfItems returns the probability that an unchanged candidate passes a limit on accuracy with
// the given number of requests. If impossible is true, a candidate cannot pass even if no answer
// changes.
func chanceOfItems(w *plan.Workload, requests int, limit, alpha float64) (passes float64, impossible bool) {
	if set := w.Prompt.Dataset; set != nil {
		requests = min(requests, len(set.Rows)) // an item that is asked twice counts once
	}
	if _, best, ok := stat.PairedShare(0, 0, float64(requests), alpha); !ok || best >= limit {
		return 0, limit > 0
	}
	return stat.PairedPower(requests, usualDisagreement, limit, alpha), false
}

// itemsNeeded says, in words, how many different items of a task suffice to certify the change.
func (c ChangeChance) itemsNeeded(block *plan.Compare) string {
	if c.Change.Metric.Name != "accuracy" {
		return ""
	}
	n, ok := stat.PairedNeeded(usualDisagreement, -c.Change.Limit, block.Policy.Alpha(), leastChance, mostAnswers)
	if !ok {
		return ""
	}
	return fmt.Sprintf(" If two runs of one server disagree on %s of the items, a comparison needs %d different items to certify the limit %s with a chance of %s.",
		metric.Format(metric.Ratio, usualDisagreement), n, FormatChange(metric.Ratio, c.Change.Limit, true), percentOf(leastChance))
}

func percentOf(x float64) string { return metric.Format(metric.Ratio, math.Round(100*x)/100) }

// String returns the chance in one line.
func (x Chance) String() string {
	required := slices.DeleteFunc(slices.Clone(x.Changes), func(c ChangeChance) bool { return c.Severity != plan.SeverityError })
	if len(required) == 0 {
		return fmt.Sprintf("compare.%s: the chance that an unchanged candidate passes is not known", x.Compare.Name)
	}
	least := slices.MinFunc(required, func(a, b ChangeChance) int { return cmp.Compare(a.Passes, b.Passes) })
	s := fmt.Sprintf("compare.%s: an unchanged candidate passes with a chance of about %s, %s", x.Compare.Name, percentOf(x.Passes), Assumed)
	if slices.ContainsFunc(required, func(c ChangeChance) bool { return c.Improve }) {
		s = fmt.Sprintf("compare.%s asks for an improvement, so an unchanged candidate should not pass: its chance to pass is about %s", x.Compare.Name, percentOf(x.Passes))
	}
	if len(required) > 1 {
		s += fmt.Sprintf("; the change that is least likely to pass is %s (%s)", least.Name(), percentOf(least.Passes))
	}
	if len(x.Unknown) > 0 {
		s += fmt.Sprintf("; this leaves out %s, whose chances are not known before the run", verdict.Enumerate(x.Unknown))
	}
	return s
}
