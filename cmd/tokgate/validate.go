package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
)

func (a *app) validateCommand() *cobra.Command {
	var in inputs
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "validate FILE|FOLDER...",
		Short: "Check plans: everything that can be known before a server starts",
		Long: `Checks plans without starting anything: syntax, names, units, references,
expressions, context lengths, whether the planned requests can certify each
threshold, whether each level is loaded for at least a minute, and whether the
window of a rate is long enough for its percentiles, by the last run or by the
plan's own limits, and whether this machine can send the largest load. All problems
are reported at once. Secrets may be unset.

Exit code 0: valid (warnings may be printed); 2: not valid.`,
		Example: `  tokgate validate plans/demo.hcl
  tokgate validate --json plans | jq '.diagnostics[] | .summary'`,
		Args:              needPlans,
		ValidArgsFunction: completePlans,
		RunE: func(_ *cobra.Command, args []string) error {
			files, err := planFiles(args, false)
			if err != nil {
				return err
			}
			if asJSON {
				return a.validateJSON(files, in)
			}
			plans, err := a.loadAll(files, in, false)
			if err != nil {
				return err
			}
			for i, p := range plans {
				if err := a.showDiagnostics(p, advise(checking, p, readLastRun(p.Path))); err != nil {
					return err
				}
				fmt.Fprintf(a.Out, "%s is valid: %s\n", files[i], planSize(p))
				for _, c := range compare.Chances(p) {
					fmt.Fprintf(a.Out, "  %s\n", c)
				}
			}
			return nil
		},
	}
	in.flags(cmd.Flags())
	in.policyFlag(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the diagnostics as JSON")
	return cmd
}

func (a *app) validateJSON(files []string, in inputs) error {
	out := struct {
		Valid       bool                `json:"valid"`
		Diagnostics []decode.Diagnostic `json:"diagnostics"`
	}{Valid: true, Diagnostics: []decode.Diagnostic{}}
	for _, path := range files {
		p, diags := a.load(path, in, false)
		if !diags.HasErrors() {
			diags = append(diags, advise(checking, p, readLastRun(p.Path))...)
		}
		a.actions.diagnose(diags)
		out.Valid = out.Valid && !diags.HasErrors()
		out.Diagnostics = append(out.Diagnostics, decode.Diagnostics(p.Files, diags)...)
	}
	e := json.NewEncoder(a.Out)
	e.SetIndent("", "  ")
	if err := e.Encode(out); err != nil {
		return measureError(err)
	}
	if !out.Valid {
		return exitWith(verdict.ExitPlan)
	}
	return nil
}

func needPlans(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		hint := fmt.Sprintf("for example: %s chat.hcl; `tokgate init` writes a first plan", cmd.CommandPath())
		if here, _ := planFiles([]string{"."}, false); len(here) > 0 {
			hint = fmt.Sprintf("for example: %s %s", cmd.CommandPath(), here[0])
		}
		return usageError(hint, "no plan named")
	}
	return nil
}

func planSize(p *plan.Plan) string {
	size := fmt.Sprintf("%s, %s, %s", verdict.Count(len(p.Servers), "servers"), verdict.Count(len(p.Workloads), "workloads"), verdict.Count(len(exec.Cases(p)), "levels"))
	if n := len(exec.Searches(p)); n == 1 {
		size += ", 1 capacity search"
	} else if n > 1 {
		size += fmt.Sprintf(", %d capacity searches", n)
	}
	if n := len(p.Compares); n > 0 {
		size += ", " + verdict.Count(n, "comparisons")
	}
	requirements := 0
	for _, v := range assert.Awaited(p) {
		if v.Required() && v.Outcome != verdict.Skipped {
			requirements++
		}
	}
	return size + ", " + verdict.Count(requirements, "requirements")
}
