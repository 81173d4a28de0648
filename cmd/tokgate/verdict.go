package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/record"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/formats"
	rendered "github.com/tokgate/tokgate/report/terminal"
)

type outputs struct {
	dir    string            // folder for all reports; "": write only the files in copies
	copies map[string]string // paths of further report files, by the flag of their format
	// summary prints the main results, not every level.
	summary bool
}

func (o *outputs) flags(cmd *cobra.Command) {
	o.copies = map[string]string{}
	cmd.Flags().BoolVar(&o.summary, "summary", false, "print only a line for each workload, what failed, and the outcome")
	for _, x := range formats.All {
		usage := "write " + x.Name + " to this `file`"
		if x.Samples != nil {
			usage += ", and the samples beside it"
		}
		cmd.Flags().Func(x.Flag, usage, func(path string) error {
			o.copies[x.Flag] = path
			return nil
		})
		_ = cmd.MarkFlagFilename(x.Flag, x.Ext()) // cannot fail: the flag exists
	}
}

func (o outputs) show(w io.Writer, d *report.Document, width int, color bool) error {
	if o.summary {
		return rendered.Summary(w, d, width, color)
	}
	return rendered.Write(w, d, width, color)
}

// unshared returns an error if the user asks for a report that cannot hold several plans or runs.
// The argument is a function that returns true for such formats. The error lists the flags of the
// other formats.
func (o outputs) unshared(what string, cannot func(formats.Format) bool) error {
	var refused, together []string
	named := false
	for _, x := range formats.All {
		if !cannot(x) {
			together = append(together, "--"+x.Flag)
			continue
		}
		refused = append(refused, "--"+x.Flag)
		named = named || o.copies[x.Flag] != ""
	}
	if !named {
		return nil
	}
	hint := "--out gives each plan a folder of its own"
	if len(together) > 0 {
		hint = strings.Join(together, " and ") + " show several runs together"
	}
	last := len(refused) - 1
	return usageError(hint, "several %s cannot share one %s or %s file", what, strings.Join(refused[:last], ", "), refused[last])
}

// A new run removes the reports of the previous run, so that none can be mistaken for a new one.
func reportNames() []string {
	names := []string{historyJUnit, historyMarkdown, historyPage, historyBadge}
	for _, x := range formats.All {
		if x.File != "" {
			names = append(names, x.File)
		}
	}
	return names
}

// write renders and writes every report, each as a whole file. After an error it continues: if the
// disk is full, a smaller report may still fit.
func (o outputs) write(doc *report.Document, run *metric.Run) error {
	var first error
	for _, x := range formats.All {
		path := o.copies[x.Flag]
		if x.File != "" && o.dir != "" {
			first = cmp.Or(first, writeReport(filepath.Join(o.dir, x.File), func(w io.Writer) error { return x.Write(w, doc) }))
		}
		if path != "" {
			first = cmp.Or(first, writeReport(path, func(w io.Writer) error { return x.Write(w, doc) }))
		}
		if path != "" && x.Samples != nil && run != nil {
			first = cmp.Or(first, writeReport(samplesPath(path), func(w io.Writer) error { return x.Samples(w, run) }))
		}
	}
	return first
}

func (o outputs) samples() bool {
	return slices.ContainsFunc(formats.All, func(x formats.Format) bool { return x.Samples != nil && o.copies[x.Flag] != "" })
}

func (o outputs) writeTogether(docs []*report.Document) error {
	var first error
	for _, x := range formats.All {
		if path := o.copies[x.Flag]; path != "" && x.Together != nil {
			first = cmp.Or(first, writeReport(path, func(w io.Writer) error { return x.Together(w, docs) }))
		}
	}
	return first
}

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

func (a *app) conclude(p *plan.Plan, run *metric.Run, o outputs, opts assert.Options) (*report.Document, int, error) {
	opts.Rambling = rambled(p, run)
	concurrently := opts
	concurrently.Each = onAllCores
	judged := assert.Judge(p, run, concurrently)
	return a.publish(p, run, o, judged, findStrength(p, run, judged, opts))
}

func (a *app) publish(p *plan.Plan, run *metric.Run, o outputs, verdicts assert.Verdicts,
	noticed *report.Strength) (*report.Document, int, error) {
	code := verdicts.ExitCode(run.Stopped == exec.StoppedInterrupted)
	host, _ := os.Hostname()
	doc := report.New(run, p, verdicts, report.Meta{
		ExitCode:    code,
		Host:        host,
		Folder:      o.dir,
		Calibration: run.Calibration,
		Strength:    noticed,
		Each:        onAllCores,
	})
	writeErr := o.write(doc, run)
	if writeErr != nil {
		// The exit code is now an error. Write the reports again, so that they have it too.
		doc.ExitCode, doc.Why = verdict.ExitError, "not every report could be written"
		_ = o.write(doc, run)
	}
	t := a.terminal(a.Out)
	show := func() error { return o.show(a.Out, doc, t.width, t.color) }
	if err := a.actions.foreign(a.Out, show); err != nil && writeErr == nil {
		writeErr = err
	}
	a.actions.concluded(doc)
	if writeErr != nil {
		return doc, verdict.ExitError, measureError(writeErr, "the verdict above stands, but not every report could be written")
	}
	return doc, code, nil
}
