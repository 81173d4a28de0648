package main

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/policy"
)

func hold(rules *policy.Policy, p *plan.Plan, base func() (*plan.Plan, hcl.Diagnostics)) hcl.Diagnostics {
	diags := rules.Check(p)
	if len(rules.Keep.Patterns) == 0 {
		return diags
	}
	whole := &hcl.Range{Filename: p.Path, Start: hcl.InitialPos, End: hcl.InitialPos}
	if base == nil {
		return append(diags, &hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "No plan on the base branch", Subject: whole,
			Detail: rules.KeepAt() + " protects demands of the plan on the base branch. Add a checkout of that branch: --base DIR.",
		})
	}
	old, more := base()
	diags = append(diags, more...)
	switch {
	case more.HasErrors():
	case old == nil:
		diags = append(diags, &hcl.Diagnostic{
			Severity: hcl.DiagWarning, Summary: "No plan on the base branch", Subject: whole,
			Detail: "The plan is new, so the base branch has no demands for " + rules.KeepAt() + " to protect. If it was renamed, `tokgate diff` of both folders shows what is gone.",
		})
	default:
		diags = append(diags, rules.Weakened(old, p)...)
	}
	return diags
}
