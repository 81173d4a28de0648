package main

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/demand"
)

func (a *app) diffCommand() *cobra.Command {
	var in inputs
	var weakened bool
	cmd := &cobra.Command{
		Use:   "diff --weakened BASE HEAD",
		Short: "Compare two versions of a plan: does the second demand less?",
		Long: `Compares two versions of a plan, such as that of the base branch and that of a pull
request, and lists what the second demands less of: looser or missing thresholds,
missing levels, fewer requests, a lower confidence, a requirement that only warns
now. If two values cannot be ordered, such as the condition of an assert, any change
counts as weaker. Both plans get the same variables; secrets may be unset. With
--policy the second must also keep to that policy.

Exit code 0: the second demands as much; 1: it demands less; 2: one is not a valid
plan, or the second does not keep to the policy.`,
		Example: `  tokgate diff --weakened base/plans/gate.hcl plans/gate.hcl
  tokgate diff --policy base/policy.hcl base/plans/gate.hcl plans/gate.hcl`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError("for example: tokgate diff --weakened base/gate.hcl gate.hcl", "diff takes two plans, not %d", len(args))
			}
			return nil
		},
		ValidArgsFunction: completePlans,
		RunE: func(_ *cobra.Command, args []string) error {
			if !weakened && in.rulesFile == "" {
				return usageError("tokgate diff --weakened BASE HEAD; `git diff` shows the rest", "diff needs --weakened or --policy")
			}
			return a.diff(args[0], args[1], in, weakened)
		},
	}
	in.flags(cmd.Flags())
	in.policyFlag(cmd.Flags())
	cmd.Flags().BoolVar(&weakened, "weakened", false, "list what the second plan demands less of than the first")
	return cmd
}

func (a *app) diff(base, head string, in inputs, weakened bool) error {
	rules, diags := in.rules()
	if diags.HasErrors() {
		if err := a.showDiagnostics(&plan.Plan{Files: rules.Files}, diags); err != nil {
			return err
		}
		return notValid(head)
	}
	file := in.rulesFile
	in.rulesFile = "" // the policy judges only head, so base is read without it
	in.files = append(in.files, rules.Folders()...)
	plans, err := a.loadAll([]string{base, head}, in, false)
	if err != nil {
		return err
	}
	if rules != nil {
		diags := hold(rules, plans[1], func() (*plan.Plan, hcl.Diagnostics) { return plans[0], nil })
		if err := a.showDiagnostics(plans[1], diags); err != nil {
			return err
		}
		if diags.HasErrors() {
			return notValid(head)
		}
		fmt.Fprintf(a.Out, "%s keeps to %s\n", head, file)
	}
	if !weakened {
		return nil
	}
	found := demand.Weakened(plans[0], plans[1])
	for _, w := range found {
		fmt.Fprintf(a.Out, "%s:%d: %s\n", w.Range.Filename, w.Range.Start.Line, w.What)
	}
	if len(found) > 0 {
		return exitWith(assert.ExitFail)
	}
	fmt.Fprintf(a.Out, "%s demands as much as %s\n", head, base)
	return nil
}
