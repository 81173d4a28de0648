package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/report/progress"
)

// amount is what a run costs.
type amount struct {
	took     time.Duration // with the starts and all else
	load     time.Duration // of it, under load
	money    float64       // in the plan's currency; 0 without prices
	starts   int
	sent     int // requests
	measured int // requests that are judged
}

// foretold is what a run of a plan costs: at least, if nothing changed, if the candidates of
// comparisons are just as much worse as is tolerated, and at most. A level costs the least if it
// passes at its first look, and the most if it is extended as far as the plan allows.
type foretold struct {
	least, expected, tolerated, most amount
	unknown                          int  // levels and searches whose time is not known
	untimed                          int  // most starts of servers whose time is not known
	searches                         int  // searches whose number of requests is not known
	open                             bool // some loads send whatever comes in a time, so requests are minimums
}

// scenario says how a run goes: after how many rounds comparisons end, and what share of its
// requests a level measures.
type scenario struct {
	rounds func(compare.Rounds) float64
	share  func(portion) float64
	follow bool // a saturation follows each level that can have one
}

// takes foretells what a run costs, by the last run and by what is known of its comparisons.
func (l *lastRun) takes(p *plan.Plan, start map[*plan.Server]startTime) (s foretold) {
	b := bill{p, l, compare.Chances(p, l.recorded()...), start}
	at := func(rounds func(compare.Rounds) float64, share func(portion) float64, follow bool) amount {
		return b.of(scenario{rounds, share, follow}, &s)
	}
	expected := func(x portion) float64 { return x.expected }
	s.least = at(func(r compare.Rounds) float64 { return float64(r.Least) }, func(x portion) float64 { return x.least }, false)
	s.expected = at(func(r compare.Rounds) float64 { return r.Unchanged }, expected, false)
	s.tolerated = at(func(r compare.Rounds) float64 { return r.Tolerated }, expected, false)
	s.most = at(func(r compare.Rounds) float64 { return float64(r.Most) }, func(x portion) float64 { return x.most }, true)
	return s
}

// bill computes amounts.
type bill struct {
	p       *plan.Plan
	last    *lastRun
	chances []compare.Chance
	start   map[*plan.Server]startTime
}

// of returns what a run costs in a scenario, and notes in s what is not known.
func (b bill) of(x scenario, s *foretold) (a amount) {
	f := b.last.forecast(b.p, nil, b.start)
	cases := append(exec.Cases(b.p), exec.Searches(b.p)...)
	s.unknown, s.untimed, s.searches, s.open = 0, 0, 0, false
	for i := range f.Parts {
		part, share := &f.Parts[i], 1.0
		if r, ok := roundsOf(b.p, b.chances, part.Server, x.rounds); ok && part.Times > 1 {
			share = min(x.rounds(r), float64(part.Times)) / float64(part.Times)
		} else if i < len(cases) && cases[i].Load != nil {
			share = x.share(b.last.portionOf(b.p, cases[i]))
		}
		took := part.Share(share)
		a.took, a.money = a.took+took, a.money+took.Hours()*b.hour(part.Server)
		if i >= len(cases) {
			b.startsOf(&a, s, part, share)
			continue
		}
		if a.load += took; !part.Known {
			s.unknown++
		}
		b.requests(&a, cases[i], share, s)
		if b.saturates(cases[i]) {
			b.saturations(&a, s, cases[i], x.follow && cases[i].Load != nil, !slices.ContainsFunc(cases[:i], func(c exec.Case) bool {
				return c.Server == cases[i].Server && c.Workload == cases[i].Workload && b.saturates(c)
			}))
		}
	}
	a.took += f.Rest
	for _, server := range b.p.Servers { // nobody knows on which server the rest was spent
		a.money += f.Rest.Hours() * b.hour(server.Address()) / float64(len(b.p.Servers))
	}
	return a
}

// startsOf adds the starts of a server, except those that take no time.
func (b bill) startsOf(a *amount, s *foretold, part *progress.Work, share float64) {
	server := b.p.Servers[slices.IndexFunc(b.p.Servers, func(s *plan.Server) bool { return s.Address() == part.Server })]
	if !server.Started() && part.Took < time.Second {
		return
	}
	a.starts += int(math.Ceil(share*float64(part.Times) - 1e-9))
	if !part.Known {
		s.untimed += part.Times
	}
}

func (b bill) saturates(c exec.Case) bool {
	if c.Load == nil {
		return c.Workload.Capacity.Over == metric.OpenLoop && c.Workload.Capacity.Largest == 0
	}
	return exec.Saturates(b.p, c)
}

// saturations adds the saturation before the first rate of a workload on a server, as long as the last
// one or with a short warm-up, and the one that may follow each level.
func (b bill) saturations(a *amount, s *foretold, c exec.Case, follows, first bool) {
	took := time.Duration(0)
	if first {
		c.Level = plan.Level{Name: metric.SaturationName}
		took = plan.Saturation + shortWarmup
		if cost, ran := b.last.spentOn(c); ran {
			took, a.sent = time.Duration(cost.Load*float64(time.Second)), a.sent+cost.Sent
		} else {
			s.open = true
		}
	}
	if follows {
		took += plan.FollowUp
	}
	a.took, a.load, a.money = a.took+took, a.load+took, a.money+took.Hours()*b.hour(c.Server.Address())
}

// shortWarmup is the usual time in which a saturation fills the server.
const shortWarmup = 15 * time.Second

// hour returns the price of an hour of a server; 0 if it has none.
func (b bill) hour(server string) float64 {
	if b.p.Prices == nil {
		return 0
	}
	return b.p.Prices.PerHour[server]
}

// requests adds the requests of a share of a case. A search has as many as in the last run.
func (b bill) requests(a *amount, c exec.Case, share float64, s *foretold) {
	cost, ran := b.last.spentOn(c)
	switch n := float64(c.Level.Requests) * share; {
	case c.Load == nil && !ran:
		s.searches++
	case c.Load == nil:
		a.measured, a.sent = a.measured+cost.Measured, a.sent+cost.Sent
	case ran && cost.Measured > 0 && c.Level.Duration > 0: // the plan does not say how many come
		times := share * float64(cost.Measured)
		a.measured, a.sent = a.measured+int(times), a.sent+int(times*float64(cost.Sent)/float64(cost.Measured))
	default:
		each := sentFor(c)
		if warm, last := conversing(c); last > 0 { // the plan counts conversations
			n *= c.Workload.Prompt.Turns.Mean
			each = 1 + warm.Seconds()/c.Level.Lasts().Seconds()
		}
		if ran && cost.Measured > 0 {
			each = float64(cost.Sent) / float64(cost.Measured)
		}
		s.open = s.open || c.Level.Duration > 0
		a.measured, a.sent = a.measured+int(math.Round(n)), a.sent+int(math.Round(n*each))
	}
}

// sentFor estimates how many requests a case sends for each one that it measures: its warm-up, and
// one more of each slot until the last measured request of a round has ended.
func sentFor(c exec.Case) float64 {
	more := exec.Warmups(c)
	switch {
	case c.Load.Kind != metric.ClosedLoop:
	case c.Level.Batches:
		more += c.Level.N
	default:
		more += c.Level.N * c.Level.Rounds
	}
	return 1 + float64(more)/float64(max(c.Level.Requests, 1))
}

// portion is how much of its planned requests a level measures, as shares: 1 are those that the plan
// has without an extension.
type portion struct{ least, expected, most float64 }

// portionOf returns the portion of a level by its looks. It is expected to end where it ended in the last
// run.
func (l *lastRun) portionOf(p *plan.Plan, c exec.Case) portion {
	looks := p.Looks(c.Workload, c.Load, c.Level)
	share := func(look plan.Look) float64 { return float64(look.Requests) / float64(max(c.Level.Requests, 1)) }
	passes := slices.IndexFunc(looks, func(at plan.Look) bool { return at.Spent > 0 }) // the last one does
	x := portion{least: share(looks[passes]), expected: 1, most: share(looks[len(looks)-1])}
	cost, ran := l.spentOn(c)
	ended := slices.IndexFunc(looks, func(at plan.Look) bool { return at.Requests == cost.Measured })
	if ran && ended >= 0 && c.Level.Duration == 0 {
		x.expected = share(looks[ended])
	}
	return x
}

// roundsOf returns the rounds of the longest comparison that the server takes part in, because servers
// that share a control run together.
func roundsOf(p *plan.Plan, chances []compare.Chance, server string, by func(compare.Rounds) float64) (out compare.Rounds, ok bool) {
	for _, g := range plan.Groups(p) {
		if !slices.ContainsFunc(g.Servers, func(s *plan.Server) bool { return s.Address() == server }) {
			continue
		}
		for _, x := range chances {
			if slices.Contains(g.Compares, x.Compare) && (!ok || by(x.Rounds) > by(out)) {
				out, ok = x.Rounds, true
			}
		}
	}
	return out, ok
}

// varies reports whether what the run costs depends on what it finds.
func (s foretold) varies() bool { return s.most.took > s.least.took }

// gpusAtOnce returns how many GPUs the servers of the plan hold at once: those of the largest server
// that runs alone, or of all servers that run together. It is 0 if the plan does not say.
func gpusAtOnce(p *plan.Plan) int {
	of := func(s *plan.Server) int {
		g := s.GPUs()
		if g == nil || g.All {
			return 0
		}
		return cmp.Or(len(g.IDs), g.Count)
	}
	most := 0
	for _, s := range p.Servers {
		if of(s) == 0 && s.Local() && s.Simulator == nil {
			return 0
		}
		most = max(most, of(s))
	}
	for _, g := range plan.Groups(p) {
		if c := g.Compares[0]; c.SideBySide || c.Restart == plan.RestartNever {
			sum := 0
			for _, s := range g.Servers {
				sum += of(s)
			}
			most = max(most, sum)
		}
	}
	return most
}

// price says what a run costs in GPU-hours and money: what is expected, and its range. It returns "" if
// no time is known.
func (s foretold) price(p *plan.Plan) string {
	if s.most.took < time.Second {
		return ""
	}
	hours := func(a amount) string { return roundTime(a.took) }
	said := hours(s.expected)
	if gpus := gpusAtOnce(p); gpus > 0 {
		hours = func(a amount) string { return metric.FormatDigits("", a.took.Hours()*float64(gpus), 2) }
		said = hours(s.expected) + " GPU-hours"
	}
	if s.expected.money > 0 {
		said += ", " + metric.Format(metric.Unit(p.Prices.Currency), s.expected.money) + ","
	}
	if s.unknown > 0 {
		said = "more than " + said
	}
	said += map[bool]string{true: " if nothing changed", false: " expected"}[len(plan.Groups(p)) > 0]
	if s.varies() {
		said += fmt.Sprintf(" (at least %s to pass, at most %s", hours(s.least), hours(s.most))
		if s.tolerated.took > s.expected.took {
			said += fmt.Sprintf("; %s if just as much worse as is tolerated", hours(s.tolerated))
		}
		said += ")"
	}
	return said + s.startWords()
}

// startWords says how many starts of servers are included, and how many are not.
func (s foretold) startWords() string {
	switch {
	case s.most.starts == 0:
		return ""
	case s.untimed > 0:
		return fmt.Sprintf(", and %s that were never timed", verdict.Count(s.untimed, "starts"))
	case s.least.starts < s.most.starts:
		return fmt.Sprintf(" with %d to %d starts", s.least.starts, s.most.starts)
	}
	return " with " + verdict.Count(s.most.starts, "starts")
}

// requests says how many requests a run sends and measures, and how long the load lasts.
func (s foretold) requests() string {
	about := "about "
	if s.searches > 0 || s.open {
		about = "more than "
	}
	said := fmt.Sprintf("%s%s sent, %s of them measured", about, grouped(s.expected.sent), grouped(s.expected.measured))
	if s.least.measured < s.most.measured {
		said += fmt.Sprintf(" (at least %s to pass, at most %s)", grouped(s.least.measured), grouped(s.most.measured))
	}
	if s.expected.load > time.Second && s.unknown == 0 {
		said += " · " + roundTime(s.expected.load) + " of load"
	}
	return said
}

// tariff says at which prices the run is priced, and what else bounds or adds to them; "" without
// prices.
func tariff(p *plan.Plan) string {
	if p.Prices == nil || len(p.Prices.PerHour) == 0 {
		return ""
	}
	money := func(v float64) string { return metric.Format(metric.Unit(p.Prices.Currency), v) }
	var list []string
	low, high := math.Inf(1), 0.0
	for _, s := range p.Servers {
		price := p.Prices.PerHour[s.Address()]
		low, high = min(low, price), max(high, price)
		list = append(list, s.Address()+" "+money(price))
	}
	said := []string{strings.Join(list, ", ") + " an hour"}
	if low == high {
		said[0] = money(high) + " an hour"
	}
	if p.Gate.Budget > 0 {
		said = append(said, "at most "+money(p.Gate.Budget.Hours()*high)+" by the budget")
	}
	if p.Prices.Electricity > 0 {
		said = append(said, "electricity on top, by the power that is measured")
	}
	return strings.Join(said, " · ")
}

// text returns the time as text.
func (s foretold) text() string {
	if !s.varies() {
		return "about " + roundTime(s.most.took)
	}
	return fmt.Sprintf("about %s, %s to %s", roundTime(s.expected.took), roundTime(s.least.took), roundTime(s.most.took))
}
