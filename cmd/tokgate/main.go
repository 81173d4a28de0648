// Command tokgate gates LLM serving in CI: it starts the server that a plan declares,
// runs the plan's workloads, and passes or fails.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/exec/server"
	"github.com/tokgate/tokgate/record"
)

func main() {
	server.Keep()
	os.Exit(program(os.Args[1:], Streams{os.Stdin, os.Stdout, os.Stderr}))
}

// leastFiles is the smallest allowed limit on open files. With fewer, the Go runtime could end the
// process with exit code 2, which would mean that the plan is wrong.
const leastFiles = 32

// program calls Main in a real process. It also handles crashes and closed outputs. A crash never has
// exit code 2, which would mean that the plan is wrong.
func program(args []string, s Streams) (code int) {
	if os.Getenv(supervisedName) == "" {
		debug.SetTraceback("crash") // what nothing can recover from, such as no memory, ends by SIGABRT instead of 2
	}
	defer func() {
		if crash := recover(); crash != nil {
			fmt.Fprintf(s.Err, "tokgate: it crashed, so there is no verdict: %v\n\n%s\n  hint: this is a bug in tokgate: please report it with the lines above\n", crash, debug.Stack())
			code = verdict.ExitError
		}
	}()
	if n, known := server.OpenFiles(); known && n < leastFiles {
		fmt.Fprintf(s.Err, "tokgate: this process may open only %d files, but it needs at least %d\n  hint: raise ulimit -n\n", n, leastFiles)
		return verdict.ExitError
	}
	surviveBrokenPipes()
	environ := os.Environ()
	if code, ok := supervise((&app{}).root(), args, environ, s); ok {
		return code
	}
	done := supervised()
	code = (&app{Streams: s, environ: environ, meter: server.Meter(), bounds: loadBounds}).main(context.Background(), args)
	done()
	return code
}

// Main runs one command line and returns the exit code. It gets everything about the process as
// arguments, so that tests can call it directly.
func Main(ctx context.Context, args, environ []string, s Streams) int {
	return (&app{Streams: s, environ: environ, meter: server.Meter()}).main(ctx, args)
}

func (a *app) main(ctx context.Context, args []string) int {
	out := &output{Writer: a.Out}
	a.Out, a.Err = out, &output{Writer: a.Err}
	root := a.root()
	root.SetArgs(append([]string{}, args...)) // nil would mean the arguments of the process
	cmd, err := execute(ctx, root)
	var exit *exitError
	if out.err != nil && !errors.As(err, &exit) {
		err = measureError(fmt.Errorf("could not write the output: %w", out.err))
	}
	if err == nil {
		return a.endStep(cmd, &exitError{code: verdict.ExitPass})
	}
	if !errors.As(err, &exit) {
		// cobra's own errors: unknown command, unknown flag, wrong arguments.
		exit = &exitError{code: verdict.ExitPlan, err: err}
	}
	a.complain(exit.err, exit.hints...)
	return a.endStep(cmd, exit)
}

// execute runs a command. If the requests of a long recording cannot be read again, it returns an
// error instead of the panic record.Lost.
func execute(ctx context.Context, root *cobra.Command) (cmd *cobra.Command, err error) {
	defer func() {
		switch lost := recover().(type) {
		case nil:
		case record.Lost:
			cmd, err = root, measureError(lost, "nothing was judged; did another process change the recording?")
		default:
			panic(lost)
		}
	}()
	return root.ExecuteContextC(ctx)
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
		SilenceUsage: true, SilenceErrors: true,
		Version:           buildInfo().Version,
		Args:              cobra.ArbitraryArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error { return a.begin() },
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return a.unknownCommand(cmd, args[0])
		},
	}
	root.PersistentFlags().StringVar(&a.color, "color", "auto", "colour on the terminal: auto, always or never")
	root.PersistentFlags().StringVar(&a.workflow, "github", "auto", "write annotations, job summary and outputs of GitHub Actions: auto, on or off")
	root.SetVersionTemplate(versionLine() + "\n")
	root.SetHelpCommand(a.helpCommand())
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(cmd, err) })
	root.AddCommand(
		a.initCommand(),
		a.validateCommand(),
		a.planCommand(),
		a.runCommand(), a.workerCommand(),
		a.judgeCommand(),
		a.strengthCommand(),
		a.compareCommand(),
		a.bisectCommand(),
		a.reportCommand(),
		a.historyCommand(),
		a.diffCommand(),
		a.fmtCommand(),
		a.simCommand(), a.trafficCommand(),
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

// completion adds cobra's completion command. Unlike in cobra, an unknown shell is an error.
func (a *app) completion(root *cobra.Command) {
	root.InitDefaultCompletionCmd() // after root.SetOut, because the command keeps root's output
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
				return usageError(c.CommandPath()+" "+of.Name(), "`%s` has no subcommand %q", of.CommandPath(), rest[0])
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}
