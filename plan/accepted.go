package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// accepted returns the accept block that counts for a bound; nil if there is none.
func (p *Plan) accepted(of string, w *Workload, level string, def metric.Def, stat metric.Stat) *Accept {
	for _, a := range p.Accepts {
		if a.Lapsed == "" && a.Covers(of, w.Address(), level, def.Name, stat.String()) {
			return a
		}
	}
	return nil
}

// Accepting reports whether the plan accepts as much as a, for as long.
func (p *Plan) Accepting(a *metric.Accept) bool {
	return p != nil && slices.ContainsFunc(p.Accepts, func(own *Accept) bool { return own.Includes(a) })
}

// AcceptedNights returns the bounds on nights that count in this run.
func (p *Plan) AcceptedNights() (out []metric.Accept) {
	for _, a := range p.Accepts {
		if a.Of == metric.AcceptNights && a.Lapsed == "" {
			out = append(out, a.Accept)
		}
	}
	return out
}

// Accepted returns the threshold that holds at a level of w: t, or what an accept block sets in its
// place.
func (p *Plan) Accepted(w *Workload, level string, t *Threshold) *Threshold {
	a := p.accepted("", w, level, t.Metric, t.Stat)
	if a == nil || t.Accept != nil {
		return t
	}
	out := *t
	out.Op, out.Limit, out.Text, out.Accept, out.Own = Op(a.Op), a.Limit, a.Text, a, t
	return &out
}

// AcceptedChange returns the bound that holds at a level of w: ch, or what an accept block sets in its
// place.
func (p *Plan) AcceptedChange(c *Compare, w *Workload, level string, ch *ChangeBound) *ChangeBound {
	if ch.ofWorkload() {
		level = ""
	}
	a := p.accepted("compare."+c.Name, w, level, ch.Metric, ch.Stat)
	if a == nil || ch.Accept != nil {
		return ch
	}
	out := *ch
	out.Limit, out.Text, out.Accept, out.Own = a.Limit, a.Text, a, ch
	return &out
}

// ofWorkload reports whether the change is judged once for a workload, not at each level.
func (ch *ChangeBound) ofWorkload() bool { return ch.Metric.Name == "capacity" || ch.Metric.Paired }

// Accept puts the bounds of the accept blocks in the place of the plan's own, for a run of the given
// date. The date is zero for a simulated run, in which no end has passed. refused gives, by name, why
// other blocks do not count. What it sets cannot be taken back.
func (p *Plan) Accept(date time.Time, refused map[string]string) {
	if len(p.Accepts) == 0 {
		return
	}
	for _, a := range p.Accepts {
		if a.Lapsed = a.Accept.Lapsed(date); a.Lapsed == "" {
			a.Lapsed = refused[a.Name]
		}
	}
	for _, w := range p.Workloads {
		var out []*SLA
		for _, sla := range w.SLAs {
			out = append(out, p.acceptedSLA(w, sla)...)
		}
		w.SLAs = out
	}
	for _, c := range p.Compares {
		var out []*Claim
		for _, claim := range c.Claims {
			out = append(out, p.acceptedClaim(c, claim)...)
		}
		c.Claims = out
	}
}

// acceptedSLA splits off the levels at which another threshold holds.
func (p *Plan) acceptedSLA(w *Workload, sla *SLA) []*SLA {
	rest := *sla
	rest.At = nil
	out := []*SLA{&rest}
	for _, level := range sla.At {
		own := *sla
		own.At, own.AtCapacity, own.Thresholds = []string{level}, false, nil
		for _, t := range sla.Thresholds {
			own.Thresholds = append(own.Thresholds, p.Accepted(w, level, t))
		}
		if slices.Equal(own.Thresholds, sla.Thresholds) {
			rest.At = append(rest.At, level)
		} else {
			out = append(out, &own)
		}
	}
	if len(rest.At) == 0 && !rest.AtCapacity {
		return out[1:]
	}
	return out
}

// acceptedClaim splits off each change that has another bound somewhere: a claim for each of its
// workloads and levels.
func (p *Plan) acceptedClaim(c *Compare, claim *Claim) []*Claim {
	rest := *claim
	rest.Changes = nil
	out := []*Claim{&rest}
	for _, ch := range claim.Changes {
		var split []*Claim
		changed := false
		for _, w := range claim.Workloads {
			levels := [][]string{claim.At}
			if !ch.ofWorkload() {
				levels = slices.Collect(slices.Chunk(claim.At, 1))
			}
			for _, at := range levels {
				own := *claim
				own.Workloads, own.At = []*Workload{w}, at
				own.Changes = []*ChangeBound{p.AcceptedChange(c, w, strings.Join(at, ""), ch)}
				changed = changed || own.Changes[0] != ch
				split = append(split, &own)
			}
		}
		if changed {
			out = append(out, split...)
		} else {
			rest.Changes = append(rest.Changes, ch)
		}
	}
	if len(rest.Changes) == 0 {
		return out[1:]
	}
	return out
}
