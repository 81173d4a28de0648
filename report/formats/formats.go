// Package formats has the list of all formats in which a run can be written. Flags, files, error
// messages, documentation and golden tests use this list. A new format needs only a renderer and an
// entry in the list.
package formats

import (
	"cmp"
	"io"
	"path"
	"strings"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/html"
	"github.com/tokgate/tokgate/report/markdown"
)

// Format is one output format of a run. No format decides the exit code.
type Format struct {
	Name string // what the format shows, such as "the levels as CSV"
	Flag string // without dashes
	File string // file name in a results folder; "" if a run writes no file of this format
	For  string // who reads it
	Doc  string // one line of Markdown that describes the format
	Kind string // extension of the files, without the dot; if "", that of File, or else Flag

	Write func(io.Writer, *report.Document) error
	// Together writes several runs into one file; nil if they cannot share one.
	Together func(io.Writer, []*report.Document) error
	// Samples writes the requests into a second file, NAME.samples.EXT next to NAME.EXT; nil if
	// the format has none.
	Samples func(io.Writer, *metric.Run) error
}

// Ext is the usual extension of the format's files, without the dot.
func (f Format) Ext() string {
	return cmp.Or(f.Kind, strings.TrimPrefix(path.Ext(cmp.Or(f.File, "."+f.Flag)), "."))
}

// All lists the formats in the order in which a run writes them. The first, the results as JSON,
// has all that the others need.
var All = []Format{
	{
		Name: "the results (JSON)", Flag: "json", File: "results.json", For: "programs",
		Doc:   "everything, with all digits; a [schema](../report/schema/results.schema.json) describes it",
		Write: func(w io.Writer, d *report.Document) error { return d.Write(w) },
	},
	{
		Name: "the JUnit XML", Flag: "junit", File: "junit.xml", For: "CI systems",
		Doc:   "a testcase for each requirement and level",
		Write: report.JUnit,
	},
	{
		Name: "the Markdown report", Flag: "markdown", File: "report.md", For: "a job's summary",
		Doc:   "at most 60 lines: the verdict, the changes, a line for each workload, the failures",
		Write: markdown.Write, Together: markdown.Together,
	},
	{
		Name: "the HTML report", Flag: "html", File: "report.html", For: "people",
		Doc:      "the brief first, then the evidence: use cases, charts, the plan, definitions",
		Write:    func(w io.Writer, d *report.Document) error { return html.Write(w, d) },
		Together: func(w io.Writer, docs []*report.Document) error { return html.Write(w, docs...) },
	},
	{
		Name: "the brief (HTML)", Flag: "brief", Kind: "html", For: "whoever decides",
		Doc:   "the first page of `report.html`, on one page of A4",
		Write: html.Brief,
	},
	{
		Name: "the comment (Markdown)", Flag: "comment", File: "comment.md", For: "a pull request",
		Doc:   "at most 40 lines: the verdict, the changes, the failures, what would decide an open verdict",
		Write: markdown.Comment,
	},
	{
		Name: "the levels as CSV", Flag: "csv", For: "spreadsheets",
		Doc:   "a row for each level; `NAME.samples.csv` has a row for each request",
		Write: report.LevelsCSV, Samples: report.SamplesCSV,
	},
	{
		Name: "llm-d's Benchmark Report (JSON)", Flag: "benchmark-report", Kind: "jsonl", For: "llm-d's tools",
		Doc:   "a report of version 0.2.1 for each level, one a line; throughput as vLLM's client counts it",
		Write: report.BenchmarkReport,
	},
}
