package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/tokgate/tokgate/assert/bisect"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/server"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/record"
	"github.com/tokgate/tokgate/report/bisection"
	"github.com/tokgate/tokgate/report/progress"
)

type bisectOptions struct {
	in              inputs
	out             string
	values          string
	compare         string
	asked, at       string // metric and cell
	claimed, least  string
	legs            int
	simulate, quiet bool
	estimate        bool
	salt            uint64
}

func (a *app) bisectCommand() *cobra.Command {
	var o bisectOptions
	cmd := &cobra.Command{
		Use:   "bisect FILE",
		Short: "Find the value of a variable with which a change came in",
		Long: `Measures one cell of a plan (a workload at a level) with the values of a variable:
images, commits, flags. The first value is known good, and the last known bad.

The ends are measured first, in turns, at most 24 times each. If it is not certain
that the last is worse by more than --least, nothing is bisected. Then each leg is a
fresh server with the value that tells most, and every fourth one of an end, because
a machine drifts. Values whose server does not start are left out. The answer is a
value, a stretch between two values, or that the legs do not tell.

The folder keeps every leg. Start the same command again after it was killed: it
goes on, and measures no leg twice.

Exit codes: 0 found · 1 the last value is not worse by that much · 2 the command line
is wrong · 3 the legs do not tell · 4 could not be measured · 130 interrupted.`,
		Example: `  tokgate bisect upgrade.hcl --var image --values nightlies.txt
  tokgate bisect nightly.hcl --var image --values nightlies.txt --metric 'ttft p95' --at chat/8 --claimed +7%
  tokgate bisect upgrade.hcl --var image --values nightlies.txt --estimate   # what it would cost`,
		Args:              takes(1, 1, "tokgate bisect upgrade.hcl --var image --values nightlies.txt", "bisect takes one plan"),
		ValidArgsFunction: completePlans,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.bisect(cmd.Context(), args[0], o)
		},
	}
	f := cmd.Flags()
	o.in.flags(f)
	f.Lookup("var").Usage = "the variable to bisect, its `name` alone; name=value sets another one"
	f.StringVar(&o.values, "values", "", "`file` with the values, one on each line, the oldest first; # begins a comment")
	f.StringVar(&o.compare, "compare", "", "`name` of the comparison whose candidate, workload and tolerance are meant (default: the plan's only one)")
	f.StringVar(&o.asked, "metric", "", "the `metric` and its statistic, such as 'ttft p95' (default: the first that the comparison tolerates)")
	f.StringVar(&o.at, "at", "", "the cell, `workload/level` (default: the first of the comparison)")
	f.StringVar(&o.claimed, "claimed", "", "the `change` that is claimed, such as +7% (default: what the comparison tolerates)")
	f.StringVar(&o.least, "least", "", "the least `change` for which to bisect, such as +3% (default: half of what is claimed)")
	f.IntVar(&o.legs, "legs", 240, "the most legs")
	f.BoolVar(&o.simulate, "simulate", false, "run the built-in server in virtual time instead of the plan's server")
	f.Uint64Var(&o.salt, "salt", 0, "with --simulate: another bisection, with other noise")
	f.BoolVar(&o.estimate, "estimate", false, "say what it would cost, and start nothing")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print no progress")
	f.StringVarP(&o.out, "out", "o", "", "`folder` for the legs and the report (default: results/NAME-bisect)")
	return cmd
}

func (a *app) bisect(ctx context.Context, path string, o bisectOptions) error {
	q, err := a.question(path, &o)
	if err != nil {
		return err
	}
	a.forecastBisection(q)
	if o.estimate {
		return nil
	}
	dir := o.out
	if dir == "" {
		dir = resultsDir("", path, false, false) + "-bisect"
	}
	j, err := openJournal(dir, &q.Question)
	if err != nil {
		return err
	}
	defer j.close()
	_, inCI := a.getenv("CI")
	drain, now, release := interrupts(ctx, inCI)
	defer release()
	state := q.next(j.legs)
	for state.Outcome == bisect.Open {
		said := q.Name(state.Next)
		fmt.Fprintf(a.Out, "leg %d: %s\n", len(j.legs)+1, said)
		leg, err := a.leg(now, drain, q, state.Next, j, o)
		if err != nil {
			return err
		}
		if drain.Err() != nil {
			fmt.Fprintf(a.Err, "tokgate: interrupted; start the same command again to go on after leg %d\n", len(j.legs))
			return exitWith(verdict.ExitInterrupted)
		}
		if err := j.add(leg); err != nil {
			return err
		}
		if leg.Broken != "" && (state.Next == 0 || state.Next == len(q.Values)-1) {
			return measureError(fmt.Errorf("%s is an end, and its server cannot be measured: %s", said, leg.Broken), "choose another value for this end")
		}
		state = q.next(j.legs)
	}
	r := bisection.Result{Question: q.Question, State: state, Legs: j.legs, Folder: dir}
	if err := bisection.Write(dir, r); err != nil {
		return measureError(err)
	}
	t := a.terminal(a.Out)
	if err := bisection.Terminal(a.Out, r, t.width, t.color); err != nil {
		return measureError(err)
	}
	return exitWith(map[bisect.Outcome]int{bisect.Unchanged: verdict.ExitFail, bisect.Unknown: verdict.ExitInconclusive}[state.Outcome])
}

// question is what a bisection asks, and what its legs are made of.
type question struct {
	bisection.Question
	in      inputs
	path    string
	def     metric.Def
	stat    metric.Stat
	claimed float64 // as a difference of logarithms
	most    int
	plans   map[string]*plan.Plan // by value
	whole   *plan.Plan            // with the last value
}

func (q *question) next(legs []bisection.Leg) bisect.State {
	o := bisect.Options{Values: len(q.Values), Least: math.Log1p(q.Least), Most: q.most, Broken: map[int]bool{}}
	var list []bisect.Leg
	for _, l := range legs {
		if l.Broken != "" {
			o.Broken[l.Value] = true
			continue
		}
		list = append(list, bisect.Leg{Value: l.Value, At: l.At, Figure: q.Worse * math.Log(l.Figure)})
	}
	return bisect.Next(o, list)
}

// leg measures the cell once, with a fresh server of a value. If the server does not start, or the cell
// has no figure, the leg is broken.
func (a *app) leg(now, drain context.Context, q *question, value int, j *journal, o bisectOptions) (bisection.Leg, error) {
	out := bisection.Leg{Value: value}
	p, err := q.legPlan(q.Values[value])
	if err != nil {
		return out, err
	}
	dir := filepath.Join(j.dir, fmt.Sprintf("leg-%03d", len(j.legs)+1))
	wall := clock.NewReal()
	run := a.newRun(p, runOptions{simulate: o.simulate, salt: o.salt + uint64(len(j.legs)) + 1}, time.Now())
	writer, err := record.Create(dir, reportNames()...)
	if err != nil {
		return out, measureError(err)
	}
	config := exec.Config{Plan: p, Drain: drain, Budget: -1, Run: run}
	shown := progress.Options{Quiet: o.quiet, Now: wall.Now}
	if o.simulate {
		c := clock.NewVirtual()
		config.Clock, config.Launch = c, (&server.Virtual{Clock: c, Dir: filepath.Dir(p.Path), Salt: run.Salt}).Launch
		shown.Simulated = c.Now
		config.Run.Salt = q.Salt
		out.At = j.at() + 1
	} else {
		config.Run.Salt = q.Salt // the same prompts for each leg
		a.launch(&config, wall, now, dir, runOptions{transport: ownTransport})
		defer a.sharpen(wall)()
		out.At = time.Since(q.Began).Seconds()
	}
	display, stop := a.progress(shown)
	defer stop()
	config.Observer = observers(writer.Observe, display.Observe)
	measured, err := exec.Run(now, config)
	stop()
	if e := writer.Close(); err == nil {
		err = e
	}
	if err != nil {
		return out, measureError(err)
	}
	fill(&out, measured, q)
	return out, nil
}
