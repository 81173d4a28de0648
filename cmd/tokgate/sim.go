package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tokgate/tokgate/sim"
)

type simOptions struct {
	sim.Options
	listen, profile, script, log string
	faults                       []string
	list                         bool
}

func (a *app) simCommand() *cobra.Command {
	var o simOptions
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Serve the built-in OpenAI-compatible server, for trying and teaching",
		Long: `Serves the built-in server until it is interrupted. It simulates an engine with
continuous batching, and answers chat and completions (streaming or not), /v1/models,
/health, /tokenize, /version, and /metrics with the names of vLLM or SGLang. It
prints its URL on the first line, and listens on the loopback interface by default.`,
		Example: `  tokgate sim                              # on a free port
  tokgate sim --listen 127.0.0.1:8000 --profile default
  tokgate sim --fault http-500:share=0.3   # see how a plan reports it
  tokgate sim --fault error-event:every=2,tokens=5
  tokgate sim --list                       # profiles and faults`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.sim(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:0", "`address` to listen on; port 0 takes a free one")
	f.StringVar(&o.profile, "profile", "default", "`name` of a built-in profile, or a file")
	f.StringVar(&o.Model, "model", "", "model `id` to serve (default: the profile's)")
	f.StringVar(&o.Engine, "engine", "vllm", "`name` of the engine whose pages to serve: vllm or sglang")
	f.StringVar(&o.APIKey, "api-key", "", "require this bearer token")
	f.Int64Var(&o.Seed, "seed", 1, "seed of everything random")
	f.StringArrayVar(&o.faults, "fault", nil, "inject a fault: its `name`, then optional settings such as :share=0.3; may be repeated")
	f.StringVar(&o.script, "faults", "", "inject faults from a JSON `file` with a list of rules")
	f.StringVar(&o.log, "log", "", "log each completion request to this `file` as a line of JSON: arrival, first token, last token")
	f.BoolVar(&o.list, "list", false, "list the built-in profiles and the faults")
	// Registering fails only if the flag does not exist.
	_ = cmd.RegisterFlagCompletionFunc("profile", completeProfiles)
	_ = cmd.RegisterFlagCompletionFunc("fault", completeFaults)
	return cmd
}

func (a *app) sim(ctx context.Context, o simOptions) (err error) {
	if o.list {
		a.listSim()
		return nil
	}
	if o.Engine != "vllm" && o.Engine != "sglang" {
		return usageError("", "--engine is vllm or sglang")
	}
	if o.Profile, err = sim.LoadProfile(o.profile, "."); err != nil {
		return usageError("`tokgate sim --list` lists the built-in profiles", "%w", err)
	}
	if o.Faults, err = readScript(o.script, o.faults); err != nil {
		return usageError("`tokgate sim --list` lists the faults", "%w", err)
	}
	if o.log != "" {
		file, err := os.Create(o.log)
		if err != nil {
			return usageError("", "%w", err)
		}
		defer file.Close()
		o.OnServed = logTo(file)
	}
	server, err := sim.New(o.Options)
	if err != nil {
		return usageError("", "%w", err)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return a.serve(ctx, server, o.listen)
}

func logTo(w io.Writer) func(sim.Served) {
	var mu sync.Mutex
	lines := json.NewEncoder(w)
	return func(s sim.Served) {
		mu.Lock()
		defer mu.Unlock()
		_ = lines.Encode(s) // a log that cannot be written must not delay an answer
	}
}

func (a *app) serve(ctx context.Context, server *sim.Server, addr string) error {
	if err := server.Start(addr); err != nil {
		return measureError(fmt.Errorf("could not listen: %w", err))
	}
	fmt.Fprintf(a.Out, "%s serves %q; interrupt to stop\n", server.URL(), server.Model())
	select {
	case <-ctx.Done():
		return server.Close()
	case <-server.Done():
		return measureError(errors.New("a scripted fault ended the server"))
	}
}

func readScript(path string, rules []string) (sim.Script, error) {
	var script sim.Script
	if path != "" {
		src, err := sim.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("could not read fault script: %w", err)
		}
		if err := json.Unmarshal(src, &script); err != nil {
			return nil, fmt.Errorf("fault script %q: %w", path, err)
		}
	}
	for _, s := range rules {
		rule, err := sim.ParseRule(s)
		if err != nil {
			return nil, err
		}
		script = append(script, rule)
	}
	return script, nil
}

func (a *app) listSim() {
	fmt.Fprintf(a.Out, "Profiles: %s\n\nFaults:\n", strings.Join(sim.Profiles(), ", "))
	for _, f := range sim.Faults() {
		fmt.Fprintf(a.Out, "  %-22s %s\n", f.Name, f.Doc)
	}
}
