package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/report/progress"
)

// rateWindow is the measuring window of a rate, whose requests decide the rate's thresholds.
type rateWindow struct {
	exec.Case
	lasts time.Duration // longest duration with extensions, or the budget of a search; 0 if unknown
	looks []plan.Look
}

// rateWindows lists the measuring windows of a plan's rates, and of its searches over rates. The
// stages of a load share one window. Cases with several legs are left out, because each leg has a
// window of its own.
func rateWindows(p *plan.Plan) []rateWindow {
	if p.Gate.MeasureOnly {
		return nil
	}
	var out []rateWindow
	for _, c := range append(exec.Cases(p), exec.Searches(p)...) {
		if legs, _ := exec.Legs(p, c); legs > 1 {
			continue
		}
		if c.Load == nil {
			if s := c.Workload.Capacity; s.Over == metric.OpenLoop {
				out = append(out, rateWindow{Case: c, lasts: s.Budget})
			}
			continue
		}
		if c.Load.Kind != metric.OpenLoop || c.Level.Stage != nil {
			continue
		}
		w := rateWindow{Case: c, looks: p.Looks(c.Workload, c.Load, c.Level)}
		last := w.looks[len(w.looks)-1]
		w.lasts = time.Duration(float64(c.Level.Lasts()) * float64(last.Requests) / float64(max(c.Level.Requests, 1)))
		out = append(out, w)
	}
	return out
}

func (w rateWindow) binds(s *plan.SLA) bool {
	if w.Load == nil {
		return s.AtCapacity
	}
	return slices.Contains(s.At, w.Level.Name)
}

type shortWindow struct {
	window    rateWindow
	part      *plan.Workload // the threshold's workload, or part of a mix
	threshold *plan.Threshold
	request   time.Duration // duration of one request
	lifetimes float64       // smallest length of the window, in durations of one request
	source    string        // where request is from
}

func (s shortWindow) takes() time.Duration { return assert.Window(s.lifetimes, s.request.Seconds()) }

// tooShort returns the threshold that needs the longest window, if the window is too short for it,
// or else nil. It skips thresholds that passed in the last run; last is nil if there was none. The
// function request returns how long a request of a workload takes; 0 if unknown.
func (w rateWindow) tooShort(last *lastRun, request func(part *plan.Workload) (took time.Duration, by string)) *shortWindow {
	var worst *shortWindow
	for _, part := range w.Workload.Whole() {
		took, by := request(part)
		if mix, from := request(w.Workload); mix > took { // the parts share the server: the longer time counts
			took, by = mix, from
		}
		for _, sla := range part.SLAs {
			for _, t := range sla.Thresholds {
				s := &shortWindow{w, part, t, took, assert.Lifetimes(t, part, w.looks), by}
				if !w.binds(sla) || w.lasts <= 0 || s.lifetimes*took.Seconds() <= w.lasts.Seconds() || last.passed(s) {
					continue
				}
				if worst == nil || s.takes() > worst.takes() {
					worst = s
				}
			}
		}
	}
	return worst
}

func (s shortWindow) neverPasses() bool {
	return assert.NeverPasses(s.threshold, s.window.lasts, s.request.Seconds())
}

// passes says whether a threshold may pass in too short a window. It returns a heading and a
// sentence.
func (s shortWindow) passes() (heading, sentence string) {
	noun, otherwise := "Percentile", "may pass only by its margin"
	sentence = "If rounds differ, it passes only far from its limit"
	if s.threshold.Stat.IsShare() {
		noun, otherwise, sentence = "Goodput share", "may not pass", "If rounds differ, it does not pass"
	}
	if s.neverPasses() {
		otherwise, sentence = "cannot pass", "It never passes in so short a window"
	}
	return noun + " " + otherwise, sentence
}

func (s shortWindow) name() string { return s.threshold.Metric.Name + " " + s.threshold.Stat.String() }

func (s shortWindow) windowName() string {
	if s.window.Load == nil {
		return "at the capacity"
	}
	return "at " + s.window.Level.Name
}

func (s shortWindow) advice() string {
	long := s.takes()
	if s.window.Load == nil {
		return fmt.Sprintf("Allow a search more than %s for a probe: budget, max_requests", plan.PlainDuration(long))
	}
	if s.window.Level.Speedup > 0 {
		return "Replay a longer stretch of the trace"
	}
	return fmt.Sprintf("Set duration = %q", plan.PlainDuration(long))
}

// movingTogether warns of rates whose window may be too short for a threshold. Such thresholds are
// on percentiles and shares. It gives one warning for each workload. The time of a request comes
// from the last run, or from the plan's thresholds. A threshold that passed in the last run gets no
// warning.
func movingTogether(p *plan.Plan, last *lastRun) hcl.Diagnostics {
	var diags hcl.Diagnostics
	warned := map[*plan.Workload]bool{}
	for _, w := range rateWindows(p) {
		s := w.tooShort(last, func(part *plan.Workload) (time.Duration, string) { return w.expects(part, last) })
		if s == nil || warned[w.Workload] {
			continue
		}
		warned[w.Workload] = true
		summary, then := s.passes()
		diags = append(diags, &hcl.Diagnostic{
			Severity: hcl.DiagWarning, Summary: summary, Subject: s.threshold.Range.Ptr(),
			Detail: fmt.Sprintf("%s of %s %s: requests in flight together are fast or slow together, so it takes a window as long as %.0f of them. %s, so that is %s, and the plan has %s. %s. %s.",
				s.name(), s.part.Address(), s.windowName(), s.lifetimes, s.source,
				plan.PlainDuration(s.takes()), plan.PlainDuration(w.lasts), then, s.advice()),
		})
	}
	return diags
}

// expects returns how long a request is expected to take, and says in words where the time comes
// from. It returns 0 if the time is unknown.
func (w rateWindow) expects(part *plan.Workload, last *lastRun) (took time.Duration, by string) {
	if last != nil {
		if s, ok := last.requests[caseKey(w.Server.Address(), part.Address(), w.Level.Name)]; ok && s > 0 {
			took = time.Duration(s * float64(time.Second))
			return took, fmt.Sprintf("One took %s, by the %s in %s", roundTime(took), last.kind, last.path)
		}
	}
	limits := bounding(part, w.binds)
	if slices.ContainsFunc(limits, func(t *plan.Threshold) bool { return t.Metric.Name == "goodput" }) {
		limits = append(limits, part.Good...)
	}
	if took, ok := slowestRequest(part, limits); ok {
		return took, fmt.Sprintf("One takes up to %s on a server that just meets its limits", roundTime(took))
	}
	return 0, ""
}

func (l *lastRun) passed(s *shortWindow) bool {
	w := s.window
	return l != nil && l.passes[caseKey(w.Server.Address(), s.part.Address(), fmt.Sprintf("sla.%s.%s at %s",
		s.threshold.Metric.Name, s.threshold.Stat, w.Level.Name))]
}

// foretelling is the display of a run that also warns of short windows. It warns as soon as the
// warm-up of a rate has shown how long requests take. A window may then be too short for a
// percentile.
type foretelling struct {
	*progress.Display
	windows []rateWindow

	mu    sync.Mutex
	took  map[[3]string][]float64 // seconds that each warm-up request took, by server, workload and level
	begun map[[3]string]bool      // whether the warm-up is over, by server, workload and level
}

func foretell(d *progress.Display, p *plan.Plan) *foretelling {
	return &foretelling{Display: d, windows: rateWindows(p), took: map[[3]string][]float64{}, begun: map[[3]string]bool{}}
}

// observe shows the event, and warns once a level's first measured request starts.
func (f *foretelling) observe(e metric.Event) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch e := e.(type) {
	case metric.SampleDone:
		s := e.Sample
		if key := [3]string{s.Server, s.Workload, s.Level}; s.Phase == metric.Warmup && s.FromDue && s.Completed() && !f.begun[key] {
			f.took[key] = append(f.took[key], (s.End - s.Scheduled).Seconds())
		}
	case metric.RequestStarted:
		defer f.begins(e.Level, e.Phase)
	}
	return f.Display.Observe(e)
}

func (f *foretelling) begins(of *metric.Level, phase metric.Phase) {
	key := [3]string{of.Server, of.Workload, of.Name}
	if phase != metric.Measured || f.begun[key] {
		return
	}
	f.begun[key] = true
	one := time.Duration(assert.Lifetime(slices.Values(f.took[key])) * float64(time.Second))
	delete(f.took, key)
	i := slices.IndexFunc(f.windows, func(w rateWindow) bool {
		at := w.Level.Name == of.Name || w.Load == nil && of.Probe != nil
		return at && w.Server.Address() == of.Server && w.Workload.Address() == of.Workload
	})
	if i < 0 {
		return
	}
	w := f.windows[i]
	s := w.tooShort(nil, func(*plan.Workload) (time.Duration, string) { return one, "" })
	if s == nil {
		return
	}
	f.windows = slices.Delete(f.windows, i, i+1) // said once
	without := "without a large margin if rounds differ"
	switch {
	case s.neverPasses():
		without = "at all"
	case s.threshold.Stat.IsShare():
		without = "if rounds differ"
	}
	f.Say(fmt.Sprintf("%s %s: a request takes about %s, so %s takes a window of %s to pass %s; the plan has %s",
		s.part.Address(), s.windowName(), roundTime(one), s.name(), plan.PlainDuration(s.takes()), without, plan.PlainDuration(w.lasts)))
}
