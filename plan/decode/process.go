package decode

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/plan"
	"github.com/zclconf/go-cty/cty"
)

func (b *body) process(s *plan.Server) *plan.Process {
	p := b.child("process")
	if p == nil {
		return nil
	}
	out := &plan.Process{Command: p.command(s), Range: p.rng}
	p.bind(out)
	out.Env, out.GPUs = p.environment(), p.gpus()
	if !p.given("port") {
		p.note("port", p.spec.attr("port").Computed, "")
		if len(out.Command) > 0 && !mentionsPort(out.Command, s) {
			b.d.errorf(p.rangeOf("command"), sumPort, `Nothing tells the program its port: write "--port", "%s" in command, or set port to the one it uses.`, plan.PortPlaceholder)
		}
	}
	return out
}

// command is the program to start; without one the engine's own is.
func (b *body) command(s *plan.Server) []string {
	words := b.texts("command")
	e := engine.Of(s.Engine)
	switch inContainer := b.spec.Name == "container"; {
	case b.given("command"):
		if len(words) == 0 || words[0] == "" {
			b.d.errorf(b.rangeOf("command"), sumMissing, `command names a program: ["vllm", "serve", "Qwen/Qwen3-8B"].`)
		}
	case e.Starts():
		if s.Model == "" && !s.HasFlag(e.Flags.Models...) {
			b.d.errorf(b.rng, sumMissing, "%s is told no model: set model of the server, or command.", e.Name)
		}
		b.note("command", strings.Join(e.Launch.Program, " "), "engine = "+strconv.Quote(e.Name))
	case !inContainer:
		b.d.errorf(b.rng, sumMissing, `Nothing says what to start: set command, or engine to one that tokgate knows how to start (%s).`, choices(engine.Names(engine.Engine.Starts)))
	}
	return words
}

// environment is the env of a process or container.
func (b *body) environment() map[string]string {
	env := b.textMap("env", true)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.TrimSpace(name) != name {
			b.d.errorf(b.rangeOf("env"), sumInvalidName, "%q is no name of an environment variable.", name)
		}
	}
	return env
}

func mentionsPort(command []string, s *plan.Server) bool {
	has := func(text string) bool { return strings.Contains(text, plan.PortPlaceholder) }
	return slices.ContainsFunc(command, has) || slices.ContainsFunc(s.Args, has) ||
		slices.ContainsFunc(s.Flags, func(f plan.Flag) bool {
			return f.Name == "port" || f.Value.Type() == cty.String && f.Value.IsKnown() && !f.Value.IsNull() && has(f.Value.AsString())
		})
}
