package exec

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tokgate/tokgate/exec/shape"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/search"
)

// hunt is a running capacity search.
type hunt struct {
	*runner
	target      *Target
	server      *plan.Server
	workload    *plan.Workload
	capacity    *plan.Capacity
	levelSearch searching
	saturation  *metric.Level         // measured the largest rate; nil if no rate is searched
	known       map[int]*metric.Level // fixed levels by N
	levels      map[sampleSet]*levelRun
	visits      []visit
	notes       []string
	unreset     bool // a note says that the server's caches could not be cleared
	last        visit
	invalid     int // number of consecutive probes that were invalid
	// invalidity is the reason why the last probe was invalid; "" if it was valid.
	invalidity string
	spent      bool // the budget of the search ended the last probe
	follows    bool // a saturation after the last probe may still certify its rate
}

// visit holds what the report needs about one probe of the search.
type visit struct {
	split    int // number of looks that share the allowed error; 0 if none
	requests int // number of requests that were judged
}

// searching is the state machine that decides what to measure next.
type searching interface {
	Next() (search.Probe, bool)
	Report(search.Probe, search.Result)
	Stop(reason string)
	Limit() search.Limit
}

// sampleSet identifies a set of samples in a search: n is the level, and set is the number of the
// set.
type sampleSet struct{ n, set int }

// searchCapacity searches for the largest load at which w meets its thresholds on s. lost is not
// nil if the server is lost.
func (r *runner) searchCapacity(t *Target, s *plan.Server, w *plan.Workload) (lost error) {
	out := newCapacity(s, w)
	budget, ok := r.searchBudget(w.Capacity)
	r.searches = slices.DeleteFunc(r.searches, func(x wanted) bool { return x == wanted{s, w} })
	switch {
	case !r.selected(wanted{s, w}.named()):
		out.Reason = metric.SkippedOnly
	case !r.check():
		out.Reason = r.why()
	case r.Judge == nil:
		out.Reason = "nobody judges"
	case !ok:
		out.Reason = fmt.Sprintf("the budget of %v leaves no time to search", r.Budget)
	default:
		h := &hunt{
			runner: r, target: t, server: s, workload: w, capacity: w.Capacity,
			known: map[int]*metric.Level{}, levels: map[sampleSet]*levelRun{},
		}
		lost = h.seek(out, budget)
	}
	r.concluded(out)
	return lost
}

func (r *runner) concluded(c *metric.Capacity) {
	if c.Line == "" {
		c.Line = "unknown: " + c.Reason
	}
	r.run.Capacities = append(r.run.Capacities, c)
	r.observe(metric.CapacityDone{Capacity: c})
}

// unsearched records the capacity searches of a server that will not be made, with the reason.
func (r *runner) unsearched(s *plan.Server, why string) {
	for _, x := range slices.Clone(r.searches) {
		if x.server != s {
			continue
		}
		r.searches = slices.DeleteFunc(r.searches, func(y wanted) bool { return x == y })
		c := newCapacity(s, x.workload)
		c.Reason = why
		if !r.selected(x.named()) {
			c.Reason = metric.SkippedOnly
		}
		r.concluded(c)
	}
}

func newCapacity(s *plan.Server, w *plan.Workload) *metric.Capacity {
	c := w.Capacity
	return &metric.Capacity{
		Server: s.Address(), Workload: w.Address(), Over: c.Over, Step: c.Step(), From: c.From, UpTo: c.UpTo, Require: c.Require,
		Bracket: metric.Bracket{Kind: metric.CapacityUnknown}, Probes: []metric.CapacityProbe{},
	}
}

// seek measures level after level until the search ends or the run stops. lost is not nil if the
// server is lost.
func (h *hunt) seek(out *metric.Capacity, budget time.Duration) (lost error) {
	if h.counts().Rates {
		lost = h.rates(budget)
	} else {
		h.levelSearch = h.loads(budget)
	}
	for lost == nil {
		if !h.check() {
			h.levelSearch.Stop(h.why())
			break
		}
		p, ok := h.levelSearch.Next()
		if !ok {
			break
		}
		var result search.Result
		if result, lost = h.probe(p); lost != nil {
			break
		}
		if !h.check() && result.Outcome == metric.Inconclusive {
			h.levelSearch.Stop(h.why()) // the probe stopped early and has no result
			break
		}
		h.levelSearch.Report(p, result)
		h.visits = append(h.visits, h.last)
		if h.invalid++; h.invalidity == "" {
			h.invalid = 0
		}
		if h.invalid == mostInvalid {
			// After several invalid probes in a row, the load is not the cause. More levels would
			// only cost time.
			h.levelSearch.Stop(h.invalidity)
		}
	}
	if lost != nil {
		h.levelSearch.Stop("the server could not be measured: " + h.secrets.Text(lost.Error()))
	}
	h.conclude(out)
	return lost
}

func (h *hunt) options(budget time.Duration) search.Options {
	c := h.capacity
	return search.Options{
		Over: c.Over, Step: c.Step(), From: c.From, UpTo: c.UpTo, Resolution: c.Resolution, Relative: c.Relative,
		Require: max(c.Require, h.wantedBy()), Budget: budget, Known: h.measuredBefore(),
	}
}

// loads returns a search over whole numbers: requests in flight, requests in a burst, users, or
// steps of a speedup.
func (h *hunt) loads(budget time.Duration) *search.Search {
	c, opts := h.capacity, h.options(budget)
	opts.Begin, opts.Confirm = max(c.From, min(h.counts().First, c.UpTo)), c.Confirm
	opts.Looks, opts.Certify = h.looks(false), h.looks(true)
	if h.LastLimit != nil {
		opts.Start = max(0, h.LastLimit(h.server, h.workload))
	}
	return search.New(opts)
}

// wantedBy returns the load at which the candidate must pass for a comparison of capacities: the
// control's capacity less the tolerance. It is 0 if no comparison bounds the capacity, or if the
// control's capacity is unknown.
func (h *hunt) wantedBy() int {
	most := 0
	for _, c := range h.Plan.Compares {
		bound := c.Capacity(h.workload)
		if !c.Live() || c.Candidate != h.server || bound == nil {
			continue
		}
		for _, found := range h.run.Capacities {
			if found.Server == c.Control.Server.Address() && found.Workload == h.workload.Address() && found.Pass > 0 {
				most = max(most, int(math.Ceil(float64(found.Pass)*(1+bound.Limit)-1e-9)))
			}
		}
	}
	return min(max(most, h.capacity.From), h.capacity.UpTo) * min(most, 1)
}

func (h *hunt) counts() shape.Search { return shape.SearchOver(h.capacity.Over) }

// looks returns the numbers of requests at which a probe of level n is judged. If certify is set, they
// are those of a probe with the most requests.
func (h *hunt) looks(certify bool) func(n int) []int {
	return func(n int) (out []int) {
		for _, at := range h.workload.ProbeLooks(n, certify) {
			out = append(out, at.Requests)
		}
		return out
	}
}

// measuredBefore returns levels of the plan that were measured already, as results of probes. They
// have the workload, the server and the kind of load of the search. They count only if they are
// decided: a probe cannot go on with a level that has ended.
func (h *hunt) measuredBefore() []search.Result {
	var out []search.Result
	for _, recorded := range h.run.Levels {
		l := recorded.Judged()
		if l.Server != h.server.Address() || l.Workload != h.workload.Address() || l.Probe != nil || shape.Searched(l) != h.capacity.Over {
			continue
		}
		s := &levelRun{level: l}
		n := h.units(s)
		if n == 0 {
			continue
		}
		at := h.counts().Load(l)
		h.last = visit{split: 1, requests: s.measured()}
		r := h.judged(at, h.view(l), Look{Requests: h.last.requests, Planned: 1})
		if !h.counts().Rates && r.Outcome == metric.Inconclusive {
			continue
		}
		h.known[at] = l
		h.visits = append(h.visits, h.last)
		r.Requests, r.Spent = n, h.took[recorded]
		out = append(out, r)
	}
	return out
}

// view returns a copy of a level for the judge of the search. It has the complete rounds, and the
// looks only of a probe.
func (h *hunt) view(l *metric.Level) *metric.Level {
	v := *l
	v.Rounds = nil
	if l.Probe == nil {
		v.Probe, v.Looks = &metric.Probe{}, nil
	}
	for _, r := range l.Rounds {
		if r.Complete {
			v.Rounds = append(v.Rounds, r)
		}
	}
	return &v
}

func (h *hunt) conclude(out *metric.Capacity) {
	l := h.levelSearch.Limit()
	l.Fill(out)
	out.Notes = slices.Concat(l.Notes, h.notes)
	for i, v := range l.Probes {
		p := metric.CapacityProbe{
			N: v.Probe.N, Purpose: string(v.Probe.Purpose), Set: v.Probe.Set, Requests: h.visits[i].requests,
			Planned: h.visits[i].split, Outcome: v.Result.Outcome, Binding: v.Result.Binding,
			Note: h.secrets.Text(v.Result.Note), Spent: v.Result.Spent,
		}
		s := h.levels[sampleSet{v.Probe.N, v.Probe.Set}]
		switch {
		case v.Probe.Purpose == search.Known:
			p.Level = h.known[v.Probe.N].Name
		case s != nil:
			p.Level = s.level.Name
		}
		for _, m := range v.Result.Margins {
			if m.Threshold == v.Result.Binding {
				p.Shown = m.Shown
			}
		}
		out.Probes = append(out.Probes, p)
	}
}
