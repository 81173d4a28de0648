package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
	"github.com/tokgate/tokgate/plan/starter"
	"github.com/tokgate/tokgate/report/progress"
)

const (
	// measureFor limits how long `init --measure` loads a server.
	measureFor = 2 * time.Minute
	// measureWaves is how many requests each slot sends. To save time, it is half as many for long
	// requests or several use cases.
	measureWaves = 20
	// leastMargin is the smallest margin of a proposed limit, as a share of the measured value. With a
	// tenth, too many gates on an unchanged server are undecided. A server that becomes a quarter
	// slower changes its values by more.
	leastMargin = 0.15
)

func (o initOptions) measurable() error {
	switch w := o.answers; {
	case !o.measure:
	case w.URL == "" && (w.Image != "" || w.Command != ""):
		return usageError("start the server and name it with --url", "--measure needs a running server: --url")
	case len(w.Rates) > 0:
		return usageError("tokgate init --help", "--measure cannot be combined with --rate")
	}
	return nil
}

func (a *app) measured(ctx context.Context, o initOptions) (map[string][]starter.Measured, error) {
	dir, err := os.MkdirTemp("", "tokgate-init-")
	if err != nil {
		return nil, measureError(err)
	}
	defer os.RemoveAll(dir)
	wall, started := clock.NewReal(), time.Now()
	return o.measureEach(func(p *plan.Plan, budget time.Duration) (*metric.Run, error) {
		config := exec.Config{
			Plan: p, Budget: budget,
			Run: metric.Run{
				ID: runID(started), Salt: a.salt(), Started: started, Tool: buildInfo().Version, Plan: p.Path, PlanHash: p.Hash,
			},
		}
		a.launch(&config, wall, ctx, dir, runOptions{})
		display, stop := a.progress(progress.Options{Now: wall.Now, Forecast: (*lastRun)(nil).forecast(p, nil, nil)})
		defer stop()
		config.Observer = display.Observe
		return exec.Run(ctx, config)
	})
}

func (a *app) sayMeasured(w starter.Answers) {
	for _, name := range w.UseCases {
		u, _ := starter.Named(name)
		for _, m := range w.Measured[name] {
			for _, b := range m.Bounds {
				fmt.Fprintf(a.Out, "%s at %d: %s %s, %s\n", name, m.InFlight, b.Metric, b.Text, b.Why)
			}
		}
		for _, n := range w.Unmeasured(u) {
			fmt.Fprintf(a.Out, "%s at %d: there was no time to measure it, so its thresholds are those of the use case\n", name, n)
		}
	}
}

func (o initOptions) measureEach(run func(*plan.Plan, time.Duration) (*metric.Run, error)) (map[string][]starter.Measured, error) {
	out := map[string][]starter.Measured{}
	for _, name := range o.answers.UseCases {
		u, _ := starter.Named(name)
		p, err := o.measuring(u)
		if err != nil {
			return nil, err
		}
		r, err := run(p, measureFor/time.Duration(len(o.answers.UseCases)))
		if err != nil {
			return nil, measureError(err)
		}
		if out[name], err = thresholds(p, r, assert.Judge(p, r, assert.Options{}), u.Requests); err != nil {
			return nil, measureError(fmt.Errorf("%s: %w", name, err), "without --measure the thresholds are those of the use case")
		}
	}
	return out, nil
}

// measuring returns a plan that measures a use case for `init --measure`. It is like the plan that
// init writes later, but has few requests and no requirements.
func (o initOptions) measuring(u starter.UseCase) (*plan.Plan, error) {
	waves := measureWaves
	if u.Output >= 1024 || u.Input >= 16<<10 || len(o.answers.UseCases) > 1 {
		waves /= 2
	}
	var levels []starter.Measured
	for _, n := range u.InFlight {
		levels = append(levels, starter.Measured{InFlight: n, Bounds: []starter.Bound{
			{Metric: "ttft", Text: "mean < 10000s"}, {Metric: "speed", Text: "mean > 0.001 tok/s"},
		}})
	}
	o.answers.UseCases, o.answers.Measured = []string{u.Name}, map[string][]starter.Measured{u.Name: levels}
	text, err := o.plan()
	if err != nil {
		return nil, err
	}
	p, _ := decode.File(decode.Options{Path: o.file, Source: text})
	p.Gate.MeasureOnly = true
	w := p.Workloads[0]
	var loads []*plan.Load
	for _, level := range w.Loads[0].Levels {
		l := *w.Loads[0]
		level.Requests = waves * level.N
		level.Cut()
		if level.N == 1 {
			l.Warmup = 0 // warm-up requests would run beside this level's single requests
		}
		l.Levels = []plan.Level{level}
		loads = append(loads, &l)
	}
	w.Loads = loads
	return p, nil
}

// thresholds returns a threshold for each result of a level. The limit leaves a margin, so that a
// gate with the planned number of requests passes on an unchanged server. The run must have the first
// level, but may lack later levels if time was too short. An invalid measurement is an error.
func thresholds(p *plan.Plan, run *metric.Run, judged assert.Verdicts, planned int) ([]starter.Measured, error) {
	var out []starter.Measured
	for _, l := range run.Levels {
		if whole := wholeRounds(l); whole < metric.LeastRounds && len(out) > 0 {
			break
		}
		m := starter.Measured{InFlight: l.N}
		for _, r := range l.Rounds {
			m.Requests += r.Due
		}
		for i := range judged.List {
			v := &judged.List[i]
			switch {
			case v.Level != l.Name && v.Kind != verdict.KindServer:
			case v.Threshold != nil && v.Value.OK && (v.Threshold.Metric.Name == "ttft" || v.Threshold.Metric.Name == "speed"):
				m.Bounds = append(m.Bounds, spared(v, m.Requests, planned))
			case v.Outcome != verdict.Pass && v.Outcome != verdict.Skipped:
				return nil, fmt.Errorf("at %s: %s", l.Name, v.Message)
			}
		}
		if len(m.Bounds) == 0 {
			return nil, fmt.Errorf("at %s: nothing was measured", l.Name)
		}
		out = append(out, m)
	}
	if len(out) == 0 {
		return nil, errors.New("nothing was measured")
	}
	return out, nil
}

func wholeRounds(l *metric.Level) int {
	n := 0
	for _, r := range l.Rounds {
		if r.Complete {
			n++
		}
	}
	return n
}

// spared returns a threshold on a mean, at a margin from its measured value. The margin is the
// error of the measurement plus twice the error of the gate, and at least leastMargin. measured is
// the number of requests of the measurement, and planned is that of the gate.
func spared(v *verdict.Verdict, measured, planned int) starter.Bound {
	value, half := v.Value.V, 0.0
	for _, end := range []metric.Value{v.Low, v.High} {
		if end.OK {
			half = max(half, math.Abs(end.V-value)/value)
		}
	}
	margin := max(leastMargin, half*(1+2*math.Sqrt(float64(measured)/float64(planned))))
	unit, op, limit := v.Threshold.Metric.Unit, v.Threshold.Op, value*(1+margin)
	if op == ">" {
		limit = value / (1 + margin)
	}
	text := metric.Format(unit, limit)
	if unit == metric.Seconds {
		text = strings.ReplaceAll(text, " ", "")
	}
	return starter.Bound{
		Metric: v.Threshold.Metric.Name, Text: "mean " + op + " " + text,
		Why: fmt.Sprintf("measured %s, %s to spare", metric.Format(unit, value), metric.FormatDigits(metric.Ratio, margin, 2)),
	}
}
