package main

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
)

// hold reports where the plan p breaks the policy in a file. A policy has rules for plans. The
// function base loads the plan of the base branch, whose requirements p must keep; nil if there is
// no base branch.
func hold(file string, p *plan.Plan, base func() (*plan.Plan, hcl.Diagnostics)) (*plan.Plan, hcl.Diagnostics) {
	rules, diags := decode.Policy(file, nil)
	if diags.HasErrors() {
		return &plan.Plan{Path: p.Path, Files: rules.Files}, diags
	}
	diags = rules.Check(p)
	if len(rules.Keep.Patterns) == 0 {
		return p, diags
	}
	whole := &hcl.Range{Filename: p.Path, Start: hcl.InitialPos, End: hcl.InitialPos}
	if base == nil {
		return p, append(diags, &hcl.Diagnostic{
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
			Detail: "The plan is new, so the base branch has no demands for " + rules.KeepAt() + " to protect.",
		})
	default:
		diags = append(diags, rules.Weakened(old, p)...)
	}
	return p, diags
}
