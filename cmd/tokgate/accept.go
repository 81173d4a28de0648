package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/policy"
)

// judgedAt says by which run the accept blocks of a plan are judged.
type judgedAt struct {
	// date is that of the run; undated means that it has none, because it is simulated. Without both it
	// is the present time.
	date    time.Time
	undated bool
	refused map[string]string // accept blocks that did not count in the recorded run, and why
	written bool              // accept blocks are only read, to compare versions of a plan
}

// inPullRequest reports whether this process runs in a CI job of a pull request.
func inPullRequest(getenv func(string) (string, bool)) bool {
	event, _ := getenv("GITHUB_EVENT_NAME")
	source, _ := getenv("CI_PIPELINE_SOURCE")
	return strings.HasPrefix(event, "pull_request") || source == "merge_request_event"
}

// accept puts the accept blocks of a plan into force. In a pull request, and if there is a checkout of
// the base branch, only those count that the base branch has too, or that the policy allows.
func (a *app) accept(p *plan.Plan, in inputs, rules *policy.Policy, base func() (*plan.Plan, hcl.Diagnostics)) hcl.Diagnostics {
	if len(p.Accepts) == 0 || in.written {
		return nil
	}
	refused := in.refused
	if refused == nil {
		refused = map[string]string{}
	}
	var diags hcl.Diagnostics
	if base != nil || inPullRequest(a.getenv) {
		why, allowed := "is not on the base branch, whose accept blocks alone count in a pull request", (*plan.Plan)(nil)
		if base == nil {
			why = "is in a pull request without --base, so it is not known whether the base branch has it"
		} else if allowed, diags = base(); diags.HasErrors() {
			return diags
		}
		for _, x := range p.Accepts {
			if !allowed.Accepting(&x.Accept) && !rules.Accepts(x.Name) {
				refused[x.Name] = why
			}
		}
	}
	date := in.date
	if date.IsZero() && !in.undated {
		date = time.Now()
	}
	p.Accept(date, refused)
	for _, x := range p.Accepts {
		said := &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: "Accept block does not count",
			Detail: fmt.Sprintf("accept.%s does not count: it %s. The plan's own bound holds.", x.Name, x.Lapsed), Subject: x.Range.Ptr()}
		if x.Lapsed == "" {
			continue
		}
		if in.date.IsZero() && x.Until.Sub(date) > metric.LongestAccept && !date.IsZero() { // a recorded run is judged without it
			said.Severity, said.Summary = hcl.DiagError, "Accepted for too long"
		}
		diags = append(diags, said)
	}
	return diags
}

// refusals returns the accept blocks of the plan that do not count, and why, besides the date of the
// run. It is an error if one that counted when the plan was read has expired before the run.
func refusals(p *plan.Plan, date time.Time) (map[string]string, error) {
	out := map[string]string{}
	for _, a := range p.Accepts {
		switch why := a.Accept.Lapsed(date); {
		case a.Lapsed != "" && why == "":
			out[a.Name] = a.Lapsed
		case a.Lapsed == "" && why != "":
			return nil, measureError(fmt.Errorf("%s: accept.%s %s, since the plan was read", p.Path, a.Name, why), "run it again")
		}
	}
	return out, nil
}
