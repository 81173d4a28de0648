package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/plan/demand"
)

func (a *app) diffCommand() *cobra.Command {
	var in inputs
	var weakened bool
	cmd := &cobra.Command{
		Use:   "diff --weakened BASE HEAD",
		Short: "Compare two versions of a plan: does the second demand less?",
		Long: `Compares a plan with another version of it, such as that of the base branch with
that of a pull request, and names what the second demands less of: thresholds that
are looser or gone, levels that are dropped, fewer requests, a lower confidence,
what only warns now. What cannot be ordered, such as the condition of an assert,
counts as weaker when it changes. Both are read with the same variables; secrets
may be unset.

Exit code 0: it demands as much; 1: it demands less; 2: one is not a valid plan.`,
		Example: `  tokgate diff --weakened base/plans/gate.hcl plans/gate.hcl`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError("for example: tokgate diff --weakened base/gate.hcl gate.hcl", "diff takes two plans, not %d", len(args))
			}
			return nil
		},
		ValidArgsFunction: completePlans,
		RunE: func(_ *cobra.Command, args []string) error {
			if !weakened {
				return usageError("tokgate diff --weakened BASE HEAD; `git diff` shows the rest", "diff needs --weakened")
			}
			plans, err := a.loadAll(args, in, false)
			if err != nil {
				return err
			}
			found := demand.Weakened(plans[0], plans[1])
			for _, w := range found {
				fmt.Fprintf(a.Out, "%s:%d: %s\n", w.Range.Filename, w.Range.Start.Line, w.What)
			}
			if len(found) == 0 {
				fmt.Fprintf(a.Out, "%s demands as much as %s\n", args[1], args[0])
				return nil
			}
			return exitWith(assert.ExitFail)
		},
	}
	in.flags(cmd.Flags())
	cmd.Flags().BoolVar(&weakened, "weakened", false, "name what the second plan demands less of than the first")
	return cmd
}
