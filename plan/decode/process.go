package decode

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/plan"
)

func readProcess(b *body, s *plan.Server) *plan.Process {
	p := b.child("process")
	if p == nil {
		return nil
	}
	out := &plan.Process{Command: readCommand(p, s), Range: p.rng}
	p.bind(out)
	out.Env, out.GPUs = readEnvironment(p), readGPUs(p)
	if !p.given("port") {
		p.note("port", p.spec.attr("port").Computed, "")
		if len(out.Command) > 0 && !mentionsPort(out.Command, s) {
			b.d.errorf(p.rangeOf("command"), sumPort, `The program does not know its port. Write "--port", "%s" in command, or set port to the port that the program uses.`, plan.PortPlaceholder)
		}
	}
	return out
}

func readCommand(b *body, s *plan.Server) []string {
	words := b.texts("command")
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
	return words
}

func readEnvironment(b *body) map[string]string {
	env := b.textMap("env")
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.TrimSpace(name) != name {
			b.d.errorf(b.rangeOf("env"), sumInvalidName, "%q is not a valid name of an environment variable.", name)
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

func readGPUs(b *body) *plan.GPUs {
	if !b.given("gpus") {
		b.note("gpus", b.spec.attr("gpus").Computed, "")
		return nil
	}
	rng := b.rangeOf("gpus")
	out := &plan.GPUs{Range: rng}
	list := b.list("gpus")
	if len(list) == 1 {
		v := list[0].value
		if list[0].unknown() {
			return out
		}
		whole, isList := b.d.eval(b.attrs["gpus"].Expr, b.scope)
		isList = isList && !whole.Type().IsPrimitiveType()
		switch {
		case !isList && v.Type() == cty.Number:
			out.Count, _ = list[0].integer()
			return out
		case v.Type() == cty.String && v.AsString() == "all":
			out.All = true
			return out
		case !isList:
			wrongGPUs(b, rng)
			return out
		}
	}
	if len(list) == 0 {
		wrongGPUs(b, rng)
	}
	for _, e := range list {
		v := e.value
		if e.unknown() {
			continue
		}
		if v.Type() == cty.Number {
			v, _ = convert.Convert(v, cty.String)
		}
		if v.Type() != cty.String || !gpuID.MatchString(v.AsString()) {
			wrongGPUs(b, e.rng)
			continue
		}
		id := v.AsString()
		if slices.Contains(out.IDs, id) {
			b.d.errorf(e.rng, sumDuplicateName, "GPU %s is listed twice.", id)
			continue
		}
		out.IDs = append(out.IDs, id)
	}
	return out
}

// gpuID matches the index of a GPU, the UUID of a GPU, or the UUID of a MIG slice of a GPU.
var gpuID = regexp.MustCompile(`^([0-9]{1,3}|(GPU|MIG)-[A-Za-z0-9/-]+)$`)

func wrongGPUs(b *body, rng hcl.Range) {
	b.d.errorf(rng, sumGPUs, `gpus must be a number of free GPUs such as 1, a list such as ["2", "3"], or "all". A list has indexes or UUIDs, as nvidia-smi prints them.`)
}
