package main

import (
	"github.com/spf13/cobra"

	"github.com/tokgate/tokgate/assert"
)

func (a *app) judgeCommand() *cobra.Command {
	var in inputs
	var out outputs
	var unprotected bool
	cmd := &cobra.Command{
		Use:   "judge RESULTS PLAN",
		Short: "Judge a recorded run again by a plan; no server is needed",
		Long: `Judges the samples in a results folder by a plan, which may have other thresholds,
another confidence or other asserts. Kept answers (answers.jsonl) are scored again.
A level of the plan that the run does not have is an error, never a pass. The
folder keeps its own reports unless --out names it.

The exit code is that of run.`,
		Example: `  tokgate judge results/chat chat.hcl
  tokgate judge results/chat chat.hcl --var ttft_limit=4s --out results/chat-4s`,
		Args:        takes(2, 2, "tokgate judge results/demo plans/demo.hcl", "judge takes a results folder and a plan"),
		Annotations: gate,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.judge(args[0], args[1:], in, out, unprotected)
		},
	}
	in.flags(cmd.Flags())
	cmd.Flags().BoolVar(&unprotected, "unprotected", false, "also judge a recording of an older version, which has no checksums")
	cmd.Flags().StringVarP(&out.dir, "out", "o", "", "`folder` for the reports (default: none are written)")
	out.flags(cmd)
	return cmd
}

func (a *app) judge(dir string, paths []string, in inputs, out outputs, unprotected bool) error {
	a.actions.logTo(a.Out)
	run, err := a.readRun(dir)
	if err != nil {
		return err
	}
	if err := a.needProtected(run, dir, unprotected); err != nil {
		return err
	}
	files, err := planFiles(paths, false)
	if err != nil {
		return err
	}
	if len(files) != 1 {
		return usageError("name one of them", "%q holds %d plans", paths[0], len(files))
	}
	in.judgedAt = judgedAt{date: run.Started, undated: run.Simulated, refused: run.Refused}
	plans, err := a.loadAll(files, in, false)
	if err != nil {
		return err
	}
	stored, err := baselines(plans[0])
	if err != nil {
		return err
	}
	assert.Reread(plans[0], run)
	_, code, err := a.conclude(plans[0], run, out, assert.Options{Baselines: stored})
	if err != nil {
		return err
	}
	return exitWith(code)
}
