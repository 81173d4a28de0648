package policy

import (
	"cmp"
	"maps"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/tokgate/tokgate/plan"
)

// use is one thing that a plan uses or sets, such as an image. A policy has rules for each kind of
// use.
type use struct {
	kind, value string
	rng         hcl.Range
}

// unknown stands for a text that only a run knows, from its environment. The run checks the policy
// again with the real text.
const unknown = "(unknown)"

// uses lists what a plan uses, in the order of the source. Servers of the base branch are not in
// it, because that branch was checked earlier.
func uses(p *plan.Plan) []use {
	l := &listing{of: p}
	for _, r := range p.Reads {
		l.add("env", r.Name, r.Range)
	}
	for _, r := range p.Opened {
		l.add("nonsensitive", r.Name, r.Range)
	}
	l.gate(p.Gate.Policy, p.Gate.Range)
	for _, s := range p.Servers {
		if !s.Base {
			l.server(s)
		}
	}
	for _, w := range p.Workloads {
		l.gate(w.Policy, w.Range)
	}
	for _, c := range p.Compares {
		l.gate(c.Policy, c.Range)
		if c.BaseMissing != "" {
			l.add("base_missing", string(c.BaseMissing), c.Range)
		}
	}
	return l.uses
}

type listing struct {
	of   *plan.Plan
	uses []use
}

func (l *listing) add(kind, value string, rng hcl.Range) {
	if value != unknown {
		l.uses = append(l.uses, use{kind, value, rng})
	}
}

// gate lists the settings of the policy p. block is the gate block, or a block that overrides it. A
// usual value that the block does not set itself is left out.
func (l *listing) gate(p plan.Policy, block hcl.Range) {
	add := func(attr, value, usual string) {
		if at := l.at(block, attr); at != block || value != usual {
			l.add(attr, value, at)
		}
	}
	usual := l.of.Gate.Policy
	if block == l.of.Gate.Range {
		usual = plan.Policy{}
	}
	add("decide", string(p.Decide), string(usual.Decide))
	add("on_inconclusive", string(p.OnInconclusive), string(usual.OnInconclusive))
}

func (l *listing) server(s *plan.Server) {
	switch {
	case s.Process != nil:
		p := s.Process
		l.add("servers", "process", p.Range)
		l.command(p.Command, p.Range)
		l.dir(p.Dir, p.Range)
		l.environment(p.Env, p.Range)
	case s.Container != nil:
		l.container(s.Container)
	case s.Pod != nil:
		l.pod(s.Pod)
	case s.Stack != nil:
		x := s.Stack
		l.add("servers", "stack", x.Range)
		l.add("stacks", Argv(x.Up), l.at(x.Range, "up"))
		l.add("stacks", Argv(x.Down), l.at(x.Range, "down"))
		if len(x.Logs) > 0 {
			l.add("stacks", Argv(x.Logs), l.at(x.Range, "logs"))
		}
		l.dir(x.Dir, x.Range)
		l.environment(x.Env, x.Range)
		l.url(x.URL, l.at(x.Range, "url"))
	case s.Endpoint != nil:
		e := s.Endpoint
		l.add("servers", "endpoint", e.Range)
		attr := "url"
		if len(e.More) > 0 {
			attr = "urls"
		}
		for _, url := range e.URLs() {
			l.url(url, l.at(e.Range, attr))
		}
		for _, r := range e.Replicas {
			l.url(r.URL, l.at(e.Range, "replicas"))
		}
		if e.Redirects == "any" {
			l.add("urls", "any host that "+e.URL+" redirects to", l.at(e.Range, "redirects"))
		}
	default:
		l.add("servers", "simulator", s.Range)
	}
	for _, f := range s.Flags {
		words, _ := plan.CommandLine(s.Engine, []plan.Flag{f}, nil) // a list value becomes several words
		l.flags(words, f.Range)
	}
	l.flags(s.Args, l.at(s.Range, "args"))
	l.url(s.Telemetry.URL, l.at(s.Telemetry.Range, "metrics_url"))
	l.url(s.Telemetry.DCGM, l.at(s.Telemetry.Range, "dcgm_url"))
	if p := s.Telemetry.Prometheus; p != nil {
		l.url(p.URL, l.at(p.Range, "url"))
	}
}

func (l *listing) dir(of string, block hcl.Range) {
	if dir, err := filepath.Rel(filepath.Dir(l.of.Path), of); err != nil {
		l.add("dirs", of, l.at(block, "dir"))
	} else if dir != "." {
		l.add("dirs", filepath.ToSlash(dir), l.at(block, "dir"))
	}
}

func (l *listing) pod(p *plan.Pod) {
	l.add("servers", "pod", p.Range)
	l.add("images", p.Image, l.at(p.Range, "image"))
	if p.Entrypoint != "" {
		l.command(append([]string{p.Entrypoint}, p.Command...), l.at(p.Range, "entrypoint"))
	} else {
		l.command(p.Command, p.Range)
	}
	l.environment(p.Env, p.Range)
	namespace, at := p.Namespace, l.at(p.Range, "namespace")
	if inTemplate, ok := plan.Under(p.Template, "metadata")["namespace"].(string); ok && namespace == "" {
		namespace, at = inTemplate, l.at(p.Range, "template")
	}
	l.add("namespaces", cmp.Or(namespace, "default of kubectl"), at)
	template := l.at(p.Range, "template")
	for _, grant := range p.Grants() {
		l.add("grants", grant, template)
	}
	for _, image := range p.Images() {
		l.add("images", image, template)
	}
	for _, words := range p.Commands() {
		l.add("commands", strings.Join(words, " "), template)
		l.flags(words, template)
	}
	for _, name := range p.Variables() {
		l.add("env", name, template)
	}
}

func (l *listing) container(c *plan.Container) {
	l.add("servers", "container", c.Range)
	l.add("images", c.Image, l.at(c.Range, "image"))
	if c.Entrypoint != "" {
		l.command(append([]string{c.Entrypoint}, c.Command...), l.at(c.Range, "entrypoint"))
	} else {
		l.command(c.Command, c.Range)
	}
	l.environment(c.Env, c.Range)
	if c.Network != "" {
		l.add("networks", c.Network, l.at(c.Range, "network"))
	}
	for _, v := range c.Volumes {
		source, rest, _ := strings.Cut(v, ":")
		if strings.Contains(source, "/") {
			source = path.Clean(source) // clean, because /data/../etc is not below /data
		}
		l.add("volumes", source+":"+rest, l.at(c.Range, "volumes"))
	}
	for _, word := range joined(c.Options) {
		l.add("options", word, l.at(c.Range, "options"))
	}
}

// joined joins each option and its value to one word: --ipc host becomes --ipc=host. A bare word
// behind an option that takes none stays alone: docker would read it as the image.
func joined(words []string) []string {
	var out []string
	for i, word := range words {
		if last := len(out) - 1; i > 0 && !strings.HasPrefix(word, "-") && strings.HasPrefix(out[last], "-") &&
			!strings.Contains(out[last], "=") && !switches[out[last]] {
			out[last] += "=" + word
			continue
		}
		out = append(out, word)
	}
	return out
}

// switches lists the options of docker and podman that take no value, and "--", which ends the
// options.
var switches = map[string]bool{
	"--": true, "--init": true, "--read-only": true, "--no-healthcheck": true, "--tty": true, "-t": true, "--interactive": true, "-i": true, "-it": true,
	"--privileged": true, "--publish-all": true, "-P": true, "--rm": true, "--detach": true, "-d": true, "--quiet": true, "-q": true, "--use-api-socket": true,
	"--env-host": true, "--rootfs": true, "--oom-kill-disable": true, "--disable-content-trust": true, "--http-proxy": true, "--no-hosts": true,
	"--no-hostname": true, "--replace": true, "--read-only-tmpfs": true, "--rmi": true, "--passwd": true, "--sig-proxy": true, "--tls-verify": true,
}

func (l *listing) command(words []string, block hcl.Range) {
	if len(words) == 0 {
		return
	}
	rng := l.at(block, "command")
	l.add("commands", strings.Join(words, " "), rng)
	l.flags(words, rng)
}

func (l *listing) flags(words []string, rng hcl.Range) {
	for _, word := range words {
		if _, err := strconv.ParseFloat(word, 64); err == nil || !strings.HasPrefix(word, "-") {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
		l.add("flags", strings.ReplaceAll(name, "_", "-"), rng)
	}
}

func (l *listing) environment(env map[string]string, block hcl.Range) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		l.add("env", name, l.at(block, "env"))
	}
}

// url lists a URL. A URL without a path gets a slash: a pattern that ends with a slash then cannot
// match a longer host name.
func (l *listing) url(text string, rng hcl.Range) {
	if u, err := url.Parse(text); err == nil && u.Host != "" && u.Path == "" {
		text += "/"
	}
	if text != "" {
		l.add("urls", text, rng)
	}
}

// at returns the position of an attribute in a block or in its gate block. If it is not set there,
// at returns the position of the block.
func (l *listing) at(block hcl.Range, attr string) hcl.Range {
	if f := l.of.Files[block.Filename]; f != nil {
		if body, ok := f.Body.(*hclsyntax.Body); ok {
			if a := attribute(find(body, block), attr); a != nil {
				return a.Expr.Range()
			}
		}
	}
	if block.Filename == "" { // the plan has no such block
		return hcl.Range{Filename: l.of.Path, Start: hcl.InitialPos, End: hcl.InitialPos}
	}
	return block
}

func attribute(in *hclsyntax.Body, name string) *hclsyntax.Attribute {
	if in == nil {
		return nil
	}
	if a := in.Attributes[name]; a != nil {
		return a
	}
	for _, b := range in.Blocks {
		if b.Type == "gate" {
			return b.Body.Attributes[name]
		}
	}
	return nil
}

func find(in *hclsyntax.Body, at hcl.Range) *hclsyntax.Body {
	for _, b := range in.Blocks {
		if b.DefRange() == at {
			return b.Body
		}
		if found := find(b.Body, at); found != nil {
			return found
		}
	}
	return nil
}
