package decode

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestGoodPlans loads every fixture without an error, and compares the plan with a golden file. Of
// the warnings, only those about drafts and a missing time budget are allowed.
func TestGoodPlans(t *testing.T) {
	for _, path := range fixtures(t, "testdata/ok/*.hcl", "testdata/ok/*.json") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			p, diags := File(fixtureOptions(t, path))
			diags = slices.DeleteFunc(diags, func(d *hcl.Diagnostic) bool { return d.Summary == sumNoBudget || d.Summary == sumDrafts })
			if len(diags) > 0 {
				var text strings.Builder
				err := WriteDiagnostics(&text, p.Files, diags, 0, false)
				must.Hold(t, err == nil, "%v", err)
				t.Fatalf("diagnostics:\n%s", text.String())
			}
			golden(t, path+".golden", describe(p))
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		must.Do(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want := must.Get(os.ReadFile(path))(t)
	must.Same(t, path+" (-want +got)", string(want), got)
}

func describeGPUs(g *plan.GPUs) string {
	if g == nil {
		return "not said"
	}
	return fmt.Sprintf("%d %q all %v", g.Count, g.IDs, g.All)
}

// describe writes everything in a plan except its hash.
func describe(p *plan.Plan) string {
	var b strings.Builder
	line := func(indent int, format string, args ...any) {
		fmt.Fprintf(&b, "%s%s\n", strings.Repeat("  ", indent), fmt.Sprintf(format, args...))
	}
	pairs := func(indent int, what string, m map[string]string) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			line(indent, "%s %s = %q", what, k, m[k])
		}
	}
	if h := p.History; h != nil {
		line(0, "history %s ignore %v severity %s", h.Folder, h.Ignore, h.Severity)
	}
	if c := p.Cover; c.Title != "" {
		line(0, "report %q %q by %q, logo of %d bytes, notes %q", c.Title, c.Subtitle, c.Organization, len(c.Logo), c.Notes)
	}
	line(0, "gate %+v budget %s measure_only %v", p.Gate.Policy, p.Gate.Budget, p.Gate.MeasureOnly)
	for _, s := range p.Servers {
		line(0, "server %s engine %q model %q line %d", s.Address(), s.Engine, s.Model, s.Range.Start.Line)
		if s.Title+s.Description != "" {
			line(1, "called %q: %q", s.Title, s.Description)
		}
		words, diags := plan.CommandLine(s.Engine, s.Flags, s.Args)
		line(1, "command line %q %d problems", words, len(diags))
		line(1, "ready within %s", s.Ready.Timeout)
		if t := s.Telemetry; !t.Range.Empty() {
			line(1, "telemetry off %v every %v metrics %q dcgm %q gpus %q", t.Off, t.Interval, t.URL, t.DCGM, t.GPUs)
			if r := t.Require; r.Throttled != nil && r.ClockSpread != nil && r.ForeignProcesses != nil {
				line(2, "require throttled %v clock spread %v foreign processes %d", *r.Throttled, *r.ClockSpread, *r.ForeignProcesses)
			}
		}
		if price := p.PriceOf(s.Address()); p.Prices != nil {
			line(1, "price %v %s an hour, electricity %v", price.Hour, p.Prices.Currency, price.Electricity)
		}
		pairs(1, "expect", s.Expect)
		if e := s.Endpoint; e != nil {
			line(1, "endpoint %q key %q ca %q as %q", e.URL, e.APIKey, e.CAFile, e.ServedAs)
			pairs(2, "header", e.Headers)
		}
		if e := s.Process; e != nil {
			line(1, "process %q in %q port %d", e.Command, e.Dir, e.Port)
			pairs(2, "env", e.Env)
			line(2, "gpus %s", describeGPUs(s.GPUs()))
			line(2, "launch %q", s.Launch("HOST", "PORT"))
		}
		if e := s.Container; e != nil {
			line(1, "container %q by %q pull %s port %d to %d", e.Image, e.Runtime, e.Pull, e.Port, e.Inside)
			pairs(2, "env", e.Env)
			line(2, "gpus %s", describeGPUs(s.GPUs()))
			line(2, "volumes %q shm %q network %q user %q options %q", e.Volumes, e.SharedMem, e.Network, e.User, e.Options)
			line(2, "entrypoint %q launch %q", s.Entrypoint(), s.Launch("HOST", "PORT"))
		}
		if e := s.Simulator; e != nil {
			line(1, "simulator %q seed %d", e.Profile, e.Seed)
		}
	}
	for _, w := range p.Workloads {
		var on []string
		for _, s := range w.Servers {
			on = append(on, s.Address())
		}
		line(0, "workload %s on %v line %d: %q", w.Address(), on, w.Range.Start.Line, w.Description)
		if w.Title != "" {
			line(1, "called %q, users %v", w.Title, w.Users)
		}
		if w.Of != nil {
			line(1, "%d millionths of workload %s", w.Share, w.Of.Address())
			if w.Type != "" {
				line(1, "rows of type %q", w.Type)
			}
		}
		line(1, "%s, %d in, %+v out, at most %d", w.API, w.Input, w.Output, w.Output.Max())
		line(1, "policy %+v", w.Policy)
		if r := w.Request; r.Model != "" || r.Extra != nil {
			line(1, "request model %q temperature %v stop %q", r.Model, *r.Temperature, r.Stop)
			for _, k := range slices.Sorted(maps.Keys(r.Extra)) {
				line(2, "%s = %#v", k, r.Extra[k])
			}
		}
		for _, l := range w.Loads {
			line(1, "load %s seeds %v warmup %d stagger %v pause %v timeout %v", l.Kind, l.Seeds, l.Warmup, l.Stagger, l.Pause, l.Timeout)
			for _, lv := range l.Levels {
				var rounds []string
				for i := range lv.Rounds {
					rounds = append(rounds, fmt.Sprintf("%d@%d", lv.RoundRequests(i), l.Seed(i)))
				}
				if title := l.Titles[lv.Name]; title != "" {
					line(2, "called %q: %q", title, l.Descriptions[lv.Name])
				}
				line(2, "level %q n %d requests %d rounds %v", lv.Name, lv.N, lv.Requests, rounds)
			}
		}
		for _, s := range w.SLAs {
			line(1, "sla at %q %s capacity %v", s.At, s.Severity, s.AtCapacity)
			for _, t := range s.Thresholds {
				line(2, "%s %q: %s %s %v line %d", t.Metric, t.Text, t.Stat, t.Op, t.Limit, t.Range.Start.Line)
			}
		}
		if c := w.Capacity; c != nil {
			line(1, "capacity over %s from %d up to %d resolution %d or %v require %d budget %s requests %d to %d confirm %v",
				c.Over, c.From, c.UpTo, c.Resolution, c.Relative, c.Require, c.Budget, c.Requests, c.MaxRequests, c.Confirm)
			line(2, "load %s seeds %v warmup %d stagger %v pause %v timeout %v levels %d", c.Load.Kind, c.Load.Seeds, c.Load.Warmup, c.Load.Stagger, c.Load.Pause, c.Load.Timeout, len(c.Load.Levels))
		}
		for _, t := range w.Good {
			line(1, "good %s %q: %s %s %v", t.Metric, t.Text, t.Stat, t.Op, t.Limit)
		}
	}
	for _, a := range p.Asserts {
		line(0, "assert %q line %d", a.Name, a.Range.Start.Line)
	}
	for _, c := range p.Compares {
		control := c.Control.Baseline + " " + c.Control.BaselineServer
		if c.Control.Server != nil {
			control = c.Control.Server.Address()
		}
		line(0, "compare %s: %s with %s, %d rounds, restart %s, changed %q, skip %q, line %d", c.Name, c.Candidate.Address(), control, c.Rounds, c.Restart, c.Changed, c.Skip, c.Range.Start.Line)
		for _, claim := range c.Claims {
			var on []string
			for _, w := range claim.Workloads {
				on = append(on, w.Address())
			}
			line(1, "improve %v on %v at %q %s", claim.Improve, on, claim.At, claim.Severity)
			for _, ch := range claim.Changes {
				line(2, "%s %q: %s %v points %v line %d", ch.Metric, ch.Text, ch.Stat, ch.Limit, ch.Points, ch.Range.Start.Line)
			}
		}
	}
	for _, d := range p.Defaults {
		line(0, "default %s = %s  %s", d.Path, d.Value, d.Why)
	}
	line(0, "secrets %q", p.Secrets)
	return b.String()
}
