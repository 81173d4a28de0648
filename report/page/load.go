package page

import (
	"fmt"
	"math"
	"slices"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
)

// figures adds charts of the curves to the section.
func (s Section) figures(runs []Run, curves ...curve) Section {
	var all []Figure
	for _, c := range curves {
		all = append(all, c.figures(runs)...)
	}
	s.Blocks = append(s.Blocks, Block{Figures: all})
	return s
}

// folded draws the curves in a section. The first curves, as many as the parameter open says, are
// shown, and the others are folded. If the first curves have no data, the others are shown.
func (s Section) folded(runs []Run, open int, curves ...curve) Section {
	var first, rest []Figure
	for i, c := range curves {
		if i < open {
			first = append(first, c.figures(runs)...)
		} else {
			rest = append(rest, c.figures(runs)...)
		}
	}
	if len(first) == 0 {
		first, rest = rest, nil
	}
	s.Blocks = append(s.Blocks, Block{Figures: first}, fold(verdict.Count(len(rest), "further figures"), Block{Figures: rest}))
	return s
}

var throughputCurve = curve{kind: "closed", name: "throughput", title: "Output tokens of all requests together", ends: true,
	words: "Higher is better. Where the line flattens, the server is full."}

// These curves show what users notice: the wait for the first token, and the speed of an answer.
// They cover all requests of the server; each use case has its own curves too.
var (
	ttftCurve = curve{kind: "closed", name: "ttft", title: "Time to first token, mean", axis: "mean TTFT", band: true, zones: ttftZones, stats: []string{"mean"}, ends: true,
		words: "How long a user waits before any text appears: queueing and prefill. Lower is better."}
	speedCurve = curve{kind: "closed", name: "speed", title: "Speed of one stream", axis: "mean speed", band: true, zones: speedZones, ends: true,
		words: "How fast one answer streams once it has begun. Higher is better."}
)

// systemCurves lists the charts of the whole server, the most needed first. The first openCurves of
// them are shown open, and the rest are folded.
var systemCurves = []curve{
	{kind: "closed", name: "itl", title: "Gap between two pieces, mean", axis: "mean ITL", band: true, zones: itlZones, stats: []string{"mean"}, ends: true, words: "How long a user waits for the next piece of text, on average. With speculative decoding one piece holds several tokens. Lower is better."},
	{kind: "closed", name: "prefill_speed", title: "Prefill speed", ends: true, words: "How fast the server processes prompts, without the time in the queue. Higher is better."},
	{kind: "closed", name: "queue_wait", title: "Wait in the server's queue", axis: "mean queue wait", ends: true, words: "The part of TTFT that a request spends in the queue, as the server reports it. With chunked prefill, queue wait and prefill may add up to more than TTFT. Lower is better."},
	{kind: "closed", name: "scaling_efficiency", title: "Scaling efficiency", zero: true, words: "Throughput at N requests in flight, divided by N times the throughput at one. It shows how much of one user's speed remains when users share the server."},
	{kind: "closed", name: "ttft", title: "Time to first token, p95", axis: "p95 TTFT", of: stat("ttft", "p95"), zones: ttftZones, stats: []string{"p95"}, words: "95 of 100 requests waited no longer than this."},
	{kind: "closed", name: "request_rate", title: "Requests completed", words: "Requests that the server finishes in a second."},
	{kind: "closed", name: "goodput", title: "Goodput", words: "Requests per second that met every bound of the workload's `good` block."},
	{kind: "closed", name: "e2e_speed", title: "Speed over the whole wait", axis: "mean speed, wait included", words: "How fast a whole answer comes. This matters to a program that waits for the whole answer. Higher is better."},
	{kind: "closed", name: "tpot", title: "Time per token after the first", axis: "mean TPOT", words: "Lower is better."},
	{kind: "closed", name: "prefill", title: "Prefill time", axis: "mean prefill time", words: "The time from when the server schedules a request to its first token, as the server measures it. Lower is better."},
	{kind: "closed", name: "input_throughput", title: "Input tokens read by the whole server", words: "Input tokens per second, of all requests together."},
	{kind: "closed", name: "waiting", title: "Requests waiting", axis: "most requests waiting", of: stat("waiting", "max"), quiet: true, words: "The longest queue seen in the window."},
	{kind: "closed", name: "preemptions", title: "Preemptions", quiet: true, words: "Requests that the server stopped to make room for others."},
	{kind: "closed", name: "success", title: "Requests that completed correctly", axis: "success", zero: true, words: "The share of the requests due that completed correctly."},
}

const openCurves = 3

func systemFigures(runs []Run) Section {
	s := Section{ID: "system", Title: "The server as a whole", Lead: "What the server delivers to all users together, by requests in flight."}
	curves, open := append([]curve{throughputCurve, ttftCurve, speedCurve}, systemCurves...), 3+openCurves
	if len(runs) == 1 && !slices.ContainsFunc(runs[0].Workloads, func(w report.Workload) bool { return !runs[0].useCase(&w) }) &&
		len(runs[0].Workloads) > 0 {
		curves, open = append([]curve{throughputCurve}, systemCurves...), 1+openCurves
	}
	if s = s.folded(runs, open, curves...).filled(); len(s.Blocks) > 0 {
		s.Blocks = append(s.Blocks, peaks(runs).folded(), averages(runs).folded())
	}
	return s
}

// peaks returns a table with the highest throughput of each line in the charts. Probes of capacity
// searches count too.
func peaks(runs []Run) *Table {
	t := &Table{Caption: "Peak of each line", Columns: Heads("Line", "Peak, output", "Requests in flight", "Times that of one request", "In an hour", "Input read meanwhile")}
	for _, l := range tracks(runs, "closed", func(c *report.Case) bool { return mean(c, "throughput").OK }) {
		var top, one *report.Case
		for _, c := range l.line() {
			if top == nil || mean(c, "throughput").V > mean(top, "throughput").V {
				top = c
			}
			if c.N == 1 {
				one = c
			}
		}
		v := mean(top, "throughput").V
		factor := "–"
		if one != nil && mean(one, "throughput").V > 0 {
			factor = metric.Format(metric.Count, v/mean(one, "throughput").V) + "×"
		}
		t.Rows = append(t.Rows, []Cell{text(l.name), text(format("throughput", v)), text(fmt.Sprint(top.N)), text(factor), text(big(v*3600) + " tokens"),
			text(mean(top, "input_throughput").Format("tok/s"))})
	}
	return t
}

// averages compares two means of speed, by level.
func averages(runs []Run) *Table {
	t := &Table{Caption: "Two ways to average speed, and tokens in each piece", Columns: Heads("Load", "All tokens over their time", "Mean of the requests' speeds", "Mean gap", "Tokens in a piece")}
	keep := common(runs)
	measured(runs, func(r Run, c *report.Case) {
		itl, pooled, each, per := mean(c, "itl"), mean(c, "speed"), mean(c, "request_speed"), mean(c, "tokens_per_chunk")
		if c.Kind != "closed" || !keep(c) || !itl.OK || !pooled.OK || len(t.Rows) >= 40 {
			return
		}
		t.Rows = append(t.Rows,
			[]Cell{text(caseName(runs, r, c)), text(pooled.Format("tok/s")), text(each.Format("tok/s")), text(itl.Format("s")), text(per.Format("tokens"))})
	})
	return t
}

func rates(runs []Run) Section {
	return Section{
		ID: "rates", Title: "Rates",
		Lead: "How long users wait when requests arrive at a fixed rate. The wait of a request starts when the request is due. At the largest rate that the server can sustain, the server is never idle. At a higher rate the queue only grows.",
	}.figures(runs,
		curve{kind: "rate", name: "ttft", title: "Time to first token at a fixed rate, p95", axis: "p95 TTFT", of: stat("ttft", "p95"), zones: ttftZones, stats: []string{"p95"},
			words: "95 of 100 requests waited no longer than this."},
		curve{kind: "rate", name: "e2e", title: "Whole answer at a fixed rate, p95", axis: "p95 E2E", of: stat("e2e", "p95"), stats: []string{"p95"},
			words: "95 of 100 answers were complete within this time."})
}

func bursts(runs []Run) Section {
	return Section{
		ID: "burst", Title: "Bursts",
		Lead: "What happens when many requests come at the same instant, as at the start of a batch job. The largest burst that is still served in time is the largest safe queue.",
	}.figures(runs,
		curve{kind: "burst", name: "ttft", title: "Time to first token in a burst, mean", axis: "mean TTFT", band: true, zones: ttftZones, stats: []string{"mean"},
			words: "The shaded band leaves out the fastest 5% and the slowest 5%. The last request of a burst waits for all earlier ones. Lower is better."},
		curve{kind: "burst", name: "ttft", title: "Time to first token in a burst, p95", axis: "p95 TTFT", of: stat("ttft", "p95"), zones: ttftZones, stats: []string{"p95"},
			words: "95 of 100 requests waited no longer than this."},
		curve{kind: "burst", name: "itl", title: "Gap between two pieces in a burst", axis: "mean ITL", band: true, zones: itlZones, stats: []string{"mean"}, words: "Lower is better."},
		curve{kind: "burst", name: "speed", title: "Speed of one stream in a burst", axis: "mean speed", band: true, zones: speedZones, words: "Higher is better."})
}

func power(runs []Run) Section {
	return Section{
		ID: "power", Title: "Power and cost",
		Lead: "The power of all GPUs together, the energy of a token, and the cost of a token by the plan's prices.",
	}.folded(runs, 3,
		curve{kind: "closed", name: "power", title: "Power", axis: "mean power", ends: true, words: "Mean power of all GPUs together in the measured window."},
		curve{kind: "closed", name: "energy_per_token", title: "Energy of one output token", words: "A fuller server uses less energy for each token. Lower is better.", zero: true},
		curve{kind: "closed", name: "cost_per_million_tokens", title: "Cost of a million output tokens", words: "The cost by the plan's prices, at the throughput of each level. Lower is better."},
		curve{kind: "closed", name: "cost_per_hour", title: "Cost of an hour", words: "By the plan's prices."})
}

func speculative(runs []Run) Section {
	s := Section{
		ID: "speculative", Title: "Speculative decoding",
		Lead: "A small model drafts tokens ahead and the large one checks them in one step. Published reports found that drafting costs more than it gains below about 50% acceptance, and pays off above 60%.",
	}.figures(runs,
		curve{kind: "closed", name: "accept_rate", title: "Drafted tokens that were accepted", axis: "acceptance rate", zero: true, words: "Higher is better."},
		curve{kind: "closed", name: "accept_length", title: "Tokens a step", axis: "acceptance length", words: "Mean number of tokens that one step yields, including the large model's own token. 1 means no gain."}).filled()
	if len(s.Blocks) > 0 {
		s.Blocks = append(s.Blocks, positions(runs).folded())
		return s
	}
	// A server may report nothing about speculative decoding. Several tokens in a chunk are then
	// its only sign.
	_, high := extremes(runs, func(c *report.Case) metric.Value { return mean(c, "tokens_per_chunk") })
	if !high.ok || high.v < 1.2 || math.IsInf(high.v, 0) {
		return s
	}
	s.Lead = "The pieces of an answer hold several tokens. The cause is speculative decoding, or a server that holds the stream back. The server does not report which."
	return s.figures(runs, curve{kind: "closed", name: "tokens_per_chunk", title: "Tokens in one piece of the stream", axis: "mean tokens per chunk", zero: true,
		words: "1 means that every token is sent alone."})
}

// positions shows the share of drafts that was accepted at each position.
func positions(runs []Run) *Table {
	t := &Table{Caption: "Share of drafts in which token 1, 2, … was accepted", Columns: Heads("Load")}
	most := 0
	keep := common(runs)
	measured(runs, func(r Run, c *report.Case) {
		if !keep(c) {
			return
		}
		row := []Cell{text(caseName(runs, r, c))}
		for i := 0; ; i++ {
			s := c.Summary(fmt.Sprintf("accept_rate[%d]", i))
			if s == nil {
				break
			}
			row = append(row, text(s.Value.Format(s.Unit)))
		}
		if n := len(row) - 1; n > 0 && len(t.Rows) < 40 {
			most = max(most, n)
			t.Rows = append(t.Rows, row)
		}
	})
	for i := range most {
		t.Columns = append(t.Columns, Heads(fmt.Sprintf("Token %d", i+1))...)
	}
	return t
}
