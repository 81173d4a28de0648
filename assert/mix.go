package assert

import (
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/search"
)

// A level of a mix passes if two conditions hold. All requests together meet the thresholds of the
// mix, and the requests of each part meet the thresholds of that part.

// sight holds the verdicts of one look at a level. A look judges the requests so far. For a mix,
// sight also holds the verdicts of each part.
type sight struct {
	search.Judgement
	verdicts map[*plan.Workload][]verdict.Verdict
}

// lookAt judges a whole level, and every part of a mix. The function alpha returns the allowed
// error under a policy. The function due returns the planned number of requests of a workload.
func lookAt(w *plan.Workload, l *metric.Level, price metric.Price, binds func(*plan.SLA) bool, alpha func(plan.Policy) float64,
	due func(*plan.Workload, *metric.Level) int) sight {
	out := sight{verdicts: map[*plan.Workload][]verdict.Verdict{}}
	for _, x := range w.Whole() {
		of, mixed := l, 0.0
		if x.Of != nil {
			if of = partAt(l, x); of == nil {
				return sight{Judgement: search.Invalid("the record lacks workload."+x.Address(), false)}
			}
			mixed = gather(l.InMemory()).lifetime()
		}
		v, verdicts := look(x, of, mixed, price, binds, alpha(x.Policy), due(x, of))
		out.verdicts[x] = verdicts
		if x.Of == nil && w.Mix == nil {
			out.Judgement = v
			return out
		}
		out.add(x, v)
		if out.Invalid != "" {
			return out
		}
	}
	if len(out.Margins) == 0 {
		out.Outcome, out.Needs = verdict.Inconclusive, -1
	}
	out.Follows = out.Follows && out.Outcome != verdict.Fail
	bind(&out.Judgement)
	return out
}

// partAt finds the level of a part within the level of its mix. It returns nil if the level has no
// such part.
func partAt(l *metric.Level, part *plan.Workload) *metric.Level {
	for _, p := range l.Parts {
		if p.Workload == part.Address() {
			return l.Part(p)
		}
	}
	return nil
}

// add merges the verdicts on a mix, or on one part of it, into o. Without a required threshold they
// decide nothing.
func (o *sight) add(w *plan.Workload, v search.Judgement) {
	part := ""
	if w.Of != nil {
		part = w.PartName() + ": "
	}
	if v.Invalid != "" {
		o.Judgement = v
		o.Invalid = part + v.Invalid
		return
	}
	if o.Outcome == verdict.Pending {
		o.Outcome = verdict.Pass
	}
	o.Follows, o.ForGood = o.Follows || v.Follows, o.ForGood || v.ForGood
	for _, t := range v.Margins {
		t.Threshold = part + t.Threshold
		o.Margins = append(o.Margins, t)
		o.Outcome = max(o.Outcome, t.Outcome)
	}
	switch {
	case len(v.Margins) == 0 || v.Outcome != verdict.Inconclusive || o.Needs < 0:
	case v.Needs < 0:
		o.Needs = v.Needs
	default:
		o.Needs = max(o.Needs, w.OfWhole(v.Needs))
	}
}

// bind sets Binding to the threshold that decided the level's outcome, such as "ttft p95". If
// several decided it, bind takes the one nearest to its limit.
func bind(v *search.Judgement) {
	nearest := -2.0 * search.MaxLog
	for _, t := range v.Margins {
		near := t.Log
		if t.Outcome == v.Outcome {
			near += 3 * search.MaxLog
		}
		if near > nearest {
			nearest, v.Binding = near, t.Threshold
		}
	}
	if v.Outcome != verdict.Inconclusive {
		v.Needs = 0
	}
}
