package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/demand"
	"github.com/tokgate/tokgate/plan/policy"
)

func (a *app) diffCommand() *cobra.Command {
	var in inputs
	var weakened, recursive bool
	cmd := &cobra.Command{
		Use:   "diff --weakened BASE HEAD",
		Short: "Compare two versions of a plan: does the second demand less?",
		Long: `Compares two versions of a plan, such as that of the base branch and that of a pull
request, and lists what the second demands less of: looser or missing thresholds,
missing levels, fewer requests, a lower confidence, a requirement that only warns
now. If two values cannot be ordered, such as the condition of an assert, any change
counts as weaker. Both plans get the same variables; secrets may be unset. With
--policy the second must also keep to that policy.

Two folders are compared plan by plan. A plan of BASE that HEAD does not have, because
it was renamed or deleted, counts as weaker. A new plan does not.

Exit code 0: the second demands as much; 1: it demands less; 2: one is not a valid
plan, or the second does not keep to the policy.`,
		Example: `  tokgate diff --weakened base/plans/gate.hcl plans/gate.hcl
  tokgate diff --weakened base/plans plans
  tokgate diff --policy base/policy.hcl base/plans/gate.hcl plans/gate.hcl`,
		Args:              takes(2, 2, "tokgate diff --weakened base/gate.hcl gate.hcl", "diff takes two plans or two folders"),
		ValidArgsFunction: completePlans,
		RunE: func(_ *cobra.Command, args []string) error {
			if !weakened && in.rulesFile == "" {
				return usageError("tokgate diff --weakened BASE HEAD; `git diff` shows the rest", "diff needs --weakened or --policy")
			}
			return a.diff(args[0], args[1], in, weakened, recursive)
		},
	}
	in.flags(cmd.Flags())
	in.policyFlag(cmd.Flags())
	cmd.Flags().BoolVar(&weakened, "weakened", false, "list what the second plan demands less of than the first")
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "search subfolders for plans too")
	return cmd
}

// versions are the paths of one plan on the base branch and here.
type versions struct {
	base, head string // base is "" if the plan is new
	gone       bool   // there is no plan at head
}

// A name that does not exist in base is an error, so that a wrong name cannot pass.
func pairs(base, head string, recursive bool) ([]versions, error) {
	if info, err := os.Stat(base); err != nil || !info.IsDir() {
		_, err := os.Stat(head)
		return []versions{{base: base, head: head, gone: errors.Is(err, fs.ErrNotExist)}}, nil
	}
	old, err := planFiles([]string{base}, recursive)
	if err != nil {
		return nil, err
	}
	var now []string
	switch info, err := os.Stat(head); {
	case err == nil && info.IsDir():
		now, _ = planFiles([]string{head}, recursive) // after an error, every plan is gone
	case !errors.Is(err, fs.ErrNotExist):
		return nil, usageError("give two plans or two folders", "%s is a folder, and %s is not", base, head)
	}
	var out []versions
	for _, path := range old {
		rel, err := filepath.Rel(base, path)
		if err != nil {
			return nil, measureError(err)
		}
		v := versions{base: path, head: filepath.Join(head, rel)}
		v.gone = !slices.Contains(now, v.head)
		now = slices.DeleteFunc(now, func(path string) bool { return path == v.head })
		out = append(out, v)
	}
	for _, path := range now {
		out = append(out, versions{head: path})
	}
	return out, nil
}

func (a *app) diff(base, head string, in inputs, weakened, recursive bool) error {
	rules, diags := in.rules()
	if diags.HasErrors() {
		if err := a.showDiagnostics(&plan.Plan{Files: rules.Files}, diags); err != nil {
			return err
		}
		return notValid(head)
	}
	list, err := pairs(base, head, recursive)
	if err != nil {
		return err
	}
	file := in.rulesFile
	in.written = true
	in.rulesFile = "" // the policy judges only head, so base is read without it
	in.files = append(in.files, rules.Folders()...)
	plans, err := a.loadVersions(list, in)
	if err != nil {
		return err
	}
	if rules != nil {
		if err := a.keepsTo(rules, file, list, plans); err != nil {
			return err
		}
	}
	code := verdict.ExitPass
	for _, v := range list {
		if weakened && a.weaker(v, plans[v.base], plans[v.head]) {
			code = verdict.ExitFail
		}
	}
	return exitWith(code)
}

func (a *app) loadVersions(list []versions, in inputs) (map[string]*plan.Plan, error) {
	var paths []string
	for _, v := range list {
		if v.base != "" {
			paths = append(paths, v.base)
		}
		if !v.gone {
			paths = append(paths, v.head)
		}
	}
	loaded, err := a.loadAll(paths, in, false)
	plans := map[string]*plan.Plan{}
	for i, p := range loaded {
		plans[paths[i]] = p
	}
	return plans, err
}

func (a *app) keepsTo(rules *policy.Policy, file string, list []versions, plans map[string]*plan.Plan) error {
	var bad []string
	for _, v := range list {
		was, shown := plans[v.base], plans[v.head]
		var diags hcl.Diagnostics
		if v.gone {
			shown, diags = was, rules.Gone(was)
		} else {
			diags = hold(rules, shown, func() (*plan.Plan, hcl.Diagnostics) { return was, nil })
		}
		if err := a.showDiagnostics(shown, diags); err != nil {
			return err
		}
		if diags.HasErrors() {
			bad = append(bad, v.head)
		} else if !v.gone {
			fmt.Fprintf(a.Out, "%s keeps to %s\n", v.head, file)
		}
	}
	if len(bad) > 0 {
		return notValid(bad...)
	}
	return nil
}

func (a *app) weaker(v versions, was, is *plan.Plan) bool {
	if v.base == "" {
		fmt.Fprintf(a.Out, "%s is new\n", v.head)
		return false
	}
	found := demand.Weakened(was, is)
	switch {
	case v.gone:
		fmt.Fprintf(a.Out, "%s:1: the plan is gone: there is no %s, and its %s went with it\n", v.base, v.head, verdict.Count(len(found), "demands"))
		return true
	case len(found) == 0:
		fmt.Fprintf(a.Out, "%s demands as much as %s\n", v.head, v.base)
	}
	for _, w := range found {
		fmt.Fprintf(a.Out, "%s:%d: %s\n", w.Range.Filename, w.Range.Start.Line, w.What)
	}
	return len(found) > 0
}
