package decode

import (
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/policy"
)

var policySchema = &Block{
	Name: "policy",
	Doc:  "A policy file: what plans may use, and what they must require.",
	Blocks: []*Block{
		{
			Name: "allow", Doc: "What plans may use. Each argument is a list of patterns, in which * stands for any text. Whatever is not listed is not allowed.",
			Attrs: []*Attr{
				{Name: "servers", Type: "list of strings", Doc: "Kinds of servers: `container`, `endpoint`, `pod`, `process`, `simulator`, `stack`. Write each in full: patterns do not apply, because a process or a stack can run any program."},
				{Name: "images", Type: "list of strings", Doc: "Images of containers and pods, such as \"vllm/vllm-openai:*\"."},
				{Name: "options", Type: "list of strings", Doc: "Options of containers, written as NAME=VALUE, such as \"--ipc=host\". \"*\" alone allows only options that give nothing of the host, such as --init, --label, --memory, --cpus, --ulimit and --shm-size. Any other option needs a pattern that begins with its name."},
				{Name: "namespaces", Type: "list of strings", Doc: "Namespaces of pods. \"default of kubectl\" is that of a plan that names none."},
				{Name: "grants", Type: "list of strings", Doc: "What the template of a pod gives it, such as `hostPath=/models`, `hostNetwork`, `privileged`, `capability=IPC_LOCK` or `secret=NAME`. Each must be written out."},
				{Name: "networks", Type: "list of strings", Doc: "Networks of containers. \"*\" allows only plain names. Other networks, such as \"host\" and \"container:other\", must be written out."},
				{Name: "volumes", Type: "list of strings", Doc: "Volumes of containers, \"host:container\" or \"host:container:ro\"."},
				{Name: "commands", Type: "list of strings", Doc: "Command lines of processes, containers, pods and their templates. A command line is its words joined by spaces; a container's `entrypoint` comes first."},
				{Name: "stacks", Type: "list of lists of strings", Doc: "Commands of stacks (`up`, `down` and `logs`), word by word, such as [[\"helm\", \"uninstall\", \"llm\"]]. A * stands for text within its word. The files that they read are the pull request's own."},
				{Name: "dirs", Type: "list of strings", Doc: "Working folders of processes and stacks (`dir`), relative to the plan. The plan's own folder is always allowed."},
				{Name: "flags", Type: "list of strings", Doc: "Names of engine flags, without leading dashes. They apply to `flags`, `args` and `command`."},
				{Name: "urls", Type: "list of strings", Doc: "URLs of endpoints and of metrics pages. Write a slash or a port after the host, such as \"https://gpu-*.example.org/*\", so that the pattern matches no other host."},
				{Name: "files", Type: "list of strings", Doc: "Folders outside the repository whose files plans may read, such as \"/data\": data sets, traces, profiles, and what file() reads. Write absolute paths, without patterns. A plan may read any file of its repository."},
				{Name: "env", Type: "list of strings", Doc: "Names of environment variables that plans may read with env.NAME, or set for a server."},
				{Name: "accepts", Type: "list of strings", Doc: "Names of [accept blocks](verdicts.md#to-accept-a-change) of a pull request that count although the base branch lacks them. Otherwise they are ignored, and the report says so."},
				{Name: "nonsensitive", Type: "list of strings", Doc: "Secrets that plans may open with nonsensitive(): names of environment variables, or var.NAME for a sensitive variable. What is opened may be shown."},
			},
		},
		{
			Name: "require", Doc: "What a plan and its run must set. `decide` and `on_inconclusive` are of the gate block, and of workloads and comparisons that override it.",
			Attrs: []*Attr{
				{Name: "decide", Type: "list of strings", Doc: "The values of `decide` that are allowed."},
				{Name: "on_inconclusive", Type: "list of strings", Doc: "The values of `on_inconclusive` that are allowed."},
				{Name: "base_missing", Type: "list of strings", Doc: "The values of `--base-missing` that are allowed. Without the flag the first of them applies, such as [\"fail\"]."},
				{Name: "keep", Type: "list of strings", Doc: "Demands of the base branch that a plan may not lower or drop. Write them as `tokgate diff --weakened` prints them. \"*\" stands for all demands, and \"* ttft *\" for the thresholds on ttft."},
			},
		},
	},
}

// Policy reads the policy file at path, which ends in .hcl or .json. The function read returns the
// file's text; nil means ReadFile. The returned policy is never nil, but incomplete if there are
// errors.
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
	b := d.open(policySchema, &hcl.Block{Body: file.Body, DefRange: hcl.Range{Filename: path,
		Start: hcl.InitialPos, End: hcl.InitialPos}}, &scope{ctx: d.base, root: noReference}, "policy")
	if c := b.child("allow"); c != nil {
		readPatterns(c, out.Allow)
	}
	if c := b.child("require"); c != nil {
		readPatterns(c, out.Require)
		out.Keep = out.Require["keep"]
		delete(out.Require, "keep")
	}
	if len(out.Allow) == 0 && len(out.Require) == 0 && len(out.Keep.Patterns) == 0 && !d.diags.HasErrors() {
		d.errorf(b.rng, sumMissing, `The policy is empty. Add an allow block that lists what plans may use, such as allow { servers = ["container"] }.`)
	}
	return out, d.finish()
}

var oneOfThese = map[string][]string{
	"servers":         {"container", "endpoint", "pod", "process", "simulator", "stack"},
	"decide":          {string(plan.Certified), string(plan.Estimate)},
	"on_inconclusive": {string(plan.Stop), string(plan.Extend), string(plan.Warn)},
	"base_missing":    plan.BaseMissings,
}

// argv reads the pattern of a command, a list of words.
func (x item) argv() (string, bool) {
	if v := x.value; v.Type().IsTupleType() || v.Type().IsListType() {
		words, ok := []string{}, true
		for it := x.value.ElementIterator(); ok && it.Next(); {
			var word string
			_, x.value = it.Element()
			word, ok = x.text()
			words = append(words, word)
		}
		return policy.Argv(words), ok
	}
	x.errorf(sumWrongType, `%s is a list of commands, and each command is a list of words, such as [["helm", "uninstall", "llm"]].`, x.name)
	return "", false
}

func readPatterns(b *body, into map[string]policy.List) {
	for _, a := range b.spec.Attrs {
		if !b.isSet(a.Name) {
			continue
		}
		list := policy.List{Patterns: []string{}, Range: b.rangeOf(a.Name)}
		for _, e := range b.list(a.Name) {
			read := e.text
			if a.Name == "stacks" {
				read = e.argv
			}
			if known := oneOfThese[a.Name]; known != nil {
				read = func() (string, bool) { return e.wordOf(known) }
			}
			text, ok := read()
			if !ok {
				continue
			}
			if a.Name == "files" && (!filepath.IsAbs(text) || strings.Contains(text, "*")) {
				b.d.errorf(e.rng, sumOutOfRange, `files takes folders by their absolute paths, such as "/data", and no patterns.`)
				continue
			}
			list.Patterns = append(list.Patterns, text)
		}
		into[a.Name] = list
	}
}
