package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/server"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/sim"
	"github.com/tokgate/tokgate/strength"
)

func (a *app) strengthCommand() *cobra.Command {
	var in inputs
	var runs int
	var unprotected bool
	cmd := &cobra.Command{
		Use:   "strength PLAN [RESULTS]",
		Short: "Plant regressions and count which ones a gate notices",
		Long: `Plants one regression at a time in the server that a plan gates, and counts how
often the gate then fails. The plan runs in virtual time on the profile of its
simulator block, so no server is needed. With a results folder, it stretches the
times of the recorded run instead, and judges it again. This is approximate, and
works for closed loops only. Without --base, base.server.NAME is the plan's own
server.

Exit code 0; 2: the gate notices a regression of its must_detect in fewer than 95
of 100 runs.`,
		Example: `  tokgate strength plans/demo.hcl
  tokgate strength plans/demo.hcl --runs 100
  tokgate strength chat.hcl results/chat`,
		Args:              takes(1, 2, "tokgate strength plans/demo.hcl", "strength takes a plan, and the results folder of a run of it"),
		ValidArgsFunction: completePlans,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.strength(cmd.Context(), args, in, runs, unprotected)
		},
	}
	in.flags(cmd.Flags())
	cmd.Flags().IntVar(&runs, "runs", 20, "`runs` of the plan for each regression")
	cmd.Flags().BoolVar(&unprotected, "unprotected", false, "also stretch a recording of an older version, which has no checksums")
	return cmd
}

// strength plants regressions in the simulated servers of the plan args[0]. If args[1] is given, it
// plants them in the recorded run in that folder instead. It prints which of them the gate notices.
func (a *app) strength(ctx context.Context, args []string, in inputs, runs int, unprotected bool) error {
	if runs < 1 {
		return usageError("", "--runs must be at least 1: %d", runs)
	}
	in.self = true
	plans, err := a.loadAll(args[:1], in, false)
	if err != nil {
		return err
	}
	p := plans[0]
	stored, err := baselines(p)
	if err != nil {
		return err
	}
	list, try := strength.All(), simulated(ctx, p, stored)
	if len(args) == 2 {
		run, err := a.readRun(args[1])
		if err != nil {
			return err
		}
		if err := a.needProtected(run, args[1], unprotected); err != nil {
			return err
		}
		if why := strength.Unstretchable(run); why != "" {
			return usageError("leave the folder out to simulate the plan", "%s: %s", args[1], why)
		}
		list, try = strength.Stretchable(), stretched(p, run, assert.Options{Baselines: stored})
	} else if err := a.needSimulators(plans); err != nil {
		return err
	}
	for _, r := range strength.Demanded(p) {
		if !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	result, err := strength.Measure(list, runs, try)
	if err != nil {
		return measureError(err)
	}
	result.Recorded = len(args) == 2
	a.showStrength(result)
	return a.needNoticed(p, result)
}

func (a *app) showStrength(r *strength.Result) {
	width := a.terminal(a.Out).width
	para(a.Out, width, "", r.Headline())
	fmt.Fprintln(a.Out)
	table{rows: append([][]string{{"Planted", "The gate fails", ""}}, r.Rows()...)}.write(a.Out, width)
	fmt.Fprintln(a.Out)
	para(a.Out, width, "", "By "+r.Basis()+".")
}

func (a *app) needNoticed(p *plan.Plan, r *strength.Result) error {
	var diags hcl.Diagnostics
	for _, f := range r.Unnoticed(strength.Demanded(p)) {
		rng := p.Gate.MustDetect[0].Range
		diags = append(diags, &hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Gate too weak",
			Detail:  fmt.Sprintf("The gate must notice %s, but it fails in only %d of %d simulated runs. Tighten a threshold on a metric that this regression changes, or give the level more requests. `tokgate strength` shows what the gate notices.", f.Regression, f.Failed, f.Runs()),
			Subject: &rng,
		})
	}
	if len(diags) == 0 {
		return nil
	}
	if err := a.showDiagnostics(p, diags); err != nil {
		return err
	}
	return usageError("", "%s: the gate misses a regression of must_detect, so nothing was started", p.Path)
}

// demandedRuns is the number of simulated runs for each regression that a plan must notice. The
// gate may miss it in at most one of them.
const demandedRuns = 20

func (a *app) needDemanded(ctx context.Context, plans []*plan.Plan) error {
	for _, p := range plans {
		demanded := strength.Demanded(p)
		if len(demanded) == 0 {
			continue
		}
		if err := a.needSimulators([]*plan.Plan{p}); err != nil {
			return err
		}
		stored, err := baselines(p)
		if err != nil {
			return err
		}
		r, err := strength.Measure(demanded, demandedRuns, simulated(ctx, p, stored))
		if err != nil {
			return measureError(err)
		}
		if err := a.needNoticed(p, r); err != nil {
			return err
		}
	}
	return nil
}

// simulated returns a function that plants a regression in the plan's simulators. The function then
// runs the gate in virtual time.
func simulated(ctx context.Context, p *plan.Plan, stored map[string]*metric.Run) strength.Try {
	return func(r *strength.Regression, seed int) (verdict.Outcome, bool, error) {
		change := func(s *plan.Server, profile *sim.Profile) bool {
			return r != nil && strength.Changes(p, s.Address()) && r.Plant(p, profile)
		}
		planted := r == nil
		for _, s := range p.Servers {
			profile, err := sim.LoadProfile(s.Simulator.Profile, filepath.Dir(p.Path))
			if err != nil {
				return verdict.Error, false, err
			}
			planted = change(s, profile) || planted
		}
		if !planted {
			return verdict.Skipped, false, nil
		}
		judged, err := simulateChanged(ctx, p, stored, seed, func(s *plan.Server, profile *sim.Profile) { change(s, profile) })
		return judged.Outcome, true, err
	}
}

func asksServers(p *plan.Plan) bool {
	said := func(m metric.Def) bool { return m.Source != metric.Client }
	return len(p.Asserts) > 0 || slices.ContainsFunc(p.Servers,
		func(s *plan.Server) bool { return s.Telemetry.Require != (plan.Require{}) }) ||
		slices.ContainsFunc(p.Workloads, func(w *plan.Workload) bool {
			return slices.ContainsFunc(w.SLAs, func(s *plan.SLA) bool {
				return slices.ContainsFunc(s.Thresholds, func(t *plan.Threshold) bool { return said(t.Metric) })
			})
		}) || slices.ContainsFunc(p.Compares, func(c *plan.Compare) bool {
		return slices.ContainsFunc(c.Claims, func(x *plan.Claim) bool {
			return slices.ContainsFunc(x.Changes, func(x *plan.ChangeBound) bool { return said(x.Metric) })
		})
	})
}

func simulateChanged(ctx context.Context, p *plan.Plan, stored map[string]*metric.Run, seed int,
	change func(*plan.Server, *sim.Profile)) (assert.Verdicts, error) {
	run, err := simulatedRun(ctx, p, seed, change)
	if err != nil {
		return assert.Verdicts{}, err
	}
	return assert.Judge(p, run, assert.Options{Baselines: stored}), nil
}

func simulatedRun(ctx context.Context, p *plan.Plan, seed int, change func(*plan.Server, *sim.Profile)) (*metric.Run, error) {
	c := clock.NewVirtual()
	launcher := &server.Virtual{Clock: c, Dir: filepath.Dir(p.Path), Salt: uint64(seed), Change: change}
	if !asksServers(p) {
		launcher.Seldom = time.Minute
	}
	return exec.Run(ctx, exec.Config{
		Plan: p, Clock: c, Launch: launcher.Launch, Observer: observers(),
		Judge: looks(p), JudgeComparison: comparisonLooks(p),
		Run: metric.Run{ID: simulatedID(p, uint64(seed)), Tool: buildInfo().Version, Plan: p.Path, PlanHash: p.Hash,
			Salt: uint64(seed), Simulated: true},
	})
}

func stretched(p *plan.Plan, run *metric.Run, opts assert.Options) strength.Try {
	recording := strength.Record(p, run)
	return func(r *strength.Regression, seed int) (verdict.Outcome, bool, error) {
		longer, planted := recording.Stretch(r, seed)
		if !planted {
			return verdict.Skipped, false, nil
		}
		return assert.Judge(p, longer, opts).Outcome, true, nil
	}
}

// mostTold is the largest number of requests of a run whose report shows planted regressions.
// tokgate judges the run again for each regression, which takes too long for larger runs.
const mostTold = 10_000

// requests counts the requests of a run. It stops counting once there are more than mostTold.
func requests(run *metric.Run) (n int) {
	for _, l := range run.Levels {
		for _, r := range l.Rounds {
			if n += max(r.Due, len(r.Samples)); n > mostTold {
				return n
			}
		}
	}
	return n
}

// For this it changes copies of the run's recording, as if the server were worse, and judges them.
// It returns nil if the plan requires nothing, or if the run is not complete.
func findStrength(p *plan.Plan, run *metric.Run, judged assert.Verdicts, opts assert.Options) *report.Strength {
	why := strength.Unstretchable(run)
	switch {
	case p.Gate.MeasureOnly || judged.Partial || run.Stopped != "":
		return nil
	case judged.Outcome != verdict.Pass:
		return &report.Strength{Says: "The unchanged server does not pass, so no regression was planted.", Planted: []report.Planted{}}
	case why == "" && requests(run) > mostTold:
		why = "the run is long"
	}
	if why != "" {
		return &report.Strength{Says: "No regression was planted: " + why + ". `tokgate strength` shows what the gate notices.", Planted: []report.Planted{}}
	}
	result, err := strength.Measure(strength.Told(), 1, stretched(p, run, opts))
	if err != nil {
		return nil // cannot happen: the function stretched returns no error
	}
	result.Recorded = true
	out := &report.Strength{Says: result.Headline(), Basis: result.Basis(), Planted: []report.Planted{}}
	for _, f := range result.Findings {
		if !f.Absent {
			out.Planted = append(out.Planted, report.Planted{Regression: f.String(), Passed: f.Passed,
				Undecided: f.Undecided, Failed: f.Failed})
		}
	}
	return out
}
