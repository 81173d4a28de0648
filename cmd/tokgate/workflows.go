package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/hashicorp/hcl/v2"
	"github.com/tokgate/tokgate/plan"
)

type job struct {
	file, name string
	timeout    time.Duration // time limit of the job; 0 if an expression sets it
}

// jobTimeout is GitHub's default timeout of a job (docs.github.com, Workflow syntax).
const jobTimeout = 360 * time.Minute

const largestWorkflow = 512 << 10

func cutOff(p *plan.Plan, last *lastRun) hcl.Diagnostics { return cutOffAfter(p, expected(p, last)) }

func cutOffAfter(p *plan.Plan, takes time.Duration) hcl.Diagnostics {
	var out hcl.Diagnostics
	warn := func(format string, args ...any) {
		out = append(out, &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: "The job is shorter than the run", Detail: fmt.Sprintf(format, args...)})
	}
	for _, j := range jobsOf(p.Path) {
		const none = "a job that is cut off has no verdict: raise timeout-minutes"
		switch limit := plan.PlainDuration(j.timeout); {
		case j.timeout == 0:
		case takes > j.timeout:
			warn("it takes about %s, and job %q in %s has %s; %s.", roundTime(takes), j.name, j.file, limit, none)
		case p.Gate.Budget >= j.timeout:
			warn("its budget of %s is not below the %s of job %q in %s; %s, or lower gate.budget.", plan.PlainDuration(p.Gate.Budget), limit, j.name, j.file, none)
		}
	}
	return out
}

// It leaves out jobs that only simulate, and skips files that are not valid workflows.
func jobsOf(planFile string) []job {
	at, err := filepath.Abs(planFile)
	if err != nil {
		return nil
	}
	for root := filepath.Dir(at); ; root = filepath.Dir(root) {
		dir := filepath.Join(root, ".github", "workflows")
		files, _ := filepath.Glob(filepath.Join(dir, "*.y*ml")) // the only error is a bad pattern
		rel, err := filepath.Rel(root, at)
		if len(files) > 0 && err == nil {
			var out []job
			for _, f := range files {
				out = append(out, jobsIn(f, path.Join(".github/workflows", filepath.Base(f)), filepath.ToSlash(rel))...)
			}
			return out
		}
		if _, err := os.Stat(filepath.Join(root, ".git")); err == nil || root == filepath.Dir(root) {
			return nil
		}
	}
}

type workflow struct {
	Jobs map[string]struct {
		Timeout yaml.Node `yaml:"timeout-minutes"`
		Steps   []struct {
			Uses string
			Run  string
			With map[string]yaml.Node
		}
	}
}

func jobsIn(file, shown, planFile string) []job {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > largestWorkflow {
		return nil
	}
	src, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return jobsOfWorkflow(src, shown, planFile)
}

func jobsOfWorkflow(src []byte, shown, planFile string) []job {
	var w workflow
	if yaml.Unmarshal(src, &w) != nil {
		return nil
	}
	var out []job
	for name, j := range w.Jobs {
		runs := false
		for _, s := range j.Steps {
			plans, args := s.With["plan"], s.With["args"]
			switch {
			case strings.Contains(s.Uses, "tokgate") && !strings.Contains(args.Value, "--simulate"):
				runs = runs || slices.ContainsFunc(strings.Fields(plans.Value), func(named string) bool { return covers(named, planFile) })
			case strings.Contains(s.Run, "tokgate run") && !strings.Contains(s.Run, "--simulate"):
				runs = runs || slices.ContainsFunc(strings.Fields(s.Run), func(named string) bool { return covers(named, planFile) })
			}
		}
		if !runs {
			continue
		}
		limit := jobTimeout
		if !j.Timeout.IsZero() {
			var minutes float64
			_ = j.Timeout.Decode(&minutes) // an expression leaves 0, which means unknown
			limit = time.Duration(min(max(minutes, 0), 1e6) * float64(time.Minute))
		}
		out = append(out, job{shown, name, limit})
	}
	slices.SortFunc(out, func(a, b job) int { return strings.Compare(a.name, b.name) })
	return out
}

func covers(named, planFile string) bool {
	named = path.Clean(strings.Trim(named, `"'`))
	return named == planFile || named == path.Dir(planFile) && named != "."
}
