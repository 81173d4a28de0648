package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/record"
	"github.com/tokgate/tokgate/report"
)

// lastRun holds what the last recorded run of a plan took.
type lastRun struct {
	path  string             // of its results.json
	by    string             // "run" or "simulation"
	cases map[string]float64 // seconds a measured request, by case
	rest  float64            // seconds beside the cases and starts: warm-up, teardown
	loads map[string]float64 // seconds that the last start took, by address and by image or command
}

func caseKey(server, workload, level string) string {
	return server + "\x00" + workload + "\x00" + level
}

// readLastRun looks for the results of a plan where `tokgate run` leaves them,
// and for want of a measurement for those of a simulation; nil when there are
// none to learn from.
func readLastRun(planFile string) *lastRun {
	for _, simulated := range []bool{false, true} {
		if last := readRunAt(filepath.Join(resultsDir("", planFile, false, simulated), "results.json")); last != nil {
			return last
		}
	}
	return nil
}

func readRunAt(path string) *lastRun {
	f, err := record.OpenIn(filepath.Dir(path), filepath.Base(path), os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer f.Close()
	doc, err := report.ReadDocument(f)
	if err != nil || doc.Stopped != "" {
		return nil
	}
	last := &lastRun{path: path, by: "run", cases: map[string]float64{}, rest: doc.Duration, loads: map[string]float64{}}
	for i := range doc.Servers {
		s := &doc.Servers[i]
		for _, took := range s.Starts {
			last.rest -= took
			last.loads[s.Address], last.loads[s.Program] = took, took
		}
	}
	if doc.Simulated {
		last.by = "simulation"
	}
	for _, c := range doc.Cases {
		last.rest -= c.Duration
		if c.Completed > 0 && c.Due > 0 {
			last.cases[caseKey(c.Server, c.Workload, c.Level)] = c.Duration / float64(c.Due)
		}
	}
	last.rest = max(last.rest, 0)
	return last
}

// of is what the case took, scaled to its requests of now; ok is false when
// the last run did not have it.
func (l *lastRun) of(c exec.Case) (d time.Duration, ok bool) {
	if c.Level.Duration > 0 {
		return c.Level.Duration, true
	}
	if l == nil {
		return 0, false
	}
	s, ok := l.cases[caseKey(c.Server.Address(), c.Workload.Address(), c.Level.Name)]
	return time.Duration(s * float64(c.Level.Requests) * float64(time.Second)), ok
}

// total says how long the plan will take, and how it is known.
func (l *lastRun) total(p *plan.Plan) string {
	if l == nil {
		if most, ok := slowest(p); ok {
			return fmt.Sprintf("unknown before the first run; up to %s and the warm-up on a server that just meets its thresholds", roundTime(most))
		}
		if !slices.ContainsFunc(p.Servers, func(s *plan.Server) bool { return s.Simulator == nil }) {
			return "unknown before the first run, or tokgate run --simulate"
		}
		return "unknown before the first run"
	}
	sum, unknown := l.sum(p)
	s := fmt.Sprintf("about %s, by the %s in %s", roundTime(sum), l.by, l.path)
	if unknown > 0 {
		s = fmt.Sprintf("more than %s, by the %s in %s, which had not %s", roundTime(sum), l.by, l.path, count(unknown, "case"))
	}
	return s
}

// sum is how long the plan takes by the last run, and how many cases it had not.
func (l *lastRun) sum(p *plan.Plan) (sum time.Duration, unknown int) {
	sum = time.Duration(l.rest * float64(time.Second))
	for _, c := range exec.Cases(p) {
		d, ok := l.of(c)
		if !ok {
			unknown++
		}
		sum += d
	}
	for _, s := range p.Servers {
		load, _ := l.load(s)
		sum += time.Duration(exec.Starts(p, s)) * load
	}
	return sum, unknown
}

// load is what the last start of the server took, or of another by the same
// image or command.
func (l *lastRun) load(s *plan.Server) (time.Duration, bool) {
	if l == nil {
		return 0, false
	}
	took, ok := l.loads[s.Address()]
	if declared := s.Declared(); !ok {
		took, ok = l.loads[cmp.Or(declared["image"], declared["command"], "\x00")]
	}
	return time.Duration(took * float64(time.Second)), ok
}

// starts says how often the run starts servers, and how long that takes; "" where
// it starts none but built-in ones whose starts take no time.
func (l *lastRun) starts(p *plan.Plan) string {
	n, unknown := 0, 0
	var took time.Duration
	for _, s := range p.Servers {
		load, ok := l.load(s)
		if !starts(s) && load < time.Second {
			continue
		}
		n += exec.Starts(p, s)
		took += time.Duration(exec.Starts(p, s)) * load
		if !ok {
			unknown += exec.Starts(p, s)
		}
	}
	switch {
	case n == 0:
		return ""
	case unknown == n:
		return fmt.Sprintf("unknown: %s, none of which was timed before", count(n, "start"))
	case unknown > 0:
		return fmt.Sprintf("more than %s: %s, %d of which were not timed before", roundTime(took), count(n, "start"), unknown)
	}
	return fmt.Sprintf("about %s of that: %s, as long as the last one each", roundTime(took), count(n, "start"))
}

// slowest is how long the cases take whose thresholds bound the duration of a
// request, if every request is as slow as they allow; ok is false when there
// is none.
func slowest(p *plan.Plan) (sum time.Duration, ok bool) {
	for _, c := range exec.Cases(p) {
		took, bounded := longestLoad(c)
		if bounded {
			sum, ok = sum+took, true
		}
	}
	return sum, ok
}

// slowestRequest is the longest duration of a request that the thresholds at a
// level allow: by e2e, or by TTFT and speed together.
func slowestRequest(w *plan.Workload, level string) (d time.Duration, ok bool) {
	limits := map[string]float64{}
	for _, sla := range w.SLAs {
		if !slices.Contains(sla.At, level) {
			continue
		}
		for _, t := range sla.Thresholds {
			if _, have := limits[t.Metric.Name]; !have && t.Limit > 0 {
				limits[t.Metric.Name] = t.Limit
			}
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

// roundTime keeps what an estimate is good for: two or three digits.
func roundTime(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return plan.PlainDuration(d.Round(100 * time.Millisecond))
	case d < 10*time.Minute:
		return plan.PlainDuration(d.Round(time.Second))
	}
	return plan.PlainDuration(d.Round(time.Minute))
}

// longestLoad is how long a case is loaded at most; ok is false where nothing says.
func longestLoad(c exec.Case) (d time.Duration, ok bool) {
	if c.Level.Duration > 0 {
		return c.Level.Duration, true
	}
	request, ok := slowestRequest(c.Workload, c.Level.Name)
	waves := c.Level.Rounds
	switch c.Load.Kind {
	case metric.ClosedLoop:
		waves = (c.Level.Requests + c.Level.N - 1) / c.Level.N
	case metric.OpenLoop:
		return c.Level.Lasts() + request, true
	}
	return time.Duration(waves) * (request + c.Load.Pause), ok
}
