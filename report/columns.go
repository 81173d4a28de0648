package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tokgate/tokgate/metric"
)

// Column is one column of the table of levels in the terminal, in Markdown and on the HTML page.
// Head is its title.
type Column struct {
	Head   string
	Metric string             // metric in the column; "" if there is none, or several
	Cell   func(*Case) string // returns the text of the cell; "–" for a case without a value
	keep   int                // if space is short, columns with the highest numbers are left out first
}

// LevelColumns lists the columns of client metrics.
var LevelColumns = []Column{
	{Head: "Level", Cell: func(c *Case) string { return c.Level }},
	{Head: "Requests", Cell: requests, keep: 3},
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
	{Head: "Feels", Cell: feels, keep: 10},
	{Head: "Measured for", Cell: window, keep: 13},
}

// insideColumns lists the columns of server and GPU metrics.
var insideColumns = []Column{
	LevelColumns[0],
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
var answerColumns = []Column{
	LevelColumns[0],
	figure(1, "accuracy", ""),
	figure(6, "answer_tokens", "mean"),
	figure(5, "stop_rate", ""),
	figure(2, "empty", ""),
	figure(2, "repetition", ""),
	figure(3, "invalid_text", ""),
	figure(2, "valid_json", ""),
	figure(2, "valid_tool_call", ""),
}

// further lists the tables that follow the table of levels. A table without any value is left out.
var further = []struct {
	head    string
	columns []Column
}{{"What natural answers said", answerColumns}, {"Inside the server", insideColumns}}

// figure returns a column with one statistic of a metric.
func figure(keep int, name, stat string) Column {
	def, _ := metric.Lookup(name)
	return Column{Head: strings.TrimSpace(def.Title + " " + stat), Metric: name, keep: keep, Cell: func(c *Case) string {
		s := c.Summary(name)
		if s == nil {
			return "–"
		}
		return s.Stat(stat).Format(s.Unit)
	}}
}

// gap returns a column with a statistic of itl, the gap between chunks. If chunks hold several
// tokens, the gap is longer than the time per token. The cell then also has the number of tokens
// per chunk.
func gap(keep int, stat string) Column {
	column := figure(keep, "itl", stat)
	plain := column.Cell
	column.Cell = func(c *Case) string {
		per := c.Summary("tokens_per_chunk").Stat("mean")
		if shown := plain(c); shown == "–" || !per.OK || per.V <= metric.FewPerChunk {
			return shown
		}
		return plain(c) + ", " + metric.Format(metric.Count, per.V) + " tok/chunk"
	}
	return column
}

// withHead returns a copy of the column with another head, usually a shorter one.
func (c Column) withHead(head string) Column {
	c.Head = head
	return c
}

// AnswerColumns returns the columns on natural answers. It leaves out columns in which no case has
// a value.
func AnswerColumns(cases []*Case) []Column { return present(answerColumns, cases) }

// present returns the columns that have a value in at least one case.
func present(columns []Column, cases []*Case) []Column {
	var out []Column
	for _, c := range columns {
		if c.Metric == "" || slices.ContainsFunc(cases, func(x *Case) bool {
			s := x.Summary(c.Metric)
			return s != nil && s.Why == "" && c.Cell(x) != "–"
		}) {
			out = append(out, c)
		}
	}
	if len(out) < 2 {
		return nil
	}
	return out
}

// Summary returns the case's summary of a metric, or nil if the case has none.
func (c *Case) Summary(name string) *Summary {
	for i := range c.Metrics {
		if c.Metrics[i].Metric == name {
			return &c.Metrics[i]
		}
	}
	return nil
}

// Stat returns a statistic by its name in a plan, such as "mean" or "p99.9". A metric of the whole
// level has one value, which Stat returns for any name. The result is missing if s is nil or if the
// statistic was not kept.
func (s *Summary) Stat(name string) Number {
	switch {
	case s == nil:
		return Number{}
	case s.Value.OK:
		return s.Value
	case name == "mean":
		return s.Mean
	case name == "min":
		return s.Min
	case name == "max":
		return s.Max
	case s.Percentiles != nil:
		for p, n := range s.Percentiles.each() {
			if name == fmt.Sprintf("p%g", p) {
				return *n
			}
		}
	}
	return Number{}
}

// feels describes the mean TTFT and the mean speed of a case in everyday words.
func feels(c *Case) string {
	var words []string
	for _, name := range []string{"ttft", "speed"} {
		if s := c.Summary(name); s != nil && s.Mean.OK {
			words = append(words, metric.Band(name, s.Mean.V))
		}
	}
	return cmp.Or(strings.Join(words, ", "), "–")
}

// requests writes the numbers of completed and due requests as "completed/due".
func requests(c *Case) string {
	if c.Skipped != "" {
		return "skipped"
	}
	if c.Completed == c.Due {
		return strconv.Itoa(c.Due)
	}
	return fmt.Sprintf("%d/%d", c.Completed, c.Due)
}

// window writes the length of the time over which the rates of the case were computed.
func window(c *Case) string {
	if c.Window <= 0 {
		return "–"
	}
	return metric.Format(metric.Seconds, c.Window)
}
