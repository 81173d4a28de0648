// Package policy checks what a plan may use and what it must require. The owners of the test
// machines write the policy. It is read from the base branch, so a pull request cannot change its
// own rules.
package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/demand"
)

// Policy is a policy file that was read and checked.
type Policy struct {
	Path  string
	Files map[string]*hcl.File // source of the policy, for diagnostics
	// Allow lists what a plan may use, for each kind of thing: servers, images, options and so on.
	// If a kind is not listed, a plan may use nothing of it.
	Allow map[string]List
	// Require lists the allowed values of the gate's attributes. An attribute that is not listed
	// may have any value.
	Require map[string]List
	// Keep lists requirements of the plan on the base branch that a pull request must not weaken.
	Keep List
}

// List is a list of patterns. In a pattern, * stands for any text.
type List struct {
	Patterns []string
	Range    hcl.Range
}

// Folders lists folders outside the repository whose files plans may read.
func (p *Policy) Folders() []string {
	if p == nil {
		return nil
	}
	return p.Allow["files"].Patterns
}

// Accepts reports whether accept blocks of this name count although the base branch lacks them.
func (p *Policy) Accepts(name string) bool {
	return p != nil && slices.ContainsFunc(p.Allow["accepts"].Patterns, func(pattern string) bool { return match(pattern, name) })
}

// BaseMissing returns what a comparison decides if the base branch lacks its plan and the command
// line does not say: the first value that the policy allows, or "" if it allows any.
func (p *Policy) BaseMissing() plan.BaseMissing {
	if p == nil || len(p.Require["base_missing"].Patterns) == 0 {
		return ""
	}
	return plan.BaseMissing(p.Require["base_missing"].Patterns[0])
}

// The summaries of the diagnostics about plans that break the policy.
const (
	sumNotAllowed = "Not allowed by the policy"
	sumWeaker     = "Weaker than the policy allows"
)

// Check checks a plan against the rules in Allow and Require. The rules in Keep are checked by the
// method Weakened.
func (p *Policy) Check(of *plan.Plan) hcl.Diagnostics {
	var out hcl.Diagnostics
	for _, u := range uses(of) {
		list, named := p.Allow[u.kind]
		required := false
		if l, ok := p.Require[u.kind]; ok {
			list, named, required = l, true, true
		} else if slices.Contains(Required, u.kind) {
			continue
		}
		if slices.ContainsFunc(list.Patterns, u.matches) {
			continue
		}
		out = add(out, of, sumNotAllowed, p.refuse(u, list, named, required), u.rng)
	}
	slices.SortStableFunc(out, func(a, b *hcl.Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Subject.Filename, b.Subject.Filename), cmp.Compare(a.Subject.Start.Byte, b.Subject.Start.Byte))
	})
	return out
}

// Required lists what a policy may require: attributes of the gate, and what a comparison decides
// without a base.
var Required = []string{"decide", "on_inconclusive", "base_missing"}

var nouns = map[string][2]string{
	"servers": {"server", "kinds of servers"}, "images": {"image", "images"}, "options": {"option of a container", "options of containers"},
	"networks": {"network", "networks"}, "volumes": {"volume", "volumes"}, "commands": {"command", "commands"}, "namespaces": {"namespace", "namespaces"}, "grants": {"grant of a pod's template", "grants of templates"}, "flags": {"flag", "flags"},
	"stacks": {"command of a stack", "commands of stacks"}, "urls": {"URL", "URLs"}, "dirs": {"working folder", "working folders"}, "env": {"environment variable", "environment variables"},
	"nonsensitive": {"opened secret", "secrets to be opened"},
}

func (p *Policy) refuse(u use, list List, named, required bool) string {
	line := max(list.Range.Start.Line, 1)
	if u.kind == "base_missing" {
		return fmt.Sprintf("The base branch has nothing to compare with, and %s:%d requires --base-missing to be %s, but it is %s. Remove the flag, or change its value.", p.Path, line, strings.Join(list.Patterns, " or "), u.value)
	}
	if required {
		return fmt.Sprintf("%s:%d requires %s to be %s, but the plan has %q. Change the plan.", p.Path, line, u.kind, strings.Join(list.Patterns, " or "), u.value)
	}
	is := fmt.Sprintf("The %s %s is not allowed: ", nouns[u.kind][0], quoted(u.kind, u.value))
	ask := "or change the policy on the base branch."
	switch {
	case !named || len(list.Patterns) == 0:
		return fmt.Sprintf("%s%s:%d allows no %s. Remove it, %s", is, p.Path, line, nouns[u.kind][1], ask)
	case u.sharesHost():
		return fmt.Sprintf("%sit may give the container access to the host, so * alone does not allow it, and %s:%d does not name it. Remove it, %s", is, p.Path, line, ask)
	}
	return fmt.Sprintf("%s%s:%d allows the %s %s. Use one of them, %s", is, p.Path, line, nouns[u.kind][1], quoted(u.kind, list.Patterns...), ask)
}

// Weakened compares a plan with the plan of the base branch. It reports each requirement that
// became weaker, if Keep lists it.
func (p *Policy) Weakened(base, of *plan.Plan) hcl.Diagnostics {
	var out hcl.Diagnostics
	for _, w := range demand.Weakened(base, of) {
		if i := slices.IndexFunc(p.Keep.Patterns, func(pattern string) bool { return match(pattern, w.Key) }); i >= 0 {
			detail := fmt.Sprintf("%s. The policy at %s does not let a plan lower this demand of the base branch (keep = %q). Keep the demand, or lower it on the base branch first.", w.What, p.KeepAt(), p.Keep.Patterns[i])
			if _, here := of.Files[w.Range.Filename]; !here { // dropped, so its line is in the base branch
				detail = fmt.Sprintf("%s (%s:%d). %s", w.What, w.Range.Filename, w.Range.Start.Line, strings.TrimPrefix(detail, w.What+". "))
				w.Range = hcl.Range{Filename: of.Path, Start: hcl.InitialPos, End: hcl.InitialPos}
			}
			out = add(out, of, sumWeaker, detail, w.Range)
		}
	}
	return out
}

// Gone reports that a plan of the base branch is gone here, if Keep lists a demand of it.
func (p *Policy) Gone(base *plan.Plan) hcl.Diagnostics {
	for _, w := range demand.Weakened(base, nil) {
		if slices.ContainsFunc(p.Keep.Patterns, func(pattern string) bool { return match(pattern, w.Key) }) {
			detail := fmt.Sprintf("The plan is gone, and with it demands that the policy at %s keeps: %s. Keep the plan under its name, or remove it on the base branch first.", p.KeepAt(), w.What)
			return add(nil, base, sumWeaker, detail, w.Range)
		}
	}
	return nil
}

// KeepAt returns the place of the policy's keep list, such as "policy.hcl:12".
func (p *Policy) KeepAt() string { return fmt.Sprintf("%s:%d", p.Path, p.Keep.Range.Start.Line) }

func add(list hcl.Diagnostics, of *plan.Plan, summary, detail string, rng hcl.Range) hcl.Diagnostics {
	for _, secret := range of.Secrets {
		if len(secret) > 3 {
			detail = strings.ReplaceAll(detail, secret, "(secret)")
		}
	}
	if slices.ContainsFunc(list, func(d *hcl.Diagnostic) bool { return d.Detail == detail && *d.Subject == rng }) {
		return list
	}
	return append(list, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: &rng})
}

func quoted(kind string, texts ...string) string {
	out := slices.Clone(texts)
	for i, text := range texts {
		if kind != "stacks" { // which is a list already
			out[i] = fmt.Sprintf("%q", text)
		}
	}
	return strings.Join(out, ", ")
}

// Argv returns a command as one text, in which words stay apart: a list as a plan writes it.
func Argv(words []string) string {
	out := make([]string, len(words))
	for i, word := range words {
		quoted, _ := json.Marshal(word) // cannot fail
		out[i] = string(quoted)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// matchArgv matches two commands word by word. A word that only a run knows is checked by the run.
func matchArgv(pattern, command string) bool {
	var patterns, words []string
	if json.Unmarshal([]byte(pattern), &patterns) != nil || json.Unmarshal([]byte(command), &words) != nil {
		return false
	}
	return slices.EqualFunc(patterns, words, func(p, word string) bool { return word == unknown || match(p, word) })
}

func match(pattern, text string) bool {
	re := regexp.MustCompile(`(?s)^` + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`) + `$`)
	return re.MatchString(text)
}

// harmless lists the container options that give the container nothing of the host and choose no
// other program. The pattern "*" of a policy allows only these: any other option must be written
// out. The value is whether the option takes a value.
var harmless = map[string]bool{
	"--init": false, "--read-only": false, "--no-healthcheck": false, "--tty": false, "--interactive": false,
	"--label": true, "--hostname": true, "--domainname": true, "--workdir": true, "--stop-signal": true, "--stop-timeout": true,
	"--memory": true, "--memory-swap": true, "--memory-reservation": true, "--cpus": true, "--cpu-shares": true, "--cpuset-cpus": true, "--cpuset-mems": true,
	"--pids-limit": true, "--ulimit": true, "--shm-size": true, "--tmpfs": true, "--platform": true, "--cap-drop": true,
}

// Other texts have a meaning of their own, such as "name=host", "ns:PATH" or "container:OTHER".
var plainNetwork = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// sharesHost reports whether "*" alone does not allow a use: it may give the container the host,
// or other programs.
func (u use) sharesHost() bool {
	switch u.kind {
	case "options":
		name, _, valued := strings.Cut(u.value, "=")
		takes, ok := harmless[name]
		return !ok || valued && !takes && name != u.value
	case "grants":
		return true
	case "networks":
		return u.value == "host" || !plainNetwork.MatchString(u.value)
	}
	return false
}

func (u use) matches(pattern string) bool {
	written, _, _ := strings.Cut(pattern, "*")
	name, _, _ := strings.Cut(u.value, "=")
	if u.kind == "options" && (name == "--" || !strings.HasPrefix(name, "-")) {
		return false // a bare word would be the image
	}
	if u.sharesHost() && !strings.HasPrefix(written, name) {
		return false
	}
	if u.kind == "stacks" {
		return matchArgv(pattern, u.value)
	}
	return match(pattern, u.value)
}
