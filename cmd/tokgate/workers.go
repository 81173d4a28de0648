package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/fleet"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
)

// workerOptions says which other processes send the load of a run.
type workerOptions struct {
	n        int    // workers; 0: this process sends the load
	listen   string // address where workers dial in
	token    string // file of their token
	secret   string // the token
	patience time.Duration
	// quiet and standard are what the run says of progress and of the transport.
	quiet, standard bool
}

// mostWorkers is the largest number of workers of a run.
const mostWorkers = 1000

func (o *workerOptions) flags(f *pflag.FlagSet) {
	f.IntVar(&o.n, "workers", 0, "let this `number` of `tokgate worker` processes send the load")
	f.StringVar(&o.listen, "listen", ":7443", "with --workers: `address` where they dial in")
	f.StringVar(&o.token, "token-file", "", "with --workers: `file` with the token that they show; it is made if it does not exist")
	f.DurationVar(&o.patience, "wait", 10*time.Minute, "with --workers: how long to wait until all have joined")
}

func (o *workerOptions) check(plans int, simulate, goesOn bool) error {
	switch {
	case o.n < 0 || o.n > mostWorkers:
		return usageError("", "--workers is a number from 1 to %d", mostWorkers)
	case o.n == 0 && o.token != "":
		return usageError("add --workers N", "--token-file goes with --workers")
	case o.n == 0 || simulate:
		return nil
	case o.token == "":
		return usageError("add --token-file FILE; it is made if it does not exist", "--workers needs a token that the workers show")
	case plans > 1:
		return usageError("run the plans one by one", "--workers sends the load of one plan, and there are %d", plans)
	case goesOn:
		return usageError("leave one of them out", "--workers and --continue exclude each other")
	}
	var err error
	o.secret, err = readToken(o.token, true)
	return err
}

// checkServers refuses servers that workers on other machines could not reach, or not as the plan says.
func (o *workerOptions) checkServers(p *plan.Plan) error {
	if o.n == 0 {
		return nil
	}
	for _, s := range p.Servers {
		switch e := s.Endpoint; {
		case e == nil:
			return usageError("start it where the workers can reach it, and give its URL: an endpoint block, or --endpoint "+s.Name+"=URL",
				"--workers needs servers that run already, and this run would start %s itself", s.Address())
		case e.CAFile != "" || e.CertFile != "":
			return usageError("leave out --workers, or let the workers reach it by http or with a certificate that their system trusts",
				"--workers cannot use ca_file and cert_file of %s yet: the workers do not have these files", s.Address())
		}
	}
	return nil
}

// readToken reads the token of a run, and makes it if there is no such file.
func readToken(path string, make bool) (string, error) {
	raw, err := decode.ReadFile(path)
	if make && errors.Is(err, fs.ErrNotExist) {
		raw = []byte(rand.Text() + "\n")
		err = os.WriteFile(path, raw, 0o600)
	}
	if err != nil {
		return "", usageError("", "could not read the token of --token-file: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if len(token) < 16 {
		return "", usageError("remove it, and the run makes a good one", "the token in %s has %d characters; it needs at least 16", path, len(token))
	}
	return token, nil
}

// measure runs a plan. If workers send its load, it waits for them first, and tells them at the end.
func (a *app) measure(ctx context.Context, config exec.Config, o workerOptions, say func(string)) (*metric.Run, error) {
	if o.n == 0 || config.Run.Simulated {
		return exec.Run(ctx, config)
	}
	h, err := a.listen(&config, o, say)
	if err != nil {
		return &config.Run, err
	}
	h.Wait(config.Drain, o.patience)
	run, err := exec.Run(ctx, config)
	failed := err
	if err == nil && run.Stopped != "" {
		failed = errors.New(run.Stopped)
	}
	h.End(context.WithoutCancel(ctx), failed)
	return run, err
}

// listen lets workers dial in to a run, and send its load.
func (a *app) listen(config *exec.Config, o workerOptions, say func(string)) (*fleet.Host, error) {
	listen := net.Listen
	if a.network.Listen != nil {
		listen = a.network.Listen
	}
	l, err := listen("tcp", o.listen)
	if err != nil {
		return nil, fmt.Errorf("could not listen for workers (choose another address with --listen): %w", err)
	}
	h, err := fleet.Listen(config.Clock, l, o.n, o.secret, toolVersion(), say)
	if err != nil {
		return nil, err
	}
	if o.quiet { // nobody could start a worker without this
		say = func(s string) { fmt.Fprintln(a.Err, s) }
	}
	say(fmt.Sprintf("waiting for %s: tokgate worker --join https://%s --token-file %s --fingerprint %s",
		verdict.Count(o.n, "workers"), shownAddress(l.Addr()), o.token, h.Fingerprint))
	config.Launch = h.Launch(config.Launch, o.standard)
	config.Workers, config.Calibrate = h, nil
	if config.Meter != nil {
		config.Meter = h.Meter(config.Meter)
	}
	return h, nil
}

// shownAddress is where workers dial in: the name of this machine, if it listens on all addresses.
func shownAddress(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			return net.JoinHostPort(name, port)
		}
	}
	return a.String()
}

// toolVersion tells builds of tokgate apart: a controller and its workers must be of one.
func toolVersion() string {
	b := buildInfo()
	return strings.TrimSpace(b.Version + " " + b.Commit)
}
