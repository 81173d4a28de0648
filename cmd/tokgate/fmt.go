package main

import (
	"bytes"
	"fmt"
	"io"

	"github.com/aymanbagabas/go-udiff"
	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
	"github.com/tokgate/tokgate/record"
)

func (a *app) fmtCommand() *cobra.Command {
	var check, diff, recursive bool
	cmd := &cobra.Command{
		Use:   "fmt [FILE | FOLDER | -]...",
		Short: "Format plans",
		Long: `Rewrites plans in the canonical layout and prints the names of those it changed.
Without an argument it formats the current folder; "-" reads standard input and
writes standard output.`,
		Example: `  tokgate fmt                     # the plans in this folder
  tokgate fmt --check --recursive # exit 1 when one is not formatted (for CI)
  tokgate fmt --diff chat.hcl     # show what would change, and change it
  tokgate fmt - < chat.hcl`,
		RunE: func(_ *cobra.Command, args []string) error {
			f := formatter{app: a, check: check, diff: diff}
			if len(args) == 1 && args[0] == "-" {
				return f.stdin()
			}
			if len(args) == 0 {
				args = []string{"."}
			}
			files, err := planFiles(args, recursive)
			if err != nil {
				return err
			}
			for _, path := range files {
				if err := f.file(path); err != nil {
					return err
				}
			}
			return f.result()
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "write nothing; exit 1 when a plan is not formatted")
	cmd.Flags().BoolVar(&diff, "diff", false, "show what changes")
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "search subfolders too")
	return cmd
}

type formatter struct {
	*app
	check, diff bool
	invalid     int
	changed     int
}

func (f *formatter) file(path string) error {
	src, err := decode.ReadFile(path)
	if err != nil {
		return usageError("", "could not read plan: %w", err)
	}
	out, ok, err := f.format(src, path)
	if err != nil || !ok || bytes.Equal(src, out) {
		return err
	}
	f.changed++
	fmt.Fprintln(f.Out, path)
	if f.diff {
		fmt.Fprint(f.Out, udiff.Unified(path, path+" (formatted)", string(src), string(out)))
	}
	if f.check {
		f.actions.unformatted(path, firstDifference(src, out))
		return nil
	}
	if err := record.WriteFile(path, out); err != nil {
		return measureError(fmt.Errorf("could not write plan: %w", err))
	}
	return nil
}

func firstDifference(a, b []byte) int {
	n := 1
	for i := 0; i < min(len(a), len(b)) && a[i] == b[i]; i++ {
		if a[i] == '\n' {
			n++
		}
	}
	return n
}

func (f *formatter) stdin() error {
	src, err := io.ReadAll(f.In)
	if err != nil {
		return usageError("", "could not read standard input: %w", err)
	}
	out, ok, err := f.format(src, "<stdin>")
	if err != nil {
		return err
	}
	if !ok {
		return f.result()
	}
	if !bytes.Equal(src, out) {
		f.changed++
	}
	switch {
	case f.diff:
		fmt.Fprint(f.Out, udiff.Unified("<stdin>", "<stdin> (formatted)", string(src), string(out)))
	case !f.check:
		if _, err := f.Out.Write(out); err != nil {
			return measureError(err)
		}
		return nil
	}
	return f.result()
}

func (f *formatter) format(src []byte, name string) (out []byte, ok bool, err error) {
	out, diags := decode.Format(src, name)
	if err := f.showDiagnostics(&plan.Plan{Files: map[string]*hcl.File{name: {Bytes: src}}}, diags); err != nil {
		return nil, false, err
	}
	if diags.HasErrors() {
		f.invalid++
		return nil, false, nil
	}
	return out, true, nil
}

func (f *formatter) result() error {
	switch {
	case f.invalid > 0:
		return &exitError{code: verdict.ExitPlan}
	case f.check && f.changed > 0:
		return &exitError{code: verdict.ExitFail}
	}
	return nil
}
