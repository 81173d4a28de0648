package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/server"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/github"
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// app is what the subcommands share.
type app struct {
	Streams
	environ  []string
	meter    exec.Meter // watches the generator; nil: nothing does, and it is not calibrated
	network  server.Network
	bounds   bounds   // of loading a plan; zero: none
	color    string   // --color
	workflow string   // --github
	actions  *actions // nil: not a step of GitHub Actions
}

// actions is what a command does when it runs as a step of GitHub Actions. Its
// methods do nothing on nil: elsewhere.
type actions struct {
	log             io.Writer // where commands to the runner go
	summary, output string    // GITHUB_STEP_SUMMARY and GITHUB_OUTPUT; "": unset
	workspace       github.Workspace
	token           string // that nobody else can know

	annotations []github.Annotation
	docs        []*report.Document
	parts       []github.Part // of the summary
}

// exitError carries an exit code up to Main. err is one lower-case line, nil
// when everything was said already; hints go on lines of their own.
type exitError struct {
	code  int
	err   error
	hints []string
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageError is a mistake on the command line.
func usageError(hint, format string, args ...any) error {
	e := &exitError{code: assert.ExitPlan, err: fmt.Errorf(format, args...)}
	if hint != "" {
		e.hints = []string{hint}
	}
	return e
}

// measureError is a run that could not be done or not be written down.
func measureError(err error, hints ...string) error {
	return &exitError{code: assert.ExitError, err: err, hints: hints}
}

// exitWith ends the command with a code after everything was said; 0 is nil.
func exitWith(code int) error {
	if code == assert.ExitPass {
		return nil
	}
	return &exitError{code: code}
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

// resultsDir is where the reports of a plan go: what --out names, or
// results/NAME, and for a simulated run results/NAME-simulated, so that it
// replaces no measurement; with several plans a folder each in it.
func resultsDir(out, planFile string, several, simulated bool) string {
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(planFile), ".json"), ".hcl")
	if simulated {
		name += "-simulated"
	}
	if out == "" {
		out = "results"
		several = true
	}
	if several {
		return filepath.Join(out, name)
	}
	return out
}

// simulatedID is the same for every simulated run of a plan with the same
// variables and salt.
func simulatedID(p *plan.Plan, salt uint64) string {
	id := "simulated-" + p.Hash[:min(12, len(p.Hash))]
	if salt != 0 {
		id += fmt.Sprintf("-%d", salt)
	}
	return id
}
