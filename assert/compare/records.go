package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Records are two recorded runs, or two servers of one run, to be compared without a plan.
type Records struct {
	Control, Candidate *metric.Run
	// ControlServer and CandidateServer are the addresses of the two servers in their runs. If
	// CandidateServer is "", the run must have only one server, or a comparison with a candidate.
	// If ControlServer is "", the control has the candidate's address, or is the only server of its
	// run.
	ControlServer, CandidateServer string
	ControlName                    string // run folder of the control; "" if it is the candidate's
	Changed                        []string
	Claims                         []*plan.Claim // claims for all levels; only Changes is required
	Confidence                     float64       // 0 means 0.95
}

// Usual returns the default tolerances of a comparison without a plan. Simulated comparisons of
// unchanged servers mostly pass with them.
func Usual() []*plan.Claim {
	change := func(name, stat string, limit float64, text string) *plan.ChangeBound {
		s, err := metric.ParseStat(stat)
		if err != nil {
			panic(err)
		}
		return &plan.ChangeBound{Metric: metric.MustLookup(name), Stat: s, Limit: limit, Text: text}
	}
	return []*plan.Claim{{Severity: plan.SeverityError, Changes: []*plan.ChangeBound{
		change("throughput", "", -0.05, "-5%"), change("e2e", "mean", 0.05, "mean +5%"), change("ttft", "p95", 0.10, "p95 +10%"),
	}}}
}

// SameRun reports whether two recordings are of the same run, wherever they are stored. A run
// compared with itself would always pass.
func SameRun(a, b *metric.Run) bool { return a == b || a.ID != "" && a.ID == b.ID }

// Plan returns a plan with only the comparison of these records. The error explains why there is
// nothing to compare.
func (r Records) Plan() (*plan.Plan, error) {
	same := SameRun(r.Control, r.Candidate)
	candidate, err := r.server(r.Candidate, r.CandidateServer, same, "candidate")
	if err != nil {
		return nil, err
	}
	policy := plan.Policy{Confidence: r.Confidence, Decide: plan.Certified, OnInconclusive: plan.Stop}
	if policy.Confidence == 0 {
		policy.Confidence = 0.95
	}
	on := &plan.Server{Name: candidate}
	p := &plan.Plan{Path: r.Candidate.Plan, Hash: r.Candidate.PlanHash, Gate: plan.Gate{Policy: policy}, Servers: []*plan.Server{on}}
	c := &plan.Compare{Name: "records", Candidate: on, Changed: r.Changed, Claims: r.Claims, Policy: policy,
		Control: plan.Control{Baseline: r.ControlName, BaselineServer: r.ControlServer}}
	if same {
		control, err := r.server(r.Candidate, r.ControlServer, true, "control")
		if err != nil {
			return nil, err
		}
		if control == candidate {
			return nil, fmt.Errorf("server %s cannot be compared with itself", control)
		}
		r.asRun(c, control)
		p.Servers = []*plan.Server{c.Control.Server, on}
	}
	if len(c.Paired()) > 0 {
		c.Answers = &plan.Answering{} // an error is reported if no answers were scored
	}
	p.Compares = []*plan.Compare{c}
	r.workloads(p, policy, candidate)
	var levels []string
	for _, w := range p.Workloads {
		for _, l := range w.Loads {
			levels = append(levels, l.Levels[0].Name)
		}
	}
	for _, claim := range c.Claims {
		claim.Workloads, claim.At = p.Workloads, levels
		if claim.Severity == "" {
			claim.Severity = plan.SeverityError
		}
	}
	return p, nil
}

// asRun copies the settings of a comparison that the candidate's run already made, if it compared
// the same two servers.
func (r Records) asRun(c *plan.Compare, control string) {
	c.Control = plan.Control{Server: &plan.Server{Name: control}}
	for _, held := range r.Candidate.Comparisons {
		if held != nil && held.Control == control && held.Candidate == c.Candidate.Address() {
			c.Name, c.Restart, c.SideBySide = held.Name, plan.Restart(held.Restart), held.SideBySide
			if held.Answers != nil {
				c.Answers = &plan.Answering{}
			}
			if held.SideBySide {
				// each server has used both sets of GPUs, so the GPUs may differ
				c.Changed = append(slices.Clone(c.Changed), "gpus")
			}
		}
	}
}

// server returns the address of the control or of the candidate; the parameter side says which. The
// parameter want is the address that the caller asked for; "" if none.
func (r Records) server(run *metric.Run, want string, same bool, side string) (string, error) {
	var have []string
	for _, s := range run.Servers {
		if s != nil {
			have = append(have, s.Address)
		}
	}
	switch {
	case want != "" && slices.Contains(have, want):
		return want, nil
	case want != "":
		return "", fmt.Errorf("the run of the %s has no server %s; its servers: %s", side, want, strings.Join(have, ", "))
	case same:
		for _, c := range run.Comparisons {
			if c == nil || r.CandidateServer != "" && c.Candidate != r.CandidateServer || r.ControlServer != "" &&
				c.Control != r.ControlServer {
				continue
			}
			if side == "control" {
				return c.Control, nil
			}
			return c.Candidate, nil
		}
	case len(have) == 1:
		return have[0], nil
	}
	return "", fmt.Errorf("say which server is the %s; the run has the servers %s", side, strings.Join(have, ", "))
}

func (r Records) workloads(p *plan.Plan, policy plan.Policy, candidate string) {
	byName := map[string]*plan.Workload{}
	for _, l := range r.Candidate.All() {
		if l == nil || l.Server != candidate || l.Probe != nil || l.Skipped != "" {
			continue
		}
		w := byName[l.Workload]
		if w == nil {
			w = &plan.Workload{Name: l.Workload, Servers: p.Servers, Policy: policy}
			byName[l.Workload] = w
			p.Workloads = append(p.Workloads, w)
		}
		w.Loads = append(w.Loads,
			&plan.Load{Kind: l.Kind, Levels: []plan.Level{{Name: l.Name, N: l.N, Requests: l.Due(), Rounds: max(len(l.Rounds), 1)}}})
	}
	for _, c := range r.Candidate.Capacities {
		if w := byName[c.Workload]; w != nil && c.Server == candidate {
			w.Capacity = &plan.Capacity{Over: c.Over, From: c.From, UpTo: c.UpTo}
		}
	}
}
