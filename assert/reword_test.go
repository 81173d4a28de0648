package assert_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
)

// judgements holds the decisions and messages of this build. The key is the name of a run in the
// corpus of recorded runs.
type judgements struct{ Decisions, Messages map[string]string }

const judgementsFile = "TOKGATE_JUDGEMENTS"

// judgeCorpus judges every run of the corpus. It returns the outcomes, causes, exit codes, looks
// and JUnit types as text.
func judgeCorpus(t *testing.T) judgements {
	out := judgements{map[string]string{}, map[string]string{}}
	kinds := regexp.MustCompile(`<testcase |<(failure|error|skipped)( [^>]*type="[^"]*")?`)
	kind := regexp.MustCompile(` type="([^"]*)"`)
	for _, r := range assert.Corpus() {
		var d, m strings.Builder
		v := assert.Judge(r.Plan, r.Run, assert.Options{})
		exit := v.ExitCode(false)
		fmt.Fprintf(&d, "%v, exit %d, partial %v\n", v.Outcome, exit, v.Partial)
		for _, x := range v.List {
			fmt.Fprintf(&d, "%s %s: %v, cause %q, %s, more %d, noted %d\n", x.Kind, x.Level, x.Outcome, x.Cause, x.Severity, x.More, len(x.Notes))
			fmt.Fprintln(&m, x.Message)
			if c := x.Capacity; c != nil {
				fmt.Fprintf(&d, "  %s %d %d %v\n", c.Kind, c.Pass, c.Fail, c.Confirmed)
				for _, p := range c.Probes {
					fmt.Fprintf(&d, "  probe %d %s\n", p.N, p.Outcome)
				}
			}
		}
		for _, c := range v.Comparisons {
			fmt.Fprintf(&d, "%s: %v\n", c.Name, c.Outcome)
			for _, x := range c.Changes {
				fmt.Fprintf(&d, "  %s at %s: %v %v\n", x.Name(), x.Level, x.Outcome, x.Direction)
			}
		}
		for _, l := range r.Run.Levels {
			look := assert.JudgeLook(r.Plan, r.Plan.Workloads[0], l, metric.Look{Planned: 2})
			fmt.Fprintf(&d, "look: %v, %d, %s\n", look.Outcome, look.Needs, look.Binding)
		}
		var xml bytes.Buffer
		must.Do(t, report.JUnit(&xml, report.New(r.Run, r.Plan, v, report.Meta{ExitCode: exit})))
		for _, found := range kinds.FindAllStringSubmatch(xml.String(), -1) {
			fmt.Fprintf(&d, "junit: %s %v\n", strings.SplitN(found[0], " ", 2)[0], kind.FindStringSubmatch(found[0]))
		}
		out.Decisions[r.Name], out.Messages[r.Name] = d.String(), m.String()
	}
	return out
}

// TestJudgementsOfCorpus runs only inside TestLongReworded, in a build with changed messages.
func TestJudgementsOfCorpus(t *testing.T) {
	path := os.Getenv(judgementsFile)
	if path == "" {
		t.Skip("run by TestLongReworded")
	}
	text, err := json.Marshal(judgeCorpus(t))
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	must.Do(t, err)
}

// TestLongReworded checks that no decision depends on a message. It changes every sentence of this
// package. Outcomes, causes, exit codes and JUnit types of the corpus must stay the same.
func TestLongReworded(t *testing.T) {
	dir := t.TempDir()
	replaced, literals := map[string]string{}, 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		reworded, n, err := reword(path, source)
		if err != nil || n == 0 {
			return err
		}
		literals += n
		whole, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		replaced[whole] = filepath.Join(dir, strings.ReplaceAll(path, string(filepath.Separator), "_"))
		return os.WriteFile(replaced[whole], reworded, 0o600)
	})
	must.Do(t, err)
	must.Need(t, literals >= 300, "%d sentences were reworded", literals)
	overlay, path := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "judgements.json")
	text, _ := json.Marshal(map[string]any{"Replace": replaced})
	must.Do(t, os.WriteFile(overlay, text, 0o600))
	cmd := exec.Command("go", "test", "-vet=off", "-count=1", "-overlay", overlay, "-run", "^TestJudgementsOfCorpus$", ".")
	cmd.Env = append(os.Environ(), judgementsFile+"="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got judgements
	if text, err = os.ReadFile(path); err == nil {
		err = json.Unmarshal(text, &got)
	}
	must.Do(t, err)
	want := judgeCorpus(t)
	for name, said := range want.Messages {
		must.Hold(t, said != got.Messages[name], "%s: no message was reworded: %s", name, said)
	}
	must.Same(t, "decisions that read a message (-as it is +reworded)", want.Decisions, got.Decisions)
}

// verb matches a verb of the package fmt, or a percent sign.
var verb = regexp.MustCompile(`%[-+# 0]*[0-9]*(\.[0-9]+)?[a-zA-Z%]`)

// reword rotates the letters of every sentence in a Go source by 13. A sentence is a string literal
// with a space, except in imports and tags.
func reword(path string, source []byte) (reworded []byte, n int, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, 0, err
	}
	at := 0
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			text, failed := strconv.Unquote(node.Value)
			if node.Kind != token.STRING || failed != nil || !strings.Contains(text, " ") {
				return true
			}
			begin, end := set.Position(node.Pos()).Offset, set.Position(node.End()).Offset
			reworded = append(append(reworded, source[at:begin]...), strconv.Quote(turn(text))...)
			at, n = end, n+1
		}
		return true
	})
	return append(reworded, source[at:]...), n, nil
}

func turn(text string) string {
	var out strings.Builder
	rot := func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return 'a' + (r-'a'+13)%26
		case r >= 'A' && r <= 'Z':
			return 'A' + (r-'A'+13)%26
		}
		return r
	}
	at := 0
	for _, v := range verb.FindAllStringIndex(text, -1) {
		out.WriteString(strings.Map(rot, text[at:v[0]]) + text[v[0]:v[1]])
		at = v[1]
	}
	return out.String() + strings.Map(rot, text[at:])
}
