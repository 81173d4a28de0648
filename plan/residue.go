package plan

import (
	"fmt"
	"slices"
)

// Residual returns what the server s may keep after a level of the workload w; nil if that is not
// asked. It is asked wherever clients leave, but not of a stage or a trace, nor of servers that take
// turns. A server that tokgate did not start only warns, because others may use it.
func (p *Plan) Residual(s *Server, w *Workload, level Level) *Residue {
	out := Residue{Settle: UsualSettle, Severity: SeverityError, Range: w.Range}
	switch {
	case w.Root() != w || level.Stage != nil || level.Speedup > 0 || p.Idle(s, w) || slices.ContainsFunc(p.Compares, func(c *Compare) bool {
		return c.Live() && (c.Candidate == s || c.Control.Server == s) && slices.Contains(c.Workloads(p), w)
	}):
		return nil
	case w.Residue != nil:
		out = *w.Residue
	case w.Leaving() == 0:
		return nil
	case w.Cancel != nil:
		out.Range = w.Cancel.Range
	}
	if s.Endpoint != nil {
		out.Severity = SeverityWarn
	}
	return &out
}

// Residuals returns the distinct residues that the plan asks of a workload.
func (p *Plan) Residuals(w *Workload) (out []*Residue) {
	for _, s := range w.Servers {
		for _, level := range w.Levels() {
			if of := p.Residual(s, w, level); of != nil && !slices.ContainsFunc(out, func(o *Residue) bool { return *o == *of }) {
				out = append(out, of)
			}
		}
	}
	return out
}

// String describes the residue as plans write it.
func (r *Residue) String() string {
	if r.Burst {
		return fmt.Sprintf("nothing after %s, as many at once", PlainDuration(r.Settle))
	}
	return "nothing after " + PlainDuration(r.Settle)
}
