package report

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// nightly lists the figures of a level that every history keeps. For each plan, a history also
// keeps the metrics that the plan's thresholds limit.
var nightly = []struct{ name, stat string }{
	{"ttft", "p50"}, {"ttft", "p95"}, {"speed", "mean"}, {"e2e", "mean"},
	{"throughput", ""}, {"success", "rate"}, {"kv_usage", "max"}, {"energy_per_token", ""},
}

// nightlyStarts lists the figures of a server's starts that every history keeps, beside the first level
// of the server.
var nightlyStarts = []struct{ name, stat string }{{"start_cold", "mean"}, {"start_warm", "mean"}}

// factsOf returns the server's fingerprint, with the transport if it was not tokgate's own: it makes
// times differ between two nights.
func factsOf(s *metric.ServerRun) metric.Fingerprint {
	out := metric.Fingerprint{}
	maps.Copy(out, s.Fingerprint)
	if strings.HasPrefix(s.Path, "net/http") {
		out["transport"] = s.Path
	}
	return out
}

// Night returns the document as one night of a history. It has the figures of every valid level and
// of every capacity that was found. It leaves out figures without a value.
func (d *Document) Night() metric.Night {
	n := metric.Night{
		Run: d.Run.ID, Tool: d.Run.Tool, Plan: d.Plan.Name, Started: d.Run.Started, Simulated: d.Run.Simulated,
		Servers: map[string]metric.Fingerprint{}, Figures: []metric.Figure{}, Series: d.Run.Queried(),
	}
	for _, s := range d.Run.Servers {
		n.Servers[s.Address] = factsOf(s)
		if last := len(s.Starts) - 1; last >= 0 && s.Program() != "" {
			n.Starts = append(n.Starts,
				metric.NightStart{Server: s.Address, Program: s.Program(), Model: s.Declared["model"], Took: s.Starts[last].Took().Seconds()})
		}
	}
	valid := map[[3]string]bool{}
	for _, v := range d.Verdicts {
		if v.Kind == "load" {
			valid[[3]string{v.Server, v.Workload, v.Level}] = v.Outcome == verdict.Pass
		}
	}
	seen := map[metric.Trend]bool{}
	add := func(t metric.Trend, value float64, observations int) {
		if !seen[t] && !math.IsNaN(value) && !math.IsInf(value, 0) {
			seen[t] = true
			n.Figures = append(n.Figures, metric.Figure{Trend: t, Value: value, N: observations})
		}
	}
	asked, begun := map[[2]string]string{}, map[string]bool{}
	for i := range d.Cases {
		c := &d.Cases[i]
		asked[[2]string{c.Server, c.Workload}] = c.Digest
		if c.Probe != nil || !valid[[3]string{c.Server, c.Workload, c.Name}] {
			continue
		}
		list := nightly
		if !begun[c.Server] {
			list = slices.Concat(list, nightlyStarts)
		}
		begun[c.Server] = true
		d.figures(c, list, add)
		n.Rambling = append(n.Rambling, d.rambling(c)...)
	}
	for _, c := range d.Run.Capacities {
		limit := metric.Trend{Server: c.Server, Workload: c.Workload, Level: "capacity", Metric: "capacity", Asked: asked[[2]string{c.Server, c.Workload}]}
		if c.Over != metric.ClosedLoop {
			limit.Stat = string(c.Over)
		}
		// Use a capacity only if the search also found a load that fails, because "125+" and "130+"
		// on two nights cannot be compared.
		if c.Pass > 0 && c.Fail > 0 {
			add(limit, c.Load(c.Pass), 0)
		} else if c.OfRate() && c.Pass > 0 && c.Crossing > 0 {
			// Use the estimated limit of a rate. The certified limit also depends on the time that
			// the search had.
			add(limit, c.Crossing*c.Step, 0)
		}
	}
	return n
}

// rambling returns, for a run that passed, the share of a case's completed natural answers that are
// empty or repeat themselves. It returns nothing if the case has no natural answers. The metrics
// empty and repetition also count failed requests.
func (d *Document) rambling(c *Case) []metric.Figure {
	empty, repeats, success := c.Summary("empty").Stat("rate"), c.Summary("repetition").Stat("rate"), c.Summary("success").Stat("rate")
	if d.Outcome != verdict.Pass || !empty.OK || !repeats.OK || !success.OK || success.V == 0 {
		return nil
	}
	return []metric.Figure{{Trend: metric.Trend{Server: c.Server, Workload: c.Workload, Level: c.Name, Metric: "repetition"},
		Value: (empty.V + repeats.V - 2*(1-success.V)) / success.V}}
}

// figures calls the function add for each value of the case that a history keeps: those of the list, and
// those that thresholds limit.
func (d *Document) figures(c *Case, list []struct{ name, stat string }, add func(metric.Trend, float64, int)) {
	at := func(name, stat string) metric.Trend {
		return metric.Trend{Server: c.Server, Workload: c.Workload, Level: c.Name, Metric: name, Stat: stat, Asked: c.Digest}
	}
	for _, f := range list {
		m := c.Summary(f.name)
		if v := m.Stat(f.stat); v.OK {
			add(at(f.name, f.stat), v.V, m.N)
		}
	}
	for _, def := range d.Run.Queried() {
		m := c.Summary(def.Name)
		if v := m.Stat("mean"); v.OK && def.Better != metric.Neutral {
			add(at(def.Name, "mean"), v.V, m.N)
		}
	}
	for _, v := range d.Verdicts {
		if v.Kind == "sla" && v.Threshold != nil && v.Threshold.Metric.Name != "success" && v.Value.OK && v.Server == c.Server &&
			v.Workload == c.Workload && v.Level == c.Name {
			add(at(v.Threshold.Metric.Name, v.Threshold.Stat.String()), v.Value.V, v.N)
		}
	}
}
