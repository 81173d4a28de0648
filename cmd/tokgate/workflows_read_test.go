package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/starter"
)

// A job runs a plan if its action or its command line names the plan or the plan's folder. Jobs
// that only simulate are left out.
func TestJobsOfWorkflow(t *testing.T) {
	const src = `
jobs:
  action:
    timeout-minutes: 45
    steps:
      - uses: tokgate/tokgate@abc
        with: { plan: plans/gate.hcl }
  folder:
    steps:
      - uses: tokgate/tokgate@abc
        with:
          plan: |
            other.hcl
            plans
  command:
    timeout-minutes: ${{ inputs.minutes }}
    steps:
      - run: tokgate run --out x "./plans/gate.hcl"
  tried:
    steps:
      - uses: tokgate/tokgate@abc
        with: { plan: plans/gate.hcl, args: --simulate }
      - run: tokgate run --simulate plans/gate.hcl
  another:
    steps:
      - run: tokgate run plans/other.hcl
`
	want := []job{{"w.yml", "action", 45 * time.Minute}, {"w.yml", "command", 0}, {"w.yml", "folder", 6 * time.Hour}}
	must.Same(t, "", want, jobsOfWorkflow([]byte(src), "w.yml", "plans/gate.hcl"), cmp.AllowUnexported(job{}))
	for _, broken := range []string{"", "jobs: 3", "\t", "jobs: {a: {steps: 1}}"} {
		got := jobsOfWorkflow([]byte(broken), "w.yml", "gate.hcl")
		must.Hold(t, got == nil, "%q has %v", broken, got)
	}
}

// The timeout in the workflow that init writes is long enough for the budget of the plan. A timeout
// that is shorter than the budget gives a warning.
func TestCutOff(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{".github/workflows", "perf"} {
		must.Do(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	text := must.Get(starter.GitHub(starter.CI{Plan: "perf/gate.hcl", Budget: 45}))(t)
	must.Do(t, os.WriteFile(filepath.Join(root, ".github/workflows/tokgate.yml"), text, 0o600))
	p := &plan.Plan{Path: filepath.Join(root, "perf", "gate.hcl"), Gate: plan.Gate{Budget: 45 * time.Minute}}
	got := cutOffAfter(p, 50*time.Minute)
	must.Hold(t, got == nil, "warned: %v", got)
	const end = `job "gate" in .github/workflows/tokgate.yml`
	for want, warn := range map[string]func() hcl.Diagnostics{
		"it takes about 1h5m, and " + end + " has 1h; a job that is cut off has no verdict: raise timeout-minutes.":                               func() hcl.Diagnostics { return cutOffAfter(p, 65*time.Minute) },
		"its budget of 1h is not below the 1h of " + end + "; a job that is cut off has no verdict: raise timeout-minutes, or lower gate.budget.": func() hcl.Diagnostics { p.Gate.Budget = time.Hour; return cutOffAfter(p, 0) },
	} {
		got := warn()
		must.Hold(t, len(got) == 1 && got[0].Detail == want, "%v, want %q", got, want)
	}
}

func FuzzJobsOfWorkflow(f *testing.F) {
	f.Add([]byte("jobs: {a: {timeout-minutes: 5, steps: [{run: tokgate run gate.hcl}]}}"))
	f.Add([]byte("jobs: {a: &a {timeout-minutes: -1e99, steps: [{uses: tokgate, with: {plan: [1]}}]}, b: *a}"))
	f.Fuzz(func(t *testing.T, src []byte) {
		for _, j := range jobsOfWorkflow(src, "w.yml", "gate.hcl") {
			must.Hold(t, j.timeout >= 0, "%+v", j)
		}
	})
}
