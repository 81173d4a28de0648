package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/server"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/github"
)

// Streams are the input and the outputs of a command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

type app struct {
	Streams
	environ  []string
	meter    exec.Meter // observes the load generator; nil turns observation and calibration off
	network  server.Network
	salts    func() uint64 // draws the salt of a run; nil draws at random
	bounds   bounds        // limits on loading a plan; zero means no limit
	color    string        // --color
	workflow string        // --github
	actions  *actions      // output for GitHub Actions; nil elsewhere
}

// actions writes what GitHub Actions reads, if a command runs in a step of a workflow. Elsewhere
// actions is nil, and its methods do nothing.
type actions struct {
	log             io.Writer // receives the workflow commands for the CI runner
	summary, output string    // GITHUB_STEP_SUMMARY and GITHUB_OUTPUT; "" if unset
	workspace       github.Workspace
	token           string // random word, which a server cannot guess

	annotations []github.Annotation
	docs        []*report.Document
	parts       []github.Part // of the summary
}

// exitError carries an exit code to Main. err is one line in lower case, or nil if everything was
// printed already. Each hint is a line of its own.
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

func usageError(hint, format string, args ...any) error {
	e := &exitError{code: verdict.ExitPlan, err: fmt.Errorf(format, args...)}
	if hint != "" {
		e.hints = []string{hint}
	}
	return e
}

func measureError(err error, hints ...string) error {
	return &exitError{code: verdict.ExitError, err: err, hints: hints}
}

// exitWith returns an error that ends the command with an exit code and prints nothing. It returns
// nil for the code 0.
func exitWith(code int) error {
	if code == verdict.ExitPass {
		return nil
	}
	return &exitError{code: code}
}

// worst combines the exit codes of several plans. An interrupt is the worst. Then come, in this
// order, a run that could not be measured, an invalid plan, a failure, and an inconclusive result.
func worst(codes []int) int {
	order := []int{
		verdict.ExitPass, verdict.ExitInconclusive, verdict.ExitFail, verdict.ExitPlan, verdict.ExitError, verdict.ExitInterrupted,
	}
	w := 0
	for _, c := range codes {
		i := slices.Index(order, c)
		if i < 0 {
			i = slices.Index(order, verdict.ExitError)
		}
		w = max(w, i)
	}
	return order[w]
}

// resultsDir returns the folder for the reports of a plan: --out, or results/NAME if --out is not
// set. If there are several plans, it returns the folder NAME inside --out. A simulated run adds
// "-simulated" to NAME, so that its reports do not overwrite a measurement.
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

// simulatedID returns the ID of a simulated run. It depends only on the plan, its variables and the
// salt.
func simulatedID(p *plan.Plan, salt uint64) string {
	id := "simulated-" + p.Hash[:min(12, len(p.Hash))]
	if salt != 0 {
		id += fmt.Sprintf("-%d", salt)
	}
	return id
}
