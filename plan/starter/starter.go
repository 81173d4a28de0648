// Package starter writes a first plan, commented, formatted and valid, and the file
// that runs it in CI.
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

// UseCase is a workload that a starter plan can contain.
type UseCase struct {
	Name     string // name of the preset for the plan's workload, with the suffix leaving if clients leave
	Doc      string
	Input    int     // prompt length in tokens
	Output   int     // answer length in tokens
	InFlight []int   // levels, in requests in flight
	Requests int     // requests of a level; enough to certify its means within minutes
	Bounds   []Bound // thresholds on statistics over all answers, which suit any server
}

// leaving is the suffix of a use case in which clients leave. A preset says nothing of that.
const leaving = "_leaving"

// Preset returns the name of the preset for the plan's workload.
func (u UseCase) Preset() string { return strings.TrimSuffix(u.Name, leaving) }

// Bound is a threshold of an SLA, in the syntax of a plan.
type Bound struct {
	Metric, Text string
	Why          string // reason, as a comment of the plan; "" if none
}

// wait returns two bounds: on the wait for the first token, and on the speed of the answer. ttft is
// the bound on the mean TTFT, such as "3s".
func wait(ttft string) []Bound {
	return []Bound{
		{"ttft", "mean < " + ttft, "how long a user waits for the first token"},
		{"speed", "mean > 30 tok/s", "how fast the text of one user streams"},
	}
}

// UseCases lists the use cases to choose from, shortest first.
var UseCases = []UseCase{
	{"chatbot", "short questions and answers: 1K in, 256 out", 1 << 10, 256, []int{1, 4}, 100, wait("3s")},
	{"chatbot" + leaving, "a chat whose users close tabs: 1K in, 256 out, three of four leave", 1 << 10, 256, []int{1, 4}, 100, wait("3s")},
	{"code_completion", "one line while somebody types: 1K in, 128 out", 1 << 10, 128, []int{1, 4}, 100,
		[]Bound{{"e2e", "mean < 2s", "the whole line"}}},
	{"rag", "questions with passages: 4K in, 256 out", 4 << 10, 256, []int{1, 4}, 100, wait("3s")},
	{"short_form_chatbot", "a conversation: 8K in, 1K out", 8 << 10, 1024, []int{1, 4}, 60, wait("10s")},
	{"agentic", "steps of an agent: 16K in, 256 out", 16 << 10, 256, []int{1, 4}, 60, wait("3s")},
	{"general_chatbot", "a long conversation: 32K in, 1K out", 32 << 10, 1024, []int{1, 4}, 60, wait("8s")},
	{"long_document", "a report to read: 64K in, 1K out", 64 << 10, 1024, []int{1, 2}, 60, wait("12s")},
	{"coding_assistant", "a repository to read: 96K in, 1K out", 96 << 10, 1024, []int{1, 2}, 60, wait("12s")},
}

// Named returns the use case with that name; false if there is none.
func Named(name string) (UseCase, bool) {
	i := slices.IndexFunc(UseCases, func(u UseCase) bool { return u.Name == name })
	if i < 0 {
		return UseCase{}, false
	}
	return UseCases[i], true
}

// Names returns the names of UseCases.
func Names() []string {
	var names []string
	for _, u := range UseCases {
		names = append(names, u.Name)
	}
	return names
}

// Answers are the user's choices for a starter plan.
type Answers struct {
	File   string // path of the plan, which its comments show; "" means tokgate.hcl
	Engine string // "vllm", "sglang", "llama.cpp" or "openai"
	Model  string // name of the model; "" means any
	// Exactly one of URL, Image and Command is set. URL is the address of a running server.
	URL     string
	Image   string
	Command string
	// UseCases holds names of use cases; the variable UseCases lists them all.
	UseCases []string
	// Unlisted says that the server at URL lists no model, so requests have the name Model.
	Unlisted bool
	// Longest is the server's context in tokens; 0 if unknown.
	Longest int
	// Rates lists arrival rates such as "4 req/s". nil means that the use cases keep their levels
	// of requests in flight.
	Rates []string
	// Upgrade adds a comparison with the base branch. It needs an image or a command, because a URL
	// leads to only one server.
	Upgrade bool
	// Measured are thresholds from a measurement of the server: for each use case, a list by level.
	// If nil, the thresholds are common expectations of users.
	Measured map[string][]Measured
}

// Measured holds thresholds for one level, from measured values with a margin.
type Measured struct {
	InFlight, Requests int
	Bounds             []Bound
}

// longProfile is a simulator profile whose context fits the longest use case.
const longProfile = "qwen3.6-35b-a3b-mtp-fp8.1x-rtx-pro-6000"

//go:embed starter.hcl.tmpl
var source string

var starter = template.Must(template.New("starter").Funcs(template.FuncMap{
	"quote": func(s string) string {
		// HCL begins a template with ${ or %{, so double these signs.
		return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(fmt.Sprintf("%q", s))
	},
	"words": func(s string) string {
		var quoted []string
		for _, w := range strings.Fields(s) {
			quoted = append(quoted, fmt.Sprintf("%q", w))
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	},
	"list": func(n []int) string { return strings.Join(strings.Fields(fmt.Sprint(n)), ", ") },
}).Parse(source))

// Plan writes a plan. It returns an error if the choices name an unknown engine or use case,
// exclude each other, do not fit the server, or do not set exactly one of URL, Image and Command.
func Plan(a Answers) ([]byte, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	if a.File == "" {
		a.File = "tokgate.hcl"
	}
	data := struct {
		Answers
		Name    string
		Cases   []UseCase
		Profile string // profile of the simulator
		Budget  int    // in minutes
	}{Answers: a, Name: strings.NewReplacer(".", "_").Replace(a.Engine)}
	if a.Engine == engine.Plain {
		data.Name = "server"
	}
	data.Budget = Budget(a)
	for _, name := range a.UseCases {
		u, _ := Named(name)
		data.Cases = append(data.Cases, u)
		if u.Input >= 32<<10 {
			data.Profile = longProfile
		}
	}
	var b bytes.Buffer
	if err := starter.Execute(&b, data); err != nil {
		return nil, err
	}
	out, diags := decode.Format(b.Bytes(), a.File)
	if diags.HasErrors() {
		return nil, diags
	}
	return out, nil
}

// check returns an error if no plan can be made from the choices. The error names flags of init.
func (a Answers) check() error {
	if !slices.Contains(engine.Names(nil), a.Engine) {
		return fmt.Errorf("--engine %q is not known; choose one of %s", a.Engine, strings.Join(engine.Names(nil), ", "))
	}
	targets := 0
	for _, t := range []string{a.URL, a.Image, a.Command} {
		if t != "" {
			targets++
		}
	}
	known := engine.Of(a.Engine)
	switch {
	case targets == 0:
		return errors.New("a plan needs a server: set --url, --image or --command")
	case targets > 1:
		return errors.New("a plan has only one server: set one of --url, --image and --command")
	case a.Image != "" && a.Model == "" && len(known.Launch.Program) > 0:
		return fmt.Errorf("--image with --engine %s also needs --model, the model to serve", a.Engine)
	case a.Command != "" && !strings.Contains(a.Command, "{port}"):
		return errors.New("--command must contain {port}, which each run replaces by a free port")
	case a.Upgrade && a.URL != "":
		return errors.New("--upgrade compares the servers of two branches, but --url is only one server; use --image or --command")
	case len(a.Rates) > 0 && a.Upgrade:
		return errors.New("--rate cannot be combined with --upgrade, which measures levels of concurrency")
	case len(a.UseCases) == 0:
		return errors.New("a plan needs a use case: set --use-case")
	}
	for _, name := range a.UseCases {
		u, ok := Named(name)
		if !ok {
			return fmt.Errorf("--use-case %q is not known; choose one of %s", name, strings.Join(Names(), ", "))
		}
		if need := u.Input + u.Output*21/20; a.Longest > 0 && need > a.Longest {
			return fmt.Errorf("--use-case %s needs a context of %d tokens, but the server has only %d", name, need, a.Longest)
		}
	}
	return nil
}

// Unmeasured lists the levels of a use case that have no measured thresholds. A level is its number
// of requests in flight.
func (a Answers) Unmeasured(u UseCase) []int {
	return slices.DeleteFunc(slices.Clone(u.InFlight), func(n int) bool {
		return slices.ContainsFunc(a.Measured[u.Name], func(m Measured) bool { return m.InFlight == n })
	})
}

// Budget returns the time budget of the plan in minutes. The first start and a reserve get half an
// hour. Each use case gets the time that a slow GPU needs for it and for each rate. A comparison
// doubles the time of the use cases, and adds up to 24 starts of 5 minutes.
func Budget(a Answers) int {
	minutes := 0
	for _, name := range a.UseCases {
		if u, _ := Named(name); u.Input >= 8<<10 {
			minutes += 45
		} else {
			minutes += 15
		}
		minutes += 8 * len(a.Rates)
	}
	if a.Upgrade {
		return 30 + 2*minutes + 24*5
	}
	return 30 + minutes
}

// Exact reports whether the engine can be made to generate an exact number of tokens.
func (a Answers) Exact() bool { return engine.Of(a.Engine).Dialect.IgnoreEOS }

// Reads reports whether the engine can tell how likely a given chat answer is.
func (a Answers) Reads() bool {
	e := engine.Of(a.Engine)
	return e.Scores.Path != "" && e.Dialect.Tokenizer != engine.SGLangTokenizer
}

// CI holds the choices for the CI file that runs a plan.
type CI struct {
	Plan    string // path of the plan in the repository
	File    string // path of the file itself
	Commit  string // commit of the action to use, 40 hexadecimal digits; "" leaves a placeholder
	Budget  int    // budget of the plan in minutes
	Upgrade bool   // whether the plan compares with the base branch
}

//go:embed github.yml.tmpl gitlab.yml.tmpl comment.yml.tmpl
var workflows embed.FS

// The templates use << and >>, because GitHub's expressions use double braces.
var ci = template.Must(template.New("ci").Delims("<<", ">>").ParseFS(workflows, "*.yml.tmpl"))

// checkout is the commit of actions/checkout that the generated workflows use.
const checkout = "d23441a48e516b6c34aea4fa41551a30e30af803 # v6.1.0"

var commitName = regexp.MustCompile(`^[0-9a-f]{40}$`)

// GitHub writes a workflow that gates the plan.
func GitHub(c CI) ([]byte, error) { return c.file("github.yml.tmpl") }

// Comment writes the workflow that comments on a pull request: it shows the result of the workflow
// from GitHub.
func Comment(c CI) ([]byte, error) { return c.file("comment.yml.tmpl") }

// GitLab writes a file for a pipeline to include.
func GitLab(c CI) ([]byte, error) { return c.file("gitlab.yml.tmpl") }

func (c CI) file(name string) ([]byte, error) {
	action := c.Commit
	if !commitName.MatchString(action) {
		action = strings.Repeat("0", 40) + " # replace this by the commit of tokgate that you use"
	}
	return write(name, job{CI: c, Workflow: "tokgate", Checkout: checkout, Action: action, Timeout: c.Budget + 15})
}

type job struct {
	CI
	Workflow         string // name of the workflow that runs the plan
	Checkout, Action string
	Timeout          int  // in minutes
	Copied           bool // this file is the copy for the docs
}

func write(name string, j job) ([]byte, error) {
	var b bytes.Buffer
	err := ci.ExecuteTemplate(&b, name, j)
	return b.Bytes(), err
}
