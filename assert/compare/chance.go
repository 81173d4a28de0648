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
	usualLaunch   = 0.03 // of the seconds that warm starts of one server take
	// usualDisagreement is the share of a task's items on which two runs of one server usually
	// differ. It is 3.5 % for GSM8K in 50 repeats (sglang#1382), and 0.6 to 5 % in other reports.
	usualDisagreement = 0.035
)

// Chance is what can be foretold of a comparison before its run.
type Chance struct {
	Compare *plan.Compare
	// Passes is the chance that an unchanged candidate passes all required changes. It is found by
	// simulation, because they share their starts and prompts.
	Passes  float64
	Changes []ChangeChance
	// Unknown lists the required changes whose chance to pass cannot be computed before the run.
	Unknown []string
	Rounds  Rounds
	Seen    bool   // the noise is that of the last comparison, not what is assumed
	Slowest string // what the first look that can decide waits for; "" if it is the first planned look
}

// Rounds is the number of rounds that a comparison takes.
type Rounds struct {
	Least, Most int // at the first look that can decide, and at the last
	// Unchanged and Tolerated are means: of an unchanged candidate, and of one that is worse by exactly
	// what the plan tolerates.
	Unchanged, Tolerated float64
}

// ChangeChance is the chance that one required change passes at one level.
type ChangeChance struct {
	Workload, Level string
	Change          *plan.ChangeBound
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

// basis says where the noise comes from.
func (x *Chance) basis() string {
	if x.Seen {
		return "if starts differ as in the last comparison"
	}
	if slices.ContainsFunc(x.Changes, func(c ChangeChance) bool { return c.Change.Metric.Source == metric.Starts }) {
		return Assumed + ", and that a warm start takes longer or shorter by 3 %"
	}
	return Assumed
}

// Chances foretells each comparison that the plan does not skip: the probability that it passes if
// nothing changed, and how many rounds it takes. The noise is that of the recorded comparison of the
// same name. Without one, it assumes a server that varies by usualRequests, usualRepeats and usualStarts.
func Chances(p *plan.Plan, recorded ...*Comparison) []Chance {
	var out []Chance
	for _, c := range p.Compares {
		if c.Skip != "" {
			continue
		}
		x, f := Chance{Compare: c}, newForetold(p, c)
		var chances []float64
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
					for _, level := range w.Levels() {
						if !slices.Contains(claim.At, level.Name) {
							continue
						}
						one := ChangeChance{Workload: w.Address(), Level: level.Name, Change: ch, Severity: claim.Severity,
							Improve: claim.Improve}
						m, known := f.member(w, ch, level)
						if !known {
							x.Unknown = append(x.Unknown, one.Name())
							continue
						}
						one.Impossible = m.from > f.last() && m.limit > 0 && m.counted
						m.required = claim.MustHold()
						m.sees(f, recorded, w, ch, level.Name)
						x.Seen = x.Seen || m.seen
						f.members, x.Changes = append(f.members, m), append(x.Changes, one)
					}
				}
			}
		}
		x.Passes, chances, x.Rounds.Unchanged = f.unchanged()
		for i := range x.Changes {
			x.Changes[i].Passes = chances[i]
		}
		x.Rounds.Tolerated = f.tolerated()
		x.Rounds.Least, x.Slowest = f.least()
		x.Rounds.Most = f.last() * f.unit
		out = append(out, x)
	}
	return out
}

// leastChance is the smallest chance of a pass for which tokgate gives no warning.
const leastChance = 0.8

// ChanceDiagnostics warns of changes that can never pass. It also warns of comparisons that would
// often be inconclusive although nothing changed. There is one diagnostic for each cause.
func ChanceDiagnostics(p *plan.Plan, recorded ...*Comparison) hcl.Diagnostics {
	var diags hcl.Diagnostics
	type cause struct {
		severity plan.Severity
		items    bool
	}
	impossible, likewise := map[cause]*hcl.Diagnostic{}, map[*hcl.Diagnostic][]string{}
	// The key is the place of the compare block in the plan. Instances of a for_each share it.
	warned := map[hcl.Range]*hcl.Diagnostic{}
	for _, x := range Chances(p, recorded...) {
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
	if least == nil || x.Passes >= leastChance || x.Compare.Policy.Estimates() {
		return nil
	}
	return &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: "Comparison is often inconclusive", Subject: x.Compare.Range.Ptr(),
		Detail: fmt.Sprintf("The chance that an unchanged candidate passes all of compare.%s is only about %s, %s. The change that is least likely to pass is %s (%s). Use more rounds, more requests in each round, or a wider tolerance.%s",
			x.Compare.Name, percentOf(x.Passes), x.basis(), least.Name(), percentOf(least.Passes), least.itemsNeeded(x.Compare))}
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

// String returns what is foretold in one line.
func (x Chance) String() string {
	required := slices.DeleteFunc(slices.Clone(x.Changes), func(c ChangeChance) bool { return c.Severity != plan.SeverityError })
	rounds := ""
	if r := x.Rounds; r.Most > r.Least {
		rounds = fmt.Sprintf("%d to %d starts of each server, about %.0f if nothing changed and %.0f if just as much worse as is tolerated; ", r.Least, r.Most, r.Unchanged, r.Tolerated)
		if x.Slowest != "" {
			rounds += x.Slowest + " takes the most; "
		}
	}
	if len(required) == 0 {
		return fmt.Sprintf("compare.%s: %sthe chance that an unchanged candidate passes is not known", x.Compare.Name, rounds)
	}
	least := slices.MinFunc(required, func(a, b ChangeChance) int { return cmp.Compare(a.Passes, b.Passes) })
	s := fmt.Sprintf("compare.%s: %san unchanged candidate passes with a chance of about %s, %s", x.Compare.Name, rounds, percentOf(x.Passes), x.basis())
	if slices.ContainsFunc(required, func(c ChangeChance) bool { return c.Improve }) {
		s = fmt.Sprintf("compare.%s: %sit asks for an improvement, so an unchanged candidate should not pass: its chance to pass is about %s", x.Compare.Name, rounds, percentOf(x.Passes))
	}
	if len(required) > 1 {
		s += fmt.Sprintf("; the change that is least likely to pass is %s (%s)", least.Name(), percentOf(least.Passes))
	}
	if len(x.Unknown) > 0 {
		s += fmt.Sprintf("; this leaves out %s, whose chances are not known before the run", verdict.Enumerate(x.Unknown))
	}
	return s
}
