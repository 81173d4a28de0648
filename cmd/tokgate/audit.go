package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/audit"
	"github.com/tokgate/tokgate/record"
	"github.com/tokgate/tokgate/report/text"
)

func (a *app) auditCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "audit RESULTS",
		Short: "Compute every figure of a run again from its samples, and compare",
		Long: `Computes the figures of every case again from the recording (samples.jsonl), by the
definitions in docs/metrics.md and with code that shares nothing with the run's, and
compares them with results.json and junit.xml. It prints each difference and its size.

It does not check the server's own metrics, prices, and the bounds of exact tests.

Exit code 0: every figure is the same; 1: some differ; 2: no results folder was named;
4: a file cannot be read, or its lines were changed.`,
		Example: `  tokgate audit results/demo`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("for example: tokgate audit results/demo", "audit takes one results folder")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.audit(args[0]) },
	}
}

func (a *app) audit(dir string) error {
	if err := needFolder(dir); err != nil {
		return err
	}
	var files []io.Reader
	for _, name := range []string{record.File, "results.json", "junit.xml"} {
		f, err := record.OpenIn(dir, name, os.O_RDONLY)
		switch {
		case errors.Is(err, fs.ErrNotExist) && name == "junit.xml":
			files = append(files, nil)
			continue
		case err != nil:
			return measureError(err, "name the folder that `tokgate run` wrote, with its recording and its results in it")
		}
		defer f.Close()
		files = append(files, f)
	}
	r, err := audit.Run(files[0], files[1], files[2])
	if err != nil {
		return measureError(fmt.Errorf("%s: %w", dir, err))
	}
	for _, d := range r.Differences {
		fmt.Fprintln(a.Out, text.Line(d.String()))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(a.Out, "note: %s\n", note)
	}
	fmt.Fprintf(a.Out, "%s compared, %d differ\n", count(r.Compared, "figure"), len(r.Differences))
	if len(r.Differences) > 0 {
		return exitWith(assert.ExitFail)
	}
	return nil
}
