package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/pflag"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/report"
)

// pages lists the pages of the documentation.
func pages(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	must.Need(t, err == nil && len(docs) != 0, "%d pages, %v", len(docs), err)
	return append(docs, filepath.Join(repository, "README.md"), filepath.Join(repository, "CONTRIBUTING.md"))
}

// fencedPlan matches a plan or a data set in the documentation. A file name may follow the
// language. The commands of the page then use the block as that file.
var fencedPlan = regexp.MustCompile("(?s)```(?:hcl|jsonl)([^\n]*)\n(.*?)```")

var configMap = regexp.MustCompile(`(?m)^  \S+\.hcl: \|\n((?:    .*\n)+)`)

// All plans in the documentation are valid. If an example has only a server or only a workload, the
// test adds the missing block. The test skips plans with a file name, because
// TestLongDocumentedCommands runs them.
func TestLongDocumentedPlans(t *testing.T) {
	found := 0
	for _, page := range pages(t) {
		for i, m := range fencedPlan.FindAllStringSubmatch(read(t, page), -1) {
			found++
			if m[1] != "" {
				continue
			}
			t.Run(fmt.Sprintf("%s %d", filepath.Base(page), i+1), func(t *testing.T) {
				src := m[2]
				if !regexp.MustCompile(`(?m)^server "`).MatchString(src) {
					src += "\nserver \"any\" {\n  simulator {}\n}\n"
				}
				if !regexp.MustCompile(`(?m)^workload "`).MatchString(src) {
					src += "\nworkload \"any\" {\n  preset = \"short_form_chatbot\"\n  load {\n    concurrency = 1\n  }\n}\n"
				}
				tokgate(t, "validate", writePlan(t, src)).check(t, verdict.ExitPass, "is valid")
			})
		}
	}
	// Plans inside a ConfigMap are checked too.
	for _, page := range pages(t) {
		for _, m := range configMap.FindAllStringSubmatch(read(t, page), -1) {
			found++
			src := strings.ReplaceAll(m[1], "\n    ", "\n")
			tokgate(t, "validate", writePlan(t, strings.TrimPrefix(src, "    "))).check(t, verdict.ExitPass, "is valid")
		}
	}
	must.Need(t, found != 0, "the documentation shows no plan")
}

var link = regexp.MustCompile(`\]\(([^)#:]*)(#[^)]*)?\)`)

// Every link in the documentation leads to an existing file and section.
func TestLongDocumentedLinks(t *testing.T) {
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			target := filepath.Join(filepath.Dir(page), m[1])
			if m[1] == "" {
				target = page
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
				continue
			}
			if m[2] != "" && strings.HasSuffix(target, ".md") && !slices.Contains(anchors(read(t, target)), m[2]) {
				t.Errorf("%s links to %s, and there is no section %s", page, m[1], m[2])
			}
		}
	}
}

// Answers to users' questions are at most two clicks away from the README.
func TestDocumentedAnswers(t *testing.T) {
	clicks := map[string]int{"../../README.md": 0}
	for at := 0; at < 2; at++ {
		for page, n := range maps.Clone(clicks) {
			if n != at {
				continue
			}
			for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
				if target := filepath.Join(filepath.Dir(page), m[1]); strings.HasSuffix(target, ".md") {
					if _, ok := clicks[target]; !ok {
						clicks[target] = at + 1
					}
				}
			}
		}
	}
	for question, answer := range map[string][2]string{
		"a token for a gated model in CI": {"ci.md", "HF_TOKEN: ${{ secrets.HF_TOKEN }}"},
		"tensor parallelism over 4 GPUs":  {"servers.md", "tensor-parallel-size = 4"},
		"which of several configurations": {"comparing.md", "which of several configurations"},
		"accept a change of the nights":   {"history.md", "tokgate history pin"},
		"make a PDF":                      {"faq.md", "--print-to-pdf"},
		"my own prompts":                  {"traffic.md", "dataset"},
		"a rate instead of concurrency":   {"rates.md", "rate "},
		"a prefix cache":                  {"traffic.md", "hit_rate"},
		"embeddings":                      {"traffic.md", `api = "embeddings"`},
		"a nightly":                       {"history.md", "every night"},
		"what an exit code 3 wants of me": {"verdicts.md", "An exit code of 3 asks for more data"},
	} {
		page := "../../docs/" + answer[0]
		if _, ok := clicks[page]; !ok {
			t.Errorf("%s: %s is more than two clicks from the README", question, answer[0])
		}
		if !strings.Contains(strings.Join(strings.Fields(read(t, page)), " "), answer[1]) {
			t.Errorf("%s: %s does not say %q", question, answer[0], answer[1])
		}
	}
}

// The README and the guides have a limit on their words, so that people can read them. Generated
// tables count too. The reference, the definitions, the list of messages and the studies do not.
func TestDocumentedInFewWords(t *testing.T) {
	const most = 25_000
	total := 0
	for _, page := range pages(t) {
		switch filepath.Base(page) {
		case "language.md", "metrics.md", "troubleshooting.md", "characteristics.md", "reference.md", "engines-tried.md", "CONTRIBUTING.md":
			continue
		}
		n := len(strings.Fields(read(t, page)))
		t.Logf("%5d %s", n, page)
		total += n
	}
	must.Hold(t, total <= most, "%d words, at most %d", total, most)
}

// anchors returns the anchors of a page's sections, as GitHub names them.
func anchors(page string) []string {
	var out []string
	for line := range strings.Lines(page) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			title = regexp.MustCompile(`[^\pL\pN _-]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			out = append(out, "#"+strings.ReplaceAll(title, " ", "-"))
		}
	}
	return out
}

// command is a command line of the documentation.
type command struct {
	line  string
	words []string // without the program
	code  int      // expected exit code, from a comment after the command such as "# exit 1"
	whole bool     // in a code block; false if inside a sentence
}

var (
	shellBlock = regexp.MustCompile("(?s)```(?:sh|bash|console)\n(.*?)```")
	indented   = regexp.MustCompile(`(?m)^ {4}(?:\$ )?((?:bin/)?(?:tokgate|make) .*)$`)
	inline     = regexp.MustCompile("`((?:bin/)?(?:tokgate|make) [^`\n]+)`")
	exitCode   = regexp.MustCompile(`# exit ([0-9]+)`)
	comment    = regexp.MustCompile(`\s#\s.*$`)
	redirected = regexp.MustCompile(`\s[<>|&].*$`)
	word       = regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`)
)

// commands returns the tokgate commands and the make commands of a page, each in order.
func commands(t *testing.T, page string) (ours, make []command) {
	t.Helper()
	src := read(t, page)
	type at struct {
		pos   int
		line  string
		whole bool
	}
	var lines []at
	for _, m := range shellBlock.FindAllStringSubmatchIndex(src, -1) {
		pos := m[2]
		for line := range strings.Lines(strings.ReplaceAll(src[m[2]:m[3]], "\\\n", "  ")) {
			lines = append(lines, at{pos, line, true})
			pos += len(line)
		}
	}
	for _, m := range indented.FindAllStringSubmatchIndex(src, -1) {
		lines = append(lines, at{m[2], src[m[2]:m[3]], true})
	}
	for _, m := range inline.FindAllStringSubmatchIndex(src, -1) {
		lines = append(lines, at{m[2], src[m[2]:m[3]], false})
	}
	slices.SortStableFunc(lines, func(a, b at) int { return a.pos - b.pos })
	for _, l := range lines {
		c := command{line: strings.TrimPrefix(strings.TrimSpace(l.line), "$ "), whole: l.whole}
		if m := exitCode.FindStringSubmatch(c.line); m != nil {
			c.code, _ = strconv.Atoi(m[1])
		}
		rest := redirected.ReplaceAllString(comment.ReplaceAllString(" "+c.line, ""), "")
		for _, w := range word.FindAllString(rest, -1) {
			c.words = append(c.words, strings.Trim(w, `'"`))
		}
		if len(c.words) == 0 {
			continue
		}
		program := strings.TrimPrefix(c.words[0], "bin/")
		c.words = c.words[1:]
		switch program {
		case "tokgate":
			ours = append(ours, c)
		case "make":
			make = append(make, c)
		}
	}
	return ours, make
}

// parse checks the flags of a documented command against the program. It also checks the arguments
// of a command in a code block.
func (c command) parse() error {
	root := (&app{}).root()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	words := c.words
	if !c.whole {
		// In a sentence, "…" at the end of a command stands for its remaining arguments.
		if i := slices.Index(words, "…"); i >= 0 {
			words = words[:i]
		}
	}
	cmd, args, err := root.Find(words)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) || !c.whole && strings.Contains(err.Error(), "needs an argument") {
			return nil
		}
		return err
	}
	if cmd == root && len(cmd.Flags().Args()) > 0 {
		return fmt.Errorf("there is no command %s", words[0])
	}
	if !c.whole {
		return nil
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// Every documented command parses, and every make target exists. If a page names its plan files,
// its commands run in order, in a folder with these plans.
//
// The commands run in virtual time, with the built-in server in place of a URL. A command that
// needs a real server is only validated.
func TestLongDocumentedCommands(t *testing.T) {
	makefile := read(t, filepath.Join(repository, "Makefile"))
	server := simServer(t)
	found, run, seen := 0, 0, 0
	for _, page := range pages(t) {
		t.Run(filepath.Base(page), func(t *testing.T) {
			seen++
			ours, makes := commands(t, page)
			for _, c := range makes {
				must.Hold(t, strings.Contains(makefile, "\n"+c.words[0]+": "), "%s: there is no such target", c.line)
			}
			for _, c := range ours {
				found++
				err := c.parse()
				must.Hold(t, err == nil, "%s: %v", c.line, err)
			}
			plans := map[string]string{}
			for _, m := range fencedPlan.FindAllStringSubmatch(read(t, page), -1) {
				if m[1] != "" {
					plans[strings.TrimSpace(m[1])] = m[2]
				}
			}
			if len(plans) == 0 || t.Failed() {
				return
			}
			t.Chdir(t.TempDir())
			must.Do(t, os.CopyFS("plans", os.DirFS(filepath.Join(repository, "plans"))))
			for name, src := range plans {
				must.Do(t, os.WriteFile(name, []byte(src), 0o644))
				if isPlanFile(name) {
					tokgate(t, "fmt", "--check", name).check(t, verdict.ExitPass)
				}
			}
			for _, c := range ours {
				args := c.runnable(t, server.URL())
				if args == nil {
					continue
				}
				run++
				for _, a := range args {
					delete(plans, a)
				}
				r := tokgate(t, args...)
				must.Hold(t, r.code == c.code, "%s (as tokgate %s): exit code %d, want %d\n%s%s", c.line, strings.Join(args, " "), r.code, c.code, r.out, r.err)
			}
			for name := range plans {
				if !isPlanFile(name) { // a plan of the page reads this file as data
					continue
				}
				t.Errorf("no command of the page tries %s", name)
			}
			conforms(t, "results")
		})
	}
	must.Hold(t, seen != len(pages(t)) || found >= 50 && run >= 10, "%d commands were found and %d run", found, run)
}

// runnable returns the words of the command as the test runs it. It returns nil if the test does
// not run the command.
func (c command) runnable(t *testing.T, url string) []string {
	t.Helper()
	if !c.whole || len(c.words) == 0 || !slices.Contains([]string{"init", "validate", "plan", "run", "judge", "report", "fmt", "schema", "version", "traffic", "strength", "completion"}, c.words[0]) {
		return nil
	}
	args := slices.Clone(c.words)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "http://127.0.0.1:8000", url)
	}
	if args[0] != "run" {
		return args
	}
	plan := ""
	for _, a := range args {
		if strings.HasSuffix(a, ".hcl") {
			plan = a
		}
	}
	if strings.HasPrefix(plan, "plans/") {
		return []string{"validate", plan} // TestLongHeadsOfPlans runs the plans in plans/
	}
	if src := read(t, plan); !slices.Contains(args, "--simulate") && realTarget.MatchString(src) {
		return validated(args)
	}
	if i := slices.Index(args, "--endpoint"); i >= 0 {
		name, _, _ := strings.Cut(args[i+1], "=")
		must.Hold(t, strings.Contains(read(t, plan), fmt.Sprintf("server %q", name)), "%s: %s has no such server", c.line, plan)
		args = slices.Delete(args, i, i+2)
	}
	if !slices.Contains(args, "--simulate") {
		args = append(args, "--simulate")
	}
	if !slices.Contains(args, "--out") {
		args = append(args, "--out", filepath.Join("results", strings.TrimSuffix(plan, ".hcl")))
	}
	return append(args, "--quiet")
}

// realTarget matches the first line of a block for a real server. It matches only at the start of a
// line, because comments may contain the same words.
var realTarget = regexp.MustCompile(`(?m)^\s*(endpoint|process|container) \{`)

// validated turns the arguments of a `tokgate run` into those of a `tokgate validate`. It keeps the
// plan, the variables and --base. Plans that need a real server are validated instead of run.
func validated(run []string) []string {
	args := []string{"validate"}
	for i, a := range run {
		if a == "--var" || a == "--var-file" || a == "--base" {
			args = append(args, a, run[i+1])
		} else if strings.HasSuffix(a, ".hcl") {
			args = append(args, a)
		}
	}
	return args
}

// conforms checks that the results in a folder follow their schema.
func conforms(t *testing.T, dir string) {
	t.Helper()
	var schema jsonschema.Schema
	must.Do(t, json.Unmarshal(report.SchemaJSON, &schema))
	schema.ID = "" // ignore the schema's id, which is not a URL
	resolved, err := schema.Resolve(nil)
	must.Do(t, err)
	files, err := filepath.Glob(filepath.Join(dir, "*", "results.json"))
	must.Need(t, err == nil && len(files) != 0, "%d results, %v", len(files), err)
	for _, file := range files {
		var doc any
		must.Do(t, json.Unmarshal([]byte(read(t, file)), &doc))
		if err := resolved.Validate(doc); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// The map in CONTRIBUTING.md lists every package and the idea behind it.
func TestDocumentedPackages(t *testing.T) {
	page := read(t, filepath.Join(repository, "CONTRIBUTING.md"))
	found := 0
	err := filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || path == repository {
			return err
		}
		if strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" {
			return filepath.SkipDir
		}
		if files, _ := filepath.Glob(filepath.Join(path, "*.go")); len(files) > 0 {
			found++
			rel, _ := filepath.Rel(repository, path)
			if !regexp.MustCompile("(?m)^\\|[^|]*`" + regexp.QuoteMeta(filepath.ToSlash(rel)) + "`[^|]*\\|").MatchString(page) {
				t.Errorf("the map does not show %s", rel)
			}
		}
		return nil
	})
	must.Hold(t, err == nil && found >= 10, "%d packages, %v", found, err)
}

var (
	quotedMessage = regexp.MustCompile("(?m)^#{3,4} `(.+)`$")
	verb          = regexp.MustCompile(`%[-+# 0-9.\[\]]*[a-zA-Z]`)
)

// Every message on the troubleshooting page exists in the source. The page has "…" for the parts
// that the program fills in.
func TestLongTroubleshootingQuotes(t *testing.T) {
	var texts []string
	must.Do(t, filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != repository && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		var s scanner.Scanner
		s.Init(fset.AddFile(path, fset.Base(), len(src)), src, nil, 0)
		for {
			_, tok, lit := s.Scan()
			if tok == token.EOF {
				return nil
			}
			if tok == token.STRING {
				if text, err := strconv.Unquote(lit); err == nil {
					texts = append(texts, verb.ReplaceAllString(text, "…"))
				}
			}
		}
	}))
	page := read(t, filepath.Join(repository, "docs", "troubleshooting.md"))
	quoted := quotedMessage.FindAllStringSubmatch(page, -1)
	must.Need(t, len(quoted) >= 20, "the page explains %d messages", len(quoted))
	for _, m := range quoted {
		want := strings.TrimSpace(strings.Trim(m[1], "…"))
		if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, want) }) {
			t.Errorf("nothing in the source says %q", want)
		}
	}
}
