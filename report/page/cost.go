package page

import (
	"fmt"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
	clean "github.com/tokgate/tokgate/report/text"
)

// cost shows what each run cost, and how much of it was measured.
func cost(runs []Run) Section {
	s := Section{ID: "cost", Title: "What it cost"}
	for _, r := range runs {
		if r.Spent.Sent == 0 {
			continue
		}
		words := r.Name
		if words != "" {
			words += ": "
		}
		s.Blocks = append(s.Blocks, Block{Text: words + costWords(r.Document)})
	}
	return s
}

// costOfLevels is the same as cost, with a table of the levels.
func costOfLevels(runs []Run) Section {
	s := cost(runs)
	s.Lead = "A level also sends requests that are not measured: to warm up, to keep up the load until the last measured request has ended, and again where the load generator was disturbed."
	for _, r := range runs {
		var cases []*report.Case
		for i := range r.Cases {
			if c := &r.Cases[i]; c.Spent.Sent > 0 {
				cases = append(cases, c)
			}
		}
		s.Blocks = append(s.Blocks,
			fold(strings.TrimSpace("What each level cost "+r.Name), Block{Table: tableOf("What each level cost", costColumns(r), cases)}))
	}
	return s
}

func costColumns(r Run) []measure {
	seconds := func(of func(report.Spent) float64) func(*report.Case) string {
		return func(c *report.Case) string { return metric.Format(metric.Seconds, of(c.Spent)) }
	}
	return []measure{
		{Column{"Level", 0}, "", func(c *report.Case) string {
			return r.title(c.Workload) + " at " + levelOf(c) + r.serverSuffix(c.Server)
		}},
		{Column{"Sent", 0}, "", func(c *report.Case) string { return count(c.Spent.Sent) }},
		{Column{"Measured", 0}, "", func(c *report.Case) string { return count(c.Spent.Measured) }},
		{Column{"Load", 1}, "", seconds(func(s report.Spent) float64 { return s.Load })},
		{Column{"Measured for", 1}, "", seconds(func(s report.Spent) float64 { return s.Judged })},
	}
}

// costWords says what a run cost in one line.
func costWords(d *report.Document) string {
	s := d.Spent
	said := []string{
		fmt.Sprintf("%s requests sent, %s of them measured", count(s.Sent), count(s.Measured)),
		fmt.Sprintf("%s of load, %s of it measured", clean.Clock(s.Load), clean.Clock(s.Judged)),
	}
	if s.Starts > 0 {
		said = append(said, verdict.Count(s.Starts, "server starts"))
	}
	return strings.Join(said, " · ")
}
