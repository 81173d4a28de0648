package main

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// tooLate warns of clients that would leave when many answers have ended already: by the lengths of
// the answers, or by what the last run saw.
func tooLate(p *plan.Plan, last *lastRun) (diags hcl.Diagnostics) {
	for _, w := range p.Workloads {
		c := w.Cancel
		if c == nil {
			continue
		}
		why := ""
		if ended := upTo(w.Output, c.AfterTokens); c.AfterTokens > 0 && ended > metric.MostEnded {
			why = fmt.Sprintf("%s of the answers have at most %d tokens", metric.Format(metric.Ratio, ended), c.AfterTokens)
		}
		for _, of := range exec.Cases(p) {
			if of.Workload == w && last != nil && last.late[caseKey(of.Server.Address(), w.Address(), of.Level.Name)] {
				why = fmt.Sprintf("in the last run, more than %s of the answers at %s ended before", metric.Format(metric.Ratio, metric.MostEnded), of.Level.Name)
			}
		}
		if why != "" {
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: "Clients leave too late", Subject: c.Range.Ptr(),
				Detail: fmt.Sprintf("Clients of workload.%s leave %s: %s. Let them leave earlier.", w.Address(), c, why)})
		}
	}
	return diags
}

// upTo returns the share of answers with at most n tokens. It is 0 if answers end by themselves.
func upTo(o plan.Output, n int) float64 {
	least, most := float64(o.Mean)*(1-o.Jitter), float64(o.Mean)*(1+o.Jitter)
	switch {
	case o.Natural || float64(n) < least:
		return 0
	case most == least:
		return 1
	}
	return min((float64(n)-least)/(most-least), 1)
}

// unseen finds residues of servers that will not report what they run.
func unseen(p *plan.Plan, w *plan.Workload) (diags hcl.Diagnostics) {
	running, _ := metric.Lookup("running")
	for _, r := range p.Residuals(w) {
		for _, s := range w.Servers {
			if why := untoldBy(p, s, running); why != "" && r.MustHold() && s.Endpoint == nil {
				return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Residue can never be judged", Subject: r.Range.Ptr(),
					Detail: fmt.Sprintf("What server.%s keeps of workload.%s will not be known: %s. Add residue { severity = \"warn\" } to the workload.", s.Address(), w.Address(), why)}}
			}
		}
	}
	return nil
}
