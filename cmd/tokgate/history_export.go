package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	judged "github.com/tokgate/tokgate/assert/nights"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record/history"
	"github.com/tokgate/tokgate/report/nights"
)

func (a *app) historyExport() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "export HISTORY",
		Short: "Write every figure of every night for other tools",
		Long: `Writes every figure of every night to stdout: as CSV or JSON, for a notebook, or
as OpenMetrics with the time of each night, for a database of time series. It
judges nothing.`,
		Args:              needArgs(1, "tokgate history export perf/history --format csv"),
		ValidArgsFunction: completeFolders,
		RunE: func(_ *cobra.Command, args []string) error {
			write, ok := map[string]func(io.Writer, metric.History) error{
				"csv": history.CSV, "json": history.JSON, "openmetrics": history.OpenMetrics,
			}[format]
			if !ok {
				return usageError("use csv, json or openmetrics", "unknown --format %q", format)
			}
			h, problems, err := history.Read(args[0])
			if err != nil {
				return measureError(err)
			}
			if err := write(a.Out, h); err != nil {
				return measureError(err)
			}
			if len(problems) > 0 {
				return measureError(errLines(problems))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&format, "format", "csv", "output format: csv, json or openmetrics")
	return cmd
}

type errLines []string

func (e errLines) Error() string { return strings.Join(e, "; ") }

func (a *app) historyDemo() *cobra.Command {
	var out nightOutputs
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show a history of 120 made-up nights, and what each morning said",
		Long: `Shows what a history looks like, on 120 made-up nights: noise, one bad night, a
regression that stays red until it is pinned, and a driver that changes. It
first lists the mornings on which the verdict changed, and then shows the report of
the last night. The exit code does not judge it.`,
		Args: needArgs(0, "tokgate history demo"),
		RunE: func(*cobra.Command, []string) error {
			h := history.Demo()
			if _, err := fmt.Fprintln(a.Out, "SYNTHETIC: 120 made-up nights; no server ran"); err != nil {
				return measureError(err)
			}
			rule := judged.Options{Ignore: 0.01}
			if err := nights.Mornings(a.Out, h, judged.Replay(h, rule, 0)); err != nil {
				return measureError(err)
			}
			n := judged.Judge(h, rule)
			t := a.terminal(a.Out)
			o := nights.Options{Folder: "HISTORY", Note: "SYNTHETIC: made up, no server ran", Width: t.width, Color: t.color}
			if err := nights.Terminal(a.Out, n, o); err != nil {
				return measureError(err)
			}
			return out.write(n, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&out.markdown, "markdown", "", "write the Markdown report to this `file`")
	f.StringVar(&out.html, "html", "", "write a page with every series to this `file`")
	return cmd
}

// ciJob returns the CI job of this process; nil if there is none. It reads the variables that
// GitHub Actions and GitLab CI set (docs.github.com, Variables reference; docs.gitlab.com,
// Predefined CI/CD variables).
func ciJob(getenv func(string) (string, bool)) *metric.Job {
	get := func(name string) string {
		v, _ := getenv(name)
		return v
	}
	switch {
	case get("GITHUB_ACTIONS") == "true":
		j := &metric.Job{Commit: get("GITHUB_SHA"), Ref: get("GITHUB_REF"), Runner: get("RUNNER_NAME")}
		if server, repository, run := get("GITHUB_SERVER_URL"), get("GITHUB_REPOSITORY"), get("GITHUB_RUN_ID"); server != "" && repository != "" && run != "" {
			j.URL = server + "/" + repository + "/actions/runs/" + run
		}
		return j
	case get("GITLAB_CI") == "true":
		return &metric.Job{Commit: get("CI_COMMIT_SHA"), Ref: get("CI_COMMIT_REF_NAME"), Runner: get("CI_RUNNER_DESCRIPTION"), URL: get("CI_JOB_URL")}
	}
	return nil
}
