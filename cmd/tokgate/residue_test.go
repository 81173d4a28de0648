package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
	"github.com/tokgate/tokgate/sim"
)

var (
	residueGates = flag.Int("residues", 5, "simulated gates of each row of the table of what is left by clients that leave")
	residueTable = flag.String("residues-table", "", "file for the table of what is left by clients that leave")
)

const residuePlan = `server "s" {
  simulator {}
}
workload "chat" {
  input_tokens  = 512
  output_tokens = { mean = 64, jitter = "50%%" }
  load {
    %s
    duration    = "2m"
  }
  cancel {
    share = "30%%"
    after = "%s"
  }
  sla { ttft = "p95 < 20s" }
}
`

// A leak in one of fifty clients that leave, a crash and work that goes on are found in two minutes; a
// sound server stays green. The share of clients that leave is exact.
func TestLongResidue(t *testing.T) {
	var out strings.Builder
	fmt.Fprintf(&out, "%d gates a row, of two minutes:\n\n| server | load | planted | clients that left, at least | gates that fail |\n|---|---|---|---|---|\n", *residueGates)
	planted := []struct {
		name  string
		rules sim.Script
	}{
		{"nothing", nil},
		{"a slot is never freed, after 2 % of those that leave", sim.Script{{Fault: "leak-slot", Share: 0.02}}},
		{"16 tokens of KV cache, after 2 %", sim.Script{{Fault: "leak-blocks", Share: 0.02}}},
		{"work goes on, after all", sim.Script{{Fault: "ignore-abort"}}},
		{"a crash, after 2 %", sim.Script{{Fault: "die-on-abort", Share: 0.02}}},
	}
	for _, load := range []struct{ name, text, after string }{
		{"16 in flight", "concurrency = 16", "600ms"},
		{"12 req/s", `rate        = "12 req/s"`, "300ms"},
	} {
		p, diags := decode.File(decode.Options{Path: "residue.hcl", Source: fmt.Appendf(nil, residuePlan, load.text, load.after)})
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		for _, cache := range []string{"default", "with a prefix cache"} {
			for _, x := range planted {
				t.Run(load.name+"/"+cache+"/"+x.name, func(t *testing.T) {
					fails, fewest := 0, 1<<30
					for salt := range *residueGates {
						v, left := residueOf(t, p, salt, func(p *sim.Profile) {
							p.Faults = x.rules
							if cache != "default" {
								p.PrefixCache = &sim.PrefixCache{BlockTokens: 16, CapacityTokens: 262144}
							}
						})
						if fewest = min(fewest, left); v.Outcome == verdict.Fail {
							fails++
						} else if v.Outcome != verdict.Pass {
							t.Errorf("salt %d: %s: %s", salt, v.Outcome, v.Message)
						}
					}
					if wrong := *residueGates - fails; x.rules != nil && wrong > *residueGates/20 || x.rules == nil && fails > *residueGates/20 {
						t.Errorf("%d of %d gates fail", fails, *residueGates)
					}
					fmt.Fprintf(&out, "| %s | %s | %s | %d | %d |\n", cache, load.name, x.name, fewest, fails)
				})
			}
		}
	}
	if *residueTable != "" {
		must.Do(t, os.WriteFile(*residueTable, []byte(out.String()), 0o644))
	}
	t.Log(out.String())
}

// residueOf simulates the plan with a salt on the server as change makes it. It returns the verdict on
// what the server kept, and how many clients left.
func residueOf(t *testing.T, p *plan.Plan, salt int, change func(*sim.Profile)) (verdict.Verdict, int) {
	t.Helper()
	run := must.Get(simulatedRun(t.Context(), p, salt, func(_ *plan.Server, p *sim.Profile) { change(p) }))(t)
	i := slices.IndexFunc(run.Levels, func(l *metric.Level) bool { return l.Residue != nil })
	if i < 0 {
		t.Fatal("no level with a residue")
	}
	d, left := run.Levels[i].Departures(), 0
	if d == nil {
		d = &metric.Departures{}
	}
	left = d.Left + d.Ended + d.Failed
	if l := run.Levels[i]; !slices.ContainsFunc(l.Rounds, func(r *metric.Round) bool { return !r.Complete }) && (left*10 < d.All*3-10 || left*10 > d.All*3+10) {
		t.Errorf("salt %d: %d of %d clients left, want 30 %% up to one", salt, left, d.All)
	}
	list := assert.Judge(p, run, assert.Options{}).List
	v := list[slices.IndexFunc(list, func(v verdict.Verdict) bool { return v.Kind == verdict.KindResidue })]
	return v, d.Left
}

const keepPlan = `server "s" {
  SERVER
}
workload "w" {
  input_tokens  = 64
  output_tokens = 32
  load {
    concurrency = [2, 4]
    requests    = 40
  }
  cancel {
    share        = "50%"
    after_tokens = 4
  }
  RESIDUE
}
`

// A residue alone makes a plan that can fail. plan announces what is sent for it; a server that will
// not report what it runs is refused before the load.
func TestResidueIsAnnounced(t *testing.T) {
	for _, tt := range []struct {
		name, server, residue string
		exit                  int
		says                  string
	}{
		{"by cancels", "simulator {}", "", verdict.ExitPass, "Before 2 levels, up to 64 whole requests and some of one token are sent"},
		{"a burst", "simulator {}", "residue { burst = true }", verdict.ExitPass, "Before and after 2 levels, 256 requests are sent at once"},
		{"telemetry is off", "simulator {}\n  telemetry { enabled = false }", "", verdict.ExitPlan, "telemetry is off there. Add residue { severity = \"warn\" }"},
		{"a warning", "simulator {}\n  telemetry { enabled = false }", "residue { severity = \"warn\" }\n  sla { ttft = \"mean < 9s\" }", verdict.ExitPass, "Before 2 levels"},
		{"an endpoint alone cannot fail", "endpoint { url = \"http://127.0.0.1:1\" }", "", verdict.ExitPlan, "Plan requires nothing"},
	} {
		src := strings.NewReplacer("SERVER", tt.server, "RESIDUE", tt.residue).Replace(keepPlan)
		tokgate(t, "plan", writePlan(t, src)).check(t, tt.exit, tt.says)
	}
	plan := writePlan(t, strings.NewReplacer("SERVER", "simulator {}", "RESIDUE", "residue { burst = true }").Replace(keepPlan))
	tokgate(t, "run", "--simulate", "--out", t.TempDir(), plan).check(t, verdict.ExitPass, "pass    residue at 2", "of 256 requests at once the server answered 32 together, 32 before")
}
