package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/record"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/progress"
)

type lastRun struct {
	path     string                  // results.json of that run
	kind     string                  // kind of the last run: "run" or "simulation"
	cases    map[string]float64      // seconds per measured request; the key is the case
	requests map[string]float64      // mean seconds of a request; the key is the case of a rate
	passes   map[string]bool         // requirements that passed; the key is the case and the requirement's name
	costs    map[string]report.Spent // what a case cost, or all probes of a search; the key is the case
	rest     float64                 // seconds outside of cases, searches and starts, such as warm-up and teardown
	loads    map[string]load         // of the starts, by the server's address, image or command
	spent    map[string]float64      // seconds of a capacity search in the last run; the key is the case
	late     map[string]bool         // too many answers ended before their client left; the key is the case
	compared []*compare.Comparison   // those of the last run
}

// recorded returns the comparisons of the last run.
func (l *lastRun) recorded() []*compare.Comparison {
	if l == nil {
		return nil
	}
	return l.compared
}

// load is what the starts of a server took: the first, when nothing was in memory, and each later one.
type load struct{ first, later time.Duration }

// coldFirst says how much longer the first start takes; "" if it takes about as long as the others.
func (l load) coldFirst() string {
	if l.first < l.later+l.later/10 {
		return ""
	}
	return fmt.Sprintf(" (%s for the first on a machine, %s for each later one)", roundTime(l.first), roundTime(l.later))
}

func caseKey(server, workload, level string) string {
	return server + "\x00" + workload + "\x00" + level
}

// readLastRun reads the results of the plan's last run, from the default folder of `tokgate run`.
// If there are none, it reads the results of the last simulation, or returns nil.
func readLastRun(planFile string) *lastRun {
	for _, simulated := range []bool{false, true} {
		if last := readRunAt(filepath.Join(resultsDir("", planFile, false, simulated), "results.json")); last != nil {
			return last
		}
	}
	return nil
}

func resultsAt(path string) *report.Document {
	f, err := record.OpenIn(filepath.Dir(path), filepath.Base(path), os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer f.Close()
	doc, err := report.ReadDocument(f)
	if err != nil || doc.Run.Stopped != "" {
		return nil
	}
	return doc
}

func readRunAt(path string) *lastRun {
	doc := resultsAt(path)
	if doc == nil {
		return nil
	}
	last := &lastRun{path: path, kind: "run", compared: doc.Comparisons, cases: map[string]float64{}, rest: doc.Run.End.Seconds(),
		loads: map[string]load{}, spent: map[string]float64{}, costs: map[string]report.Spent{},
		requests: map[string]float64{}, passes: map[string]bool{}, late: map[string]bool{}}
	for _, s := range doc.Run.Servers {
		for _, start := range s.Starts {
			last.rest -= start.Took().Seconds()
		}
		if s.Program() != "" && doc.Run.Simulated {
			continue // a simulated start says nothing about the real one
		}
		if first, later, ok := metric.StartTimes(s.Starts); ok {
			last.loads[s.Address], last.loads[s.Program()] = load{first, later}, load{first, later}
		}
	}
	if doc.Run.Simulated {
		last.kind = "simulation"
	}
	for i := range doc.Cases {
		c := &doc.Cases[i]
		last.readRate(c)
		last.readCost(c)
		if c.Probe != nil {
			continue // of a search
		}
		last.rest -= c.Took()
		last.late[caseKey(c.Server, c.Workload, c.Name)] = c.Departures != nil && c.Departures.TooLate()
		if c.Completed > 0 && c.Due() > 0 {
			last.cases[caseKey(c.Server, c.Workload, c.Name)] = c.Took() / float64(c.Due())
		}
	}
	for i := range doc.Verdicts {
		v := &doc.Verdicts[i]
		last.passes[caseKey(v.Server, v.Workload, v.Name)] = v.Outcome == verdict.Pass
	}
	for _, c := range doc.Run.Capacities {
		last.rest -= c.Spent.Seconds()
		last.spent[caseKey(c.Server, c.Workload, exec.CapacityLevel)] = c.Spent.Seconds()
	}
	last.rest = max(last.rest, 0)
	return last
}

// readCost notes what a case cost. All probes of a search are one case, and so are the saturations of
// a workload on a server, which are priced separately.
func (l *lastRun) readCost(c *report.Case) {
	level := c.Name
	if c.Probe != nil {
		level = exec.CapacityLevel
		if c.Probe.Purpose == metric.SaturationName {
			level, l.rest = metric.SaturationName, l.rest-c.Spent.Load
		}
	}
	key := caseKey(c.Server, c.Workload, level)
	sum := l.costs[key]
	sum.Add(c.Spent)
	l.costs[key] = sum
}

// spentOn returns what a case cost in the last run. ok is false if the last run did not have it.
func (l *lastRun) spentOn(c exec.Case) (cost report.Spent, ok bool) {
	if l == nil {
		return cost, false
	}
	cost, ok = l.costs[caseKey(c.Server.Address(), c.Workload.Address(), c.Level.Name)]
	return cost, ok && cost.Sent > 0
}

func (l *lastRun) readRate(c *report.Case) {
	e2e := c.Summary("e2e")
	if c.Rate == 0 || e2e == nil || len(e2e.Curve) == 0 {
		return
	}
	var took []float64
	for _, x := range e2e.Curve {
		if x.OK && !math.IsInf(x.V, 0) {
			took = append(took, x.V)
		}
	}
	key, one := caseKey(c.Server, c.Workload, c.Name), assert.Lifetime(slices.Values(took))
	if c.Probe != nil {
		key = caseKey(c.Server, c.Workload, exec.CapacityLevel)
		if had, ok := l.requests[key]; ok {
			one = min(one, had) // keep the shortest time, which is usually that of the lowest rate
		}
	}
	l.requests[key] = one
}

// duration returns how long a case should take: its time in the last run, scaled to the plan's
// present number of requests. ok is false if the last run did not have the case.
func (l *lastRun) duration(c exec.Case) (d time.Duration, ok bool) {
	switch {
	case c.Load != nil && c.Load.People != nil:
		return c.Level.Duration + c.Workload.Settling(c.Load), true
	case c.Level.Duration > 0:
		return c.Level.Duration, true
	case c.Load != nil && c.Level.Rate > 0 && c.Level.Stage == nil:
		warm, last := conversing(c)
		return warm + c.Level.Lasts() + last, true
	case l == nil:
		return 0, false
	}
	if c.Load == nil {
		s, ok := l.spent[caseKey(c.Server.Address(), c.Workload.Address(), c.Level.Name)]
		return time.Duration(s * float64(time.Second)), ok
	}
	s, ok := l.cases[caseKey(c.Server.Address(), c.Workload.Address(), c.Level.Name)]
	return time.Duration(s * float64(c.Level.Requests) * float64(time.Second)), ok
}

// conversing returns how long conversations that begin at a rate take to fill the server before the
// window, and how long the last ones go on after it, by their thinking times. Both are 0 for single
// requests.
func conversing(c exec.Case) (warm, last time.Duration) {
	if c.Load.Kind != metric.OpenLoop || c.Level.Stage != nil || !c.Workload.Prompt.Turns.Several() {
		return 0, 0
	}
	last = time.Duration(max(c.Workload.Prompt.Turns.Mean-1, 0) * float64(c.Load.Think.Mean))
	if warm = 3 * last; c.Load.Open != nil && c.Load.Open.Warmup != plan.OpenWarmupAuto {
		warm = c.Load.Open.Warmup
	}
	return warm, last
}

func (l *lastRun) forecast(p *plan.Plan, only func(exec.Case) bool, start map[*plan.Server]startTime) progress.Forecast {
	var f progress.Forecast
	for _, g := range plan.Groups(p) {
		f.Early = f.Early || len(g.Compares[0].Looks()) > 1
	}
	if l != nil {
		f.Rest = time.Duration(l.rest * float64(time.Second))
	}
	used := map[*plan.Server]bool{}
	for _, c := range append(exec.Cases(p), exec.Searches(p)...) {
		if only != nil && !only(c) {
			continue
		}
		used[c.Server] = true
		part := progress.Work{Server: c.Server.Address(), Workload: c.Workload.Address(), Times: 1}
		if c.Load != nil {
			part.Level, part.Size = c.Level.Name, work(c)
			part.Times, part.Beside = exec.Legs(p, c)
		}
		took, known := l.duration(c)
		part.Took, part.Known = took/time.Duration(part.Times), known
		f.Parts = append(f.Parts, part)
	}
	for _, s := range p.Servers {
		if n := exec.Starts(p, s); used[s] && n > 0 {
			t, known := start[s]
			known = known || s.Endpoint != nil // it runs
			f.Parts = append(f.Parts, progress.Work{Server: s.Address(), Times: n, Took: t.took, First: t.first, Known: known})
		}
	}
	return f
}

// work estimates the work of a case, in answer tokens of one slot. A prompt token counts as a
// sixteenth, because it takes about a sixteenth of the time.
func work(c exec.Case) float64 {
	waves := float64(c.Level.Rounds)
	if c.Load.Kind == metric.ClosedLoop {
		waves = float64(c.Level.Requests) / float64(max(c.Level.N, 1))
	}
	in, out, _ := tokensOf(c)
	return waves * float64(in/16+out) / float64(max(c.Level.Requests, 1))
}

func (l *lastRun) total(p *plan.Plan, start map[*plan.Server]startTime) string {
	whole := l.takes(p, start)
	if l == nil {
		if whole.unknown == 0 {
			return whole.text() + ", by the durations that the plan sets"
		}
		if most, ok := slowest(p); ok {
			return fmt.Sprintf("unknown before the first run; on a server that just meets its thresholds, up to %s plus the warm-up and the starts", roundTime(most))
		}
		if !slices.ContainsFunc(p.Servers, func(s *plan.Server) bool { return s.Simulator == nil }) {
			return "unknown before the first run; tokgate run --simulate gives an estimate"
		}
		return "unknown before the first run"
	}
	if whole.unknown > 0 {
		return fmt.Sprintf("more than %s, by the %s in %s, which did not have %s", roundTime(whole.expected.took), l.kind, l.path, verdict.Count(whole.unknown, "parts"))
	}
	return fmt.Sprintf("%s, by the %s in %s", whole.text(), l.kind, l.path)
}

func slowest(p *plan.Plan) (sum time.Duration, ok bool) {
	for _, c := range exec.Cases(p) {
		took, bounded := longestLoad(c)
		if bounded {
			sum, ok = sum+took, true
		}
	}
	return sum, ok
}

func bounding(w *plan.Workload, binds func(*plan.SLA) bool) (out []*plan.Threshold) {
	for _, sla := range w.SLAs {
		if binds(sla) {
			out = append(out, sla.Thresholds...)
		}
	}
	return out
}

// slowestRequest returns how long a request may take by the given thresholds. It uses a threshold
// on e2e, or else thresholds on both TTFT and speed. If a metric has several thresholds, the first
// one counts.
func slowestRequest(w *plan.Workload, thresholds []*plan.Threshold) (d time.Duration, ok bool) {
	limits := map[string]float64{}
	for _, t := range thresholds {
		if _, have := limits[t.Metric.Name]; !have && t.Limit > 0 {
			limits[t.Metric.Name] = t.Limit
		}
	}
	seconds, ok := limits["e2e"]
	if !ok {
		ttft, haveTTFT := limits["ttft"]
		speed, haveSpeed := limits["speed"]
		if tpot, haveTPOT := limits["tpot"]; haveTPOT && !haveSpeed {
			speed, haveSpeed = 1/tpot, true
		}
		if !haveTTFT || !haveSpeed {
			return 0, false
		}
		seconds = ttft + float64(w.Output.Mean)/speed
	}
	return time.Duration(seconds * float64(time.Second)), true
}

func roundTime(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return plan.PlainDuration(d.Round(100 * time.Millisecond))
	case d < 10*time.Minute:
		return plan.PlainDuration(d.Round(time.Second))
	}
	return plan.PlainDuration(d.Round(time.Minute))
}

func longestLoad(c exec.Case) (d time.Duration, ok bool) {
	if c.Level.Duration > 0 {
		return c.Level.Duration, true
	}
	request, ok := slowestRequest(c.Workload, bounding(c.Workload, func(s *plan.SLA) bool { return slices.Contains(s.At, c.Level.Name) }))
	waves := c.Level.Rounds
	switch c.Load.Kind {
	case metric.ClosedLoop:
		waves = (c.Level.Requests + c.Level.N - 1) / c.Level.N
	case metric.OpenLoop:
		return c.Level.Lasts() + request, true
	}
	return time.Duration(waves) * (request + c.Load.Pause), ok
}

func tokensOf(c exec.Case) (in, out int, sized bool) {
	if c.Level.Speedup > 0 {
		input, output := c.Load.Open.Trace.Means()
		n := float64(c.Level.Requests)
		return int(input*n + 0.5), int(output*n + 0.5), true
	}
	prompt, sized := c.Workload.PromptLength()
	answer, _ := c.Workload.AnswerLength()
	n := float64(c.Level.Requests)
	return int(math.Round(n * prompt)), int(math.Round(n * answer)), sized
}
