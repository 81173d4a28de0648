package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tokgate/tokgate/assert"
	judged "github.com/tokgate/tokgate/assert/nights"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/suggest"
	"github.com/tokgate/tokgate/record/history"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/nights"
)

func (a *app) historyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Keep the results of every night, and report what changed",
		Long: `Keeps the figures of every night in a folder of JSON lines that you can commit, and
compares the last night with those before it: a prediction interval for each
workload and metric, the noise from night to night, and the night on which a series
changed, with what changed on the server. A change for the worse stays red until a
pin accepts it, or the series returns.

A plan with a history block does this at the end of every run. The first ten nights
are only recorded; later ones are judged. They are compared with the first nights
until a pin accepts a change.`,
		Example: `  tokgate history add perf/history results/control   # after a run
  tokgate history show perf/history
  tokgate history check perf/history --junit history.xml
  tokgate history pin perf/history 20261120T030000Z-3f9c12 --why "vLLM 0.20 accepted"
  tokgate history replay latencies.csv               # what would it have said of your past?
  tokgate history export perf/history --format csv
  tokgate history demo                               # on 120 made-up nights`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return a.unknownCommand(cmd, args[0])
			}
			return usageError("add, show, check, pin, void, import, replay, export or demo", "history needs a subcommand")
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(a.historyAdd(), a.historyShow(), a.historyCheck(), a.historyPin(), a.historyVoid(),
		a.historyImport(), a.historyReplay(), a.historyExport(), a.historyDemo())
	return cmd
}

func needArgs(n int, example string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		return takes(n, n, example, fmt.Sprintf("it takes %s, not %d", verdict.Count(n, "arguments"), len(args)))(nil, args)
	}
}

// takes refuses another number of arguments than from least to most, in the given words.
func takes(least, most int, example, words string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if n := len(args); n < least || n > most {
			return usageError("for example: "+example, "%s", words)
		}
		return nil
	}
}

func (a *app) historyAdd() *cobra.Command {
	return &cobra.Command{
		Use:   "add HISTORY RESULTS",
		Short: "Add a recorded run to a history",
		Long: `Adds the figures of a results folder to a history, and creates the history if
needed. A run that is already in it is left as it is.`,
		Args:              needArgs(2, "tokgate history add perf/history results/control"),
		ValidArgsFunction: completeFolders,
		RunE: func(_ *cobra.Command, args []string) error {
			doc, _, err := a.readDocument(args[1], false)
			if err != nil {
				return err
			}
			return a.addNight(args[0], doc, nil)
		},
	}
}

func (a *app) addNight(dir string, doc *report.Document, accepts []metric.Accept) error {
	night := doc.Night()
	night.Accepts = accepts
	night.Job = ciJob(a.getenv)
	switch {
	case doc.Run.Stopped != "":
		return measureError(fmt.Errorf("run %s is not added to the history, because it did not end (%s)", doc.Run.ID, doc.Run.Stopped))
	case doc.Partial:
		return measureError(fmt.Errorf("run %s is not added to the history, because it left cases out", doc.Run.ID), "run it without --only")
	case len(night.Figures) == 0:
		return measureError(fmt.Errorf("run %s is not added to the history, because it measured nothing", doc.Run.ID))
	}
	if night.Started.IsZero() {
		night.Started = time.Now().UTC() // a simulated run has no date, so use the present time
	}
	// Ignore an error here, because history.Add reports unreadable lines too.
	if h, _, err := history.Read(dir); err == nil {
		for _, n := range h.Nights {
			if n.Simulated != night.Simulated {
				kept := "not simulated"
				if n.Simulated {
					kept = "simulated"
				}
				return measureError(fmt.Errorf("run %s is not added: the nights of %s were %s", doc.Run.ID, dir, kept), "keep two histories: one of simulations, one of measurements")
			}
		}
	}
	added, repaired, err := history.Add(dir, night)
	if err != nil {
		return measureError(err)
	}
	if repaired != "" {
		fmt.Fprintf(a.Err, "tokgate: %s\n", repaired)
	}
	if !added {
		fmt.Fprintf(a.Err, "tokgate: run %s is already in %s\n", doc.Run.ID, dir)
		return nil
	}
	fmt.Fprintf(a.Err, "tokgate: run %s added to %s\n", doc.Run.ID, dir)
	if doc.Run.SaltedLengths {
		fmt.Fprintln(a.Err, "tokgate: its answers' lengths were drawn anew, so part of a change may come from them; the runs of a plan with a history block ask for the same lengths every night")
	}
	return nil
}

// nightOutputs are the names of the files to which the result of a history is written. A file with
// an empty name is not written.
type nightOutputs struct {
	junit, markdown, html, badge string
}

func (o nightOutputs) write(n judged.Result, opts nights.Options) error {
	for _, r := range []struct {
		path   string
		render func(io.Writer) error
	}{
		{o.junit, func(w io.Writer) error {
			// JUnit has a test case for each failed series (a metric over the nights). If none
			// failed but the exit code is not 0, the exit code gets a test case.
			exit := assert.Verdicts{Outcome: n.Outcome}.ExitCode(false)
			return report.JUnit(w, nights.Document(n, report.Document{Plan: report.Plan{Path: opts.Folder},
				Run: &metric.Run{Started: n.Started}, ExitCode: exit}))
		}},
		{o.markdown, func(w io.Writer) error { return nights.Markdown(w, n, opts) }},
		{o.html, func(w io.Writer) error { return nights.HTML(w, n, opts) }},
		{o.badge, func(w io.Writer) error { return json.NewEncoder(w).Encode(nights.Badge(n)) }},
	} {
		if r.path == "" {
			continue
		}
		if err := writeReport(r.path, r.render); err != nil {
			return measureError(err)
		}
	}
	return nil
}

func (a *app) historyShow() *cobra.Command {
	cmd, judge := a.historyJudge("show", "Show a history; the exit code does not judge it", `Shows for every series the last night, what was expected, the noise from night to
night, the nights before and where it changed. Exit code 0; 4: the history cannot be
read or a report cannot be written.`)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		_, _, err := judge(args[0], 0)
		return err
	}
	return cmd
}

func (a *app) historyCheck() *cobra.Command {
	cmd, judge := a.historyJudge("check", "Judge the last night of a history", `Judges the last night of a history. A figure that is worse than the nights before
it predict fails. A missing figure is an error, and so is a last night that is older
than --max-age.

Exit codes: 0 as expected, better, or only recorded · 1 worse · 4 something was
not measured or too long ago, or the history cannot be read.`)
	var maxAge time.Duration
	cmd.Flags().DurationVar(&maxAge, "max-age", 72*time.Hour, "largest age of the last night, a `duration` such as 72h; 0: any age")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if maxAge < 0 {
			return usageError("72h is three days, 0 any time", "--max-age %v is negative", maxAge)
		}
		n, opts, err := judge(args[0], maxAge)
		if err != nil {
			return err
		}
		a.trended(n, opts, nil)
		return exitWith(assert.Verdicts{Outcome: n.Outcome}.ExitCode(false))
	}
	return cmd
}

func (a *app) historyJudge(name, short, long string) (*cobra.Command, func(dir string,
	maxAge time.Duration) (judged.Result, nights.Options, error)) {
	var out nightOutputs
	var ignore float64
	var wait bool
	cmd := &cobra.Command{
		Use: name + " HISTORY", Short: short, Long: long,
		Args:              needArgs(1, "tokgate history "+name+" perf/history"),
		ValidArgsFunction: completeFolders,
	}
	if name == "check" {
		cmd.Annotations = gate
	}
	f := cmd.Flags()
	f.Float64Var(&ignore, "ignore", plan.HistoryIgnore, "do not report a smaller change; a `share`: 0.01 is one percent")
	f.BoolVar(&wait, "wait", false, "a better level becomes the reference only by a pin, not after ten nights")
	f.StringVar(&out.junit, "junit", "", "write the JUnit XML to this `file`")
	f.StringVar(&out.markdown, "markdown", "", "write the Markdown report to this `file`")
	f.StringVar(&out.html, "html", "", "write a page with every series to this `file`")
	f.StringVar(&out.badge, "badge", "", "write a badge for shields.io, as JSON, to this `file`")
	return cmd, func(dir string, maxAge time.Duration) (judged.Result, nights.Options, error) {
		if err := shareOf("--ignore", ignore); err != nil {
			return judged.Result{}, nights.Options{}, err
		}
		return a.showNights(dir, judged.Options{Ignore: ignore, Wait: wait, MaxAge: maxAge}, "", out)
	}
}

func shareOf(flag string, v float64) error {
	if v < 0 || v >= 1 {
		return usageError("0.01 is one percent", "%s %v is not a share from 0 to 1", flag, v)
	}
	return nil
}

// showNights reads and judges a history, prints the result and writes it to files. path is the plan
// of the nights; "" if not known.
func (a *app) showNights(dir string, judge judged.Options, path string, out nightOutputs) (judged.Result, nights.Options, error) {
	h, problems, err := history.Read(dir)
	if err != nil {
		return judged.Result{}, nights.Options{}, measureError(err, "`tokgate history add` makes a history of a run's results")
	}
	judge.Now = time.Now()
	if judge.Run == "" {
		judge.Unread = len(problems)
	}
	n := judged.Judge(h, judge)
	opts := nights.Options{Folder: dir, Problems: problems, Plan: path}
	t := a.terminal(a.Out)
	opts.Width, opts.Color = t.width, t.color
	if err := a.actions.foreign(a.Out, func() error { return nights.Terminal(a.Out, n, opts) }); err != nil {
		return n, opts, measureError(err)
	}
	return n, opts, out.write(n, opts)
}

func (a *app) trended(n judged.Result, opts nights.Options, h *plan.History) {
	doc := nights.Document(n, report.Document{ExitCode: assert.Verdicts{Outcome: n.Outcome}.ExitCode(false)})
	if h != nil {
		doc.Plan.Path = h.Range.Filename
		if h.Severity == plan.SeverityWarn {
			doc.ExitCode = verdict.ExitPass
		}
		for i := range doc.Verdicts {
			v := &doc.Verdicts[i]
			v.File, v.Line, v.Severity = h.Range.Filename, h.Range.Start.Line, verdict.Severity(h.Severity)
		}
	}
	a.actions.trended(doc, func(w io.Writer) error { return nights.Markdown(w, n, opts) })
}

func (a *app) historyPin() *cobra.Command {
	return a.historyMark("pin", "Accept a change: compare later nights with this run and those after it",
		`Accepts what changed before a run: every series begins anew with that run, and later
nights are compared with it and those after it. The reason is kept in the history.
Without a pin a change for the worse stays red.`,
		"vLLM 0.20 accepted", "a pin needs a reason", "pinned run %s: %s", history.AddPin)
}

func runHint(dir, run string) string {
	if h, _, err := history.Read(dir); err == nil {
		var runs []string
		for _, n := range h.Nights {
			runs = append(runs, n.Run)
		}
		if near := suggest.Nearest(run, runs); near != "" {
			return fmt.Sprintf("did you mean %s?", near)
		}
	}
	return "`tokgate history show` names the last run; the files of the history list every run"
}

// Files that a run adds to its results folder if the plan has a history block.
const (
	historyJUnit    = "history.junit.xml"
	historyMarkdown = "history.md"
	historyPage     = "history.html"
	historyBadge    = "badge.json"
)

// nightly adds a run to the history of its plan and judges the history. It returns the exit code.
// Simulated, partial and stopped runs do not count: nightly prints the reason and returns 0.
func (a *app) nightly(p *plan.Plan, doc *report.Document, dir string) (int, error) {
	h := p.History
	fmt.Fprintln(a.Out)
	if doc.Run.Simulated || doc.Partial || doc.Run.Stopped != "" {
		fmt.Fprintf(a.Out, "history  not added to %s: the run was %s\n", h.Folder, notCounted(doc))
		return verdict.ExitPass, nil
	}
	if err := a.addNight(h.Folder, doc, p.AcceptedNights()); err != nil {
		return verdict.ExitError, err
	}
	var out nightOutputs
	if dir != "" {
		out = nightOutputs{junit: filepath.Join(dir, historyJUnit), markdown: filepath.Join(dir, historyMarkdown),
			html: filepath.Join(dir, historyPage), badge: filepath.Join(dir, historyBadge)}
	}
	rule := judged.Options{Ignore: h.Ignore, Wait: h.Improvement == plan.ImprovementWait, Run: doc.Run.ID}
	n, opts, err := a.showNights(h.Folder, rule, doc.Plan.Path, out)
	if err != nil {
		return verdict.ExitError, err
	}
	a.trended(n, opts, h)
	if h.Severity == plan.SeverityWarn && n.Outcome == verdict.Fail {
		return verdict.ExitPass, nil
	}
	return assert.Verdicts{Outcome: n.Outcome}.ExitCode(false), nil
}

// rambled returns the shares of empty or repeating answers in the last green night before the run, if
// the plan has a history. An unreadable history gives none: the run then passes by itself or not at
// all.
func rambled(p *plan.Plan, run *metric.Run) []metric.Figure {
	if p.History == nil {
		return nil
	}
	h, _, err := history.Read(p.History.Folder)
	if err != nil {
		return nil
	}
	for _, n := range slices.Backward(h.Nights) {
		if n.Rambling != nil && n.Run != run.ID && n.Started.Before(run.Started) {
			return n.Rambling
		}
	}
	return nil
}

func notCounted(doc *report.Document) string {
	switch {
	case doc.Run.Simulated:
		return "simulated"
	case doc.Partial:
		return "partial"
	}
	return "stopped"
}
