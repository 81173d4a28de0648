package formats

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/report"
)

var update = flag.Bool("update", false, "write the golden files")

// recorded returns a document from the tests of package report. In "pass", a small document,
// everything passes. "rich" has everything that a run may contain, including hostile text. "mix" is
// of a mix over a trace, and a part of the mix fails.
func recorded(t testing.TB, name string) *report.Document {
	t.Helper()
	f := must.Get(os.Open(filepath.Join("..", "testdata", name+".results.json")))(t)
	defer f.Close()
	d := must.Get(report.ReadDocument(f))(t)
	return d
}

// defs matches the list of definitions on the page. The golden files leave it out, because package
// metric tests these texts.
var defs = regexp.MustCompile(`(?s)<dl class="defs">.*</dl>`)

// golden compares the output of write with a file in testdata, or updates the file.
func golden(t *testing.T, name string, write func(io.Writer) error) {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, write(&b))
	got := defs.ReplaceAllString(b.String(), "(definitions)")
	file := filepath.Join("testdata", name)
	if *update {
		must.Do(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	must.Need(t, err == nil, "%v; run with -update to write it", err)
	must.Same(t, name+" (-want +got; run with -update to accept)", strings.Split(string(want), "\n"), strings.Split(got, "\n"))
}

// The golden files cover every format. A few formats have their golden files in package report.
func TestGolden(t *testing.T) {
	for _, f := range All {
		t.Run(f.Flag, func(t *testing.T) {
			file := cmp.Or(f.File, f.Flag)
			switch f.Flag {
			case "json":
				return // the documents themselves
			case "brief":
				return // another test covers the brief
			case "html":
				golden(t, "pass."+file, func(w io.Writer) error { return f.Write(w, recorded(t, "pass")) })
				return // the "rich" page is too large for a golden file, and has its own tests
			}
			for _, name := range []string{"pass", "rich", "mix"} {
				golden(t, name+"."+file, func(w io.Writer) error { return f.Write(w, recorded(t, name)) })
			}
			if f.Together != nil {
				a, b := recorded(t, "pass"), recorded(t, "rich")
				a.Folder, b.Folder, a.Run.Simulated = "results/before/", `results\after`, true
				golden(t, "together."+file, func(w io.Writer) error { return f.Together(w, []*report.Document{a, b, b}) })
			}
		})
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

// Every format fills the fields that flags, documentation and files need. No two formats have the
// same flag or file.
func TestRows(t *testing.T) {
	seen := map[string]bool{"": true}
	for _, f := range All {
		if f.Name == "" || f.For == "" || f.Doc == "" || f.Write == nil || seen[f.Flag] || f.File != "" && seen[f.File] {
			t.Errorf("the row of %q lacks something, or its flag or file is another's", f.Flag)
			continue
		}
		seen[f.Flag], seen[f.File] = true, true
		err := f.Write(failing{}, recorded(t, "rich"))
		must.Hold(t, err != nil, "%s: a full disk is no error", f.Flag)
	}
}

// Every renderer must be in All. The rows of HTML call Write in functions of their own.
func TestNoRendererIsForgotten(t *testing.T) {
	listed := "markdown.Within" // only a part of Write, so it need not be listed
	for _, f := range All {
		for _, render := range []any{f.Write, f.Together, f.Samples} {
			if v := reflect.ValueOf(render); !v.IsNil() {
				listed += " " + runtime.FuncForPC(v.Pointer()).Name()
			}
		}
	}
	var files []string
	for _, pattern := range []string{"*.go", "html/*.go", "markdown/*.go"} {
		found, err := filepath.Glob(filepath.Join("..", pattern))
		must.Need(t, err == nil && len(found) != 0, "%d files, %v", len(found), err)
		files = append(files, found...)
	}
	renderer, found := regexp.MustCompile(`(?m)^func ([A-Z]\w*)\(w io\.Writer, \w+ (\[\]|\.\.\.)?\*(report\.|metric\.)?(Document|Run)\) error`), 0
	for _, file := range files {
		src := must.Get(os.ReadFile(file))(t)
		room := cmp.Or(strings.TrimPrefix(filepath.Base(filepath.Dir(file)), ".."), "report")
		for _, m := range renderer.FindAllStringSubmatch(string(src), -1) {
			name := room + "." + m[1]
			if found++; name != "html.Write" && !regexp.MustCompile(regexp.QuoteMeta(name)+`( |$)`).MatchString(listed) {
				t.Errorf("%s is in no row of formats.All", name)
			}
		}
	}
	must.Hold(t, found >= 4, "%d renderers", found)
}

// Every format accepts any document and writes UTF-8.
func FuzzFormats(f *testing.F) {
	for _, name := range []string{"pass", "rich"} {
		var b bytes.Buffer
		must.Do(f, recorded(f, name).Write(&b))
		f.Add(b.Bytes())
	}
	f.Add([]byte(`{"schema": "tokgate.results/1", "duration_s": 1e308, "exit_code": -5,
		"servers": [{"address": "::a"}], "cases": [{"server": "::a", "metrics": [{"metric": "ttft", "of": "level"}, {"metric": "success", "percentiles": {}}], "failures": [{"messages": []}]}],
		"verdicts": [{"outcome": "no", "kind": "no", "line": -3, "threshold": {}}, {"workload": "w", "kind": "server"}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		// Seal adds a valid checksum. Without a valid checksum most inputs would be refused.
		d, err := report.ReadDocument(bytes.NewReader(report.Seal(in)))
		if err != nil {
			return
		}
		for _, f := range All {
			var out bytes.Buffer
			if err := f.Write(&out, d); err != nil || !utf8.Valid(out.Bytes()) {
				t.Errorf("%s: %v", f.Flag, err)
			}
		}
	})
}
