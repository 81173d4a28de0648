package plan

import (
	"math"
	"slices"

	"github.com/tokgate/tokgate/metric"
)

// Look is a planned moment at which a level is judged.
type Look struct {
	// Due is how many requests each round since the look before measures, of a
	// level with a Duration at least.
	Due []int
	// Requests are judged: the first ones by start, those of the looks before
	// included. Of a level with a Duration there are at least so many.
	Requests int
	// Spent is the share of the plan's error that may be spent up to this look, in (0, 1]. 0: the
	// look can only fail, at a Planned-th part of the error on top.
	Spent   float64
	Planned int  // looks that share the error; of one with no Spent its part
	Ahead   bool // before the end of what the plan asks for
	Extends bool // beyond it
}

// abortShare is the part of the error that is allowed at a look which may only
// end a level for a failure: it costs a sound server nothing else.
const abortShare = 10

// early are the shares of a level's rounds after which it is looked at before
// its end, in tenths.
var early = []int{5, 7}

// early are the shares of a level's rounds after which it may be looked at before
// its end. The rounds of a rate are one window.
func (l *Load) early() []int {
	if l.Kind.Windowed() {
		return nil
	}
	return early
}

// half is after how many of the level's rounds it is looked at for a failure alone.
func (l *Load) half(level Level) int {
	if l.Kind.Windowed() {
		return 0
	}
	return level.Rounds / 2
}

// Looks plans the looks at a level, before it is run: after half and seven
// tenths of its rounds where it could certifiably hold by then, else half-way
// for failures alone; at its end; and, where an inconclusive level is extended, at
// twice its requests and so on up to the most that the plan allows. Each doubling
// has as much of the error as the planned requests; of that share, what is spent
// grows with the square of the requests.
//
// A level with a Duration is held for all of it, since what comes seldom is to be
// seen: only a failure ends it half-way. It is extended to four times its time.
//
// One look at the end where no look could end or extend the level: nothing is
// required of it, or not certified.
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
			most = 0 // what came is counted, once it has come
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

// partLooks are the looks at a level of the part's mix, by the requests that the part
// then has.
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

// requires reports whether a threshold of the workload, or of a part of it, fails the gate at the
// level.
func (w *Workload) requires(level string) bool {
	return slices.ContainsFunc(w.Whole(), func(x *Workload) bool { return len(x.required(level)) > 0 })
}

// once says that a level is judged at its end alone: no look could end it earlier.
func (p *Plan) once(w *Workload, level Level) bool {
	return p.Gate.MeasureOnly || w.Policy.Decide == Estimate || level.Stage != nil
}

// required are the thresholds that fail the gate at the level.
func (w *Workload) required(level string) []*Threshold {
	var out []*Threshold
	for _, sla := range w.SLAs {
		if sla.Severity != SeverityWarn && slices.Contains(sla.At, level) {
			out = append(out, sla.Thresholds...)
		}
	}
	return out
}

// early reports whether a threshold could hold after so many rounds of the level,
// at that share of the error. What is exact of the requests that are sent speaks
// of all that the plan asks for, and scaling of another level.
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
	// So many good ones prove a share of bad ones (Wilks, Ann. Math. Stat. 12, 1941).
	return float64(n)*math.Log1p(-t.Allowed()) <= math.Log(share*w.Policy.Alpha())
}

// Allowed is the share of requests that may miss the bound of a percentile, or
// be bad by that of a share.
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

// Independent is how many independent requests it takes to certify the percentiles
// that bound the capacity, if none exceeds its limit: the largest ln α / ln(1 − e),
// with e the share that may exceed it.
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

// Doubled are the numbers of requests at which a level is judged that may be
// extended: those of the plan, doubled up to most (0: four times them), of
// bursts whole ones.
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

// due are the requests of the level's rounds from one up to another.
func (l Level) due(from, to int) []int {
	var out []int
	for i := from; i < to; i++ {
		out = append(out, l.RoundRequests(i))
	}
	return out
}

// sent is how many requests the first rounds measure.
func (l Level) sent(rounds int) int {
	n := 0
	for _, due := range l.due(0, rounds) {
		n += due
	}
	return n
}

// More shares out further requests of the level over rounds of about its size, never of
// fewer requests than are in flight; those of users are parts of a window, and count as one.
func (l Level) More(requests int) []int {
	rounds := (requests*l.Rounds + l.Requests - 1) / l.Requests
	if l.Requests == l.Rounds {
		return Level{Requests: requests, Rounds: requests}.due(0, requests)
	}
	further := Level{Requests: requests, Rounds: max(1, min(rounds, requests/max(l.N, 1)))}
	return further.due(0, further.Rounds)
}
