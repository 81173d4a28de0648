package plan

import (
	"math"
	"slices"

	"github.com/tokgate/tokgate/metric"
)

// Look is a planned moment at which a level is judged.
type Look struct {
	// Due is the number of requests to measure in each round since the previous look. For a level
	// with a Duration these numbers are minimums.
	Due []int
	// Requests is the number of requests that the look judges: the first ones by start, including
	// those of earlier looks. For a level with a Duration it is the minimum.
	Requests int
	// Spent is the share of the plan's error that this look and all earlier ones may spend, in (0,
	// 1]. 0 means that the look can only fail the level. Its own error then comes on top: the
	// plan's error divided by Planned.
	Spent   float64
	Planned int  // number of looks that share the error equally if Spent is 0
	Ahead   bool // the look comes before the planned end of the level
	Extends bool // beyond it
}

// abortShare reduces the error of an early judgement that can only fail a level: the plan's allowed
// error is divided by it. So such a judgement rarely fails a sound server.
const abortShare = 10

// earlyTenths lists when a level may be judged early: after 5/10 and after 7/10 of its rounds.
var earlyTenths = []int{5, 7}

// earlyBatches lists after how many batches the window of a closed loop may be judged early. A
// window of fewer than fewBatches is judged only at its end.
var earlyBatches = []int{5, 7, 10, 14}

const fewBatches = 10

// earlyParts lists the shares of the window of a rate after which it may be judged early. It can only
// fail there, because a rate runs to its end.
var earlyParts = []float64{0.25, 0.5}

// earlyLooks returns the early looks at a level of the load: its requests and its rounds since the look
// before. If a required threshold is exact, they come after each round, because an exact threshold
// that fails for good ends the level at once. Levels of users, stages and replays run to their end.
func (l *Load) earlyLooks(w *Workload, level Level) (out []Look) {
	exact := w.exact(level.Name)
	if l.Kind.Windowed() {
		return l.earlyInWindow(w, level, exact)
	}
	var at []int
	switch {
	case exact:
		for rounds := 1; rounds < level.Rounds; rounds++ {
			at = append(at, rounds)
		}
	case level.Batches && level.Rounds < fewBatches:
	case level.Batches:
		at = earlyBatches
	default:
		for _, tenths := range earlyTenths {
			at = append(at, (level.Rounds*tenths+9)/10)
		}
	}
	played := 0
	for _, rounds := range at {
		if rounds >= level.Rounds || !exact && rounds < metric.LeastRounds {
			continue
		}
		out = append(out, Look{Due: level.requestsDue(played, rounds), Requests: level.sent(rounds), Ahead: true})
		played = rounds
	}
	return out
}

// Exact reports whether any required threshold of the workload describes the requests of this run.
func (w *Workload) Exact() bool {
	return slices.ContainsFunc(w.Whole(), func(x *Workload) bool {
		return slices.ContainsFunc(x.SLAs, func(sla *SLA) bool {
			return sla.Severity != SeverityWarn && slices.ContainsFunc(sla.Thresholds, func(t *Threshold) bool { return t.Stat.Exact() })
		})
	})
}

// exact is Exact of the thresholds at one level.
func (w *Workload) exact(level string) bool {
	return slices.ContainsFunc(w.Whole(), func(x *Workload) bool {
		return slices.ContainsFunc(x.required(level), func(t *Threshold) bool { return t.Stat.Exact() })
	})
}

// earlyInWindow returns the early looks at a rate. They come while the load goes on.
func (l *Load) earlyInWindow(w *Workload, level Level, exact bool) (out []Look) {
	chats := slices.ContainsFunc(w.Whole(), func(x *Workload) bool { return x.Prompt.Turns.Several() })
	if l.Kind != metric.OpenLoop || l.Open == nil || l.Open.Trace != nil || chats {
		return nil
	}
	var at []int
	for _, share := range earlyParts {
		at = append(at, int(math.Ceil(share*float64(level.Requests))))
	}
	for rounds := 1; exact && rounds < level.Rounds; rounds++ {
		at = append(at, level.sent(rounds))
	}
	slices.Sort(at)
	for _, n := range slices.Compact(at) {
		if n < level.Requests {
			out = append(out, Look{Requests: n, Ahead: true})
		}
	}
	return out
}

// halfWay returns a look at half of the rounds; false if the level has none.
func (l *Load) halfWay(level Level) (Look, bool) {
	rounds := level.Rounds / 2
	return Look{Due: level.requestsDue(0, rounds), Requests: level.sent(rounds), Ahead: true},
		rounds > 0 && !l.Kind.Windowed() && (!level.Batches || level.Rounds >= fewBatches)
}

// Looks plans the looks at a level before the level runs.
//
// Early looks come first: after 5, 7, 10 and 14 batches, or after half and after seven tenths of the
// rounds, or after a quarter and half of a rate. A look at which some threshold could not pass can only
// fail the level. All such looks together spend a tenth of the error on top. Where no early look may
// pass because another run needs all of the level, there is one such look half-way.
//
// The next look is at the planned end. If an inconclusive level is extended, more looks follow.
// They come each time the number of requests has doubled, up to the plan's maximum.
//
// The looks share the plan's allowed error. The planned requests and each doubling get equal parts
// of it. Within its part, the error spent grows with the square of the number of requests.
//
// A level with a Duration runs for all of it, because rare events need time to appear. Only a
// failure ends it half-way. It may be extended to four times its duration.
//
// A level has only one look, at the end, if no look could end or extend it. This is so if no
// threshold is required, or if no required threshold is certified.
func (p *Plan) Looks(w *Workload, load *Load, level Level) []Look {
	if w.Root() != w {
		return p.partLooks(w, load, level)
	}
	level.Rounds = max(level.Rounds, 1)
	whole := Look{Due: level.requestsDue(0, level.Rounds), Requests: level.Requests, Spent: 1, Planned: 1}
	if p.judgedOnce(w, level) || !w.requires(level.Name) {
		return []Look{whole}
	}
	ends := []int{level.Requests}
	if w.Policy.OnInconclusive == Extend {
		most := w.Policy.MaxRequests
		if level.Duration > 0 {
			most = 0 // no limit, as the number of requests is known only at the end
		}
		ends = Doubled(load.Kind, level, most)
	}
	part := 1 / float64(len(ends))
	looks := p.aheadOf(w, load, level, part)
	played, failing := 0, 0
	for _, look := range looks {
		played += len(look.Due)
		if look.Spent == 0 {
			failing++
		}
	}
	for i, n := range ends {
		look := Look{Due: level.requestsDue(played, level.Rounds), Requests: n, Spent: float64(i+1) * part, Extends: i > 0}
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
		if looks[i].Planned = shared; looks[i].Spent == 0 {
			looks[i].Planned = abortShare * failing * len(ends)
		}
	}
	return looks
}

// besideBaseline reports whether the workload is compared with a recorded run.
func (p *Plan) besideBaseline(w *Workload) bool {
	return slices.ContainsFunc(p.Compares, func(c *Compare) bool {
		return c.Control.Baseline != "" && c.Skip == "" && slices.Contains(c.Workloads(p), w)
	})
}

// aheadOf returns the looks at a level before its planned end, which has the given part of the error.
// Those that may pass the level have a Spent.
func (p *Plan) aheadOf(w *Workload, load *Load, level Level, part float64) []Look {
	early, whole := load.earlyLooks(w, level), p.History != nil || level.Duration > 0 || p.besideBaseline(w) || len(p.Residuals(w)) > 0
	if half, ok := load.halfWay(level); ok && (len(early) == 0 || whole && !w.exact(level.Name)) {
		return []Look{half}
	}
	if whole {
		return early // another run needs all of it, or a leak all of its clients
	}
	for i := range early {
		look := &early[i]
		share := float64(look.Requests) / float64(level.Requests)
		spent := share * share * part
		rounds := 0
		for _, earlier := range early[:i+1] {
			rounds += len(earlier.Due)
		}
		if !load.Kind.Windowed() && !slices.ContainsFunc(w.Whole(), func(x *Workload) bool {
			return slices.ContainsFunc(x.required(level.Name), func(t *Threshold) bool {
				return !x.canPassEarly(t, load.Kind, x.Portion(level), rounds, spent)
			})
		}) {
			look.Spent = spent
		}
	}
	return early
}

// partLooks returns the looks at a level of one part of a mix. They come when the looks at the mix
// come, but count only the requests of the part.
func (p *Plan) partLooks(w *Workload, load *Load, level Level) []Look {
	whole := level
	if own := w.Root().Fixed(level.Name); own != nil {
		whole = *own
	}
	looks := p.Looks(w.Root(), load, whole)
	for i := range looks {
		looks[i].Due = nil
		if looks[i].Requests = w.Own(looks[i].Requests); !looks[i].Extends && !looks[i].Ahead {
			looks[i].Requests = level.Requests
		}
	}
	return looks
}

func (w *Workload) requires(level string) bool {
	return slices.ContainsFunc(w.Whole(), func(x *Workload) bool { return len(x.required(level)) > 0 })
}

func (p *Plan) judgedOnce(w *Workload, level Level) bool {
	return p.Gate.MeasureOnly || w.Policy.Estimates() || level.Stage != nil
}

func (w *Workload) required(level string) []*Threshold {
	var out []*Threshold
	for _, sla := range w.SLAs {
		if sla.Severity != SeverityWarn && slices.Contains(sla.At, level) {
			out = append(out, sla.Thresholds...)
		}
	}
	return out
}

// canPassEarly reports whether a threshold could pass after the given number of rounds. The
// parameter share is the part of the plan's error that may be spent by then.
//
// A threshold on an exact statistic cannot pass early, because it covers all planned requests.
// Scaling efficiency cannot either, because it needs another level. A share cannot in the first half
// of a window: bad requests that come in groups may not have come yet.
func (w *Workload) canPassEarly(t *Threshold, kind metric.LoadKind, level Level, rounds int, share float64) bool {
	n := level.sent(rounds)
	switch {
	case t.Stat.Exact(), t.Metric.Name == "scaling_efficiency":
		return false
	case t.Stat.IsShare() && level.Batches && 2*n < level.Requests:
		return false
	case t.Stat.IsShare():
		n = w.Policy.Clusters.Units(kind, level.AtOnce(), rounds, n)
	case t.Stat.Kind != metric.Percentile:
		return true
	}
	// n good requests prove that at most Allowed of all requests are bad (Wilks, Ann. Math. Stat.
	// 12, 1941).
	return float64(n)*math.Log1p(-t.Allowed()) <= math.Log(share*w.Policy.Alpha())
}

// Allowed returns which share of the requests may be bad. For a percentile, a request beyond the
// limit is bad.
func (t *Threshold) Allowed() float64 {
	switch {
	case t.Stat.IsShare() && t.Metric.Better == metric.LowerIsBetter:
		return t.Limit
	case t.Stat.IsShare():
		return 1 - t.Limit
	case t.Op == Greater, t.Op == GreaterEqual:
		return t.Stat.P / 100
	}
	// 1 − P/100 would add a rounding error, such as 0.050000000000000044 for P = 95.
	return (100 - t.Stat.P) / 100
}

// Independent is the number of independent requests that certifies the percentiles on the capacity,
// if no request exceeds its limit. If the share e of the requests may exceed a percentile's limit,
// the number is ln α / ln(1 − e). The largest number of all percentiles counts.
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

// Doubled lists the numbers of requests at which an extensible level is judged. The first number is
// the plan's. Each later number is twice the number before, up to the given maximum. A maximum of 0
// means four times the plan's number. For bursts each number is a whole number of bursts.
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

// requestsDue returns the number of requests in each of the rounds from, from+1, … to-1.
func (l Level) requestsDue(from, to int) []int {
	var out []int
	for i := from; i < to; i++ {
		out = append(out, l.RoundRequests(i))
	}
	return out
}

// sent returns the number of requests in the given number of first rounds.
func (l Level) sent(rounds int) int {
	n := 0
	for _, due := range l.requestsDue(0, rounds) {
		n += due
	}
	return n
}

// More divides additional requests of the level into rounds. A round has about as many requests as
// the rounds before, and at least as many as are in flight. If each round before has one request,
// as with simulated users, so has each additional round.
func (l Level) More(requests int) []int {
	rounds := (requests*l.Rounds + l.Requests - 1) / l.Requests
	if l.Requests == l.Rounds {
		return Level{Requests: requests, Rounds: requests}.requestsDue(0, requests)
	}
	further := Level{Requests: requests, Rounds: max(1, min(rounds, requests/max(l.N, 1)))}
	return further.requestsDue(0, further.Rounds)
}
