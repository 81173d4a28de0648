package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/record/disk"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/github"
)

// newActions sets up the output for GitHub Actions from the flag --github and the runner's
// environment. It returns nil if the flag is off, or auto outside of GitHub Actions.
func (a *app) newActions() (*actions, error) {
	switch a.workflow {
	case "off":
		return nil, nil
	case "on":
	case "auto":
		if v, _ := a.getenv("GITHUB_ACTIONS"); v != "true" {
			return nil, nil
		}
	default:
		return nil, usageError("use auto, on or off", "unknown --github %q", a.workflow)
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	g := &actions{log: a.Err, token: "tokgate-" + hex.EncodeToString(b[:])}
	g.summary, _ = a.getenv("GITHUB_STEP_SUMMARY")
	g.output, _ = a.getenv("GITHUB_OUTPUT")
	root, _ := a.getenv("GITHUB_WORKSPACE")
	// Resolve the path, because the workspace may be reached through a symbolic link.
	g.workspace.Root = resolved(root)
	if dir, err := os.Getwd(); err == nil {
		g.workspace.Dir = resolved(dir)
	}
	return g, nil
}

func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// gate marks commands that run or judge plans. They have a summary and outputs on GitHub Actions.
var gate = map[string]string{"gate": "true"}

// logTo sets the stream for workflow commands of GitHub Actions. It must be the stream of the
// command's normal output, because the runner keeps the order of lines only within a stream.
func (g *actions) logTo(out io.Writer) {
	if g != nil {
		g.log = out
	}
}

func (g *actions) diagnose(diags hcl.Diagnostics) {
	if g == nil {
		return
	}
	for _, d := range diags {
		p := report.Problem{Warning: d.Severity != hcl.DiagError, Title: d.Summary, Message: d.Detail}
		if d.Subject != nil {
			p.File, p.Line = d.Subject.Filename, d.Subject.Start.Line
		}
		g.annotations = append(g.annotations, g.workspace.Annotation(p))
	}
}

func (g *actions) unformatted(path string, line int) {
	if g == nil {
		return
	}
	g.annotations = append(g.annotations, g.workspace.Annotation(report.Problem{
		Title: "not formatted", Message: "`tokgate fmt " + filepath.ToSlash(path) + "` formats it", File: path, Line: line,
	}))
}

func (g *actions) concluded(d *report.Document) {
	if g == nil {
		return
	}
	g.docs, g.parts = append(g.docs, d), append(g.parts, github.Run(d))
	g.annotations = append(g.annotations, github.Annotations(d, g.workspace)...)
}

func (g *actions) trended(d *report.Document, markdown func(io.Writer) error) {
	if g == nil {
		return
	}
	g.parts = append(g.parts, github.Whole(markdown))
	g.annotations = append(g.annotations, github.Annotations(d, g.workspace)...)
}

// foreign calls the function show, which writes text that may quote a server. The runner of GitHub
// Actions ignores commands in that text.
func (g *actions) foreign(w io.Writer, show func() error) error {
	if g == nil {
		return show()
	}
	io.WriteString(w, github.Stop(g.token))
	err := show()
	io.WriteString(w, github.Resume(g.token))
	return err
}

// finish writes the annotations of a command that ended with the result exit. For a gate, it also
// writes the summary and the outputs.
func (g *actions) finish(exit *exitError, gate bool) error {
	said := false
	for _, a := range g.annotations {
		said = said || !a.Warning
	}
	if exit.err != nil && !said {
		message := strings.Join(append([]string{exit.Error()}, exit.hints...), " · ")
		g.annotations = append(g.annotations, github.Annotation{Title: "tokgate", Message: message})
	}
	io.WriteString(g.log, github.Write(g.annotations))
	if !gate {
		return nil
	}
	return errors.Join(g.writeSummary(), g.writeOutputs(exit.code))
}

func (g *actions) writeSummary() error {
	if g.summary == "" || len(g.parts) == 0 {
		return nil
	}
	used := int64(0)
	if info, err := disk.Stat(g.summary); err == nil {
		used = info.Size()
	}
	return appendTo(g.summary, "the summary of the job", func(w io.Writer) error { return github.Summary(w, g.parts, used) })
}

func (g *actions) writeOutputs(code int) error {
	if g.output == "" {
		return nil
	}
	lines, err := github.Encode(github.Outputs(g.docs, code, g.workspace), g.token)
	if err != nil {
		return err
	}
	return appendTo(g.output, "the outputs of the step", func(w io.Writer) error {
		_, err := io.WriteString(w, lines)
		return err
	})
}

func appendTo(path, what string, write func(io.Writer) error) error {
	f, err := disk.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("could not write %s: %w", what, err)
	}
	before, err := f.Stat()
	if err == nil {
		if err = write(f); err != nil {
			_ = f.Truncate(before.Size()) // a half-written file could be taken for a whole one
		}
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("could not write %s: %w", what, err)
	}
	return nil
}

// endStep ends a command as a step of a GitHub workflow. It returns the exit code. If a gate passed
// but could not write its outputs, the step is an error.
func (a *app) endStep(cmd *cobra.Command, exit *exitError) int {
	if a.actions == nil { // the command line was wrong, so that actions was not set
		a.actions, _ = a.newActions()
	}
	if a.actions == nil {
		return exit.code
	}
	if err := a.actions.finish(exit, cmd.Annotations["gate"] != ""); err != nil {
		fmt.Fprintf(a.Err, "tokgate: %v\n", err)
		return worst([]int{exit.code, verdict.ExitError})
	}
	return exit.code
}
