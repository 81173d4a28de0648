package page

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
)

var some = metric.Some

// measuredAt returns a case in which every request completed.
func measuredAt(server, level string, kind metric.LoadKind, n, requests int) report.Case {
	return report.Case{Completed: requests,
		Level: &metric.Level{Server: server, Workload: "chat", Name: level, Kind: kind, N: n, Rounds: []*metric.Round{{Due: requests}}}}
}

// ofServers returns a run of some servers.
func ofServers(addresses ...string) *metric.Run {
	run := &metric.Run{}
	for _, a := range addresses {
		run.Servers = append(run.Servers, &metric.ServerRun{Address: a})
	}
	return run
}

func ttftP95() verdict.Threshold {
	return verdict.Threshold{Metric: metric.MustLookup("ttft"), Stat: metric.Stat{Kind: metric.Percentile, P: 95}, Op: "<", Limit: some(3)}
}

// rowsOf returns the classes of the rows that sections show.
func rowsOf(sections []Section) (out []string) {
	each(sections, func(b *Block) {
		for i := range b.rows() {
			out = append(out, b.class(i))
		}
	})
	return out
}

// Whatever a selection leaves out, it leaves out no failure while it shows anything that is less
// urgent, and it says how many of which outcome are missing.
func TestSelectKeepsFailures(t *testing.T) {
	classes := []string{Missing, Failed, Unsure, Worse, Passed, ""}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		t1, t2 := &Table{Columns: Heads("")}, &Table{Columns: Heads("")}
		var checks []Check
		total := 0
		for i := range r.IntN(40) {
			class := classes[r.IntN(len(classes))]
			total++
			switch cell := []Cell{{Text: fmt.Sprint(i), Class: class}}; r.IntN(3) {
			case 0:
				t1.Rows = append(t1.Rows, cell)
			case 1:
				t2.Rows = append(t2.Rows, cell)
			default:
				checks = append(checks, Check{Class: class})
			}
		}
		all := []Section{{Blocks: []Block{{Table: t1}, {Checks: checks}}}, {Blocks: []Block{{Table: t2}}}}
		n := r.IntN(40)
		kept := Select(all, n)
		shown := rowsOf(kept)
		want := min(n, total)
		must.Need(t, len(shown) == want, "seed %d: %d rows, want %d", seed, len(shown), want)
		least, left := 0, map[string]int{}
		for _, c := range shown {
			least = max(least, rank(c))
			left[c]--
		}
		for _, c := range rowsOf(all) {
			left[c]++
		}
		said := ""
		each(kept, func(b *Block) {
			said += b.Left
			if b.Table != nil {
				said += b.Table.Left
			}
		})
		for c, k := range left {
			must.Hold(t, k <= 0 || rank(c) >= least, "seed %d: %d rows of class %q are left out, and a row of rank %d is shown", seed, k, c, least)
			if k > 0 && outcomes[c] != "" && !strings.Contains(said, outcomes[c]) {
				t.Errorf("seed %d: %d rows that %s are left out, but it says %q", seed, k, outcomes[c], said)
			}
		}
	}
}

// fiveServers returns a document of n comparisons with the same control. Every threshold is met. The
// last comparison misses its requirements.
func fiveServers(n int) *report.Document {
	d := &report.Document{Outcome: verdict.Fail, ExitCode: 1, Run: ofServers("base"),
		Workloads: []report.Workload{{Address: "chat", Servers: []string{"base"}, Bounds: []report.Bound{{Threshold: ttftP95(), At: []string{"8"}}}}}}
	held := func(server string) {
		d.Cases = append(d.Cases, measuredAt(server, "8", metric.ClosedLoop, 8, 80))
		th := ttftP95()
		d.Verdicts = append(d.Verdicts, verdict.Verdict{Kind: "sla", Server: server, Workload: "chat", Level: "8", Name: "sla.ttft.p95 at 8", Outcome: verdict.Pass, Severity: "error",
			Threshold: &th, Test: verdict.Test{Value: some(0.3)}})
	}
	held("base")
	for i := range n {
		server := fmt.Sprint("candidate", i)
		d.Run.Servers, d.Workloads[0].Servers = append(d.Run.Servers, &metric.ServerRun{Address: server}), append(d.Workloads[0].Servers, server)
		held(server)
		c := &compare.Comparison{Name: server, Control: "base", Candidate: server, Paired: true, Rounds: 8, Line: server + ": no difference",
			Decisions: []compare.Decision{{Workload: "chat", Level: "8", Answer: "no difference"}}}
		for j := range 4 {
			c.Changes = append(c.Changes, compare.Change{Workload: "chat", Level: fmt.Sprint(8 + j), Metric: metric.MustLookup("ttft"), Stat: metric.Stat{Kind: metric.Mean}, Severity: "error",
				Shift: compare.Shift{Control: some(1), Candidate: some(1), Change: some(0.001)}, Limit: some(0.05), Outcome: verdict.Inconclusive})
		}
		d.Comparisons = append(d.Comparisons, c)
	}
	last := d.Comparisons[n-1]
	for _, name := range []string{"throughput", "e2e", "ttft"} {
		last.Changes = append(last.Changes, compare.Change{Workload: "chat", Level: "8", Metric: metric.MustLookup(name), Severity: "error",
			Shift: compare.Shift{Control: some(1), Candidate: some(1.4), Change: some(0.4), Interval: verdict.Interval{Low: some(0.3), High: some(0.5)}}, Limit: some(0.05), Outcome: verdict.Fail, Direction: "worse"})
	}
	return d
}

// The failures of the last of several comparisons are in the comment, before what is not decided.
func TestCommentHasEveryFailure(t *testing.T) {
	d := fiveServers(5)
	kept := Select(Comment(d), 3)
	var metrics []string
	each(kept, func(b *Block) {
		if b.Table == nil {
			return
		}
		for _, r := range b.Table.Rows {
			must.Hold(t, class(r) == Failed, "it shows %q of three rows, of three failures", r)
			metrics = append(metrics, r[2].Text)
		}
	})
	want := []string{"Throughput", "E2E", "TTFT"}
	must.Hold(t, slices.Equal(metrics, want), "it shows the changes of %q, want %q", metrics, want)
}

// The order of changes is: the worst with a limit, then the capacity and what decides a workload, and
// other certain changes. Uncertain changes are left out.
func TestChangesAreRanked(t *testing.T) {
	limit := some(0.05)
	d := &report.Document{Comparisons: []*compare.Comparison{{Changes: []compare.Change{
		{Workload: "chat", Level: "8", Metric: metric.MustLookup("e2e"), Outcome: verdict.Skipped},
		{Workload: "chat", Level: "8", Metric: metric.MustLookup("itl"), Outcome: verdict.Skipped, Direction: "worse"},
		{Workload: "chat", Level: "8", Metric: metric.MustLookup("ttft"), Outcome: verdict.Pass, Limit: limit},
		{Workload: "chat", Level: "8", Metric: metric.MustLookup("speed"), Outcome: verdict.Pass, Limit: limit},
		{Workload: "chat", Level: "capacity", OfCapacity: true, Metric: metric.Def{Title: "capacity"}, Outcome: verdict.Skipped},
		{Workload: "rag", Level: "4", Metric: metric.MustLookup("ttft"), Outcome: verdict.Inconclusive, Limit: limit},
		{Workload: "rag", Level: "4", Metric: metric.MustLookup("e2e"), Outcome: verdict.Fail, Limit: limit},
	}}}}
	var got []string
	for _, r := range changes(Run{Document: d}).Rows {
		got = append(got, r[1].Text+" "+r[2].Text)
	}
	want := []string{"rag at 4 E2E", "rag at 4 TTFT", "chat at 8 ITL", "chat at 8 TTFT", "chat at capacity capacity"}
	must.Hold(t, slices.Equal(got, want), "%q, want %q", got, want)
}

// What a server carries does not depend on the requirements of a comparison.
func TestCarriedIsNotCompared(t *testing.T) {
	d := fiveServers(2)
	d.Verdicts = append(d.Verdicts, verdict.Verdict{Kind: "compare", Server: "candidate1", Workload: "chat", Level: "8", Name: "compare.x.improve.throughput at 8", Outcome: verdict.Fail, Severity: "error"})
	r := named([]*report.Document{d})[0]
	for _, server := range []string{"base", "candidate1"} {
		if class, said := carries(r, &d.Workloads[0], server); class != Passed || !strings.HasPrefix(said, "holds at 8") {
			t.Errorf("%s: %s, %q; every threshold is met", server, class, said)
		}
	}
}

// A change for the better that is smaller than the plan asks for fails, and is not called worse.
func TestNotEnoughIsNotWorse(t *testing.T) {
	c := &compare.Comparison{Decisions: []compare.Decision{{Workload: "chat", Level: "8", Answer: "no"}}, Changes: []compare.Change{{
		Workload: "chat", Level: "8", Metric: metric.MustLookup("throughput"), Severity: "error", Improve: true,
		Shift: compare.Shift{Change: some(0.0013)}, Limit: some(0.02), Outcome: verdict.Fail, Direction: "better"}}}
	must.Same(t, "the answer", "not better", answerWord(c, &c.Decisions[0]))
	got := changeVerdict(&c.Changes[0])
	must.Hold(t, got.Class == Failed && got.Text == "failed: not improved enough", "the verdict is %+v", got)
	c.Changes[0].Direction = "worse"
	must.Same(t, "of a change for the worse the answer", "worse", answerWord(c, &c.Decisions[0]))
}

// The choice names a server for each workload: a candidate that is better at some level and worse at
// none, if it misses no requirement, or else the control.
func TestChoice(t *testing.T) {
	decision := func(workload, answer string) compare.Decision {
		return compare.Decision{Workload: workload, Level: "8", Answer: answer}
	}
	for _, tt := range []struct {
		name      string
		decisions [][]compare.Decision // of each candidate
		failed    string               // the candidate that misses a requirement of chat
		want      string
	}{
		{"each its own", [][]compare.Decision{{decision("chat", "yes"), decision("rag", "no")}, {decision("chat", "mixed"), decision("rag", "mixed")}}, "",
			"Take a for chat; keep base for rag: no candidate is better there and meets every requirement."},
		{"two are better", [][]compare.Decision{{decision("chat", "yes")}, {decision("chat", "yes")}}, "", "Take a or b for chat."},
		{"better, but it fails", [][]compare.Decision{{decision("chat", "yes")}, {decision("chat", "no difference")}}, "a",
			"Keep base for chat: no candidate is better there and meets every requirement."},
		{"not known", [][]compare.Decision{{decision("chat", "unknown")}}, "", "The measurements do not tell which server is better for chat."},
		{"nothing compared", nil, "", ""},
	} {
		d := &report.Document{Run: &metric.Run{}}
		for i, list := range tt.decisions {
			d.Comparisons = append(d.Comparisons, &compare.Comparison{Control: "base", Candidate: string(rune('a' + i)), Decisions: list})
		}
		if tt.failed != "" {
			d.Verdicts = []verdict.Verdict{{Kind: "sla", Server: tt.failed, Workload: "chat", Outcome: verdict.Fail, Severity: "error"}}
		}
		must.Same(t, tt.name, tt.want, choice(Run{Document: d}))
	}
}

// A capacity above a level that failed is shown as disputed, in every place that shows it.
func TestDisputedCapacity(t *testing.T) {
	th := ttftP95()
	d := &report.Document{Run: ofServers("gpu"), Outcome: verdict.Fail,
		Workloads: []report.Workload{{Address: "chat", Servers: []string{"gpu"}, Bounds: []report.Bound{{Threshold: th, Capacity: true}}}},
		Cases:     []report.Case{measuredAt("gpu", "4", metric.ClosedLoop, 4, 8)},
		Verdicts:  []verdict.Verdict{{Kind: "sla", Server: "gpu", Workload: "chat", Level: "4", Name: "sla.ttft.p95 at 4", Outcome: verdict.Fail, Severity: "error", Threshold: &th, Test: verdict.Test{Value: some(4)}}}}
	d.Run.Capacities = []*metric.Capacity{{Server: "gpu", Workload: "chat", Over: "closed", Bracket: metric.Bracket{Kind: "exact", Pass: 5, Fail: 6}, Line: "5 requests in flight"}}
	r := named([]*report.Document{d})[0]
	const want = "disputed: failed at 4"
	first, _ := Job(d)
	for name, said := range map[string]string{
		"terminal": fmt.Sprint(Terminal(d)[1].Blocks[1].Result.Line), "comment": strings.Join(Comment(d)[0].Blocks[0].List, "\n"),
		"job's summary": strings.Join(first[0].Blocks[0].List, "\n"), "summary": fmt.Sprint(Summary(d)[0].Blocks[1].Table.Rows),
		"use case": outcomeOf(r, &d.Workloads[0], "gpu").Unit, "first page": brief(r).Uses[0].Unit,
	} {
		must.Hold(t, strings.Contains(said, want), "the %s says %q", name, said)
	}
	d.Verdicts[0].Outcome = verdict.Pass
	got := r.Disputed(d.Run.Capacities[0])
	must.Hold(t, got == nil, "disputed by %q without a failure", got)
}

// The tiles are of one server. Throughput and cost are of a load that holds, and an open loop has
// none. A price of electricity alone is called that.
func TestTiles(t *testing.T) {
	metrics := func(throughput, cost float64) []report.Summary {
		return []report.Summary{{Metric: "throughput", Unit: "tok/s", Value: some(throughput)}, {Metric: "cost_per_million_tokens", Unit: "USD/1M tokens", Value: some(cost)}}
	}
	at := func(server, level string, kind metric.LoadKind, n int, throughput, cost float64) report.Case {
		c := measuredAt(server, level, kind, n, 10)
		c.Metrics = metrics(throughput, cost)
		return c
	}
	d := &report.Document{Run: ofServers("a", "b"), Plan: report.Plan{Servers: []report.Server{{Address: "a", ElectricityOnly: true}}}, Cases: []report.Case{
		at("a", "8", "closed", 8, 100, 3), at("a", "16", "closed", 16, 150, 2), at("a", "9 req/s", "rate", 0, 400, 1), at("b", "8", "closed", 8, 900, 0.1),
	}, Verdicts: []verdict.Verdict{{Kind: "sla", Server: "a", Workload: "chat", Level: "16", Outcome: verdict.Fail, Severity: "error"}}}
	got := map[string]string{}
	for _, x := range tiles(named([]*report.Document{d})[0]) {
		got[x.Label] = x.Value
	}
	if got["Peak throughput"] != "100 tok/s" || got["Electricity of a million output tokens"] != "3 USD/1M tokens" || got["Million output tokens"] != "" {
		t.Errorf("%q", got)
	}
}
