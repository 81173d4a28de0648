package report

import (
	"math"
	"slices"

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
	var list []verdict.Verdict
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

// rowsOf sums up the rows of a data set that the requests sent. It returns nil if no request had a
// row.
func rowsOf(samples []*metric.Sample) *Rows {
	var out Rows
	seen := map[int]bool{}
	var prompts, answers []int
	for _, s := range samples {
		if s.Row == 0 {
			continue
		}
		seen[s.Row] = true
		if s.Shared >= 1 {
			out.Again++
		}
		if s.Completed() && s.Usage != nil {
			prompts, answers = append(prompts, s.Usage.Input), append(answers, s.Usage.Output)
		}
	}
	out.Sent, out.Prompt, out.Answer = len(seen), lengthsOf(prompts), lengthsOf(answers)
	if out.Sent == 0 {
		return nil
	}
	return &out
}

func lengthsOf(list []int) Lengths {
	if len(list) == 0 {
		return Lengths{}
	}
	slices.Sort(list)
	at := func(p float64) int { return list[max(int(math.Ceil(p*float64(len(list))))-1, 0)] }
	return Lengths{at(0.05), at(0.5), at(0.95)}
}

// toldTurns is how many turns of conversations have an entry of their own. All later turns share
// one entry.
const toldTurns = 9

// turnsOf computes the figures of each turn of a level's conversations. It returns nil if the level
// has no conversations.
func turnsOf(samples []*metric.Sample) []Turn {
	turns := make([][]*metric.Sample, toldTurns+1)
	most := 0
	for _, s := range samples {
		if s.Turn > 0 {
			i := min(s.Turn-1, toldTurns)
			turns[i], most = append(turns[i], s), max(most, s.Turn)
		}
	}
	var out []Turn
	for i, of := range turns {
		if len(of) == 0 {
			continue
		}
		t := Turn{From: i + 1, To: i + 1, Requests: len(of), Cached: metric.CacheHitRate(of), Implied: metric.ImpliedHitRate(of)}
		if i == toldTurns {
			t.To = most
		}
		d := metric.Of(metric.MustLookup("ttft"), of)
		if mean, ok := d.Mean(); ok {
			p95, _ := d.Percentile(95)
			t.Mean, t.P95 = metric.Some(mean), metric.Some(p95)
		}
		out = append(out, t)
	}
	return out
}
