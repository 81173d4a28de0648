package decode

import (
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/suggest"
)

// decodeAccepts reads the accept blocks. Whether one counts depends on the date of the run: see
// plan.Plan.Accept.
func (d *decoder) decodeAccepts() {
	if d.opts.alone {
		return
	}
	seen := map[string]hcl.Range{}
	sc := scope{ctx: d.base, work: true}.child(map[string]cty.Value{"workload": values(d.workloads, workloadType)})
	for _, blk := range d.blocks["accept"] {
		name := blk.Labels[0]
		if !d.checkName(name, blk.LabelRanges[0]) || !d.isNew(blk, seen) {
			continue
		}
		b := d.open(acceptBlock, blk, sc, "accept."+name)
		before := len(d.diags)
		a := &plan.Accept{Accept: metric.Accept{Name: name}, Range: blk.DefRange}
		of, work, ok := readAcceptOf(b, a)
		if !ok || d.diags[before:].HasErrors() {
			continue // it is not known what the other attributes mean
		}
		scope := &plan.Claim{Workloads: work}
		if b.given("workload") {
			scope.Workloads = readWorkloads(b, "workload", work, &plan.Compare{})
			for _, w := range scope.Workloads {
				a.Workloads = append(a.Workloads, w.Address())
			}
		}
		if b.given("at") {
			a.At = readClaimAt(b, scope)
		}
		a.Until = readUntil(b)
		if a.Why, _ = get(b, "why", item.text); b.isSet("why") && strings.TrimSpace(a.Why) == "" {
			d.errorf(b.rangeOf("why"), sumMissing, "An accept block needs a reason. Say what changed, and why that is acceptable.")
		}
		if !readAccepted(b, a, scope) || d.diags[before:].HasErrors() || b.stray {
			continue
		}
		if d.covers(a, of) {
			d.out.Accepts = append(d.out.Accepts, a)
		}
	}
}

// readAcceptOf reads what the bound is of: a comparison, nights or thresholds. It returns that
// comparison, and the workloads that the block may name.
func readAcceptOf(b *body, a *plan.Accept) (of *plan.Compare, work []*plan.Workload, ok bool) {
	history := b.boolean("history")
	attr := b.attrs["compare"]
	switch {
	case attr != nil && history:
		b.d.errorf(attr.NameRange, sumConflict, "A bound is of a comparison or of nights, not of both. Write two accept blocks.")
	case history && b.d.out.History == nil:
		b.d.errorf(b.rangeOf("history"), sumAccept, "The plan has no history block, so it has no nights. Remove history, or add history { folder = \"perf/history\" }.")
	case history:
		a.Of = metric.AcceptNights
	case attr != nil:
		t, diags := hcl.AbsTraversalForExpr(attr.Expr)
		name := plan.Address(plan.StepName(t, 1), plan.StepName(t, 2))
		if diags.HasErrors() || t.RootName() != "compare" || name == "" || len(t) > 3 {
			b.d.errorf(attr.Expr.Range(), sumAccept, `Write compare.name, or compare.name["key"] for one comparison of a for_each.`)
			return nil, nil, false
		}
		a.Of = "compare." + name
		names := make([]string, len(b.d.out.Compares))
		for i, c := range b.d.out.Compares {
			if names[i] = c.Name; c.Name == name {
				return c, c.Workloads(b.d.out), true
			}
		}
		if !slices.ContainsFunc(b.d.blocks["compare"], func(blk *hcl.Block) bool { return name == blk.Labels[0] }) { // else it has an error
			b.d.errorf(attr.Expr.Range(), sumAccept, "The plan has no compare.%s.%s", name, suggest.DidYouMean(name, names))
		}
		return nil, nil, false
	}
	return nil, b.d.out.Workloads, true
}

func readUntil(b *body) time.Time {
	x, ok := b.item("until")
	if !ok || x.unknown() {
		return time.Time{}
	}
	text, ok := x.text()
	day, err := time.Parse(time.DateOnly, text)
	if ok && err != nil {
		x.errorf(sumOutOfRange, `until = %q is not a date. Write the day from which the plan's own bound holds again, such as "2027-01-31".`, text)
	}
	return day
}

// readAccepted reads the one bound of the block.
func readAccepted(b *body, a *plan.Accept, scope *plan.Claim) bool {
	n := 0
	for name, attr := range b.attrs {
		def, ok := metric.Lookup(name)
		if ok || name == "capacity" {
			n++
		}
		if ok && a.Of != "" && !comparable(def) {
			b.d.errorf(attr.NameRange, sumAccept, "%s is not compared, so there is no change of it to accept.", name)
			return false
		}
	}
	if n != 1 {
		if !b.stray {
			b.d.errorf(b.rng, sumAccept, `An accept block has one bound, such as ttft = "p95 < 3s", with a reason of its own. This one has %d.`, n)
		}
		return false
	}
	if a.Of != "" {
		for _, ch := range readChanges(b, scope) {
			a.Metric, a.Stat, a.Limit, a.Text = ch.Metric.Name, ch.Stat.String(), ch.Limit, ch.Text
		}
	} else if b.isSet("capacity") {
		b.d.errorf(b.rangeOf("capacity"), sumAccept, "capacity is accepted as a change only: add compare = compare.name, or history = true. To require a smaller capacity, change `require`.")
	} else {
		for _, t := range readThresholds(b, false) {
			a.Metric, a.Stat, a.Op, a.Limit, a.Text = t.Metric.Name, t.Stat.String(), string(t.Op), t.Limit, t.Text
		}
	}
	return a.Metric != ""
}

// covers reports whether the block stands in the place of some bound, and of no stricter one. What a
// history keeps is known only from its nights.
func (d *decoder) covers(a *plan.Accept, of *plan.Compare) bool {
	found, weaker := a.Of == metric.AcceptNights, true
	own := func(text string, covers, isWeaker bool) {
		if !covers {
			return
		}
		found = true
		if weaker && !isWeaker {
			weaker = false
			d.errorf(a.Range, sumAccept, "%s = %q accepts no more than %q, in place of which it stands. Write what is accepted, or remove the block.",
				a.Metric, a.Text, text)
		}
	}
	for _, w := range d.out.Workloads {
		if a.Metric == "goodput" && a.Covers(a.Of, w.Address(), "", a.Metric, a.Stat) &&
			slices.ContainsFunc(w.Good, func(t *plan.Threshold) bool { return t.Metric.OfAnswers }) {
			d.errorf(a.Range, sumAccept, "The good requests of workload.%s have right answers, and wrong answers cannot be accepted.", w.Address())
			return false
		}
		for _, sla := range w.SLAs {
			for _, level := range sla.At {
				for _, t := range sla.Thresholds {
					up := t.Op == plan.Greater || t.Op == plan.GreaterEqual
					covers := a.Covers("", w.Address(), level, t.Metric.Name, t.Stat.String())
					own(t.Text, covers, up && a.Limit < t.Limit || !up && a.Limit > t.Limit)
				}
			}
		}
	}
	if of != nil && of.Skip != "" {
		return true // nothing is compared
	}
	if of != nil {
		claimed(a, of, own)
	}
	if !found {
		d.errorf(a.Range, sumAccept, "The plan has no bound on %s here, so there is nothing to accept. Check `workload` and `at`, and the statistic.", strings.TrimSpace(a.Metric+" "+a.Stat))
	}
	return found && weaker
}

// claimed calls own for each required change of a comparison: with its text, whether the block covers
// it, and whether the block accepts more.
func claimed(a *plan.Accept, of *plan.Compare, own func(text string, covers, weaker bool)) {
	for _, claim := range of.Claims {
		for _, ch := range claim.Changes {
			levels := claim.At
			if ch.Metric.Name == "capacity" {
				levels = []string{""}
			}
			covers := slices.ContainsFunc(claim.Workloads, func(w *plan.Workload) bool {
				return slices.ContainsFunc(levels, func(level string) bool {
					return a.Covers(a.Of, w.Address(), level, ch.Metric.Name, ch.Stat.String())
				})
			})
			higher := ch.Metric.Better == metric.HigherIsBetter
			own(ch.Text, covers, claim.Improve || higher && a.Limit < ch.Limit || !higher && a.Limit > ch.Limit)
		}
	}
}
