package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tokgate/tokgate/metric"
)

// column is one column of the table of levels, the same in the terminal and
// in Markdown.
type column struct {
	head   string
	metric string // that it shows; "": none, or several
	keep   int    // of the columns that do not fit, the highest go first
	cell   func(*Case) string
}

var levelColumns = []column{
	{"Level", "", 0, func(c *Case) string { return c.Level }},
	{"Requests", "", 3, requests},
	{"Success", "success", 2, level("success")},
	{"TTFT mean", "ttft", 6, stat("ttft", func(s *Summary) Number { return s.Mean })},
	{"TTFT p95", "ttft", 1, stat("ttft", func(s *Summary) Number { return s.Percentiles.P95 })},
	{"Speed mean", "speed", 4, stat("speed", func(s *Summary) Number { return s.Mean })},
	{"Speed p5", "speed", 5, stat("speed", func(s *Summary) Number { return s.Percentiles.P5 })},
	{"TPOT mean", "tpot", 9, stat("tpot", func(s *Summary) Number { return s.Mean })},
	{"ITL p99", "itl", 8, stat("itl", func(s *Summary) Number { return s.Percentiles.P99 })},
	{"E2E mean", "e2e", 7, stat("e2e", func(s *Summary) Number { return s.Mean })},
	{"Throughput", "throughput", 2, level("throughput")},
	{"Feels", "", 10, feels},
}

// insideColumns are those of the table of what servers told of themselves.
var insideColumns = []column{
	{"Level", "", 0, func(c *Case) string { return c.Level }},
	{"Queue wait mean", "queue_wait", 1, told("queue_wait", func(s *Summary) Number { return s.Mean })},
	{"Prefill mean", "prefill", 5, told("prefill", func(s *Summary) Number { return s.Mean })},
	{"Waiting max", "waiting", 2, told("waiting", func(s *Summary) Number { return s.Max })},
	{"Running mean", "running", 6, told("running", func(s *Summary) Number { return s.Mean })},
	{"KV max", "kv_usage", 2, told("kv_usage", func(s *Summary) Number { return s.Max })},
	{"Preemptions", "preemptions", 3, level("preemptions")},
	{"Accept length", "accept_length", 7, level("accept_length")},
	{"Power mean", "power", 4, told("power", func(s *Summary) Number { return s.Mean })},
	{"GPU clock min", "gpu_clock", 8, told("gpu_clock", func(s *Summary) Number { return s.Min })},
	{"Energy per token", "energy_per_token", 9, level("energy_per_token")},
	{"Cost per 1M", "cost_per_million_tokens", 4, level("cost_per_million_tokens")},
}

// insideOf are the columns in which a case has something; none when no server
// told anything.
func insideOf(cases []*Case) []column {
	var out []column
	for _, c := range insideColumns {
		if c.metric == "" || slices.ContainsFunc(cases, func(x *Case) bool {
			s := x.Summary(c.metric)
			return s != nil && s.Why == "" && c.cell(x) != "–"
		}) {
			out = append(out, c)
		}
	}
	if len(out) < 2 {
		return nil
	}
	return out
}

// told shows a statistic that needs no percentiles.
func told(name string, of func(*Summary) Number) func(*Case) string {
	return func(c *Case) string {
		s := c.Summary(name)
		if s == nil {
			return "–"
		}
		return of(s).Format(s.Unit)
	}
}

// Summary returns the case's summary of a metric, nil when it has none.
func (c *Case) Summary(name string) *Summary {
	for i := range c.Metrics {
		if c.Metrics[i].Metric == name {
			return &c.Metrics[i]
		}
	}
	return nil
}

func level(name string) func(*Case) string {
	return func(c *Case) string {
		s := c.Summary(name)
		if s == nil {
			return "–"
		}
		return s.Value.Format(s.Unit)
	}
}

func stat(name string, of func(*Summary) Number) func(*Case) string {
	return func(c *Case) string {
		s := c.Summary(name)
		if s == nil || s.Percentiles == nil {
			return "–"
		}
		return of(s).Format(s.Unit)
	}
}

// feels words what people say of the mean TTFT and speed.
func feels(c *Case) string {
	var words []string
	for _, name := range []string{"ttft", "speed"} {
		if s := c.Summary(name); s != nil && s.Mean.OK {
			words = append(words, metric.Band(name, s.Mean.V))
		}
	}
	return cmp.Or(strings.Join(words, ", "), "–")
}

// requests is completed/due, so that what is missing shows.
func requests(c *Case) string {
	if c.Skipped != "" {
		return "skipped"
	}
	if c.Completed == c.Due {
		return strconv.Itoa(c.Due)
	}
	return fmt.Sprintf("%d/%d", c.Completed, c.Due)
}
