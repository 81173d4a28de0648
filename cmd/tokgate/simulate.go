package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
	"github.com/tokgate/tokgate/sim"
)

// needSimulators says which servers of the plans cannot be simulated, each at
// its line: those without a simulator block, and those whose profile cannot be
// read.
func (a *app) needSimulators(plans []*plan.Plan) error {
	t, err := a.terminal(a.Err)
	if err != nil {
		return err
	}
	var bad []string
	for _, p := range plans {
		var diags hcl.Diagnostics
		for _, s := range p.Servers {
			if d := cannotSimulate(p, s); d != nil {
				diags = append(diags, d)
			}
		}
		if err := decode.WriteDiagnostics(a.Err, p.Files, diags, uint(t.width), t.color); err != nil {
			return measureError(err)
		}
		a.actions.diagnose(diags)
		if diags.HasErrors() {
			bad = append(bad, p.Path)
		}
	}
	if len(bad) > 0 {
		return usageError("", "%s: cannot be simulated as it is, nothing was started", strings.Join(bad, ", "))
	}
	return nil
}

// cannotSimulate says why --simulate cannot run s; nil when it can.
func cannotSimulate(p *plan.Plan, s *plan.Server) *hcl.Diagnostic {
	if s.Simulator == nil {
		return &hcl.Diagnostic{
			Severity: hcl.DiagError,
			Summary:  "No simulator",
			Detail: fmt.Sprintf("%s has no simulator block, which --simulate would run in its place. Add one beside the target: simulator { profile = \"default\" }. Shipped profiles: %s.",
				s.Address(), strings.Join(sim.Profiles(), ", ")),
			Subject: &s.Range,
		}
	}
	if _, err := sim.LoadProfile(s.Simulator.Profile, filepath.Dir(p.Path)); err != nil {
		return &hcl.Diagnostic{
			Severity: hcl.DiagError,
			Summary:  "No such profile",
			Detail:   fmt.Sprintf("%s cannot be simulated: %v.", s.Address(), err),
			Subject:  &s.Simulator.Range,
		}
	}
	return nil
}
