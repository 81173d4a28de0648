package policy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
	"github.com/tokgate/tokgate/plan/policy"
)

var marker = regexp.MustCompile(`# ERROR: ([^#"]*)`)

// marked returns the expected errors of a file from its comments "# ERROR:", as "line: summary".
func marked(t *testing.T, path string) []string {
	t.Helper()
	src := must.Get(os.ReadFile(path))(t)
	var want []string
	for i, line := range strings.Split(string(src), "\n") {
		for _, m := range marker.FindAllStringSubmatch(line, -1) {
			want = append(want, fmt.Sprintf("%d: %s", i+1, strings.TrimSpace(m[1])))
		}
	}
	slices.Sort(want)
	return want
}

func said(diags hcl.Diagnostics) []string {
	var got []string
	for _, d := range diags {
		got = append(got, fmt.Sprintf("%d: %s", d.Subject.Start.Line, d.Summary))
	}
	slices.Sort(got)
	return got
}

func read(t *testing.T, path string) *policy.Policy {
	t.Helper()
	p, diags := decode.Policy(path, nil)
	must.Need(t, !diags.HasErrors(), "%v", diags)
	return p
}

func load(t *testing.T, path string, environ ...string) *plan.Plan {
	t.Helper()
	p, diags := decode.File(decode.Options{Path: path, Environ: environ, Root: "testdata"})
	must.Need(t, !diags.HasErrors(), "%v", diags)
	return p
}

// Each line of a plan that breaks the policy gets a diagnostic, which quotes the line of the
// policy. The plan on the base branch gets no diagnostic.
func TestPolicy(t *testing.T) {
	rules := read(t, "testdata/policy.hcl")
	base, head := load(t, "testdata/base/gate.hcl"), load(t, "testdata/gate.hcl")
	if diags := append(rules.Check(base), rules.Weakened(base, base)...); len(diags) > 0 {
		t.Errorf("the base branch's own plan: %v", diags)
	}
	diags := append(rules.Check(head), rules.Weakened(base, head)...)
	diff := gocmp.Diff(marked(t, "testdata/gate.hcl"), said(diags))
	must.Hold(t, diff == "", "-marked +got:\n%s%v", diff, diags)
	line := regexp.MustCompile(`testdata/policy\.hcl:\d+ `)
	for _, d := range diags {
		must.Hold(t, line.MatchString(d.Detail) && strings.HasSuffix(d.Detail, ".") && d.Severity == hcl.DiagError, "%v: it names no line of the policy", d)
	}
}

// A kind that the policy does not mention is not allowed, and an empty policy is an
// error.
func TestBadPolicies(t *testing.T) {
	paths, _ := filepath.Glob("testdata/bad/*.hcl")
	must.Need(t, len(paths) >= 2, "no policies")
	for _, path := range paths {
		_, diags := decode.Policy(path, nil)
		diff := gocmp.Diff(marked(t, path), said(diags))
		must.Hold(t, diff == "", "%s (-marked +got):\n%s%v", path, diff, diags)
	}
	_, diags := decode.Policy("testdata/absent.hcl", nil)
	must.Hold(t, diags.HasErrors(), "a policy that is not there allows")
	base := load(t, "testdata/base/gate.hcl")
	if diags := (&policy.Policy{Path: "p.hcl"}).Check(base); len(diags) == 0 {
		t.Error("an empty policy allows")
	}
}

// Patterns match the whole text, and * matches any part of it.
func TestPatterns(t *testing.T) {
	for _, tt := range []struct {
		pattern, image string
		allowed        bool
	}{
		{"vllm/vllm-openai:*", "vllm/vllm-openai:v1", true},
		{"vllm/vllm-openai:*", "evil/vllm/vllm-openai:v1", false},
		{"vllm/vllm-openai", "vllm/vllm-openai:v1", false},
		{"vllm/v.*", "vllm/vx", false}, // a dot in a pattern matches only a dot
		{"*", "anything", true},
		{"", "anything", false},
		{"a*c*e", "abcde", true},
		{"a*c*e", "abde", false},
		{"(a|b)", "a", false},
	} {
		rules := &policy.Policy{Path: "p.hcl", Allow: map[string]policy.List{"servers": {Patterns: []string{"container"}}, "images": {Patterns: []string{tt.pattern}}}}
		of := &plan.Plan{Servers: []*plan.Server{{Container: &plan.Container{Image: tt.image}}}}
		must.Same(t, fmt.Sprintf("%q and %q: allowed", tt.pattern, tt.image), tt.allowed, len(rules.Check(of)) == 0)
	}
}

// The pattern "*" allows no option, network or bare word that gives a container the host or another
// image. What is written out is allowed.
func TestStarIsNotTheHost(t *testing.T) {
	for _, tt := range []struct {
		network, dir string
		options      []string
		written      string // a pattern beside "*"
		allowed      bool
	}{
		{options: []string{"--init", "--label", "a=b", "--ulimit", "memlock=-1", "--shm-size=16g", "--cpus", "8"}, allowed: true},
		{options: []string{"--use-api-socket"}},
		{options: []string{"--use-api-socket"}, written: "--use-api-socket", allowed: true},
		{options: []string{"--env-host"}},
		{options: []string{"--rootfs", "/"}},
		{options: []string{"--init-path", "/x"}},
		{options: []string{"--init-path=/x"}},
		{options: []string{"--publish", "0.0.0.0:80:80"}},
		{options: []string{"--ipc", "host"}},
		{options: []string{"--ipc", "host"}, written: "--ipc=host", allowed: true},
		{options: []string{"--ipc", "host"}, written: "--ip*"},
		{options: []string{"--label-file", "/etc/passwd"}},
		{options: []string{"--an-option-of-tomorrow"}},
		{options: []string{"--", "evil/image"}},
		{options: []string{"--", "evil/image"}, written: "evil/image"},
		{options: []string{"--init", "evil/image"}},
		{options: []string{"--init", "evil/image"}, written: "--init=evil/image"},
		{options: []string{"--label", "a=b", "evil/image"}},
		{options: []string{"-v", "/:/host"}},
		{network: "bridge-7", allowed: true},
		{network: "host"},
		{network: "name=host"},
		{network: "ns:/proc/1/ns/net"},
		{network: "container:other"},
		{network: "container:other", written: "container:other", allowed: true},
		{dir: "p/serve"}, // no policy for working folders
		{dir: "p", allowed: true},
	} {
		allow := map[string]policy.List{}
		for _, kind := range []string{"servers", "images", "options", "networks", "commands"} {
			allow[kind] = policy.List{Patterns: []string{"*", tt.written}}
		}
		s := &plan.Server{Container: &plan.Container{Image: "i", Network: tt.network, Options: tt.options}}
		if tt.dir != "" {
			s = &plan.Server{Process: &plan.Process{Dir: tt.dir}}
		}
		rules := &policy.Policy{Path: "p.hcl", Allow: allow}
		diags := rules.Check(&plan.Plan{Path: "p/plan.hcl", Servers: []*plan.Server{s}})
		must.Hold(t, (len(diags) == 0) == tt.allowed, "%+v: %v", tt, diags)
	}
	s := &plan.Server{Process: &plan.Process{Dir: "p/serve"}}
	rules := &policy.Policy{Path: "p.hcl", Allow: map[string]policy.List{"servers": {Patterns: []string{"process"}}, "dirs": {Patterns: []string{"serve"}}}}
	diags := rules.Check(&plan.Plan{Path: "p/plan.hcl", Servers: []*plan.Server{s}})
	must.Hold(t, len(diags) <= 0, "a working folder that is written out: %v", diags)
}

// A stack is allowed by its whole commands, word by word. A * stands for text within a word.
func TestCommandsOfStacks(t *testing.T) {
	up, down := []string{"helm", "upgrade", "llm", "--set=tag=v2"}, []string{"helm", "uninstall", "llm"}
	for _, tt := range []struct {
		name    string
		servers []string
		stacks  [][]string
		refused []string // what the diagnostics quote
	}{
		{"all is listed", []string{"stack"}, [][]string{{"helm", "upgrade", "llm", "--set=tag=*"}, down}, nil},
		{"no policy of stacks", []string{"process", "container"}, [][]string{up, down}, []string{`"stack"`}},
		{"no command", []string{"stack"}, nil, []string{`["helm", "upgrade", "llm", "--set=tag=v2"]`, `["helm", "uninstall", "llm"]`}},
		{"a * is no two words", []string{"stack"}, [][]string{{"helm", "*"}, down}, []string{`["helm", "upgrade",`}},
		{"words do not join", []string{"stack"}, [][]string{{"helm upgrade", "llm", "--set=tag=v2"}, down}, []string{`["helm", "upgrade",`}},
		{"a longer command", []string{"stack"}, [][]string{append(up, "--wait"), down}, []string{`["helm", "upgrade",`}},
	} {
		s := &plan.Server{Stack: &plan.Stack{Up: up, Down: down, URL: "http://llm.test", Dir: "p"}}
		allow := map[string]policy.List{"servers": {Patterns: tt.servers}, "urls": {Patterns: []string{"*"}}, "stacks": {Patterns: []string{}}}
		for _, words := range tt.stacks {
			allow["stacks"] = policy.List{Patterns: append(allow["stacks"].Patterns, policy.Argv(words))}
		}
		diags := (&policy.Policy{Path: "p.hcl", Allow: allow}).Check(&plan.Plan{Path: "p/plan.hcl", Servers: []*plan.Server{s}})
		must.Need(t, len(diags) == len(tt.refused), "%s: %v", tt.name, diags)
		for _, words := range tt.refused {
			must.Hold(t, strings.Contains(diags.Error(), words) || slices.ContainsFunc(diags, func(d *hcl.Diagnostic) bool { return strings.Contains(d.Detail, words) }), "%s: %v", tt.name, diags)
		}
	}
}

// A pod needs its kind, image, namespace, and each thing that its template gives it.
func TestPodPolicy(t *testing.T) {
	template := plan.Tree{"spec": plan.Tree{"hostNetwork": true, "volumes": []any{plan.Tree{"name": "m", "hostPath": plan.Tree{"path": "/models"}}},
		"containers": []any{plan.Tree{"name": "server"}, plan.Tree{"name": "side", "image": "proxy", "command": []any{"sh", "--trust"}, "env": []any{plan.Tree{"name": "A"}}}}}}
	all := func() map[string]policy.List {
		allow := map[string]policy.List{}
		for kind, pattern := range map[string]string{"servers": "pod", "images": "*", "namespaces": "gates", "commands": "sh *", "flags": "trust", "env": "A"} {
			allow[kind] = policy.List{Patterns: []string{pattern}}
		}
		allow["grants"] = policy.List{Patterns: []string{"*", "hostNetwork", "hostPath=/models"}}
		return allow
	}
	refused := func(allow map[string]policy.List, p plan.Pod) (out []string) {
		rules := &policy.Policy{Path: "p.hcl", Allow: allow}
		for _, d := range rules.Check(&plan.Plan{Path: "p/plan.hcl", Servers: []*plan.Server{{Pod: &p}}}) {
			what, _, _ := strings.Cut(d.Detail, " is not allowed")
			out = append(out, what)
		}
		slices.Sort(out)
		return out
	}
	p := plan.Pod{Image: "i", Namespace: "gates", Template: template}
	must.Same(t, "all is allowed", []string(nil), refused(all(), p))
	for kind, want := range map[string][]string{
		"servers":    {`The server "pod"`},
		"images":     {`The image "i"`, `The image "proxy"`},
		"namespaces": {`The namespace "gates"`},
		"commands":   {`The command "sh --trust"`},
		"flags":      {`The flag "trust"`},
		"env":        {`The environment variable "A"`},
	} {
		allow := all()
		delete(allow, kind)
		must.Same(t, "without "+kind, want, refused(allow, p))
	}
	for pattern, want := range map[string][]string{
		"*":           {`The grant of a pod's template "hostNetwork"`, `The grant of a pod's template "hostPath=/models"`},
		"host*":       {`The grant of a pod's template "hostNetwork"`, `The grant of a pod's template "hostPath=/models"`},
		"hostPath=*":  {`The grant of a pod's template "hostNetwork"`},
		"hostNetwork": {`The grant of a pod's template "hostPath=/models"`},
	} {
		allow := all()
		allow["grants"] = policy.List{Patterns: []string{pattern}}
		must.Same(t, pattern, want, refused(allow, p))
	}
	p.Namespace = ""
	must.Same(t, "kubectl's namespace", []string{`The namespace "default of kubectl"`}, refused(all(), p))
	p.Template["metadata"] = plan.Tree{"namespace": "gates"}
	must.Same(t, "the template's namespace", []string(nil), refused(all(), p))
}

// No message shows a secret, even if the secret is the value that is not allowed.
func TestSecretsAreNotSaid(t *testing.T) {
	src := "server \"e\" {\n  endpoint { url = \"http://${env.HOST_KEY}.example.org\" }\n}\nworkload \"w\" {\n  input_tokens = 8\n  output_tokens = 8\n  load { concurrency = [1] }\n  sla { ttft = \"p95 < 1s\" }\n}\n"
	of, diags := decode.File(decode.Options{Path: "p.hcl", Source: []byte(src), Environ: []string{"HOST_KEY=hidden-name"}})
	must.Need(t, !diags.HasErrors(), "%v", diags)
	diags = read(t, "testdata/policy.hcl").Check(of)
	must.Hold(t, len(diags) == 2 && !strings.Contains(diags.Error(), "hidden-name"), "%v", diags)
}

// FuzzPolicy checks that any text gives a policy or an error. Every diagnostic of a policy about a
// plan must have a line.
func FuzzPolicy(f *testing.F) {
	for _, path := range []string{"testdata/policy.hcl", "testdata/bad/policy.hcl", "testdata/bad/nothing.hcl"} {
		src := must.Get(os.ReadFile(path))(f)
		f.Add(src)
	}
	of, diags := decode.File(decode.Options{Path: "testdata/gate.hcl", Root: "testdata"})
	must.Need(f, !diags.HasErrors(), "%v", diags)
	f.Fuzz(func(t *testing.T, src []byte) {
		rules, diags := decode.Policy("policy.hcl", func(string) ([]byte, error) { return src, nil })
		if diags.HasErrors() {
			return
		}
		for _, d := range append(rules.Check(of), rules.Weakened(of, of)...) {
			must.Hold(t, d.Subject != nil && d.Subject.Start.Line >= 1 && d.Detail != "", "%v", d)
		}
	})
}
