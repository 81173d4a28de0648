package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/server"
	"github.com/tokgate/tokgate/report/progress"
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Main runs one command line and returns the exit code. Everything a command
// needs from the process comes in as an argument, so tests call it directly.
func Main(ctx context.Context, args, environ []string, s Streams) int {
	return (&app{Streams: s, environ: environ, meter: server.Meter()}).main(ctx, args)
}

func (a *app) main(ctx context.Context, args []string) int {
	out := &output{Writer: a.Out}
	a.Out, a.Err = out, &output{Writer: a.Err}
	root := a.root()
	root.SetArgs(append([]string{}, args...)) // those of the process stand in for none
	cmd, err := root.ExecuteContextC(ctx)
	var exit *exitError
	if out.err != nil && !errors.As(err, &exit) {
		// What nobody can read was not said.
		err = measureError(fmt.Errorf("could not write the output: %w", out.err))
	}
	if err == nil {
		return a.endStep(cmd, &exitError{code: assert.ExitPass})
	}
	if !errors.As(err, &exit) {
		// cobra's own errors: unknown command, unknown flag, wrong arguments.
		exit = &exitError{code: assert.ExitPlan, err: err}
	}
	a.complain(exit.err, exit.hints...)
	return a.endStep(cmd, exit)
}

// complain says what went wrong, if anything did, and what to do: a line each,
// but on a terminal, which would break them inside of words.
func (a *app) complain(err error, hints ...string) {
	say := func(lead, s string) { fmt.Fprintln(a.Err, lead+s) }
	if t, unknown := a.terminal(a.Err); unknown == nil && t.isTTY {
		say = func(lead, s string) { para(a.Err, t.width, lead, s) }
	}
	if err != nil {
		say("tokgate: ", err.Error())
	}
	for _, hint := range hints {
		say("  hint: ", hint)
	}
}

// output remembers that something could not be written to it.
type output struct {
	io.Writer
	err error // the first
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		return len(b), nil // its reader has seen enough; the reports have it all
	}
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}

// app is what the subcommands share.
type app struct {
	Streams
	environ []string
	meter   exec.Meter // watches the generator; nil: nothing does, and it is not calibrated
	network server.Network
	bounds  bounds   // of loading a plan; zero: none
	color   string   // --color
	github  string   // --github
	actions *actions // nil: not a step of GitHub Actions
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

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "tokgate",
		Short: "Gate LLM serving in CI: declare the server, the load and the SLA; get pass or fail",
		Long: `tokgate runs declarative test plans against LLM servers.

A plan (HCL) declares the server under test, the workloads and the SLA. tokgate
starts the server, runs every workload, and answers pass, fail or inconclusive,
as an exit code and as JUnit XML, with the measurements behind it.

Exit codes: 0 passed · 1 a requirement failed · 2 the plan or the command line
is wrong · 3 inconclusive · 4 could not be measured · 130 interrupted.`,
		Example: `  tokgate init --url http://127.0.0.1:8000   # a first plan
  tokgate validate plans/demo.hcl          # everything that can be known before a server starts
  tokgate plan plans/demo.hcl              # what would run, with every default
  tokgate run plans/demo.hcl --out results   # run it, judge it, write the reports
  tokgate run chat.hcl --var image=vllm/vllm-openai:v0.19.1`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
		Version:           buildInfo().Version,
		Args:              cobra.ArbitraryArgs,
		PersistentPreRunE: func(*cobra.Command, []string) (err error) {
			a.actions, err = a.newActions()
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return a.unknownCommand(cmd, args[0])
		},
	}
	root.PersistentFlags().StringVar(&a.color, "color", "auto", "colour on the terminal: auto, always or never")
	root.PersistentFlags().StringVar(&a.github, "github", "auto", "annotations, job summary and outputs of GitHub Actions: auto, on or off")
	root.SetVersionTemplate(versionLine() + "\n")
	root.SetHelpCommand(a.helpCommand())
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(cmd, err) })
	root.AddCommand(
		a.initCommand(),
		a.validateCommand(),
		a.planCommand(),
		a.runCommand(),
		a.judgeCommand(),
		a.auditCommand(),
		a.strengthCommand(),
		a.compareCommand(),
		a.reportCommand(),
		a.historyCommand(),
		a.diffCommand(),
		a.fmtCommand(),
		a.simCommand(),
		a.schemaCommand(),
		a.versionCommand(),
		a.manCommand(),
	)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	a.completion(root)
	return root
}

// completion adds cobra's command, but for a shell that it does not know.
func (a *app) completion(root *cobra.Command) {
	root.InitDefaultCompletionCmd() // it keeps the output that it finds
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Args, c.RunE = cobra.ArbitraryArgs, func(c *cobra.Command, args []string) error {
				if len(args) > 0 {
					return a.unknownCommand(c, args[0])
				}
				return c.Help()
			}
		}
	}
}

// helpCommand is cobra's, but for a command that there is not.
func (a *app) helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			of, _, err := c.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, sub := range of.Commands() {
				if sub.IsAvailableCommand() {
					names = append(names, sub.Name()+"\t"+sub.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			of, rest, err := c.Root().Find(args)
			if err != nil {
				return err
			}
			switch {
			case len(rest) > 0 && of.HasAvailableSubCommands():
				return a.unknownCommand(of, rest[0])
			case len(rest) > 0:
				return usageError(c.CommandPath()+" "+of.Name(), "`%s` has no commands of its own: %q", of.CommandPath(), rest[0])
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}

func (a *app) unknownCommand(root *cobra.Command, name string) error {
	root.SuggestionsMinimumDistance = 2
	if near := root.SuggestionsFor(name); len(near) > 0 {
		return usageError(fmt.Sprintf("did you mean `%s %s`?", root.CommandPath(), near[0]), "unknown command %q", name)
	}
	if _, err := os.Stat(name); err == nil {
		return usageError(fmt.Sprintf("to run a plan: tokgate run %s", name), "unknown command %q", name)
	}
	return usageError(root.CommandPath()+" --help lists the commands", "unknown command %q", name)
}

// terminal describes an output stream.
type terminal struct {
	isTTY bool
	width int // columns
	color bool
}

func (a *app) terminal(w io.Writer) (terminal, error) {
	t := terminal{width: a.columns()}
	if o, ok := w.(*output); ok {
		w = o.Writer
	}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		t.isTTY = true
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			t.width = width
		}
	}
	switch a.color {
	case "always":
		t.color = true
	case "never":
	case "auto":
		t.color = progress.ColorMode(a.getenv, t.isTTY)
	default:
		return t, usageError("use auto, always or never", "unknown --color %q", a.color)
	}
	return t, nil
}

// columns is the width of an output that is no terminal: what COLUMNS says, or
// that of a CI log.
func (a *app) columns() int {
	v, _ := a.getenv("COLUMNS")
	if n, err := strconv.Atoi(v); err == nil && n >= 20 {
		return n
	}
	return 120
}

// getenv looks name up in the environment Main was given.
func (a *app) getenv(name string) (string, bool) {
	for _, kv := range a.environ {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			return v, true
		}
	}
	return "", false
}
