package report

import (
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// CasesOf returns the cases of a workload on a server; "" means on any server.
func (d *Document) CasesOf(workload, server string) (out []*Case) {
	for i := range d.Cases {
		if c := &d.Cases[i]; c.Workload == workload && (server == "" || c.Server == server) {
			out = append(out, c)
		}
	}
	return out
}

// Group is one workload on one server.
type Group struct {
	Server, Workload string
	Cases            []*Case // levels of the plan, without the probes of a capacity search
	Capacities       []*metric.Capacity
}

// Groups returns a group for each pair of server and workload that has a case or a verdict, in the
// order of the document.
func Groups(d *Document) []*Group {
	var list []*Group
	byKey := map[[2]string]*Group{}
	at := func(server, workload string) *Group {
		key := [2]string{server, workload}
		g := byKey[key]
		if g == nil {
			g = &Group{Server: server, Workload: workload}
			byKey[key] = g
			list = append(list, g)
		}
		return g
	}
	for i := range d.Cases {
		c := &d.Cases[i]
		if g := at(c.Server, c.Workload); c.Probe == nil {
			g.Cases = append(g.Cases, c)
		}
	}
	for _, c := range d.Run.Capacities {
		g := at(c.Server, c.Workload)
		g.Capacities = append(g.Capacities, c)
	}
	for _, v := range d.Verdicts {
		if v.Workload != "" && v.Kind != "server" {
			at(v.Server, v.Workload)
		}
	}
	return list
}

// Worst returns the worst status of a group's verdicts, and how many have each status. A group
// without verdicts counts as an error, because it was not judged.
func (g *Group) Worst(d *Document) (verdict.Status, Tally) {
	var list []Verdict
	worst := verdict.StatusPass
	for _, v := range d.Verdicts {
		if v.Workload == g.Workload && v.Server == g.Server {
			list = append(list, v)
			worst = min(worst, v.Status())
		}
	}
	if len(list) == 0 {
		worst = verdict.StatusError
	}
	return worst, tally(list)
}
