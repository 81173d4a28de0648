package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/fleet"
)

type joinOptions struct {
	run, token, fingerprint, name string
	patience                      time.Duration
	manifest                      manifestOptions
}

func (a *app) workerCommand() *cobra.Command {
	var o joinOptions
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Send a share of the load of a run on another machine",
		Long: `Joins a run that was started with --workers, and sends its share of the load until
that run is over. The run prints the whole command line. A worker needs no plan: it
gets its orders, and the API key of the server, from the run.

It waits until the run is there, and ends with an error when it has not heard from it
for 30 s. All workers and the run must be the same version of tokgate.

Exit codes: 0 the run is over · 2 the command line is wrong · 4 it could not join, the
run was stopped, or it lost the run · 130 it was told to end, which ends the run.`,
		Example: `  tokgate run gate.hcl --workers 4 --token-file token      # prints what to start
  tokgate worker --join https://controller:7443 --token-file token --fingerprint 5b3f…
  tokgate worker --join https://controller:7443 --token-file token --fingerprint 5b3f… \
    --manifest kubernetes --workers 4 | kubectl apply -f -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.work(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.run, "join", "", "`URL` of the run: https://HOST:PORT")
	f.StringVar(&o.token, "token-file", "", "`file` with the token of the run")
	f.StringVar(&o.fingerprint, "fingerprint", "", "`fingerprint` of the run's certificate, which the run prints")
	f.StringVar(&o.name, "name", "", "`name` of this worker in reports and errors (default: the machine's)")
	f.DurationVar(&o.patience, "wait", 10*time.Minute, "how long to wait until the run is there")
	o.manifest.flags(f)
	_ = cmd.RegisterFlagCompletionFunc("manifest", cobra.FixedCompletions([]string{"kubernetes", "slurm"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *joinOptions) check() error {
	u, err := url.Parse(o.run)
	switch {
	case o.run == "":
		return usageError("`tokgate run --workers N` prints it", "--join is missing: the URL of the run")
	case err != nil || u.Scheme != "https" || u.Host == "":
		return usageError("for example: --join https://controller:7443", "--join %s is not https://HOST:PORT", o.run)
	case o.token == "":
		return usageError("`tokgate run --workers N --token-file FILE` makes it", "--token-file is missing")
	case o.fingerprint == "":
		return usageError("`tokgate run --workers N` prints it", "--fingerprint is missing: without it the worker could not tell the run from another server")
	}
	return nil
}

func (a *app) work(ctx context.Context, o joinOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	token, err := readToken(o.token, false)
	if err != nil {
		return err
	}
	if o.manifest.kind != "" {
		return a.printManifest(o.manifest, o, token)
	}
	if o.name == "" {
		o.name, _ = os.Hostname()
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	wall := clock.NewReal()
	defer a.sharpen(wall)()
	err = fleet.Work(ctx, fleet.Join{
		URL: o.run, Token: token, Fingerprint: o.fingerprint, Name: o.name, Version: toolVersion(), Patience: o.patience,
		Clock: wall, Meter: a.meter, Dial: a.network.Dial, Say: func(s string) { fmt.Fprintln(a.Err, s) },
	})
	switch {
	case errors.Is(err, context.Canceled):
		return exitWith(verdict.ExitInterrupted)
	case err != nil:
		return measureError(err)
	}
	return nil
}
