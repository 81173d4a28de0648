package decode

import (
	"path/filepath"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/policy"
)

// PolicySchema is the whole language of policy files.
var PolicySchema = &Block{
	Name: "policy",
	Doc:  "A policy file: what plans may use, and what they must require.",
	Blocks: []*Block{
		{
			Name: "allow", Doc: "What plans may use: lists of patterns, in which * stands for any text. What is not listed is not allowed.",
			Attrs: []*Attr{
				{Name: "servers", Type: "list of strings", Doc: "Kinds of servers: `container`, `endpoint`, `process`, `simulator`. Each is written out: a process runs any program, and a simulator measures nothing of yours."},
				{Name: "images", Type: "list of strings", Doc: "Images of containers, as plans write them."},
				{Name: "options", Type: "list of strings", Doc: "Options of containers, each with its value behind =, such as \"--ipc=host\". An option that gives the container access to the host (--privileged, --network, --pid, --ipc, -v, --device, --cap-add, …) is allowed only by a pattern that begins with its name."},
				{Name: "networks", Type: "list of strings", Doc: "Networks of containers. \"*\" does not allow \"host\"; only a pattern that begins with host does."},
				{Name: "volumes", Type: "list of strings", Doc: "Volumes of containers, \"host:container\" or \"host:container:ro\"."},
				{Name: "commands", Type: "list of strings", Doc: "Command lines that plans write for a process or a container: the words joined by spaces, an entrypoint first."},
				{Name: "flags", Type: "list of strings", Doc: "Names of the engine's flags, in flags, args and commands, without leading dashes."},
				{Name: "urls", Type: "list of strings", Doc: "Addresses of endpoints and of pages of metrics. End the host with a slash or with its port: \"https://gpu-*.example.org/*\"."},
				{Name: "env", Type: "list of strings", Doc: "Names of environment variables that plans may read with env.NAME, or set for a server."},
			},
		},
		{
			Name: "require", Doc: "What the gate of a plan must set, and its workloads and comparisons if they override it.",
			Attrs: []*Attr{
				{Name: "decide", Type: "list of strings", Doc: "How thresholds may be decided."},
				{Name: "on_inconclusive", Type: "list of strings", Doc: "What an inconclusive verdict may do."},
				{Name: "keep", Type: "list of strings", Doc: "Demands of the plan on the base branch that may not be lowered or dropped, as `tokgate diff --weakened` names them: \"*\" stands for all demands, \"* ttft *\" for the thresholds of ttft."},
			},
		},
	},
}

// Policy reads the policy file at path, which ends in .hcl or .json. read reads the file; nil means
// ReadFile. The returned policy is never nil, but it is incomplete if there are errors.
func Policy(path string, read func(string) ([]byte, error)) (*policy.Policy, hcl.Diagnostics) {
	if read == nil {
		read = ReadFile
	}
	d := newDecoder(Options{Path: path, ReadFile: read, Root: filepath.Dir(path)})
	d.base = &hcl.EvalContext{}
	out := &policy.Policy{Path: path, Files: d.out.Files, Allow: map[string]policy.List{}, Require: map[string]policy.List{}}
	src, err := read(path)
	if err != nil {
		d.errorf(commandLine, sumUnreadable, "%s.", readError(path, err))
		return out, d.finish()
	}
	file, diags := parse(src, path)
	d.out.Files[path] = file
	d.add(diags...)
	if diags.HasErrors() {
		return out, d.finish()
	}
	b := d.open(PolicySchema, &hcl.Block{Body: file.Body, DefRange: hcl.Range{Filename: path, Start: hcl.InitialPos, End: hcl.InitialPos}}, &scope{ctx: d.base, root: noReference}, "policy")
	if c := b.child("allow"); c != nil {
		readPatterns(c, out.Allow)
	}
	if c := b.child("require"); c != nil {
		readPatterns(c, out.Require)
		out.Keep = out.Require["keep"]
		delete(out.Require, "keep")
	}
	if len(out.Allow) == 0 && len(out.Require) == 0 && len(out.Keep.Patterns) == 0 && !d.diags.HasErrors() {
		d.errorf(b.rng, sumMissing, `The policy is empty. Write what plans may use: allow { servers = ["container"], images = ["vllm/vllm-openai:*"] } over several lines.`)
	}
	return out, d.finish()
}

// oneOfThese lists the words that a policy may use, by the name of the setting.
var oneOfThese = map[string][]string{
	"servers":         {"container", "endpoint", "process", "simulator"},
	"decide":          {string(plan.Certified), string(plan.Estimate)},
	"on_inconclusive": {string(plan.Stop), string(plan.Extend), string(plan.Warn)},
}

func readPatterns(b *body, into map[string]policy.List) {
	for _, a := range b.spec.Attrs {
		if !b.isSet(a.Name) {
			continue
		}
		list := policy.List{Patterns: []string{}, Range: b.rangeOf(a.Name)}
		for _, e := range b.list(a.Name) {
			text, ok := b.asText(e.rng, a.Name, e.value)
			if known := oneOfThese[a.Name]; !ok || known != nil && !b.isOneOf(e.rng, a.Name, text, known) {
				continue
			}
			list.Patterns = append(list.Patterns, text)
		}
		into[a.Name] = list
	}
}
