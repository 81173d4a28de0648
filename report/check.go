package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// Check looks for figures in the document that contradict each other, as has happened in published
// reports. It returns one sentence for each contradiction. No verdict depends on them.
func Check(d *Document) []string {
	c := checker{doc: d}
	for i := range d.Cases {
		c.sums(&d.Cases[i])
		c.order(&d.Cases[i])
		c.units(&d.Cases[i])
		c.identities(&d.Cases[i])
		c.largest(&d.Cases[i])
	}
	c.repeats()
	for _, x := range d.Run.Capacities {
		c.capacity(x)
	}
	for i := range d.Passages {
		c.passage(&d.Passages[i])
	}
	c.outcome()
	c.claimed()
	for _, x := range d.Comparisons {
		c.decisions(x)
	}
	return c.found
}

type checker struct {
	doc   *Document
	found []string
}

func (c *checker) say(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

func at(x *Case) string { return x.Workload + " at " + x.Name + " on " + x.Server }

// sums checks that figures agree if the document has them twice. For example, failed requests are
// counted in total and by kind.
func (c *checker) sums(x *Case) {
	if x.Skipped != "" {
		return
	}
	if got := x.Completed + x.Failed + x.Canceled; got > x.Due() {
		c.say("%s: %d requests completed, %d failed and %d were given up, but only %d were due", at(x), x.Completed, x.Failed, x.Canceled, x.Due())
	}
	failed := 0
	for _, f := range x.Failures {
		failed += f.Count
	}
	if failed != x.Failed {
		c.say("%s: %d requests failed, but the list by kind has %d", at(x), x.Failed, failed)
	}
	// Skip a level that was cut short. Some of its requests have no record, and its load verdict
	// says so.
	if s := x.Summary("success"); s != nil && s.Value.OK && x.Due() > x.Canceled && x.Completed+x.Failed+x.Canceled >= x.Due() {
		if want := float64(x.Completed) / float64(x.Due()-x.Canceled); math.Abs(s.Value.V-want) > 1e-9 {
			c.say("%s: success is %s, but %d of %d requests completed", at(x), s.Value.Format(s.Unit), x.Completed, x.Due()-x.Canceled)
		}
	}
}

// order checks that no percentile is below a smaller percentile, as p95 below p90 would be.
func (c *checker) order(x *Case) {
	for i := range x.Metrics {
		s := &x.Metrics[i]
		if s.Percentiles == nil {
			continue
		}
		last, lastAt := metric.Value{}, 0.0
		for p, n := range s.Percentiles.each() {
			if n.OK && last.OK && n.V < last.V {
				c.say("%s: %s p%g is %s, which is below p%g (%s)", at(x), s.Metric, p, n.Format(s.Unit), lastAt, last.Format(s.Unit))
			}
			if n.OK {
				last, lastAt = *n, p
			}
		}
		if s.Mean.OK && s.Min.OK && s.Max.OK && s.Worst == 0 && (s.Mean.V < s.Min.V*(1-1e-9) || s.Mean.V > s.Max.V*(1+1e-9)) {
			c.say("%s: the mean of %s is %s, which is outside the range %s to %s", at(x), s.Metric, s.Mean.Format(s.Unit), s.Min.Format(s.Unit), s.Max.Format(s.Unit))
		}
	}
}

// units checks that each metric has the unit that its definition sets.
func (c *checker) units(x *Case) {
	for i := range x.Metrics {
		s := &x.Metrics[i]
		if def, ok := metric.Lookup(s.Metric); ok && def.Source != metric.Prices && s.Unit != def.Unit {
			c.say("%s: the unit of %s is %q, but must be %q", at(x), s.Metric, s.Unit, def.Unit)
		} else if s.Unit == "" {
			c.say("%s: %s has no unit", at(x), s.Metric)
		}
	}
}

// slack is the largest relative difference between a figure and its value computed from other
// figures. The two differ slightly, because they are measured over different periods.
const slack = 0.25

// leastForMeans is the smallest number of completed requests for checks that compare means.
const leastForMeans = 20

func (c *checker) identities(x *Case) {
	mean := func(name string) (float64, bool) {
		n := x.Summary(name).Stat("mean")
		return n.V, n.OK && !math.IsInf(n.V, 0)
	}
	// A closed loop cannot have a higher throughput than N requests in flight that each take the
	// mean e2e. Skip a case with failed requests, which may have produced any number of tokens.
	throughput, ok1 := mean("throughput")
	e2e, ok2 := mean("e2e")
	if ok1 && ok2 && x.Kind == metric.ClosedLoop && x.Completed >= leastForMeans && x.Failed == 0 && e2e > 0 {
		most := float64(x.N) * float64(x.OutputTokens) / float64(x.Completed) / e2e
		if throughput > most*(1+slack) {
			c.say("%s: the throughput is %s, but %d requests in flight that take %s each can yield only %s", at(x),
				metric.Format(metric.TokensPerSecond, throughput), x.N, metric.Format(metric.Seconds, e2e),
				metric.Format(metric.TokensPerSecond, most))
		}
	}
	// The mean gap between chunks, divided by the time per token, is the number of tokens per chunk.
	// The time per token is that of all answers together, as the mean gap is: the mean of tpot
	// counts an answer of ten tokens as much as one of a thousand.
	itl, ok1 := mean("itl")
	ttft, ok3 := mean("ttft")
	per, ok4 := mean("tokens_per_chunk")
	decoded := float64(x.OutputTokens - x.Completed)
	if !ok1 || !ok2 || !ok3 || !ok4 || x.Completed < leastForMeans || decoded <= 0 || e2e <= ttft || per <= 0 {
		return
	}
	perToken := (e2e - ttft) * float64(x.Completed) / decoded
	// If the first chunk has only one token, the later chunks hold more tokens than the mean.
	most, tokens := per, float64(x.OutputTokens)/float64(x.Completed)
	if chunks := tokens / per; chunks > 1.5 {
		most = max(per, (tokens-1)/(chunks-1))
	}
	if got := itl / perToken; got < per*(1-slack) || got > most*(1+slack) {
		c.say("%s: the mean gap divided by the time per token is %s tokens, but a chunk holds %s. The stream may have been held back at its start", at(x),
			metric.Format(metric.Count, got), metric.Format(metric.Tokens, per))
	}
}

// largest checks that the server completed requests no faster than the largest rate in the report.
// All cases of a workload on a server must report the same largest rate.
func (c *checker) largest(x *Case) {
	if x.Largest() == 0 {
		return
	}
	if got := x.Summary("request_rate").Stat("mean"); got.OK && x.Completed >= leastForMeans && got.V > x.Largest()*(1+slack) {
		c.say("%s: the rate of completed requests is %s, but the largest rate that the server can sustain is %s", at(x), got.Format(metric.PerSecond), metric.Format(metric.PerSecond, x.Largest()))
	}
	for _, y := range c.doc.CasesOf(x.Workload, x.Server) {
		if y == x {
			break
		}
		if y.Largest() > 0 && y.Largest() != x.Largest() {
			c.say("%s: the largest rate that the server can sustain is %s, but at %s it is %s", at(x), metric.Format(metric.PerSecond, x.Largest()), y.Name, metric.Format(metric.PerSecond, y.Largest()))
			return
		}
	}
}

// passage checks the curves of an open loop against each other. Waiting requests must not outnumber
// the requests in flight, and arrivals must not outnumber the requests due. The mean in flight must
// not exceed the maximum.
func (c *checker) passage(p *Passage) {
	name := fmt.Sprintf("%s at %s on %s over time", p.Workload, strings.Join(p.Levels, ", "), p.Server)
	for i := range p.InFlight {
		if i < len(p.Waiting) && p.Waiting[i] > p.InFlight[i] {
			c.say("%s: %d requests wait, but only %d are in flight", name, p.Waiting[i], p.InFlight[i])
			break
		}
	}
	due, mean := 0, metric.Value{}
	for _, x := range c.doc.CasesOf(p.Workload, p.Server) {
		if slices.Contains(p.Levels, x.Name) {
			due, mean = due+x.Due(), x.Summary("in_flight").Stat("mean")
		}
	}
	if p.sum() > due {
		c.say("%s: %d requests arrived, but only %d were due", name, p.sum(), due)
	}
	if most := slices.Max(append([]int{0}, p.InFlight...)); mean.OK && len(p.Levels) == 1 && p.Windows == 1 &&
		mean.V > float64(most)*(1+1e-9) {
		c.say("%s: at most %d requests are in flight, but the mean is %s", name, most, mean.Format(metric.Requests))
	}
}

// repeats checks that cases with the same server, workload and load have similar values.
func (c *checker) repeats() {
	type key struct {
		server, workload, kind string
		load                   float64
	}
	first := map[key]*Case{}
	for i := range c.doc.Cases {
		x := &c.doc.Cases[i]
		// Skip a stage too, because its values depend on the stage before it.
		if x.Skipped != "" || x.Stage != nil || x.Completed < leastForMeans || x.Failed > 0 {
			continue
		}
		k := key{x.Server, x.Workload, string(x.Kind), x.Load()}
		y := first[k]
		if y == nil {
			first[k] = x
			continue
		}
		for _, name := range []string{"ttft", "speed"} {
			a, b := y.Summary(name), x.Summary(name)
			if a == nil || b == nil || !a.Mean.OK || !b.Mean.OK || a.Mean.V <= 0 || b.Mean.V <= 0 {
				continue
			}
			if ratio := b.Mean.V / a.Mean.V; ratio > 1+slack || ratio < 1/(1+slack) {
				c.say("%s and %s are the same load, but their mean %s differs: %s and %s", at(y), x.Name, name, a.Mean.Format(a.Unit), b.Mean.Format(b.Unit))
			}
		}
	}
}

// capacity checks that the result of a search agrees with its probes. The load of the result must
// pass its own thresholds, and lie between loads that passed and loads that failed.
func (c *checker) capacity(x *metric.Capacity) {
	name := "the capacity of " + x.Workload + " on " + x.Server
	if x.Pass > 0 && x.Fail > 0 && x.Pass >= x.Fail {
		c.say("%s: the load %s is said to pass, but the load %s, which is not larger, is said to fail", name, x.Amount(x.Pass), x.Amount(x.Fail))
	}
	passed := x.Pass == 0
	for i := range x.Probes {
		p := &x.Probes[i]
		if p.N != x.Pass || p.Outcome != verdict.Pass {
			continue
		}
		passed = true
		for _, r := range p.Values {
			if b := c.bound(x, r); b != nil && r.Value.OK && b.Breaks(r.Value.V) {
				c.say("%s: at the limit of %s, the value of %s is %s, which breaks the threshold %s", name, x.Amount(x.Pass), r.Threshold, r.Value.Format(b.Unit()), b.Text)
			}
		}
	}
	if !passed && len(x.Probes) > 0 {
		c.say("%s: no probe at the reported limit of %s passed", name, x.Amount(x.Pass))
	}
	if x.Crossing > 0 && x.Pass > 0 && x.Fail > 0 &&
		(x.CrossingHigh > 0 && x.CrossingHigh < float64(x.Pass) || x.CrossingLow > float64(x.Fail)) {
		c.say("%s: the estimate %s does not lie between %s, which passed, and %s, which failed", name, x.Estimate(), x.Amount(x.Pass), x.Amount(x.Fail))
	}
}

func (c *checker) claimed() {
	for i := range c.doc.Verdicts {
		if v := &c.doc.Verdicts[i]; v.Outcome == verdict.Skipped && v.Value.OK {
			c.say("%s of %s on %s was measured, but the report calls it skipped", v.Name, v.Workload, v.Server)
		}
	}
}

// decisions checks that the answers of a comparison agree with its changes and with its requirements,
// which are two statements: a candidate may be better, and still not by as much as the plan asks for.
func (c *checker) decisions(x *compare.Comparison) {
	for i := range x.Decisions {
		d := &x.Decisions[i]
		for i := range x.Changes {
			row := &x.Changes[i]
			if row.Workload != d.Workload || row.Level != d.Level {
				continue
			}
			if d.Answer == "yes" && row.Status() == verdict.StatusFail {
				c.say("compare %s: the answer is \"yes\" for %s at %s, but the requirement of %s %s failed", x.Name, d.Workload, d.Level, row.Metric.Name, row.Stat)
			}
			if d.Answer == "no difference" && !row.Limit.OK && row.Direction == compare.Worse {
				c.say("compare %s: the answer is \"no difference\" for %s at %s, but %s %s is worse", x.Name, d.Workload, d.Level, row.Metric.Name, row.Stat)
			}
		}
	}
	for i := range x.Changes {
		c.change(x, &x.Changes[i])
	}
}

// change checks that the direction and the outcome of a change agree with its numbers.
func (c *checker) change(x *compare.Comparison, row *compare.Change) {
	at := fmt.Sprintf("compare %s: %s for %s at %s", x.Name, row.Name(), row.Workload, row.Level)
	if row.Low.OK && row.High.OK && row.Low.V > row.High.V {
		c.say("%s: the lower bound is above the upper bound", at)
	}
	if !row.Change.OK || row.Change.V == 0 {
		return
	}
	way := compare.Worse
	if row.Change.V > 0 == (row.Metric.Better == metric.HigherIsBetter) {
		way = compare.Better
	}
	if row.Direction != "" && row.Direction != way {
		c.say("%s is called %s, but the change %s is for the %s", at, row.Direction, compare.FormatChange(row.Unit(), row.Change.V, row.Points), way)
	}
	if row.Outcome == verdict.Skipped && row.Limit.OK && row.Why == "" {
		c.say("%s was measured and has a limit, but the report calls it skipped", at)
	}
}

// bound returns the plan's threshold for the metric and statistic of r. It returns nil if the plan
// has none.
func (c *checker) bound(x *metric.Capacity, r metric.ProbeValue) *verdict.Threshold {
	for _, w := range c.doc.Workloads {
		if w.Address != x.Workload {
			continue
		}
		for i := range w.Bounds {
			if b := &w.Bounds[i]; b.Capacity && b.Threshold.Label() == r.Threshold {
				return &b.Threshold
			}
		}
	}
	return nil
}

func (c *checker) outcome() {
	t := c.doc.Tally()
	if c.doc.Outcome == verdict.Pass && t.Failed+t.Errors > 0 {
		c.say("the outcome is pass, but %d verdicts failed or could not be measured", t.Failed+t.Errors)
	}
	for i := range c.doc.Verdicts {
		v := &c.doc.Verdicts[i]
		if v.Threshold == nil || !v.Value.OK || v.Outcome != verdict.Pass && v.Outcome != verdict.Fail || v.Threshold.Op == "" {
			continue
		}
		if v.Outcome == verdict.Pass && v.Threshold.Breaks(v.Value.V) {
			c.say("%s passed, but the value %s does not meet %s", v.Name, v.Value.Format(v.Threshold.Unit()), v.Threshold.Text)
		}
	}
}
