package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/server"
	"github.com/tokgate/tokgate/exec/server/lease"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
	"github.com/tokgate/tokgate/plan/suggest"
	"github.com/tokgate/tokgate/record"
	"github.com/tokgate/tokgate/report/formats"
	"github.com/tokgate/tokgate/report/progress"
)

type runOptions struct {
	in        inputs
	out       outputs
	only      []string
	endpoints []string
	budget    time.Duration
	reap      bool
	quiet     bool
	recursive bool
	simulate  bool
	crashed   string // start time of the run that crashed, RFC 3339; "" if none crashed
	salt      uint64
	transport string
	workers   workerOptions
	goOn      string      // folder of the run whose comparison goes on; "" if the run begins anew
	before    *metric.Run // that run
}

func (a *app) runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run FILE|FOLDER...",
		Short: "Run plans: start the servers, send the load, judge, report",
		Long: `Runs plans one after another. For each it starts the servers that the plan
declares (or finds the ones that run), sends every workload at every level,
judges what came back, and writes samples.jsonl, results.json, junit.xml,
report.html and report.md to a folder. Samples are on disk as soon as they complete.

The first interrupt (Ctrl-C, SIGTERM, or a closed terminal) lets the requests in
flight end and reports what was measured; the second stops at once. Servers are
ended in either case. After SIGTERM, a closed terminal, or any interrupt when CI is
set, requests get 3 s to end and a server 2 s more.

A run first removes servers that a killed run left behind, and names them. A
container whose run may still be alive is not removed and can stop the new run;
--reap removes it too.

With --simulate the built-in server replaces every server, as its simulator block
describes, and time is virtual: an hour of load takes seconds. No server, GPU or
secret is needed, and every report says that it was a simulation.

Exit codes: 0 passed · 1 a requirement failed · 2 the plan is wrong, nothing was
started · 3 inconclusive · 4 could not be measured · 130 interrupted.`,
		Example: `  tokgate run plans/demo.hcl
  tokgate run chat.hcl --var image=vllm/vllm-openai:v0.19.1 --out results/pr-17
  tokgate run chat.hcl --endpoint vllm=http://127.0.0.1:8000   # a server that runs already
  tokgate run chat.hcl --only general_chatbot/30               # one case: the verdict is labelled partial
  tokgate run chat.hcl --simulate                              # in seconds, on the profiles that its simulators name
  tokgate run plans/ --out results                             # every plan of a folder`,
		Args:              needPlans,
		ValidArgsFunction: completePlans,
		Annotations:       gate,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), args, o) },
	}
	f := cmd.Flags()
	o.in.flags(f)
	o.in.policyFlag(f)
	f.StringVarP(&o.out.dir, "out", "o", "", "`folder` for the reports (default: results/NAME, for a simulated run results/NAME-simulated)")
	o.out.flags(cmd)
	f.StringArrayVar(&o.only, "only", nil, "run only these cases: `[server/]workload[/level]`; may be repeated")
	f.StringArrayVar(&o.endpoints, "endpoint", nil, "use the server at a URL instead of starting it: `name=url`; may be repeated")
	f.DurationVar(&o.budget, "budget", 0, "time limit of each plan, instead of the plan's own budget; with --simulate virtual time")
	f.BoolVar(&o.simulate, "simulate", false, "run the built-in server in virtual time instead of the plans' servers")
	f.Uint64Var(&o.salt, "salt", 0, "with --simulate: another run of the plan, with other noise, faults, arrivals, prompts and natural answers")
	f.StringVar(&o.goOn, "continue", "", "go on with the undecided comparison of the run in this `folder`, within 24 hours")
	f.StringVar(&o.transport, "transport", ownTransport, "what reads the streams: own, or net/http if the own one makes trouble")
	f.BoolVar(&o.reap, "reap", false, "also remove containers whose run may still be alive")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print no progress")
	f.BoolVarP(&o.recursive, "recursive", "r", false, "search subfolders for plans too")
	o.workers.flags(f)
	f.StringVar(&o.crashed, "crashed", "", "report of the run that began at this `time` and crashed")
	_ = f.MarkHidden("crashed") // hiding and registering fail only for flags that do not exist
	_ = cmd.RegisterFlagCompletionFunc("only", a.fromPlans(&o.in, caseNames))
	_ = cmd.RegisterFlagCompletionFunc("transport", cobra.FixedCompletions(transports, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("endpoint", a.fromPlans(&o.in, endpointNames))
	return cmd
}

func (o runOptions) check() error {
	if o.simulate && len(o.endpoints) > 0 {
		return usageError("leave one of them out", "--endpoint and --simulate exclude each other")
	}
	if o.goOn != "" && len(o.only) > 0 {
		return usageError("leave one of them out", "--continue and --only exclude each other")
	}
	if o.salt != 0 && !o.simulate {
		return usageError("remove it: every real run draws its own prompts", "--salt is for simulated runs only")
	}
	if o.transport != ownTransport && o.transport != standardTransport {
		return usageError("use own or net/http", "unknown --transport %q", o.transport)
	}
	if o.transport != ownTransport && o.simulate {
		return usageError("leave one of them out", "--transport and --simulate exclude each other: virtual time has no connections")
	}
	return nil
}

const (
	ownTransport      = "own"
	standardTransport = "net/http"
)

var transports = []string{ownTransport, standardTransport}

// asked returns the plans that a command line asks for, and their files. There are no plans if it is
// wrong, or if one of them is.
func (a *app) asked(args []string, o *runOptions) ([]*plan.Plan, []string, error) {
	files, err := planFiles(args, o.recursive)
	if err != nil {
		return nil, nil, err
	}
	o.in.undated = o.simulate
	o.workers.quiet, o.workers.standard = o.quiet, o.transport == standardTransport
	if err := cmp.Or(o.check(), o.workers.check(len(files), o.simulate, o.goOn != "")); err != nil {
		return nil, nil, err
	}
	plans, err := a.loadAll(files, o.in, !o.simulate)
	return plans, files, err
}

func (a *app) run(ctx context.Context, args []string, o runOptions) error {
	a.actions.logTo(a.Out)
	plans, files, err := a.asked(args, &o)
	if o.crashed != "" {
		a.endLeftovers(ctx, plans) // also if a plan is gone
	}
	if err != nil {
		return err
	}
	if o.simulate {
		if err := a.needSimulators(plans); err != nil {
			return err
		}
	}
	if o.crashed == "" {
		if err := a.needDemanded(ctx, plans); err != nil {
			return err
		}
	}
	// Report every error of the command line before the first plan starts.
	only, stored, err := prepare(plans, o)
	if err != nil {
		return err
	}
	dirs, err := resultsDirs(o.out.dir, files, o.simulate)
	if err != nil {
		return err
	}
	if o.crashed != "" {
		return a.aftermath(ctx, plans, dirs, stored, o)
	}
	if o.before, err = a.continued(plans, o, stored); err != nil {
		return err
	}
	return a.runPlans(ctx, plans, files, dirs, only, stored, o)
}

func (a *app) runPlans(ctx context.Context, plans []*plan.Plan, files, dirs []string,
	only []func(exec.Case) bool, stored []map[string]*metric.Run, o runOptions) error {
	_, inCI := a.getenv("CI")
	drain, now, release := interrupts(ctx, inCI)
	defer release()
	var codes []int
	for i, p := range plans {
		out := o.out
		out.dir = dirs[i]
		if len(plans) > 1 {
			fmt.Fprintf(a.Out, "== %s\n", files[i])
		}
		code, err := a.runPlan(now, drain, p, out, only[i], stored[i], o)
		if err != nil {
			return err
		}
		codes = append(codes, code)
		if drain.Err() != nil {
			break
		}
	}
	if len(plans) > 1 {
		a.summarize(files, codes)
	}
	return exitWith(worst(completeCodes(codes, len(plans))))
}

// prepare applies the endpoints from the command line to the plans. For each plan it returns a
// filter for its cases, and the stored runs of its controls.
func prepare(plans []*plan.Plan, o runOptions) ([]func(exec.Case) bool, []map[string]*metric.Run, error) {
	if len(plans) > 1 {
		if err := o.out.unshared("plans", func(formats.Format) bool { return true }); err != nil {
			return nil, nil, err
		}
	}
	only := make([]func(exec.Case) bool, len(plans))
	stored := make([]map[string]*metric.Run, len(plans))
	for i, p := range plans {
		err := replaceEndpoints(p, o.endpoints)
		if err != nil {
			return nil, nil, err
		}
		if err := o.workers.checkServers(p); err != nil && !o.simulate {
			return nil, nil, err
		}
		if only[i], err = caseFilter(p, o.only); err != nil {
			return nil, nil, err
		}
		if stored[i], err = baselines(p); err != nil {
			return nil, nil, err
		}
		if limit, known := server.OpenFiles(); known && !o.simulate {
			if err := checkOpenFiles(p, limit); err != nil {
				return nil, nil, err
			}
		}
	}
	return only, stored, nil
}

func (a *app) runPlan(now, drain context.Context, p *plan.Plan, out outputs, only func(exec.Case) bool,
	stored map[string]*metric.Run, o runOptions) (code int, err error) {
	limits, last := lastLimits(out.dir), readLastRun(p.Path) // before this run replaces the last results
	if !o.simulate {
		heed(p, out.dir) // before its results are replaced
	}
	run, wall := a.begins(p, o, out.dir)
	if run.Refused, err = refusals(p, run.Started); err != nil {
		return 0, err
	}
	writer, err := record.Create(out.dir, reportNames()...)
	if err != nil {
		return 0, measureError(err, "choose another folder with --out")
	}
	defer func() {
		// If the recording is incomplete, the run ends with an error, even if its reports exist.
		if e := writer.Close(); err == nil && e != nil {
			code, err = 0, measureError(e)
		}
	}()

	config := exec.Config{
		Plan:            p,
		Drain:           drain,
		Budget:          o.budget,
		Only:            only,
		Judge:           looks(p),
		JudgeComparison: comparisonLooks(p),
		Continue:        o.before,
		Run:             run,
	}
	shown := progress.Options{Quiet: o.quiet, Now: wall.Now}
	if o.simulate {
		c := clock.NewVirtual()
		if err := pauseOf(now, c, o.before); err != nil {
			return 0, measureError(err)
		}
		config.Clock, config.Launch = c, launchVirtual(c, p, o.salt, o.workers.n)
		shown.Simulated, shown.Forecast = c.Now, (*lastRun)(nil).forecast(p, only, nil)
		defer collectSeldom()()
	} else {
		config.LastLimit = limits
		shown.Forecast = last.forecast(p, only, startTimes(p, last))
		a.launch(&config, wall, now, out.dir, o)
		defer a.sharpen(wall)()
	}
	display, stop := a.progress(shown)
	defer stop()
	config.Observer = observers(recorder(writer, o.before), foretell(display, p).observe)
	release := context.AfterFunc(drain, func() {
		if now.Err() == nil {
			display.Say("stopping: waiting for the requests in flight; interrupt again to stop at once")
		}
	})
	defer release()
	measured, err := a.measure(now, config, o.workers, display.Say)
	stop()
	return a.ended(p, measured, err, out, assert.Options{Partial: only != nil, Baselines: stored})
}

// ended judges a run and returns the exit code. If an error ended the run early, the argument
// stopped is this error. Otherwise the run is added to the plan's history, if the plan has one.
func (a *app) ended(p *plan.Plan, run *metric.Run, stopped error, out outputs, opts assert.Options) (int, error) {
	if stopped != nil {
		// The reports still show the measurements before the error.
		void(run, stopped.Error())
		var hints []string
		if _, _, err := a.conclude(p, run, out, opts); err != nil {
			hints = append(hints, err.Error())
		}
		return 0, measureError(fmt.Errorf("the run was stopped: %w", stopped), hints...)
	}
	doc, code, err := a.conclude(p, run, out, opts)
	if err != nil || p.History == nil {
		return code, err
	}
	nightly, err := a.nightly(p, doc, out.dir)
	if err != nil {
		return code, err
	}
	return a.nightEnded(code, nightly), nil
}

// nightEnded returns the exit code of a run and its history together. If the history makes it another
// than the report of the run says, it prints it as the last line.
func (a *app) nightEnded(run, history int) int {
	code := worst([]int{run, history})
	if code != run {
		fmt.Fprintf(a.Out, "exit %d, because of the history; the run alone: exit %d\n", code, run)
	}
	return code
}

func (a *app) launch(config *exec.Config, wall *clock.Real, now context.Context, dir string, o runOptions) {
	shared := &clock.Shared{Clock: wall} // servers that start at the same time use the same clock
	launcher := server.New(server.Options{
		Clock: shared, Origin: wall.Origin(), LogDir: dir, Dir: filepath.Dir(config.Plan.Path), Redact: config.Plan.Secrets,
		State: lease.Dir(a.getenv), Reap: o.reap, Standard: o.transport == standardTransport, Grace: grace(now), Network: a.network,
		Workers: o.workers.n > 0, Stacks: stacks(config.Plan), Life: config.Budget,
		Holder: lease.Holder{Run: config.Run.ID, Plan: config.Plan.Path, PID: a.pid(),
			Started: config.Run.Started.UTC().Format(time.RFC3339)},
	})
	config.Teardown = server.Teardown(config.Plan.Servers)
	config.Clock, config.Launch, config.Meter = shared, launcher.Launch, a.meter
	if a.meter != nil {
		config.Calibrate = launcher.Calibrate
	}
}

// If some plans were not run, it adds the exit code of an interrupt, so that the run is not a
// success.
func completeCodes(codes []int, plans int) []int {
	if len(codes) < plans {
		codes = append(codes, verdict.ExitInterrupted)
	}
	return codes
}

func (a *app) summarize(files []string, codes []int) {
	fmt.Fprintf(a.Out, "\n== %s\n", verdict.Count(len(files), "plans"))
	for i, path := range files {
		said := "not run"
		if i < len(codes) {
			said = fmt.Sprintf("exit %d", codes[i])
		}
		fmt.Fprintf(a.Out, "%-8s %s\n", said, path)
	}
	fmt.Fprintf(a.Out, "exit %d\n", worst(completeCodes(codes, len(files))))
}

// resultsDirs returns a results folder for each plan. Two plans with the same folder are an error.
func resultsDirs(out string, files []string, simulated bool) ([]string, error) {
	dirs := make([]string, len(files))
	taken := map[string]string{}
	for i, path := range files {
		dirs[i] = resultsDir(out, path, len(files) > 1, simulated)
		if other, ok := taken[dirs[i]]; ok {
			return nil, usageError("run them one by one, each with its --out", "%q and %q would both leave their results in %s", other, path, dirs[i])
		}
		taken[dirs[i]] = path
	}
	return dirs, nil
}

// Each element of endpoints has the form name=url.
func replaceEndpoints(p *plan.Plan, endpoints []string) error {
	var names []string
	for _, s := range p.Servers {
		names = append(names, s.Address())
	}
	for _, e := range endpoints {
		name, url, ok := strings.Cut(e, "=")
		if !ok || url == "" {
			return usageError("for example: --endpoint vllm=http://127.0.0.1:8000", "--endpoint %q is not name=url", e)
		}
		if problem := decode.URLProblem(url); problem != "" {
			return usageError("for example: --endpoint vllm=http://127.0.0.1:8000", "--endpoint %s: %s", name, strings.ToLower(problem[:1])+strings.TrimSuffix(problem[1:], "."))
		}
		found := false
		for _, s := range p.Servers {
			if s.Address() != name && s.Name != name {
				continue
			}
			found = true
			endpoint := plan.Endpoint{URL: url, Headers: map[string]string{}}
			if s.Endpoint != nil {
				endpoint = *s.Endpoint
				endpoint.URL, endpoint.More, endpoint.Replicas = url, nil, nil
			}
			s.Endpoint, s.Process, s.Container, s.Pod, s.Stack, s.Simulator = &endpoint, nil, nil, nil, nil, nil
		}
		if !found {
			return unknownName("--endpoint", "server", name, names)
		}
	}
	for _, c := range p.Compares {
		// A server that the plan gives by its address cannot be restarted.
		if c.Candidate.Endpoint != nil || c.Control.Server != nil && c.Control.Server.Endpoint != nil {
			c.Restart, c.SideBySide = plan.RestartNever, false
		}
	}
	return nil
}

// Its forms are workload, workload/level, server/workload and server/workload/level.
func caseFilter(p *plan.Plan, only []string) (func(exec.Case) bool, error) {
	if len(only) == 0 {
		return nil, nil
	}
	selected := map[string]bool{}
	var known []string
	for _, c := range append(exec.Cases(p), exec.Searches(p)...) {
		w, l, s := c.Workload.Address(), c.Level.Name, c.Server.Address()
		known = append(known, w, w+"/"+l, s+"/"+w, s+"/"+w+"/"+l)
	}
	for _, pattern := range only {
		found := false
		for _, k := range known {
			found = found || k == pattern
		}
		if mix := mixOf(p, pattern); !found && mix != nil {
			return nil, usageError("--only "+mix.Address(), "--only: %q is a part of a mix: name the mix, which sends all of its parts", pattern)
		}
		if !found {
			return nil, unknownName("--only", "case", pattern, known)
		}
		selected[pattern] = true
	}
	return func(c exec.Case) bool {
		w, l, s := c.Workload.Address(), c.Level.Name, c.Server.Address()
		return selected[w] || selected[w+"/"+l] || selected[s+"/"+w] || selected[s+"/"+w+"/"+l]
	}, nil
}

func mixOf(p *plan.Plan, pattern string) *plan.Workload {
	for _, w := range p.Workloads {
		if mix := w.Root(); mix != w && strings.Contains("/"+pattern+"/", "/"+w.Address()+"/") {
			return mix
		}
	}
	return nil
}

func unknownName(flag, kind, name string, known []string) error {
	hint := "`tokgate plan` lists them"
	if near := suggest.Nearest(name, known); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return usageError(hint, "%s: the plan has no %s %q", flag, kind, name)
}

// sharpen makes timers precise, so that requests are sent on time. It does nothing for in-memory
// connections: tests use them in virtual time.
func (a *app) sharpen(wall *clock.Real) (stop func()) {
	if a.network.Dial != nil {
		return func() {}
	}
	return wall.Sharpen()
}
