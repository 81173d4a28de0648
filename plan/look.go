package plan

import (
	"math"
	"slices"

	"github.com/tokgate/tokgate/metric"
)

// Look is a planned moment at which a level is judged.
type Look struct {
	// Due holds, for each round since the previous look, the number of requests to measure. For
	// a level with a Duration these numbers are minimums.
	Due []int
	// Requests is the number of requests that the look judges, including those of earlier
	// looks: the first ones by start. For a level with a Duration it is the minimum.
	Requests int
	// Spent is the share of the plan's error that all looks up to this one may spend together,
	// in (0, 1]. If it is 0, the look can only fail the level. The look then spends the plan's
	// error divided by Planned, in addition to the plan's error.
	Spent   float64
	Planned int  // number of looks that share the error; if Spent is 0, the divisor of the error
	Ahead   bool // the look comes before the planned end of the level
	Extends bool // beyond it
}

// abortShare is the divisor of the plan's error at a look that can only fail a level. A sound
// server fails such a look with this small chance.
const abortShare = 10

// early lists when early looks are taken, in tenths of a level's rounds.
var early = []int{5, 7}

// early returns when a level may be judged early, in tenths of its rounds. A rate is never
// judged early, because its rounds are parts of one window.
func (l *Load) early() []int {
	if l.Kind.Windowed() {
		return nil
	}
	return early
}

// half is the number of rounds after which there is a look that can only fail the level; 0 if
// there is no such look.
func (l *Load) half(level Level) int {
	if l.Kind.Windowed() {
		return 0
	}
	return level.Rounds / 2
}

// Looks plans the looks at a level before the level runs.
//
// Early looks come first. If half of the rounds could suffice for a pass, there are looks after
// half and after seven tenths of the rounds. Otherwise there is one look half-way, which can
// only fail the level.
//
// The next look is at the planned end. If an inconclusive level is extended, further looks
// follow at each doubling of the requests, up to the plan's maximum. Each doubling gets as much
// of the error as the planned requests do. Within that share the error grows with the square of
// the number of requests.
//
// A level with a Duration runs for all of it, because rare events need time to show: only a
// failure ends it half-way. It may be extended to four times its duration.
//
// If no look could end or extend the level, there is only one look, at the end. This is so if no
// threshold is required, or if no required threshold is certified.
func (p *Plan) Looks(w *Workload, load *Load, level Level) []Look {
	if w.Of != nil {
		return p.partLooks(w, load, level)
	}
	level.Rounds = max(level.Rounds, 1)
	whole := Look{Due: level.due(0, level.Rounds), Requests: level.Requests, Spent: 1, Planned: 1}
	if p.once(w, level) || !w.requires(level.Name) {
		return []Look{whole}
	}
	ends := []int{level.Requests}
	if w.Policy.OnInconclusive == Extend {
		most := w.Policy.MaxRequests
		if level.Duration > 0 {
			most = 0 // the number of requests is known only after the level
		}
		ends = Doubled(load.Kind, level, most)
	}
	part := 1 / float64(len(ends))
	var looks []Look
	played := 0
	for _, tenths := range load.early() {
		rounds := (level.Rounds*tenths + 9) / 10
		if rounds < metric.LeastRounds || rounds == level.Rounds || p.History != nil || level.Duration > 0 {
			continue
		}
		look := Look{Due: level.due(played, rounds), Requests: level.sent(rounds), Ahead: true}
		whole := float64(look.Requests) / float64(level.Requests)
		look.Spent = whole * whole * part
		if slices.ContainsFunc(w.Whole(), func(x *Workload) bool {
			return slices.ContainsFunc(x.required(level.Name), func(t *Threshold) bool {
				return !x.early(t, load.Kind, x.Portion(level), rounds, look.Spent)
			})
		}) {
			continue
		}
		looks, played = append(looks, look), rounds
	}
	if half := load.half(level); len(looks) == 0 && half > 0 {
		looks, played = append(looks, Look{Due: level.due(0, half), Requests: level.sent(half), Planned: abortShare * len(ends), Ahead: true}), half
	}
	for i, n := range ends {
		look := Look{Due: level.due(played, level.Rounds), Requests: n, Spent: float64(i+1) * part, Extends: i > 0}
		if i > 0 {
			look.Due = level.More(n - ends[i-1])
		}
		looks = append(looks, look)
	}
	shared := 0
	for _, look := range looks {
		if look.Spent > 0 {
			shared++
		}
	}
	for i := range looks {
		if looks[i].Spent > 0 {
			looks[i].Planned = shared
		}
	}
	return looks
}

// partLooks returns the looks at a level of a part of a mix. They are the looks at the mix, with
// the number of requests that belong to the part.
func (p *Plan) partLooks(w *Workload, load *Load, level Level) []Look {
	whole := level
	if own := w.Of.Fixed(level.Name); own != nil {
		whole = *own
	}
	looks := p.Looks(w.Of, load, whole)
	for i := range looks {
		looks[i].Due = nil
		if looks[i].Requests = w.Own(looks[i].Requests); !looks[i].Extends && !looks[i].Ahead {
			looks[i].Requests = level.Requests
		}
	}
	return looks
}

// requires reports whether the gate depends on a threshold of the workload, or of a part of it,
// at the level.
func (w *Workload) requires(level string) bool {
	return slices.ContainsFunc(w.Whole(), func(x *Workload) bool { return len(x.required(level)) > 0 })
}

// once reports whether a level is judged at its end only: no earlier look could end
// it.
func (p *Plan) once(w *Workload, level Level) bool {
	return p.Gate.MeasureOnly || w.Policy.Decide == Estimate || level.Stage != nil
}

// required lists the thresholds whose failure fails the gate at the level.
func (w *Workload) required(level string) []*Threshold {
	var out []*Threshold
	for _, sla := range w.SLAs {
		if sla.Severity != SeverityWarn && slices.Contains(sla.At, level) {
			out = append(out, sla.Thresholds...)
		}
	}
	return out
}

// early reports whether a threshold could pass after the given number of rounds, with the given
// share of the error. An exact statistic cannot, because it is about all planned requests.
// Scaling efficiency cannot either, because it needs another level.
func (w *Workload) early(t *Threshold, kind metric.LoadKind, level Level, rounds int, share float64) bool {
	n := level.sent(rounds)
	switch {
	case t.Stat.Exact(), t.Metric.Name == "scaling_efficiency":
		return false
	case t.Stat.IsShare():
		n = w.Policy.Clusters.Units(kind, level.AtOnce(), rounds, n)
	case t.Stat.Kind != metric.Percentile:
		return true
	}
	// n good requests prove that the share of bad ones is within Allowed (Wilks, Ann. Math.
	// Stat. 12, 1941).
	return float64(n)*math.Log1p(-t.Allowed()) <= math.Log(share*w.Policy.Alpha())
}

// Allowed is the share of requests that may exceed the limit of a percentile, or that
// may be bad under the limit of a share.
func (t *Threshold) Allowed() float64 {
	switch {
	case t.Stat.IsShare() && t.Metric.Better == metric.LowerIsBetter:
		return t.Limit
	case t.Stat.IsShare():
		return 1 - t.Limit
	case t.Op == Greater, t.Op == GreaterEqual:
		return t.Stat.P / 100
	}
	// 1 − 95/100 would be 0.050000000000000044.
	return (100 - t.Stat.P) / 100
}

// Independent is the number of independent requests that certifies the percentiles that bound
// the capacity, if no request exceeds its limit. For a percentile that lets a share e of the
// requests exceed the limit this number is ln α / ln(1 − e). The largest of these numbers
// counts.
func (w *Workload) Independent() int {
	most := 1.0
	for _, x := range w.Whole() {
		for _, sla := range x.SLAs {
			for _, t := range sla.Thresholds {
				if sla.AtCapacity && sla.Severity != SeverityWarn && t.Stat.Kind == metric.Percentile {
					need := math.Ceil(math.Log(x.Policy.Alpha()) / math.Log1p(-t.Allowed()))
					most = max(most, float64(x.OfWhole(int(need))))
				}
			}
		}
	}
	return int(most)
}

// Doubled lists the numbers of requests at which a level that may be extended is judged. The
// first is the plan's number; each further number is twice the number before, up to most. most =
// 0 means four times the plan's number. For bursts the numbers are whole bursts.
func Doubled(kind metric.LoadKind, level Level, most int) []int {
	if most == 0 {
		most = 4 * level.Requests
	}
	if kind == metric.Burst {
		most -= most % max(level.N, 1)
	}
	out := []int{level.Requests}
	for n := 2 * level.Requests; n < most && level.Requests > 0; n *= 2 {
		out = append(out, n)
	}
	if most > level.Requests {
		out = append(out, most)
	}
	return out
}

// due returns the number of requests in each of the level's rounds from one index up
// to another.
func (l Level) due(from, to int) []int {
	var out []int
	for i := from; i < to; i++ {
		out = append(out, l.RoundRequests(i))
	}
	return out
}

// sent is the number of requests in the first rounds of the level.
func (l Level) sent(rounds int) int {
	n := 0
	for _, due := range l.due(0, rounds) {
		n += due
	}
	return n
}

// More divides further requests of the level into rounds of about the size of its present
// rounds. A round has at least as many requests as are in flight. For users a round is a part of
// a window and counts as one request.
func (l Level) More(requests int) []int {
	rounds := (requests*l.Rounds + l.Requests - 1) / l.Requests
	if l.Requests == l.Rounds {
		return Level{Requests: requests, Rounds: requests}.due(0, requests)
	}
	further := Level{Requests: requests, Rounds: max(1, min(rounds, requests/max(l.N, 1)))}
	return further.due(0, further.Rounds)
}
