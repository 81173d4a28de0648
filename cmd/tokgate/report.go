package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/formats"
	rendered "github.com/tokgate/tokgate/report/terminal"
)

func (a *app) reportCommand() *cobra.Command {
	var out outputs
	cmd := &cobra.Command{
		Use:   "report RESULTS...",
		Short: "Show recorded runs again; no server and no plan are needed",
		Long: `Shows the verdicts and measurements of recorded runs, and writes them in other
formats. It judges nothing: the verdicts are those of the run. If a run was killed
before it was judged, it shows what was measured. Several runs are shown one after
another, then side by side; --html and --markdown put them into one report.

Exit code 0, whatever the verdict was; 4: a folder cannot be read or a report
cannot be written.`,
		Example: `  tokgate report results/demo
  tokgate report results/demo --markdown summary.md --csv levels.csv
  tokgate report results/before results/after --html together.html`,
		Args:              takes(1, math.MaxInt, "tokgate report results/demo", "no results folder named"),
		ValidArgsFunction: completeFolders,
		RunE:              func(_ *cobra.Command, args []string) error { return a.report(args, out) },
	}
	out.flags(cmd)
	return cmd
}

func (a *app) report(args []string, out outputs) error {
	if len(args) > 1 {
		if err := out.unshared("runs", func(x formats.Format) bool { return x.Together == nil }); err != nil {
			return err
		}
	}
	t := a.terminal(a.Out)
	var docs []*report.Document
	for i, dir := range args {
		doc, run, err := a.readDocument(dir, out.samples())
		if err != nil {
			return err
		}
		if docs = append(docs, doc); len(args) > 1 {
			doc.Folder = dir // path of the folder now, because it may have been moved since the run
		}
		if i > 0 {
			fmt.Fprintln(a.Out)
		}
		if err := out.show(a.Out, doc, t.width, t.color); err != nil {
			return measureError(err)
		}
		if len(args) > 1 {
			continue
		}
		if err := out.write(doc, run); err != nil {
			return measureError(err)
		}
	}
	if len(args) > 1 {
		fmt.Fprintln(a.Out)
		if err := rendered.Together(a.Out, docs, t.width, t.color); err != nil {
			return measureError(err)
		}
		if err := out.writeTogether(docs); err != nil {
			return measureError(err)
		}
	}
	return nil
}

// readDocument reads results.json in a folder. If the run was not judged, this file is missing, and
// the document is made from the samples. The run itself is returned only if samples is set.
func (a *app) readDocument(dir string, samples bool) (*report.Document, *metric.Run, error) {
	if err := needFolder(dir); err != nil {
		return nil, nil, err
	}
	f, err := record.OpenIn(dir, "results.json", os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		run, err := a.readRun(dir)
		if err != nil {
			return nil, nil, err
		}
		return report.New(run, nil, assert.Verdicts{Outcome: verdict.Error}, report.Meta{ExitCode: verdict.ExitError,
			Folder: dir, Calibration: run.Calibration, Each: onAllCores}), run, nil
	}
	if err != nil {
		return nil, nil, measureError(err)
	}
	defer f.Close()
	doc, err := report.ReadDocument(f)
	if err != nil {
		return nil, nil, measureError(fmt.Errorf("could not read %q: %w", f.Name(), err))
	}
	if !samples {
		return doc, nil, nil
	}
	run, err := a.readRun(dir)
	return doc, run, err
}

// A command needs a results folder, but people sometimes name a plan or a file inside the folder.
func needFolder(path string) error {
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return nil // if os.Stat failed, so will reading the folder, and that error is reported
	}
	hint := "name the folder that `tokgate run` wrote"
	switch _, err := os.Stat(filepath.Join(filepath.Dir(path), record.File)); {
	case isPlanFile(filepath.Base(path)):
		hint = "a plan comes after the folder: tokgate judge results/chat chat.hcl"
	case err == nil:
		hint = fmt.Sprintf("did you mean %q?", filepath.Dir(path))
	}
	return usageError(hint, "%q is no results folder", path)
}

func (a *app) readRun(dir string) (*metric.Run, error) {
	if err := needFolder(dir); err != nil {
		return nil, err
	}
	run, problems, err := record.Read(dir)
	if err != nil {
		return nil, measureError(err, "name the folder that `tokgate run` wrote, with samples.jsonl in it")
	}
	for _, p := range problems {
		fmt.Fprintf(a.Err, "tokgate: %s\n", p)
	}
	return run, nil
}

// needProtected returns an error if the lines of a recording have no checksums, because damage to
// them cannot be found. If allowed is set, it only warns.
func (a *app) needProtected(run *metric.Run, dir string, allowed bool) error {
	if run.Recording != "" {
		return nil
	}
	if !allowed {
		return measureError(fmt.Errorf("the recording in %s is from an older version and has no checksums, so damage would not be noticed", dir), "add --unprotected to read it anyway")
	}
	fmt.Fprintf(a.Err, "tokgate: the recording in %s has no checksums, so damage would not be noticed\n", dir)
	return nil
}
