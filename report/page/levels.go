package page

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
	clean "github.com/tokgate/tokgate/report/text"
)

// measure is a column of a table of levels.
type measure struct {
	Column
	name string                    // of the metric in the column; "" if there is none, or several
	of   func(*report.Case) string // text of the cell; "–" for a case without a value
}

var levelColumn = measure{Column{"Level", 0}, "", levelOf}

// clientColumns lists the columns of client metrics.
var clientColumns = []measure{
	levelColumn,
	{Column{"Requests", 3}, "", requests},
	figure(2, "success", ""),
	figure(6, "ttft", "mean"),
	figure(1, "ttft", "p95"),
	figure(11, "ttft", "p99"),
	figure(4, "speed", "mean"),
	figure(5, "speed", "p5"),
	figure(9, "tpot", "mean"),
	gap(12, "mean"),
	gap(8, "p99"),
	figure(7, "e2e", "mean"),
	figure(2, "throughput", ""),
	{Column{"Cached of implied", 3}, "cache_hit_rate", hits},
	textless(2, "input_throughput"),
	textless(3, "request_rate"),
	{Column{"Feels", 10}, "", feels},
	{Column{"Measured for", 13}, "", window},
}

// insideColumns lists the columns of server and GPU metrics.
var insideColumns = []measure{
	levelColumn,
	figure(1, "queue_wait", "mean"),
	figure(5, "prefill", "mean"),
	figure(10, "server_ttft", "mean"),
	figure(11, "server_itl", "mean"),
	figure(12, "server_e2e", "mean"),
	figure(2, "waiting", "max"),
	figure(6, "running", "mean"),
	figure(2, "kv_usage", "max").withHead("KV max"),
	figure(3, "preemptions", ""),
	figure(7, "accept_length", ""),
	figure(4, "power", "mean"),
	figure(8, "gpu_clock", "min"),
	figure(9, "energy_per_token", ""),
	figure(4, "cost_per_million_tokens", "").withHead("Cost per 1M"),
}

// answerColumns lists the columns on natural answers.
var answerColumns = []measure{
	levelColumn,
	figure(1, "accuracy", ""),
	figure(6, "answer_tokens", "mean"),
	figure(5, "stop_rate", ""),
	figure(2, "empty", ""),
	figure(2, "repetition", ""),
	figure(3, "invalid_text", ""),
	figure(2, "valid_json", ""),
	figure(2, "valid_tool_call", ""),
}

func figure(rank int, name, stat string) measure {
	def, _ := metric.Lookup(name)
	return measure{Column{strings.TrimSpace(def.Title + " " + stat), rank}, name, func(c *report.Case) string {
		s := c.Summary(name)
		if s == nil {
			return "–"
		}
		return s.Stat(stat).Format(s.Unit)
	}}
}

// textless returns a column with a rate, of cases without output tokens alone. Of others the throughput
// says more.
func textless(rank int, name string) measure {
	column := figure(rank, name, "")
	plain := column.of
	column.of = func(c *report.Case) string {
		if c.Summary("throughput").Stat("").OK {
			return "–"
		}
		return plain(c)
	}
	return column
}

// gap returns a column with a statistic of itl, the gap between chunks. If chunks hold several
// tokens, the gap is longer than the time per token. The cell then also has the number of tokens
// per chunk.
func gap(rank int, stat string) measure {
	column := figure(rank, "itl", stat)
	plain := column.of
	column.of = func(c *report.Case) string {
		per := c.Summary("tokens_per_chunk").Stat("mean")
		if shown := plain(c); shown == "–" || !per.OK || per.V <= metric.FewPerChunk {
			return shown
		}
		return plain(c) + ", " + metric.Format(metric.Count, per.V) + " tok/chunk"
	}
	return column
}

func (m measure) withHead(head string) measure {
	m.Head = head
	return m
}

// tableOf returns a table with a row for each case. A column without any value is left out. The
// table is nil if only the level is left.
func tableOf(caption string, columns []measure, cases []*report.Case) *Table {
	t := &Table{Caption: caption, Rows: make([][]Cell, len(cases))}
	for _, m := range columns {
		if m.name != "" && !slices.ContainsFunc(cases, func(c *report.Case) bool { return m.of(c) != "–" }) {
			continue
		}
		t.Columns = append(t.Columns, m.Column)
		for i, c := range cases {
			t.Rows[i] = append(t.Rows[i], text(m.of(c)))
		}
	}
	if len(t.Columns) < 2 {
		return nil
	}
	return t
}

// levelTables returns the tables of a workload's levels on a server: what users saw, what answers
// said, what the server reported, replica by replica, conversations turn by turn, and the rows of a data set.
func levelTables(cases []*report.Case) []Block {
	var out []Block
	for _, t := range []*Table{
		tableOf("Levels", clientColumns, cases), tableOf("What natural answers said", answerColumns, cases),
		tableOf("Inside the server", insideColumns, cases), queried(cases), replicas(cases), turns(cases), dataRows(cases),
	} {
		if t != nil && len(t.Rows) > 0 {
			out = append(out, Block{Table: t})
		}
	}
	return out
}

func queried(cases []*report.Case) *Table {
	t := &Table{Caption: "By Prometheus", Columns: Heads("Series", "Level", "Mean", "Min", "Max", "Readings")}
	for _, c := range cases {
		for i := range c.Metrics {
			s := &c.Metrics[i]
			if _, known := metric.Lookup(s.Metric); known || s.Of != "reading" {
				continue
			}
			mean, least, most := s.Mean.Format(s.Unit), s.Min.Format(s.Unit), s.Max.Format(s.Unit)
			t.Rows = append(t.Rows, Row(Line(s.Metric), levelOf(c), mean, least, most, strconv.Itoa(s.N)))
		}
	}
	return t
}

func replicas(cases []*report.Case) *Table {
	t := &Table{Caption: "Replica by replica", Columns: Heads("Replica", "Level", "Requests", "Output tokens", "Share", "Running mean", "Waiting max", "KV max", "Cache hits")}
	cached := false
	for _, c := range cases {
		total := 0.0
		for _, x := range c.Replicas {
			total += x.Added[metric.GeneratedTokens]
		}
		for _, x := range c.Replicas {
			tokens, known := x.Added[metric.GeneratedTokens]
			hits, looks := x.Added[metric.CacheHits], x.Added[metric.CacheQueries]
			cached = cached || looks > 0
			running, waiting, kv := x.Gauges["running"], x.Gauges["waiting"], x.Gauges["kv_usage"]
			t.Rows = append(t.Rows, Row(Line(x.URL), levelOf(c), told(metric.Count, x.Requests, x.Requests > 0),
				told(metric.Count, tokens, known), told(metric.Ratio, tokens/total, known && total > 0),
				told(metric.Count, running.Mean, running.N > 0), told(metric.Count, waiting.Max, waiting.N > 0),
				told(metric.Ratio, kv.Max, kv.N > 0), told(metric.Ratio, hits/looks, looks > 0)))
		}
	}
	if last := len(t.Columns) - 1; !cached {
		t.Columns = t.Columns[:last]
		for i := range t.Rows {
			t.Rows[i] = t.Rows[i][:last]
		}
	}
	return t
}

func told(unit metric.Unit, v float64, known bool) string {
	return metric.Value{V: v, OK: known}.Format(unit)
}

func turns(cases []*report.Case) *Table {
	t := &Table{Caption: "Turn by turn", Columns: Heads("Level", "Turn", "Requests", "TTFT mean", "TTFT p95", "Cached of implied")}
	for _, c := range cases {
		for _, x := range c.Turns {
			name := fmt.Sprint(x.From)
			if x.To > x.From {
				name += fmt.Sprintf(" to %d", x.To)
			}
			seconds := metric.Seconds
			t.Rows = append(t.Rows,
				Row(levelOf(c), name, fmt.Sprint(x.Requests), x.Mean.Format(seconds), x.P95.Format(seconds),
					ofImplied(x.Cached, x.Implied)))
		}
	}
	return t
}

func dataRows(cases []*report.Case) *Table {
	t := &Table{Caption: "Rows of the data set, and their lengths in tokens",
		Columns: Heads("Level", "Rows", "Again", "Prompt p5", "Prompt p50", "Prompt p95", "Answer p5", "Answer p50", "Answer p95")}
	for _, c := range cases {
		if x := c.Rows; x != nil {
			cells := Row(levelOf(c))
			for _, n := range []int{x.Sent, x.Again, x.Prompt.P5, x.Prompt.P50, x.Prompt.P95, x.Answer.P5, x.Answer.P50, x.Answer.P95} {
				cells = append(cells, text(strconv.Itoa(n)))
			}
			t.Rows = append(t.Rows, cells)
		}
	}
	return t
}

// hits returns the cache hit rate of a case beside the one that its prompts imply; "–" if they begin
// differently.
func hits(c *report.Case) string {
	if !c.Implied.OK {
		return "–"
	}
	return ofImplied(c.Summary("cache_hit_rate").Stat(""), c.Implied)
}

func ofImplied(found, implied metric.Value) string {
	if !implied.OK {
		return found.Format(metric.Ratio)
	}
	return found.Format(metric.Ratio) + " of " + implied.Format(metric.Ratio)
}

// feels describes the mean TTFT and the mean speed of a case in everyday words.
func feels(c *report.Case) string {
	var words []string
	for _, name := range []string{"ttft", "speed"} {
		if s := c.Summary(name); s != nil && s.Mean.OK {
			words = append(words, metric.Band(name, s.Mean.V))
		}
	}
	return cmp.Or(strings.Join(words, ", "), "–")
}

// requests writes the numbers of completed and due requests as "completed/due".
func requests(c *report.Case) string {
	if c.Skipped != "" {
		return "skipped"
	}
	if c.Completed == c.Due() {
		return strconv.Itoa(c.Due())
	}
	return fmt.Sprintf("%d/%d", c.Completed, c.Due())
}

func window(c *report.Case) string {
	if c.Window <= 0 {
		return "–"
	}
	return metric.Format(metric.Seconds, c.Window)
}

func remarks(r Run, cases []*report.Case) []string {
	var out []string
	for _, c := range cases {
		at := "at " + levelOf(c)
		if c.Skipped != "" {
			out = append(out, at+", nothing was measured: "+Line(c.Skipped))
		}
		for _, f := range c.Failures {
			said := at + ", " + verdict.Count(f.Count, "requests") + " failed (" + Line(f.Kind) + ")"
			if len(f.Messages) > 0 {
				said += ": " + count(f.Messages[0].Count) + " × " + Line(f.Messages[0].Text)
			}
			out = append(out, clean.Bytes(said, 400))
		}
		if c.Departures != nil {
			out = append(out, at+": "+c.Departures.String())
		}
		for _, n := range c.Notes {
			out = append(out, clean.Bytes(at+": "+Line(n), 400))
		}
	}
	return out
}
