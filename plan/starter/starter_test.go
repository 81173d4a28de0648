package starter

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan/decode"
)

// Plan writes a formatted and valid plan for every engine, kind of server and use case, and for
// combinations of use cases.
func TestLongPlan(t *testing.T) {
	var all []string
	for _, u := range UseCases {
		all = append(all, u.Name)
	}
	sets := [][]string{all}
	for _, name := range all {
		sets = append(sets, []string{name})
	}
	for _, name := range engine.Names(nil) {
		for _, a := range []Answers{
			{URL: "http://127.0.0.1:8000/v1"},
			{URL: "http://127.0.0.1:8000", Model: "a${x} %{if b}\"\\"},
			{Image: "registry.test/image@sha256:0123", Model: "Qwen/Qwen3-8B"},
			{Command: "serve --port {port} --model m"},
		} {
			for _, set := range sets {
				a.Engine, a.UseCases, a.File = name, set, "perf/gate.hcl"
				if a.Image != "" {
					a.Upgrade = true
				}
				if a.Rates = nil; a.Command != "" {
					a.Rates = []string{"0.5 req/s", "240 req/min"}
				}
				if a.URL != "" && a.Model == "" {
					a.Measured = map[string][]Measured{set[0]: {{1, 20, []Bound{{"ttft", "mean < 76.1ms", "measured 69.2 ms"}}}}}
				}
				text, err := Plan(a)
				must.Need(t, err == nil, "%+v: %v", a, err)
				if formatted, diags := decode.Format(text, "tokgate.hcl"); diags.HasErrors() || string(formatted) != string(text) {
					t.Errorf("%+v is not formatted: %v", a, diags)
				}
				p, diags := decode.File(decode.Options{Path: "tokgate.hcl", Source: text})
				must.Need(t, !diags.HasErrors(), "%+v: %v\n%s", a, diags, text)
				if len(p.Workloads) != len(set) || len(p.Servers) != 1 || p.Servers[0].Simulator == nil {
					t.Errorf("%+v: %d workloads, %d servers", a, len(p.Workloads), len(p.Servers))
				}
				for _, w := range p.Workloads {
					levels := w.Loads[0].Levels
					must.Hold(t, a.Rates == nil || len(levels) == 2 && levels[1].Rate == 4 && levels[1].Requests == 1200, "%+v: levels %+v", a, levels)
				}
				if a.URL != "" && p.Servers[0].Endpoint.URL != a.URL {
					t.Errorf("the URL %q became %q", a.URL, p.Servers[0].Endpoint.URL)
				}
				got := p.Servers[0].Model
				must.Hold(t, got == a.Model, "the model %q became %q", a.Model, got)
			}
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	good := Answers{Engine: "vllm", URL: "http://127.0.0.1:8000", UseCases: []string{"rag"}}
	for want, change := range map[string]func(*Answers){
		`--engine "vlm" is not known; choose one of vllm`:        func(a *Answers) { a.Engine = "vlm" },
		"a plan needs a server: set --url":                       func(a *Answers) { a.URL = "" },
		"a plan has only one server":                             func(a *Answers) { a.Image = "x" },
		"--use-case":                                             func(a *Answers) { a.UseCases = nil },
		`--use-case "chat" is not known`:                         func(a *Answers) { a.UseCases = []string{"chat"} },
		"rag needs a context of 4364 tokens, but the server has": func(a *Answers) { a.Longest = 4096 },
		"--upgrade compares":                                     func(a *Answers) { a.Upgrade = true },
		"--rate cannot be combined": func(a *Answers) {
			a.URL, a.Image, a.Model, a.Upgrade, a.Rates = "", "x", "m", true, []string{"1 req/s"}
		},
		"needs --model":                 func(a *Answers) { a.URL, a.Image = "", "x" },
		"--command must contain {port}": func(a *Answers) { a.URL, a.Command = "", "serve" },
	} {
		a := good
		change(&a)
		_, err := Plan(a)
		must.Hold(t, err != nil && strings.Contains(err.Error(), want), "%v, want %q", err, want)
	}
}

// The expressions of GitHub stay in the files, and those of the template are replaced. The job's
// time limit is longer than the plan's budget.
func TestWorkflows(t *testing.T) {
	c := CI{Plan: "perf/gate.hcl", File: ".gitlab/tokgate.yml", Budget: 45}
	for name, render := range map[string]func(CI) ([]byte, error){"github": GitHub, "gitlab": GitLab} {
		for _, commit := range []string{"", strings.Repeat("ab", 20), "not a commit"} {
			c.Commit, c.Upgrade = commit, commit == ""
			text := must.Get(render(c))(t)
			s := string(text)
			if strings.Contains(s, "<<") || !strings.Contains(s, "perf/gate.hcl") || !regexp.MustCompile(`time-?out(-minutes)?: 60\b`).MatchString(s) {
				t.Errorf("%s:\n%s", name, s)
			}
			want := strings.Repeat("0", 40)
			if len(commit) == 40 {
				want = commit
			}
			for _, words := range []string{"pull_request.base.sha", "fetch-depth: 0"} {
				must.Hold(t, name != "github" || strings.Contains(s, words) == c.Upgrade, "of an upgrade %v, %s:\n%s", c.Upgrade, words, s)
			}
			must.Hold(t, name != "github" || strings.Count(s, fmt.Sprintf("tokgate/tokgate@%s", want)) == 2, "the action is not at %s:\n%s", want, s)
		}
	}
}

// The comment workflow in the docs is written from the same template. The workflow that Comment
// writes follows the workflow "tokgate", which is the one that GitHub writes.
func TestComment(t *testing.T) {
	example := must.Get(write("comment.yml.tmpl", job{Workflow: "gate", Action: strings.Repeat("0", 40), Copied: true}))(t)
	want := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "workflows", "comment.yml")))(t)
	must.Same(t, "docs/workflows/comment.yml and comment.yml.tmpl differ", string(want), string(example))
	text := must.Get(Comment(CI{Commit: strings.Repeat("ab", 20)}))(t)
	for _, words := range []string{"workflows: [tokgate] #", "tokgate/tokgate@" + strings.Repeat("ab", 20), "name: tokgate-comment\n"} {
		must.Hold(t, strings.Contains(string(text), words), "no %q in\n%s", words, text)
	}
}

// A plan without a file name has the text of a plan in tokgate.hcl.
func TestPlanWithoutAFile(t *testing.T) {
	a := Answers{Engine: "vllm", URL: "http://127.0.0.1:8000", UseCases: []string{"rag"}}
	got, err := Plan(a)
	must.Do(t, err)
	a.File = "tokgate.hcl"
	want, err := Plan(a)
	d := cmp.Diff(string(want), string(got))
	must.Hold(t, err == nil && d == "", "%v (-named +not):\n%s", err, d)
}
