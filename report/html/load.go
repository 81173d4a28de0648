package html

import (
	"fmt"
	"math"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
)

// figures puts curves into a section; false when none has data.
func (s section) figures(runs []run, curves ...curve) (section, bool) {
	var all []figure
	for _, c := range curves {
		all = append(all, c.figures(runs)...)
	}
	if len(all) == 0 {
		return s, false
	}
	s.Blocks = append(s.Blocks, block{Figures: all})
	return s, true
}

func throughput(runs []run) (section, bool) {
	s, ok := section{
		ID: "throughput", Title: "System throughput",
		Lead: "What the server yields as a whole: the output tokens of all users together. It grows with the load until the hardware is full; from there on more users only make each other wait.",
	}.figures(runs,
		curve{kind: "closed", name: "throughput", title: "Output tokens of all requests together",
			words: "Higher is better. Where the line flattens, the server is full."},
		curve{kind: "closed", name: "request_rate", title: "Requests completed",
			words: "How many requests the server finishes in a second."},
		curve{kind: "closed", name: "goodput", title: "Goodput",
			words: "Requests a second that met every bound of the workload: throughput that users were content with."})
	if !ok {
		return s, false
	}
	low, high := extremes(runs, func(c *report.Case) report.Number {
		if c.Kind != "closed" {
			return report.Number{}
		}
		return mean(c, "throughput")
	})
	s.Blocks[0].Figures[0].Finding = fmt.Sprintf("Highest: %s at %s. Lowest: %s at %s.",
		format("throughput", high.v), where(runs, high.r, high.c), format("throughput", low.v), where(runs, low.r, low.c))
	var rows [][]cell
	for _, t := range tracks(runs, "closed", func(c *report.Case) bool { return mean(c, "throughput").OK }) {
		var top, one *report.Case
		for _, c := range t.line() {
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
		input := mean(top, "input_throughput")
		rows = append(rows, []cell{text(t.name), text(format("throughput", v)), text(fmt.Sprint(top.N)), text(factor), text(big(v*3600) + " tokens"), text(input.Format("tok/s"))})
	}
	s.Blocks = append(s.Blocks, block{Table: &table{Caption: "Peak of each line", Rows: rows,
		Head: []string{"Line", "Peak, output", "Requests in flight", "Times that of one request", "In an hour", "Input read meanwhile"}}})
	return s, true
}

func speed(runs []run) (section, bool) {
	s, ok := section{
		ID: "speed", Title: "Speed for one user",
		Lead: "How fast one user's answer streams once it has begun. The bands are those that published reports use: below 15 tok/s a reader waits for the text, from 50 on it is there at once.",
	}.figures(runs,
		curve{kind: "closed", name: "speed", title: "Speed of one stream", axis: "mean speed", band: true, zones: speedZones,
			words: "All tokens over the time in which they streamed; the shade reaches from the slowest 5% to the fastest 5%. Higher is better."},
		curve{kind: "closed", name: "e2e_speed", title: "Speed over the whole wait", axis: "mean speed, wait included",
			words: "Tokens over the whole time, the wait for the first one included: what a program sees that reads only whole answers."})
	if !ok {
		return s, false
	}
	low, high := extremes(runs, func(c *report.Case) report.Number {
		if c.Kind != "closed" {
			return report.Number{}
		}
		return mean(c, "speed")
	})
	if low.ok {
		word := map[string]string{"slow": "falls below reading pace", "acceptable": "slows to reading pace", "fast": "remains fast everywhere", "very fast": "remains very fast everywhere"}[metric.Band("speed", low.v)]
		s.Blocks[0].Figures[0].Finding = fmt.Sprintf("The mean %s: lowest %s at %s, highest %s at %s.", word,
			format("speed", low.v), where(runs, low.r, low.c), format("speed", high.v), where(runs, high.r, high.c))
	}
	return s, true
}

func ttft(runs []run) (section, bool) {
	s, ok := section{
		ID: "ttft", Title: "Time to first token",
		Lead: "How long a user looks at nothing: the wait in the server's queue and the time it takes to read the prompt (prefill). Long prompts and many users make it longer.",
	}.figures(runs,
		curve{kind: "closed", name: "ttft", title: "Time to first token, mean", axis: "mean TTFT", band: true, zones: ttftZones, stats: []string{"mean"},
			words: "The shade reaches from the fastest 5% to the slowest 5% of the requests. Lower is better."},
		curve{kind: "closed", name: "ttft", title: "Time to first token, slowest 5%", axis: "p95 TTFT", of: stat("ttft", "p95"), zones: ttftZones, stats: []string{"p95"},
			words: "p95: 95 of 100 requests waited no longer than this. Failed requests count as the longest."})
	if !ok {
		return s, false
	}
	low, high := extremes(runs, func(c *report.Case) report.Number {
		if c.Kind != "closed" {
			return report.Number{}
		}
		return mean(c, "ttft")
	})
	if low.ok && len(s.Blocks[0].Figures) > 0 {
		s.Blocks[0].Figures[0].Finding = fmt.Sprintf("Shortest mean: %s (%s) at %s. Longest: %s (%s) at %s.",
			format("ttft", low.v), metric.Band("ttft", low.v), where(runs, low.r, low.c), format("ttft", high.v), metric.Band("ttft", high.v), where(runs, high.r, high.c))
	}
	return s, true
}

func gaps(runs []run) (section, bool) {
	s, ok := section{
		ID: "itl", Title: "Gaps within the text",
		Lead: "How evenly an answer streams: the time between two pieces of it. Long gaps look like stutter. With speculative decoding a piece holds several tokens.",
	}.figures(runs,
		curve{kind: "closed", name: "itl", title: "Gap between two pieces, mean", axis: "mean ITL", band: true, zones: itlZones, stats: []string{"mean"},
			words: "The shade reaches from p5 to p95 of all gaps. Lower is better."},
		curve{kind: "closed", name: "tpot", title: "Time per token after the first", axis: "mean TPOT",
			words: "What each further token costs one user. Lower is better."})
	if !ok {
		return s, false
	}
	var rows [][]cell
	measured(runs, func(r run, c *report.Case) {
		itl, pooled, each, per := mean(c, "itl"), mean(c, "speed"), mean(c, "request_speed"), mean(c, "tokens_per_chunk")
		if c.Kind != "closed" || !itl.OK || !pooled.OK || len(rows) >= 40 {
			return
		}
		rows = append(rows, []cell{text(where(runs, r, c)), text(pooled.Format("tok/s")), text(each.Format("tok/s")), text(itl.Format("s")), text(per.Format("tokens"))})
	})
	if len(rows) > 0 {
		s.Blocks = append(s.Blocks, block{Table: &table{Caption: "Two ways to average speed, and tokens in each piece", Rows: rows,
			Head: []string{"Load", "All tokens over their time", "Mean of the requests' speeds", "Mean gap", "Tokens in a piece"}}})
	}
	return s, true
}

func prefill(runs []run) (section, bool) {
	return section{
		ID: "prefill", Title: "Reading speed (prefill)",
		Lead: "How fast the server reads a prompt before it can answer. It decides how long prompts make users wait.",
	}.figures(runs,
		curve{kind: "closed", name: "prefill_speed", title: "Prefill speed", words: "Input tokens a second, queueing left out. Higher is better."},
		curve{kind: "closed", name: "prefill", title: "Prefill time", axis: "mean prefill time", words: "By the server's own count. Lower is better."},
		curve{kind: "closed", name: "input_throughput", title: "Input tokens read by the whole server", words: "Of all requests together."})
}

func queue(runs []run) (section, bool) {
	return section{
		ID: "queue", Title: "Queue wait",
		Lead: "How long requests wait before the server begins to work on them. At one request it should be close to nothing; where it grows, the server is full.",
	}.figures(runs,
		curve{kind: "closed", name: "queue_wait", title: "Wait in the server's queue", axis: "mean queue wait", words: "By the server's own count; a part of TTFT. Lower is better."},
		curve{kind: "closed", name: "waiting", title: "Requests waiting", axis: "most requests waiting", of: stat("waiting", "max"), quiet: true, words: "The longest queue seen in the window."},
		curve{kind: "closed", name: "preemptions", title: "Preemptions", quiet: true, words: "Requests that the server stopped to make room for others."})
}

func scaling(runs []run) (section, bool) {
	return section{
		ID: "scaling", Title: "Scaling",
		Lead: "How much of one user's speed is left for each when many share the server. 100% would mean that users do not notice each other.",
	}.figures(runs,
		curve{kind: "closed", name: "scaling_efficiency", title: "Scaling efficiency", zero: true,
			words: "Throughput at N requests over N times the throughput at one. It falls as users share the hardware; the throughput still grows as long as it falls more slowly than N rises."},
		curve{kind: "closed", name: "success", title: "Requests that completed correctly", axis: "success", zero: true,
			words: "Of the requests that were due. Anything below 100% deserves a look."})
}

func bursts(runs []run) (section, bool) {
	return section{
		ID: "burst", Title: "Bursts",
		Lead: "What happens when many requests come at the same instant, as after a lecture's question or at the start of a batch job. The largest burst that is still served in time is the largest safe queue.",
	}.figures(runs,
		curve{kind: "burst", name: "ttft", title: "Time to first token in a burst, mean", axis: "mean TTFT", band: true, zones: ttftZones, stats: []string{"mean"},
			words: "The shade reaches from the fastest 5% to the slowest 5%. The last of a burst waits for all before it. Lower is better."},
		curve{kind: "burst", name: "ttft", title: "Time to first token in a burst, slowest 5%", axis: "p95 TTFT", of: stat("ttft", "p95"), zones: ttftZones, stats: []string{"p95"},
			words: "95 of 100 requests waited no longer than this."},
		curve{kind: "burst", name: "itl", title: "Gap between two pieces in a burst", axis: "mean ITL", band: true, zones: itlZones, stats: []string{"mean"}, words: "Lower is better."},
		curve{kind: "burst", name: "speed", title: "Speed of one stream in a burst", axis: "mean speed", band: true, zones: speedZones, words: "Higher is better."})
}

func power(runs []run) (section, bool) {
	s, ok := section{
		ID: "power", Title: "Power and cost",
		Lead: "What the GPUs draw, all of them together, and what a token costs in energy.",
	}.figures(runs,
		curve{kind: "closed", name: "power", title: "Power", axis: "mean power", words: "Of all GPUs together, mean over the measured window."},
		curve{kind: "closed", name: "energy_per_token", title: "Energy of one output token", words: "Lower is better: a fuller server spends less on each token.", zero: true},
		curve{kind: "closed", name: "cost_per_hour", title: "Cost of an hour", words: "By the plan's prices."},
		curve{kind: "closed", name: "cost_per_million_tokens", title: "Cost of a million output tokens", words: "By the plan's prices, at the throughput of each level. Lower is better."})
	if !ok {
		return s, false
	}
	if _, high := extremes(runs, func(c *report.Case) report.Number { return mean(c, "power") }); high.ok {
		s.Blocks[0].Figures[0].Finding = fmt.Sprintf("Most: %s at %s.", format("power", high.v), where(runs, high.r, high.c))
	}
	return s, true
}

func speculative(runs []run) (section, bool) {
	s, ok := section{
		ID: "speculative", Title: "Speculative decoding",
		Lead: "A small model drafts tokens ahead and the large one checks them in one step. As published reports found it, drafting costs more than it yields below about 50% acceptance and pays above 60%.",
	}.figures(runs,
		curve{kind: "closed", name: "accept_rate", title: "Drafted tokens that were accepted", axis: "acceptance rate", zero: true, words: "Higher is better."},
		curve{kind: "closed", name: "accept_length", title: "Tokens a step", axis: "acceptance length", words: "Mean tokens of one step, the large model's own counted: 1 is no gain."})
	if ok {
		if t := positions(runs); t != nil {
			s.Blocks = append(s.Blocks, block{Table: t})
		}
		return s, ok
	}
	// A server that tells nothing of its drafts shows them by its chunks.
	_, high := extremes(runs, func(c *report.Case) report.Number { return mean(c, "tokens_per_chunk") })
	if !high.ok || high.v < 1.2 || math.IsInf(high.v, 0) {
		return s, false
	}
	s.Lead = "The pieces of an answer hold several tokens, as with speculative decoding (or a server that holds the stream back). The server tells nothing more of it."
	return s.figures(runs, curve{kind: "closed", name: "tokens_per_chunk", title: "Tokens in one piece of the stream", axis: "mean tokens per chunk", zero: true,
		words: "1 where every token is sent by itself."})
}

// positions is what share of the drafts was accepted at each position; nil
// where no server tells.
func positions(runs []run) *table {
	t := &table{Caption: "Share of drafts whose token was accepted, by its position in the draft", Head: []string{"Load"}}
	most := 0
	measured(runs, func(r run, c *report.Case) {
		row := []cell{text(where(runs, r, c))}
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
	if most == 0 {
		return nil
	}
	for i := range most {
		t.Head = append(t.Head, fmt.Sprintf("Token %d", i+1))
	}
	return t
}
