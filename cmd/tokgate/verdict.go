package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/record"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/html"
)

// outputs says where the reports of one run go.
type outputs struct {
	dir string // "" writes none but the named ones
	// Copies beside those in dir; "" writes none.
	junit, json, markdown, html, csv string
}

// reportNames are the reports in a results folder: a new run removes those of
// the one before, so that none can be taken for its own.
var reportNames = []string{"results.json", "junit.xml", "report.md", "report.html", historyJUnit, historyMarkdown, historyPage}

// write renders every report and writes each as a whole file. It tries all of
// them: a full disk must not cost the report that would still have fitted.
func (o outputs) write(doc *report.Document, run *metric.Run) error {
	renderings := []struct {
		name   string // in dir; "" has none there
		copy   string
		render func(io.Writer) error
	}{
		{reportNames[0], o.json, doc.Write},
		{reportNames[1], o.junit, func(w io.Writer) error { return report.JUnit(w, doc) }},
		{reportNames[2], o.markdown, func(w io.Writer) error { return report.Markdown(w, doc) }},
		{reportNames[3], o.html, func(w io.Writer) error { return html.Write(w, doc) }},
		{"", o.csv, func(w io.Writer) error { return report.LevelsCSV(w, doc) }},
	}
	var first error
	for _, r := range renderings {
		var paths []string
		if r.name != "" && o.dir != "" {
			paths = append(paths, filepath.Join(o.dir, r.name))
		}
		if r.copy != "" {
			paths = append(paths, r.copy)
		}
		for _, path := range paths {
			if err := writeReport(path, r.render); err != nil && first == nil {
				first = err
			}
		}
	}
	if o.csv != "" && run != nil {
		path := samplesPath(o.csv)
		if err := writeReport(path, func(w io.Writer) error { return report.SamplesCSV(w, run) }); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// writeTogether renders what shows several runs in one file.
func (o outputs) writeTogether(docs []*report.Document) error {
	var first error
	for _, r := range []struct {
		path   string
		render func(io.Writer) error
	}{
		{o.markdown, func(w io.Writer) error { return report.MarkdownTogether(w, docs) }},
		{o.html, func(w io.Writer) error { return html.Write(w, docs...) }},
	} {
		if r.path == "" {
			continue
		}
		if err := writeReport(r.path, r.render); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// samplesPath is where the samples go beside the levels: levels.csv →
// levels.samples.csv.
func samplesPath(levels string) string {
	ext := filepath.Ext(levels)
	return levels[:len(levels)-len(ext)] + ".samples" + ext
}

func writeReport(path string, render func(io.Writer) error) error {
	if path == "-" {
		return render(os.Stdout)
	}
	var b bytes.Buffer
	if err := render(&b); err != nil {
		return fmt.Errorf("could not make report %q: %w", path, err)
	}
	return record.WriteFile(path, b.Bytes())
}

// conclude judges a run, writes its reports, prints the summary and returns
// what they were made of and the exit code.
func (a *app) conclude(p *plan.Plan, run *metric.Run, o outputs, opts assert.Options) (*report.Document, int, error) {
	return a.publish(p, run, o, assert.Judge(p, run, opts))
}

// publish writes the reports of a judged run, prints the summary and returns
// what they were made of and the exit code.
func (a *app) publish(p *plan.Plan, run *metric.Run, o outputs, verdicts assert.Verdicts) (*report.Document, int, error) {
	code := verdicts.ExitCode(run.Stopped == "interrupted")
	host, _ := os.Hostname()
	doc := report.New(run, p, verdicts, report.Meta{
		ExitCode:    code,
		Host:        host,
		Folder:      o.dir,
		Calibration: run.Calibration,
	})
	writeErr := o.write(doc, run)
	t, err := a.terminal(a.Out)
	if err != nil {
		return doc, code, err
	}
	show := func() error { return report.Terminal(a.Out, doc, t.width, t.color) }
	if err := a.actions.foreign(a.Out, show); err != nil && writeErr == nil {
		writeErr = err
	}
	a.actions.concluded(doc)
	if writeErr != nil {
		return doc, assert.ExitError, measureError(writeErr, "the verdict above stands, but not every report could be written")
	}
	return doc, code, nil
}

// worst combines the exit codes of several plans: what could not be measured
// outweighs a failure, a failure an inconclusive answer, and an interruption
// everything.
func worst(codes []int) int {
	order := []int{assert.ExitPass, assert.ExitInconclusive, assert.ExitFail, assert.ExitPlan, assert.ExitError, assert.ExitInterrupted}
	w := 0
	for _, c := range codes {
		i := slices.Index(order, c)
		if i < 0 {
			i = slices.Index(order, assert.ExitError)
		}
		w = max(w, i)
	}
	return order[w]
}
