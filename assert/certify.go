package assert

import (
	"fmt"
	"math"
	"sort"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Finding says whether the planned requests suffice to certify a threshold at a level.
type Finding struct {
	Workload    string
	Level       string
	Requirement string // "ttft p95 < 8s"
	Planned     string // "300 requests, 5 rounds"
	Extended    string // such as "extended to at most 1200 requests, with 3 looks"; "" if an inconclusive level is not extended
	Needed      string // "59 effective requests"
	Remark      string // one more line on the finding; "" if there is nothing to add
	// Impossible means that the planned requests cannot pass, whatever their outcome.
	Impossible bool
	// Advice says how to change the plan; "" unless Impossible is set.
	Advice    string
	Severity  verdict.Severity
	Threshold *plan.Threshold
	Implied   bool   // another threshold of the plan implies it
	needed    int    // number of requests, or other units, that a threshold on a share needs
	units     string // name of the unit: rounds, waves, bursts or requests
}

// Certify checks whether the plan has enough requests for each threshold to pass. It checks every
// threshold at every level, in the order of the levels. This includes implied thresholds and shares
// that bound a capacity.
//
// Certify assumes that every request is good and independent. So a threshold that it calls possible
// may still be inconclusive.
func Certify(p *plan.Plan) []Finding {
	if p == nil {
		return nil
	}
	var out []Finding
	for _, w := range p.Workloads {
		for load, level := range w.Levels() {
			for _, r := range requirements(w, boundAt(level.Name), load.Kind, level, verdict.SeverityError) {
				f := certify(r.Threshold, level, load.Kind, w.Policy, p.Looks(w, load, level))
				f.Workload, f.Level, f.Implied = w.Address(), level.Name, r.impliedBy != nil
				f.Severity, f.Threshold = r.severity, r.Threshold
				if load.Open != nil && level.Stage == nil && level.Speedup == 0 && !f.Impossible {
					f.atRate(w, level, load.Open)
				}
				out = append(out, f)
			}
		}
		if w.Root().Capacity == nil {
			continue
		}
		for _, r := range declared(w, boundAtCapacity) {
			if r.severity != verdict.SeverityWarn && r.Threshold.Stat.IsShare() {
				f := certifyCapacity(r.Threshold, w)
				f.Workload, f.Level, f.Severity, f.Threshold = w.Address(), "capacity", r.severity, r.Threshold
				out = append(out, f)
			}
		}
	}
	return out
}

// certify checks whether a threshold can pass at a level, with the largest number of requests that
// the plan allows.
func certify(t *plan.Threshold, level plan.Level, kind metric.LoadKind, policy plan.Policy, looks []plan.Look) Finding {
	f := foresee(t, level, kind, policy, looks)
	switch {
	case t.Metric.Scope == metric.PerReading && t.Stat.Kind != metric.Mean:
		f.Needed, f.Remark = "1 reading", "exact"
	case t.Metric.Name == growing:
		f.Needed = "a rate that the server can sustain, or a backlog that does not grow"
	case t.Metric.Name == "recovery":
		f.Needed, f.Remark = "1 pass", "exact"
	case t.Metric.Name == "preemptions":
		f.Needed, f.Remark = "1 round", "exact"
	case t.Stat.Exact():
		f.Needed, f.Remark = "1 request", "exact"
	case policy.Estimates():
		f.Needed, f.Remark = "1 request", "point estimate"
	case f.tooFew():
		f.fewWaves()
	case t.Metric.Scope == metric.PerLevel && t.Stat.Kind == metric.NoStat, t.Stat.Kind == metric.Mean:
		f.mean(t)
	case t.Stat.IsShare():
		f.share(t, policy.Clusters)
	default:
		f.percentile(t)
	}
	return f.Finding
}

// foreseenLevel is a Finding while it is computed. Its field evidence holds the most requests that
// the plan will measure.
type foreseenLevel struct {
	Finding
	evidence                 // of the planned requests
	duration   time.Duration // planned time of the level; 0 if the plan sets the number of requests
	kind       metric.LoadKind
	planned    int // rounds
	alpha      float64
	confidence string
}

// foresee computes the largest number of requests that the plan will measure at a level, and the
// error that the last look may use.
func foresee(t *plan.Threshold, level plan.Level, kind metric.LoadKind, policy plan.Policy, looks []plan.Look) foreseenLevel {
	f := foreseenLevel{kind: kind, duration: level.Duration, planned: max(level.Rounds, 1), alpha: errorAtLast(policy.Alpha(), looks)}
	f.Requirement = strings.TrimSpace(t.Metric.Name + " " + t.Text)
	_, rounds := planned(level, kind).RoundNames()
	f.Planned = fmt.Sprintf("%s, %s", verdict.Count(level.Requests, "requests"), verdict.Count(f.planned, rounds))
	if kind == metric.Burst {
		f.Planned = fmt.Sprintf("%s of %d", verdict.Count(f.planned, "bursts"), level.N)
	}
	if f.duration > 0 {
		f.Planned = fmt.Sprintf("%s, %s", plan.PlainDuration(f.duration), verdict.Count(f.planned, rounds))
	}
	if last := looks[len(looks)-1]; last.Extends {
		f.Extended = fmt.Sprintf("extended to at most %d requests, with %d looks", last.Requests, last.Planned)
		if f.duration > 0 {
			f.Extended = fmt.Sprintf("extended to at most %s, with %d looks", plan.PlainDuration(f.duration*time.Duration(last.Requests/level.Requests)), last.Planned)
		}
		f.Planned += ", " + f.Extended
		f.planned = (f.planned*last.Requests + level.Requests - 1) / level.Requests
		level.Requests, level.Rounds = last.Requests, f.planned
	}
	f.confidence = metric.Format(metric.Ratio, 1-f.alpha)
	f.evidence = gather(planned(level, kind))
	return f
}

// ofMix returns how large a mix of workloads must be so that this workload gets the given number of
// requests. Without a mix it returns the given number.
func (f *foreseenLevel) ofMix(requests int) int { return plan.OfWhole(requests, f.level.Fraction()) }

// inMix writes the size of a mix of workloads, as " (1180 requests of its mix)". In a mix of this
// size, the judged workload has the given number of requests. inMix returns "" if there is no mix.
func (f *foreseenLevel) inMix(requests int) string {
	if f.level.Fraction() == 1 {
		return ""
	}
	return fmt.Sprintf(" (%d requests of its mix)", f.ofMix(requests))
}

// fewWaves rules out a window of fewer than five batches, which decides nothing.
func (f *foreseenLevel) fewWaves() {
	least, usual := plan.Waves(leastRounds, f.level.AtOnce()), plan.Waves(mostBatches, f.level.AtOnce())
	f.Needed = verdict.Count(leastRounds, "waves")
	f.ruleOut(fmt.Sprintf("needs a window of at least %d waves of %d requests; the plan has only %s", leastRounds, f.level.AtOnce(), verdict.Count(f.n, "requests")),
		fmt.Sprintf("use waves = %d (%d requests), or better 10 (%d) or %d (%d)", leastRounds, f.ofMix(least), f.ofMix(2*least), mostBatches, f.ofMix(usual)))
}

// ruleOut marks a finding as impossible: the planned requests cannot pass.
func (f *foreseenLevel) ruleOut(remark, advice string) {
	f.Impossible, f.Remark, f.Advice = true, remark, advice
}

// remedy returns the parameter advice, which tells how to get more requests. For a replay it
// returns the parameter trace instead, because a trace has a fixed number of requests.
func (f *foreseenLevel) remedy(advice, trace string) string {
	if f.level.Speedup > 0 {
		return trace
	}
	return advice
}

// mean checks whether a mean has at least two observations. With only one, its spread is unknown.
// An observation is a block of requests or, for a server metric, a round.
func (f *foreseenLevel) mean(t *plan.Threshold) {
	inside := t.Metric.Source != metric.Client
	units := len(f.blocks)
	f.Needed = "2 rounds, or 2 blocks of requests"
	if t.Metric.Name == "synchrony" || inside {
		units, f.Needed = f.planned, "2 rounds"
	}
	if f.batched() {
		units, f.Needed = f.planned, verdict.Count(leastRounds, "batches")
	}
	if t.Metric.Name == "cost_per_hour" {
		f.Needed, units = "1 round, or 2 rounds if electricity has a price", max(units, 2)
	}
	switch {
	case units >= 2:
	case inside:
		f.ruleOut("a mean needs at least two rounds to show a spread", "use two seeds or more")
	default:
		f.ruleOut("a mean needs at least two blocks of requests to show a spread", fmt.Sprintf("use two seeds or more, or at least %d requests", f.ofMix(2*f.level.AtOnce())))
	}
}

// share checks whether a level can have enough independent units for a threshold on a share. Units
// are waves, rounds or single requests, as the plan assumes.
func (f *foreseenLevel) share(t *plan.Threshold, clusters plan.Clusters) {
	need, ok := stat.MinimumN(t.Allowed(), f.alpha)
	if !ok {
		f.Needed = "∞"
		f.ruleOut("a sample cannot prove that every request succeeds", fmt.Sprintf("write %s to judge only the requests of the run, or allow a share of the requests to fail", thisRunOf(t)))
		return
	}
	if f.batched() && clusters == plan.ClustersRound {
		f.Needed = "another assumption"
		f.ruleOut("a closed loop is one window and has no rounds whose requests could fail together", `set clusters = "wave"`)
		return
	}
	have := clusters.Units(f.kind, f.level.AtOnce(), f.planned, f.n)
	noun, why, advice := "rounds", "because requests of one round may fail together", moreRounds(f.kind, need)
	switch {
	case f.kind == metric.Burst:
		noun = "bursts"
	case clusters == plan.ClustersNone:
		noun, why, advice = "requests", "", fmt.Sprintf("requests = %d", f.ofMix(need))
	case clusters != plan.ClustersRound && f.kind == metric.OpenLoop:
		noun, why, advice = "waves", "because requests that are in flight together may fail together", f.remedy(fmt.Sprintf("requests = %d times the mean number of requests in flight", need), "a longer stretch of the trace")
		f.Remark = fmt.Sprintf("a wave is all requests in flight at one time; %d requests make enough waves if at most %d are in flight", f.n, have/need)
	case clusters != plan.ClustersRound:
		noun, why = fmt.Sprintf("waves of %d", f.level.AtOnce()), "because requests that are in flight together may fail together"
		advice = fmt.Sprintf("requests = %d (%d for each request in flight)", f.ofMix(need*f.level.AtOnce()), need)
		if f.batched() {
			advice = fmt.Sprintf("waves = %d", need)
		}
	}
	f.Needed, f.units = verdict.Count(need, noun), strings.Fields(noun)[0]
	if f.duration > 0 && clusters != plan.ClustersRound {
		f.Remark = "as many as arrive in " + plan.PlainDuration(f.duration)
		return
	}
	if f.needed = need; have < need {
		if why != "" {
			why = ", " + why
		}
		f.ruleOut(fmt.Sprintf("needs %s at %s confidence%s; the plan has only %d", f.Needed, f.confidence, why, have),
			fmt.Sprintf("either use %s, or write %s to judge only the requests of this run", advice, thisRunOf(t)))
	}
}

func (f *foreseenLevel) percentile(t *plan.Threshold) {
	need, _ := stat.MinimumN(t.Allowed(), f.alpha) // MinimumN has a result, as percentiles end at p99.9
	f.Needed = verdict.Count(need, "effective requests") + f.inMix(need)
	best := float64(f.n)
	if !f.sound || t.Metric.Source != metric.Client && f.planned < leastRounds {
		best = math.Min(best, float64(f.waves))
	}
	blocks := fmt.Sprintf("%d rounds or %d requests", leastRounds, f.ofMix(leastBlocks*f.level.AtOnce()))
	if f.kind == metric.Burst {
		blocks = fmt.Sprintf("%d bursts", leastRounds)
	}
	if f.grouped(t.Allowed(), f.n) {
		f.Remark = fmt.Sprintf("so few requests may be over the limit that each batch's slowest must be clear of it too; waves = %d is surer", 2*mostBatches)
	}
	switch {
	case f.duration > 0:
		f.Remark = "as many as arrive in " + plan.PlainDuration(f.duration)
	case f.n < need:
		f.ruleOut(fmt.Sprintf("needs %s%s at %s confidence; the plan has only %d", verdict.Count(need, "requests"), f.inMix(need), f.confidence, f.n), f.remedy("raise requests", "replay a longer stretch of the trace"))
	case best < float64(need):
		f.ruleOut(fmt.Sprintf("needs %s that count as independent, at %s confidence, but the plan has only %s. With fewer than %s, each wave of %d requests counts as one request",
			verdict.Count(need, "requests"), f.confidence, verdict.Count(f.waves, "waves"), blocks, f.level.AtOnce()), "use more seeds or raise requests")
	}
}

// certifyCapacity checks whether a threshold on a share can pass in a capacity search. It checks
// the required level, or else the smallest level, which has the most rounds. In a search over
// rates, it checks the largest rate.
func certifyCapacity(t *plan.Threshold, w *plan.Workload) Finding {
	whole := w.Root()
	c := whole.Capacity
	at := func(n int, certify bool) Finding {
		looks := whole.ProbeLooks(n, certify)
		if c.Over == metric.OpenLoop {
			looks = []plan.Look{{Requests: whole.MostRequests(c.Level(n).Requests), Planned: 1}}
		}
		return certifyAt(t, w, n, looks)
	}
	if c.Over == metric.OpenLoop {
		return at(c.UpTo, true) // at the largest rate, a probe needs the most requests
	}
	n := max(c.Require, c.From)
	f := at(n, false)
	if f.Impossible && f.needed > 0 {
		if most := at(n, true); !most.Impossible {
			most.Remark = fmt.Sprintf("this level has enough %s to pass only in a probe with max_requests", most.units)
			return most
		}
		requests := w.OfWhole(f.needed * w.Portion(c.Level(n)).AtOnce())
		if f.units == "requests" {
			requests = w.OfWhole(f.needed)
		}
		f.Advice = fmt.Sprintf("either use requests = %d in the capacity block, or write %s to judge only the requests of each probe", requests, thisRunOf(t))
	}
	if f.Impossible || f.Remark != "" {
		return f
	}
	from := func(certify bool) int {
		return c.From + sort.Search(c.UpTo-c.From+1, func(i int) bool { return at(c.From+i, certify).Impossible })
	}
	if n := from(false); n <= c.UpTo {
		f.Remark = fmt.Sprintf("levels of %d and above have too few %s to pass", n, f.units)
		if n < from(true) {
			f.Remark = fmt.Sprintf("levels of %d and above have enough %s to pass only in probes with max_requests", n, f.units)
		}
	}
	return f
}

// certifyAt checks a threshold at level n of a search whose probes are judged at the given looks.
func certifyAt(t *plan.Threshold, w *plan.Workload, n int, looks []plan.Look) Finding {
	c, policy := w.Root().Capacity, w.Policy
	level := c.Level(n)
	policy.OnInconclusive = plan.Extend // a search may extend a probe, even if the plan extends no fixed levels
	last := looks[len(looks)-1].Requests
	if c.Over == metric.OpenLoop {
		level.Requests = last
	}
	return certify(t, w.Portion(level), c.Over, policy, ownLooks(w, looks))
}

// ownLooks changes looks at a mix to looks at its part w, in place. Each look then has only the
// requests of the part. Without a mix nothing changes.
func ownLooks(w *plan.Workload, looks []plan.Look) []plan.Look {
	for i := range looks {
		looks[i].Requests = w.Own(looks[i].Requests)
	}
	return looks
}

// planned returns the level as it would be recorded if it ran as planned. So the function gather
// can divide its requests into blocks.
func planned(level plan.Level, kind metric.LoadKind) *metric.Level {
	l := &metric.Level{Name: level.Name, N: level.N, Share: level.Fraction(), Speedup: level.Speedup, Kind: kind, Batches: level.Batches}
	rounds := max(level.Rounds, 1)
	for i := range rounds {
		l.Rounds = append(l.Rounds, &metric.Round{Index: i, Due: level.Requests*(i+1)/rounds - level.Requests*i/rounds})
	}
	return l
}

// CertifyDiagnostics reports thresholds that the plan can never certify. They are errors, or
// warnings if the sla block only warns. Each threshold is reported once, at its place in the plan,
// even if for_each makes several copies of it.
func CertifyDiagnostics(p *plan.Plan) hcl.Diagnostics {
	var diags hcl.Diagnostics
	type key struct {
		workload  string
		threshold *plan.Threshold
	}
	var order []key
	impossible := map[key][]Finding{}
	for _, f := range Certify(p) {
		k := key{f.Workload, f.Threshold}
		if !f.Impossible {
			continue
		}
		if impossible[k] == nil {
			order = append(order, k)
		}
		impossible[k] = append(impossible[k], f)
	}
	type place struct {
		at     hcl.Range
		of, is string // metric and text of a threshold: all thresholds of a preset share one range
	}
	said, likewise := map[place]*hcl.Diagnostic{}, map[*hcl.Diagnostic][]string{}
	for _, k := range order {
		f := impossible[k][0]
		here := place{f.Threshold.Range, f.Threshold.Metric.Name, f.Threshold.Text}
		if first := said[here]; first != nil {
			likewise[first] = append(likewise[first], "for "+f.Workload)
			continue
		}
		said[here] = uncertifiable(impossible[k])
		diags = append(diags, said[here])
	}
	for d, others := range likewise {
		d.Detail += " " + compare.Likewise(others)
	}
	diags = append(diags, compare.ChanceDiagnostics(p)...)
	return diags
}

func uncertifiable(at []Finding) *hcl.Diagnostic {
	f := at[0]
	var levels, others []string
	for _, g := range at {
		if g.Remark == f.Remark {
			levels = append(levels, g.Level)
		} else {
			others = append(others, g.Level)
		}
	}
	detail := fmt.Sprintf("%s at %s can never pass: %s.", label(f.Threshold), strings.Join(levels, ", "), f.Remark)
	if len(others) > 0 {
		detail += fmt.Sprintf(" Likewise at %s.", strings.Join(others, ", "))
	}
	advice := f.Advice
	if f.Needed != "∞" {
		advice += `. You may also lower confidence, or set decide = "estimate" in gate`
	}
	d := &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Threshold can never be certified", Subject: f.Threshold.Range.Ptr(),
		Detail: detail + " " + strings.ToUpper(advice[:1]) + advice[1:] + ".",
	}
	if f.Severity == verdict.SeverityWarn {
		d.Severity = hcl.DiagWarning
	}
	return d
}

// atRate adds two facts to the remark on a threshold at a rate: the largest rate for which the
// planned requests suffice, and the longest request for which the window is long enough.
func (f *Finding) atRate(w *plan.Workload, level plan.Level, o *plan.Open) {
	lifetimes := Lifetimes(f.Threshold, w, nil)
	if lifetimes == 0 {
		return
	}
	if f.Threshold.Stat.Kind == metric.Percentile {
		f.Remark = nearest(f.Threshold, level, o, w.Policy.Alpha())
	}
	if f.Remark != "" {
		f.Remark += "; "
	}
	f.Remark += "the window is long enough if a request takes no longer than " + metric.FormatDigits(metric.Seconds, level.Lasts().Seconds()/lifetimes, 2)
}

// nearest says at which rates the level's requests are enough to certify a percentile. It gives a
// rate as a share of the largest rate that the server can sustain. See the function crowding.
func nearest(t *plan.Threshold, level plan.Level, o *plan.Open, alpha float64) string {
	need, ok := stat.MinimumN(t.Allowed(), alpha)
	if !ok || level.Requests < 1 {
		return ""
	}
	scatter := 1/o.Shape() + 0.5
	takes := func(load float64) int {
		worth := min(1, (1-load)*(1-load)/scatter)
		return int(math.Ceil(float64(need) / spaced(worth, level.Fraction())))
	}
	most := 1 - math.Sqrt(scatter/(1+(float64(level.Requests)/float64(need)-1)/min(1, 2*level.Fraction())))
	words := fmt.Sprintf("that is %d requests at 70%% of the largest rate that the server can sustain, and %d at 85%%", takes(0.7), takes(0.85))
	if most <= 0 {
		return words + fmt.Sprintf("; %d requests are too few, however low the rate is", level.Requests)
	}
	return words + fmt.Sprintf("; %d requests are enough for a rate of up to %s of the largest rate", level.Requests, metric.Format(metric.Ratio, math.Floor(100*most)/100))
}
