package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/fleet"
	"github.com/tokgate/tokgate/exec/server"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/sim"
)

// launchVirtual starts simulators in virtual time, whose load several workers in this process send if n > 0.
func launchVirtual(c *clock.Virtual, p *plan.Plan, salt uint64, n int) exec.Launch {
	launch := (&server.Virtual{Clock: c, Dir: filepath.Dir(p.Path), Salt: salt}).Launch
	if n == 0 {
		return launch
	}
	return fleet.Virtual(c, n).Launch(launch, false)
}

func (a *app) needSimulators(plans []*plan.Plan) error {
	var bad []string
	for _, p := range plans {
		var diags hcl.Diagnostics
		for _, s := range p.Servers {
			if d := cannotSimulate(p, s); d != nil {
				diags = append(diags, d)
			}
		}
		if err := a.showDiagnostics(p, diags); err != nil {
			return err
		}
		if diags.HasErrors() {
			bad = append(bad, p.Path)
		}
	}
	if len(bad) > 0 {
		return usageError("", "%s: cannot be simulated as it is, nothing was started", strings.Join(bad, ", "))
	}
	return nil
}

// unsimulated returns diagnostics for servers that have a simulator block but cannot be simulated.
// They are warnings if the simulator replaces a real server, and errors otherwise.
func unsimulated(p *plan.Plan) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, s := range p.Servers {
		if s.Simulator == nil {
			continue
		}
		if d := cannotSimulate(p, s); d != nil {
			if s.Endpoint != nil || s.Started() {
				d.Severity = hcl.DiagWarning
			}
			diags = append(diags, d)
		}
	}
	return diags
}

func cannotSimulate(p *plan.Plan, s *plan.Server) *hcl.Diagnostic {
	diag := func(rng *hcl.Range, summary, format string, args ...any) *hcl.Diagnostic {
		return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: rng}
	}
	if s.Simulator == nil {
		return diag(&s.Range, "No simulator", "--simulate needs a simulator block, but server.%s has none. Add simulator { profile = \"default\" }. Built-in profiles: %s.",
			s.Address(), strings.Join(sim.Profiles(), ", "))
	}
	profile, err := sim.LoadProfile(s.Simulator.Profile, filepath.Dir(p.Path))
	if err != nil {
		return diag(&s.Simulator.Range, "No such profile", "%s cannot be simulated: %v.", s.Address(), err)
	}
	for _, w := range p.Workloads {
		if long := w.TooLong(profile.MaxModelLen); long != "" && slices.Contains(w.Servers, s) {
			return diag(&w.Range, "Context longer than the simulator's", "The profile %q of server.%s: %s.", profile.Name, s.Address(), long)
		}
		if slices.Contains(w.Servers, s) && w.Longest() > profile.MaxModelLen {
			return diag(&w.Range, "Context longer than the simulator's", "A request of workload.%s has up to %d tokens (%d in, up to %d out), but the profile %q of server.%s allows only %d. %s",
				w.Address(), w.Longest(), w.Input, w.Output.Max(), profile.Name, s.Address(), profile.MaxModelLen, longer(w.Longest()))
		}
	}
	return nil
}

func longer(tokens int) string {
	var fit []string
	for _, name := range sim.Profiles() {
		if p, err := sim.LoadProfile(name, ""); err == nil && p.MaxModelLen >= tokens {
			fit = append(fit, name)
		}
	}
	if len(fit) == 0 {
		return "No built-in profile allows that many. Write your own profile with a larger max_model_len."
	}
	return "These built-in profiles allow that many: " + strings.Join(fit, ", ") + "."
}
