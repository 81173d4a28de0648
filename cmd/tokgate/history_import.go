package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	judged "github.com/tokgate/tokgate/assert/nights"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/record/history"
	"github.com/tokgate/tokgate/report/nights"
)

// foreignFile describes the files that import and replay read.
const foreignFile = `The file is JSON or CSV of ` + "`tokgate history export`" + `, or a CSV of another tool with the
first line date,series,value or date,series,value,commit. Values are above 0, lower
is better unless --better says otherwise, and every series is compared by ratios.`

func (a *app) historyImport() *cobra.Command {
	var better string
	cmd := &cobra.Command{
		Use:   "import HISTORY FILE",
		Short: "Add nights from a file: an export, or a CSV of another tool",
		Long: `Adds nights from a file to a history, and creates the history if needed. Runs that
are already in it are left as they are.

` + foreignFile,
		Example: `  tokgate history export perf/history --format json > nights.json
  tokgate history import elsewhere/history nights.json
  tokgate history import perf/old throughput.csv --better higher`,
		Args:              needArgs(2, "tokgate history import perf/history nights.csv"),
		ValidArgsFunction: completeHistoryAndFile,
		RunE: func(_ *cobra.Command, args []string) error {
			h, err := parseNights(args[1], better)
			if err != nil {
				return err
			}
			added, repaired, err := history.Import(args[0], h)
			for _, r := range repaired {
				fmt.Fprintf(a.Err, "tokgate: %s\n", r)
			}
			if err != nil {
				return measureError(err)
			}
			fmt.Fprintf(a.Out, "added %s to %s; %d were in it already\n", verdict.Count(added, "nights"), args[0], len(h.Nights)-added)
			return nil
		},
	}
	betterFlag(cmd, &better)
	return cmd
}

func betterFlag(cmd *cobra.Command, better *string) {
	cmd.Flags().StringVar(better, "better", metric.LowerIsBetter.String(), "which values are better in a CSV of another tool: lower or higher")
	_ = cmd.RegisterFlagCompletionFunc("better", cobra.FixedCompletions([]string{"lower", "higher"}, cobra.ShellCompDirectiveNoFileComp))
}

func parseNights(path, better string) (h metric.History, err error) {
	direction := map[string]metric.Direction{"lower": metric.LowerIsBetter, "higher": metric.HigherIsBetter}[better]
	if direction == metric.Neutral {
		return h, usageError("use lower or higher", "unknown --better %q", better)
	}
	f, err := os.Open(path)
	if err != nil {
		return h, measureError(err)
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, history.MaxImport+1))
	if err != nil {
		return h, measureError(err)
	}
	if len(src) > history.MaxImport {
		return h, measureError(fmt.Errorf("%s is larger than %d MiB", path, history.MaxImport>>20))
	}
	if h, err = history.Parse(src, direction); err != nil {
		return h, measureError(fmt.Errorf("%s: %w", path, err))
	}
	return h, nil
}

func (a *app) historyReplay() *cobra.Command {
	var better string
	var ignore float64
	var wait bool
	var pinAfter int
	cmd := &cobra.Command{
		Use:   "replay HISTORY|FILE",
		Short: "Show what each morning of a history would have said",
		Long: `Judges every night of a history as it would have been judged on its morning, and
lists the mornings on which the verdict changed. Then it says how many mornings were
red, how noisy each series is, and which step it would find within three nights.
The exit code does not judge the history.

` + foreignFile,
		Example: `  tokgate history replay perf/history
  tokgate history replay latencies.csv --pin-after 4`,
		Args:              needArgs(1, "tokgate history replay nights.csv"),
		ValidArgsFunction: completeNights,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := shareOf("--ignore", ignore); err != nil {
				return err
			}
			if pinAfter < 0 {
				return usageError("4 accepts a change on its fourth red morning, 0 never", "--pin-after %d is negative", pinAfter)
			}
			h, problems, err := readNights(args[0], better)
			if err != nil {
				return err
			}
			if len(h.Nights) == 0 {
				return measureError(fmt.Errorf("%s has no nights", args[0]))
			}
			t := a.terminal(a.Out)
			mornings := judged.Replay(h, judged.Options{Ignore: ignore, Wait: wait}, pinAfter)
			o := nights.Options{Folder: args[0], Width: t.width, Color: t.color}
			if err := a.actions.foreign(a.Out, func() error { return nights.Replay(a.Out, h, mornings, o) }); err != nil {
				return measureError(err)
			}
			if len(problems) > 0 {
				return measureError(errLines(problems))
			}
			return nil
		},
	}
	f := cmd.Flags()
	betterFlag(cmd, &better)
	f.Float64Var(&ignore, "ignore", plan.HistoryIgnore, "do not report a smaller change; a `share`: 0.01 is one percent")
	f.BoolVar(&wait, "wait", false, "a better level becomes the reference only by a pin, not after ten nights")
	f.IntVar(&pinAfter, "pin-after", 0, "pin a red history after so many red `mornings`, as a team does that accepts every change; 0: never")
	return cmd
}

// readNights reads a history from its folder, or from a file.
func readNights(path, better string) (h metric.History, problems []string, err error) {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		h, err = parseNights(path, better)
		return h, nil, err
	}
	if h, problems, err = history.Read(path); err != nil {
		return h, nil, measureError(err)
	}
	return h, problems, nil
}

func (a *app) historyVoid() *cobra.Command {
	return a.historyMark("void", "Take a night out: it measured something else",
		`Takes a night out of a history, for example because the machine was shared that
night. It is not judged, and no other night is compared with it. Its line and the
reason stay in the history, and the report names both.`,
		"a load test ran on the GPU", "a void night needs a reason", "run %s is void: %s", func(dir string, m metric.Pin) (string, error) {
			return history.AddVoid(dir, metric.Void(m))
		})
}

// historyMark is a command that marks a run of a history, with a reason.
func (a *app) historyMark(name, short, long, reason, missing, said string,
	add func(dir string, m metric.Pin) (repaired string, err error)) *cobra.Command {
	var why string
	example := fmt.Sprintf("tokgate history %s perf/history 20261120T030000Z-3f9c12 --why %q", name, reason)
	cmd := &cobra.Command{
		Use: name + " HISTORY RUN", Short: short, Long: long,
		Args:              needArgs(2, example),
		ValidArgsFunction: completeRuns,
		RunE: func(_ *cobra.Command, args []string) error {
			if why == "" {
				return usageError(fmt.Sprintf("for example: --why %q", reason), "%s", missing)
			}
			repaired, err := add(args[0], metric.Pin{Run: args[1], At: time.Now().UTC(), Why: why})
			if err != nil {
				return measureError(err, runHint(args[0], args[1]))
			}
			if repaired != "" {
				fmt.Fprintf(a.Err, "tokgate: %s\n", repaired)
			}
			fmt.Fprintf(a.Out, said+"\n", args[1], why)
			return nil
		},
	}
	cmd.Flags().StringVar(&why, "why", "", "the `reason`, kept in the history")
	return cmd
}
