package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/internal/studies/runner"
	"github.com/tokgate/tokgate/plan/starter"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/markdown"
)

// pulls stands for a repository on GitHub. It has one open pull request, number 17 from the branch
// team:feature, with comments.
type pulls struct {
	dir string // folder with gh, pulls.json and comments.json
}

type prComment struct {
	ID   int `json:"id"`
	User struct {
		Login string `json:"login"`
	} `json:"user"`
	Body string `json:"body"`
}

const bot = "github-actions[bot]"

func said(id int, login, body string) prComment {
	c := prComment{ID: id, Body: body}
	c.User.Login = login
	return c
}

// newPulls makes a stand-in for GitHub. It is a program gh that answers from files, and applies the
// caller's jq filters.
func newPulls(t *testing.T, comments ...prComment) *pulls {
	t.Helper()
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("there is no jq")
	}
	p := &pulls{t.TempDir()}
	script := `#!/bin/sh
set -e
cd "` + p.dir + `"
method=GET filter=. body= path=
[ "$1" = api ]; shift
while [ $# -gt 0 ]; do
  case $1 in
  --method) method=$2; shift 2 ;;
  --jq) filter=$2; shift 2 ;;
  --paginate | --silent) shift ;;
  -f) echo "$2" >>asked; shift 2 ;;
  -F) body=${2#body=@}; shift 2 ;;
  *) path=$1; shift ;;
  esac
done
case $method,$path in
GET,repos/team/serving/pulls) jq -r "$filter" pulls.json ;;
GET,repos/team/serving/issues/17/comments) jq -r "$filter" comments.json ;;
PATCH,repos/team/serving/issues/comments/*)
  jq --arg id "${path##*/}" --rawfile body "$body" 'map(if (.id | tostring) == $id then .body = $body else . end)' comments.json >new
  mv new comments.json ;;
POST,repos/team/serving/issues/17/comments)
  jq --rawfile body "$body" '. + [{id: (100 + length), user: {login: "` + bot + `"}, body: $body}]' comments.json >new
  mv new comments.json ;;
*) echo "no such thing: $method $path" >&2; exit 1 ;;
esac
`
	p.write(t, "gh", script)
	p.write(t, "pulls.json", `[{"number": 17, "head": {"sha": "abc"}}]`)
	if comments == nil {
		comments = []prComment{}
	}
	text := must.Get(json.Marshal(comments))(t)
	p.write(t, "comments.json", string(text))
	return p
}

func (p *pulls) write(t *testing.T, name, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o755))
}

func (p *pulls) comments(t *testing.T) (list []prComment) {
	t.Helper()
	must.Do(t, json.Unmarshal([]byte(read(t, filepath.Join(p.dir, "comments.json"))), &list))
	return list
}

// runEnded returns the event that GitHub sends when a run of the gate on a commit has ended.
func runEnded(event, sha string) map[string]any {
	return map[string]any{"workflow_run": map[string]any{
		"event": event, "conclusion": "failure", "id": 9.0, "head_sha": sha, "head_branch": "feature", "html_url": "https://github.com/team/serving/actions/runs/9",
		"head_repository": map[string]any{"full_name": "team/serving", "owner": map[string]any{"login": "someone"}},
	}}
}

// resultsOf returns a results.json as a run writes it.
func resultsOf(t *testing.T, name string, change func(*report.Document)) string {
	t.Helper()
	f := must.Get(os.Open(filepath.Join(repository, "report", "testdata", name+".results.json")))(t)
	defer f.Close()
	d := must.Get(report.ReadDocument(f))(t)
	if change != nil {
		change(d)
	}
	var b strings.Builder
	must.Do(t, d.Write(&b))
	return b.String()
}

// commented runs the workflow in docs that comments on a pull request. results holds the text of
// results.json for each results folder.
func commented(t *testing.T, p *pulls, when string, event map[string]any, results map[string]string) *runner.Job {
	t.Helper()
	return commentedBy(t, read(t, filepath.Join(repository, "docs", "workflows", "comment.yml")), p, when, event, results)
}

// commentedBy does the same as commented, but with the given workflow instead of the one in docs.
func commentedBy(t *testing.T, workflow string, p *pulls, when string, event map[string]any, results map[string]string) *runner.Job {
	t.Helper()
	c := newCheckout(t, "")
	c.Path = p.dir
	c.GitHub["event"] = event
	c.Environ = append(c.Environ, "GITHUB_REPOSITORY=team/serving")
	if when != "always" {
		c.With["comment"] = when
	}
	c.Actions["actions/download-artifact"] = func(with map[string]string) (map[string]string, error) {
		if with["name"] != "tokgate-results" || with["run-id"] != "9" || with["github-token"] == "" {
			return nil, fmt.Errorf("it is asked for %v", with)
		}
		if results == nil {
			return nil, fmt.Errorf("there is no such artifact")
		}
		for name, text := range results {
			name, to, link := strings.Cut(name, " -> ")
			path := filepath.Join(with["path"], name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return nil, err
			}
			if link {
				if err := os.Symlink(to, path); err != nil {
					return nil, err
				}
				continue
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	job := must.Get(c.Run(t.Context(), []byte(workflow), "comment", nil))(t)
	return job
}

// The test runs the two workflows that `init --upgrade --github` writes. One workflow validates the
// plan and compares it with the base branch. The other comments the results on the pull request.
func TestLongWorkflowInit(t *testing.T) {
	o := initOptions{file: "perf/gate.hcl", github: true}
	o.answers = starter.Answers{Engine: "vllm", File: o.file, Image: "vllm/vllm-openai:v1", Model: "Qwen/Qwen3-8B", UseCases: []string{"code_completion"}, Upgrade: true}
	text := must.Get(o.plan())(t)
	written := must.Get(o.files())(t)
	files := map[string]string{o.file: string(text)}
	for _, f := range written[1:] {
		files[f.path] = string(f.text)
	}
	c := newCheckout(t, "simulate")
	base := c.commit(files)
	files[o.file] = strings.ReplaceAll(files[o.file], ":v1", ":v2")
	c.commit(files)
	c.GitHub["event"] = pullRequest("team/serving", base)
	const gate = ".github/workflows/tokgate.yml"
	for _, name := range []string{"try", "gate"} {
		job, err := c.Run(t.Context(), []byte(files[gate]), name, nil)
		if err != nil || job.Failed || job.Skipped {
			t.Fatalf("%s: %v, failed %t, skipped %t\n%s", name, err, job.Failed, job.Skipped, job.Log)
		}
	}
	results := c.artifacts["tokgate-results"]
	i := slices.IndexFunc(results, func(path string) bool { return filepath.Base(path) == "results.json" })
	must.Need(t, i >= 0, "the gate uploaded %v", c.artifacts)
	comment := files[".github/workflows/tokgate-comment.yml"]
	name, _, _ := strings.Cut(files[gate][strings.Index(files[gate], "\nname: ")+7:], "\n")
	must.Hold(t, strings.Contains(comment, "workflows: ["+name+"]"), "the second waits for another workflow than %q:\n%s", name, comment)
	p := newPulls(t)
	job := commentedBy(t, comment, p, "always", runEnded("pull_request", "abc"), map[string]string{"results.json": read(t, filepath.Join(c.Workspace, results[i]))})
	got := p.comments(t)
	if job.Failed || len(got) != 1 || !strings.Contains(got[0].Body, "## ✅ PASS") || !strings.Contains(got[0].Body, "**upgrade: ") {
		t.Errorf("failed %t, comments %v\n%s", job.Failed, got, job.Log)
	}
}

// A pull request has one comment for each plan, with the result of the newest run.
func TestLongWorkflowComment(t *testing.T) {
	green := resultsOf(t, "pass", nil)
	undecided := resultsOf(t, "pass", func(d *report.Document) { d.Outcome, d.ExitCode = verdict.Inconclusive, 3 })
	red := resultsOf(t, "rich", nil)
	yes := resultsOf(t, "pass", func(d *report.Document) {
		d.Comparisons = []*compare.Comparison{{Name: "mtp", Outcome: verdict.Pass, Line: "mtp: yes for chat", Decisions: []compare.Decision{{Answer: "yes"}}}}
	})
	const marker = "<!-- tokgate:chatbot -->"
	old := []prComment{said(1, "someone", "hello"), said(2, bot, marker+"\nold"), said(3, bot, "<!-- tokgate:chatbot-2 -->")}
	for _, tt := range []struct {
		name, when, sha string
		before          []prComment
		results         string
		says            []string // texts that the comments must contain at the end
	}{
		{"green, first", "always", "abc", nil, green, []string{"## ✅ PASS"}},
		{"red, first", "always", "abc", nil, red, []string{"## 🛑 ERROR"}},
		{"inconclusive, first", "red", "abc", nil, undecided, []string{"## ❔ INCONCLUSIVE"}},
		{"green, second", "red", "abc", old, green, []string{"hello", "## ✅ PASS", "chatbot-2"}},
		{"red, second", "always", "abc", old, red, []string{"hello", "## 🛑 ERROR", "chatbot-2"}},
		{"inconclusive, second", "always", "abc", old, undecided, []string{"hello", "## ❔ INCONCLUSIVE", "chatbot-2"}},
		{"green, only red is said", "red", "abc", nil, green, nil},
		{"no change", "change", "abc", nil, green, nil},
		{"a change", "change", "abc", nil, yes, []string{"yes for chat"}},
		{"a change, only red is said", "red", "abc", nil, yes, nil},
		{"another's comment", "always", "abc", []prComment{said(1, "someone", marker)}, green, []string{marker, "## ✅ PASS"}},
		{"an older commit", "always", "def", nil, red, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPulls(t, tt.before...)
			job := commented(t, p, tt.when, runEnded("pull_request", tt.sha), map[string]string{"results.json": tt.results})
			must.Need(t, !job.Failed && !job.Skipped, "failed %t, skipped %t\n%s", job.Failed, job.Skipped, job.Log)
			got := p.comments(t)
			must.Need(t, len(got) == len(tt.says), "%d comments, want %d: %v\n%s", len(got), len(tt.says), got, job.Log)
			for i, want := range tt.says {
				must.Hold(t, strings.Contains(got[i].Body, want), "comment %d does not say %q: %s", i+1, want, got[i].Body)
				if strings.HasPrefix(want, "##") && (!strings.HasPrefix(got[i].Body, marker+"\n") || !strings.HasSuffix(got[i].Body, "[The run](https://github.com/team/serving/actions/runs/9) ended with failure.\n")) {
					t.Errorf("comment %d: %s", i+1, got[i].Body)
				}
			}
			must.Same(t, "asked for pull requests by (-want +got)", "state=open\nhead=someone:feature\n", read(t, filepath.Join(p.dir, "asked")))
		})
	}
}

// The comment escapes every text of a hostile artifact. It leaves out a results file that cannot be
// read.
func TestLongWorkflowCommentHostile(t *testing.T) {
	const evil = "<!-- tokgate:chatbot-2 -->\n<script>alert(1)</script> ![x](https://evil.example/x.png) @everyone <img src=x> [y](https://evil.example)"
	hostile := func(d *report.Document) {
		d.Plan.Name, d.Plan.Path, d.Why, d.Run.Tool = evil, evil, evil, evil
		for i := range d.Verdicts {
			d.Verdicts[i].Message, d.Verdicts[i].Name, d.Verdicts[i].Notes = evil+strings.Repeat("x", 700_000), evil, []verdict.Note{{Text: evil}}
		}
	}
	large := resultsOf(t, "rich", hostile) // 10 MB
	must.Need(t, len(large) >= 10e6, "%d bytes", len(large))
	for name, results := range map[string]map[string]string{
		"text of others":   {"results.json": resultsOf(t, "pass", hostile), "comment.md": evil, "report.md": evil},
		"large":            {"results.json": large},
		"a changed result": {"results.json": strings.Replace(resultsOf(t, "rich", nil), `"exit_code": 4`, `"exit_code": 0`, 1)},
		"too large":        {"results.json": strings.Repeat(" ", 21<<20) + large},
		"no JSON":          {"results.json": evil},
		"nothing":          {"comment.md": evil},
		"a path outside":   {"../../outside/results.json": large, "-rf/$(touch hacked)/results.json": resultsOf(t, "pass", hostile)},
		"a link":           {"link/results.json -> /etc/passwd": ""},
		"cut off":          nil,
		"many": func() map[string]string {
			many := map[string]string{}
			for i := range 30 {
				many[fmt.Sprintf("p%d/results.json", i)] = resultsOf(t, "pass", func(d *report.Document) { d.Plan.Name = fmt.Sprintf("p%d", i) })
			}
			return many
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPulls(t, said(1, bot, "<!-- tokgate:chatbot-2 -->"))
			job := commented(t, p, "always", runEnded("pull_request", "abc"), results)
			must.Need(t, !job.Failed, "%v", job.Log)
			got := p.comments(t)
			want := map[string]int{"text of others": 2, "large": 2, "many": 6, "a path outside": 2}[name]
			must.Hold(t, len(got) == max(want, 1), "%d comments, want %d\n%s", len(got), max(want, 1), job.Log)
			if _, err := os.Stat(filepath.Join(p.dir, "hacked")); err == nil || strings.Contains(job.Log, "root:") {
				t.Errorf("a name was run, or a file beside the artifact was read:\n%s", job.Log)
			}
			must.Hold(t, got[0].Body == "<!-- tokgate:chatbot-2 -->", "another plan's comment says %q now", got[0].Body)
			for _, c := range got[1:] {
				for _, markup := range []string{"<script", "<img", "@everyone", "https://evil", "![x]"} {
					must.Hold(t, !strings.Contains(c.Body, markup), "%q is in the comment: %.500s", markup, c.Body)
				}
				must.Hold(t, len(c.Body) <= 65_536 && strings.Count(c.Body, "\n") <= markdown.CommentLines+2, "a comment of %d bytes", len(c.Body))
			}
		})
	}
}

// The workflow comments only on runs of pull requests from the same repository. Nobody verified what
// a fork measured.
func TestLongWorkflowCommentEvents(t *testing.T) {
	for _, tt := range []struct {
		event, from string
		comments    int
	}{
		{"pull_request", "team/serving", 1},
		{"pull_request", "someone/serving", 0},
		{"pull_request", "team/serving-fork", 0},
		{"pull_request", "", 0}, // the fork was deleted
		{"push", "team/serving", 0},
		{"schedule", "team/serving", 0},
		{"workflow_dispatch", "team/serving", 0},
	} {
		event := runEnded(tt.event, "abc")
		event["workflow_run"].(map[string]any)["head_repository"].(map[string]any)["full_name"] = tt.from
		p := newPulls(t)
		job := commented(t, p, "always", event, map[string]string{"results.json": resultsOf(t, "pass", nil)})
		if got := p.comments(t); job.Failed || job.Skipped != (tt.comments == 0) || len(got) != tt.comments {
			t.Errorf("after a %s from %q: skipped %t, %d comments, want %d\n%s", tt.event, tt.from, job.Skipped, len(got), tt.comments, job.Log)
		}
	}
}
