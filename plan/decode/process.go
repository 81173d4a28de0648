package decode

import (
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/plan"
)

func finishProcess(b *body, s *plan.Server) {
	checkCommand(b, s, s.Process.Command)
	b.noteComputed("gpus")
	if b.noteComputed("port"); !b.given("port") {
		if words := s.Process.Command; len(words) > 0 && !mentionsPort(words, s) {
			b.d.errorf(b.rangeOf("command"), sumPort, `The program does not know its port. Write "--port", "%s" in command, or set port to the port that the program uses.`, plan.PortPlaceholder)
		}
	}
}

// noteComputed notes the default of a setting that the run chooses.
func (b *body) noteComputed(name string) {
	if !b.given(name) {
		b.note(name, b.spec.attr(name).Computed, "")
	}
}

func checkCommand(b *body, s *plan.Server, words []string) {
	e := engine.Of(s.Engine)
	switch inContainer := b.spec.Name == "container" || b.spec.Name == "pod"; {
	case b.given("command"):
		if len(words) == 0 || words[0] == "" {
			b.d.errorf(b.rangeOf("command"), sumMissing, `command is empty. Write a program and its arguments: command = ["vllm", "serve", "Qwen/Qwen3-8B"].`)
		}
	case e.Starts():
		if s.Model == "" && !s.HasFlag(e.Flags.Models...) {
			b.d.errorf(b.rng, sumMissing, "%s needs a model. Set `model` in the server block, or give a full command.", e.Name)
		}
		b.note("command", strings.Join(e.Launch.Program, " "), "engine = "+strconv.Quote(e.Name))
	case !inContainer:
		b.d.errorf(b.rng, sumMissing, `tokgate does not know what to start. Set command, or set engine to one that tokgate can start: %s.`, choices(engine.Names(engine.Engine.Starts)))
	}
}

func mentionsPort(command []string, s *plan.Server) bool {
	has := func(text string) bool { return strings.Contains(text, plan.PortPlaceholder) }
	return slices.ContainsFunc(command, has) || slices.ContainsFunc(s.Args, has) ||
		slices.ContainsFunc(s.Flags, func(f plan.Flag) bool {
			return f.Name == "port" || f.Value.Type() == cty.String && f.Value.IsKnown() && !f.Value.IsNull() && has(f.Value.AsString())
		})
}
