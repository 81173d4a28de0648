// Package starter writes the first plan of somebody who has none, commented,
// formatted and valid as it is, and the file that runs it in CI.
package starter

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/plan/decode"
)

// UseCase is a workload that a starter plan can hold.
type UseCase struct {
	Name     string // of the plan's preset
	Doc      string
	Input    int // tokens
	Output   int // tokens
	Requests int // of a level: what certifies its means within minutes
}

// UseCases are those to choose from, the shortest first.
var UseCases = []UseCase{
	{"chatbot", "short questions and answers: 1K in, 256 out, TTFT ≤ 3 s", 1 << 10, 256, 100},
	{"code_completion", "one line while somebody types: 1K in, 128 out, e2e < 2 s", 1 << 10, 128, 100},
	{"rag", "questions with passages: 4K in, 256 out, TTFT ≤ 3 s", 4 << 10, 256, 100},
	{"short_form_chatbot", "a conversation: 8K in, 1K out", 8 << 10, 1024, 60},
	{"agentic", "steps of an agent: 16K in, 256 out, TTFT ≤ 3 s", 16 << 10, 256, 60},
	{"general_chatbot", "a long conversation: 32K in, 1K out", 32 << 10, 1024, 60},
	{"long_document", "a report to read: 64K in, 1K out", 64 << 10, 1024, 60},
	{"coding_assistant", "a repository to read: 96K in, 1K out", 96 << 10, 1024, 60},
}

// Answers is what a starter plan is made of.
type Answers struct {
	Engine string // "vllm", "sglang", "llama.cpp" or "openai"
	Model  string // "": any
	// Exactly one of these: a server that runs, an image or a command to start.
	URL     string
	Image   string
	Command string
	// UseCases are names of UseCases.
	UseCases []string
	// Longest is the context that the server takes, in tokens; 0: unknown.
	Longest int
}

// longProfile is a profile of the simulator that takes the longest use case.
const longProfile = "qwen3.6-35b-a3b-mtp-fp8.1x-rtx-pro-6000"

//go:embed starter.hcl.tmpl
var source string

var starter = template.Must(template.New("starter").Funcs(template.FuncMap{
	"quote": func(s string) string {
		// HCL's own escapes: a template sequence must not come alive.
		return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(fmt.Sprintf("%q", s))
	},
	"words": func(s string) string {
		var quoted []string
		for _, w := range strings.Fields(s) {
			quoted = append(quoted, fmt.Sprintf("%q", w))
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	},
}).Parse(source))

// Plan is the text of a plan. It is an error to name an engine or a use case
// that is not there, none or several kinds of server, or a use case longer than
// the server takes.
func Plan(a Answers) ([]byte, error) {
	if !slices.Contains(engine.Names(nil), a.Engine) {
		return nil, fmt.Errorf("no engine %q: there are %s", a.Engine, strings.Join(engine.Names(nil), ", "))
	}
	targets := 0
	for _, t := range []string{a.URL, a.Image, a.Command} {
		if t != "" {
			targets++
		}
	}
	if targets != 1 {
		return nil, errors.New("a plan needs a server: a URL, an image or a command, one of them")
	}
	if len(a.UseCases) == 0 {
		return nil, errors.New("a plan needs a use case")
	}
	data := struct {
		Answers
		Name    string
		Cases   []UseCase
		Profile string // of the simulator
		Budget  int    // minutes
	}{Answers: a, Name: strings.NewReplacer(".", "_").Replace(a.Engine)}
	if a.Engine == engine.Plain {
		data.Name = "server"
	}
	data.Budget = Budget(a)
	for _, name := range a.UseCases {
		i := slices.IndexFunc(UseCases, func(u UseCase) bool { return u.Name == name })
		if i < 0 {
			var names []string
			for _, u := range UseCases {
				names = append(names, u.Name)
			}
			return nil, fmt.Errorf("no use case %q: there are %s", name, strings.Join(names, ", "))
		}
		u := UseCases[i]
		if a.Longest > 0 && u.Input+u.Output*21/20 > a.Longest {
			return nil, fmt.Errorf("the server takes %d tokens, and %s needs %d", a.Longest, name, u.Input+u.Output*21/20)
		}
		data.Cases = append(data.Cases, u)
		if u.Input >= 32<<10 {
			data.Profile = longProfile
		}
	}
	var b bytes.Buffer
	if err := starter.Execute(&b, data); err != nil {
		return nil, err
	}
	out, diags := decode.Format(b.Bytes(), "tokgate.hcl")
	if diags.HasErrors() {
		return nil, diags
	}
	return out, nil
}

// Budget is the minutes that the plan allows itself: half an hour for the
// server to start and something to spare, and as much for each use case as a
// slow GPU needs.
func Budget(a Answers) int {
	minutes := 30
	for _, name := range a.UseCases {
		if i := slices.IndexFunc(UseCases, func(u UseCase) bool { return u.Name == name }); i >= 0 && UseCases[i].Input >= 8<<10 {
			minutes += 45
		} else {
			minutes += 15
		}
	}
	return minutes
}

// Exact says whether the engine can be told how long to answer.
func (a Answers) Exact() bool { return engine.Of(a.Engine).Dialect.IgnoreEOS }

// CI is what a starter workflow is made of.
type CI struct {
	Plan   string // path of the plan in the repository
	File   string // path of the file itself
	Commit string // of the action to use, 40 hexadecimal digits; "": to be filled in
	Budget int    // minutes of the plan
}

//go:embed github.yml.tmpl gitlab.yml.tmpl
var workflows embed.FS

// GitHub has expressions in double braces of its own.
var ci = template.Must(template.New("ci").Delims("<<", ">>").ParseFS(workflows, "*.yml.tmpl"))

// checkout is the commit of actions/checkout that the examples use.
const checkout = "d23441a48e516b6c34aea4fa41551a30e30af803 # v6.1.0"

var commitName = regexp.MustCompile(`^[0-9a-f]{40}$`)

// GitHub is the text of a workflow that gates the plan.
func GitHub(c CI) ([]byte, error) { return c.file("github.yml.tmpl") }

// GitLab is the text of a file that a pipeline includes.
func GitLab(c CI) ([]byte, error) { return c.file("gitlab.yml.tmpl") }

func (c CI) file(name string) ([]byte, error) {
	action := c.Commit
	if !commitName.MatchString(action) {
		action = strings.Repeat("0", 40) + " # put the commit of the release that you use here"
	}
	var b bytes.Buffer
	err := ci.ExecuteTemplate(&b, name, struct {
		CI
		Checkout, Action string
		Timeout          int // minutes
	}{c, checkout, action, c.Budget + 15})
	return b.Bytes(), err
}
