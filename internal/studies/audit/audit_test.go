package audit

import (
	"bytes"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// recorded is the recorded run that the tests change; see testdata/plan.hcl.
func recorded(t testing.TB) map[string]string { return recordedIn(t, "run") }

func recordedIn(t testing.TB, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range []string{"samples.jsonl", "results.json", "junit.xml"} {
		raw := must.Get(os.ReadFile(filepath.Join("testdata", folder, name)))(t)
		files[name] = string(raw)
	}
	return files
}

func run(files map[string]string) (*Report, error) {
	var junit io.Reader
	if text, ok := files["junit.xml"]; ok {
		junit = strings.NewReader(text)
	}
	return Run(strings.NewReader(files["samples.jsonl"]), strings.NewReader(files["results.json"]), junit)
}

// Each part of a mix has figures of its own, which the audit computes from the requests of the
// part. The plan is testdata/mix.hcl.
func TestAuditAMix(t *testing.T) {
	files := recordedIn(t, "mix")
	report, err := run(files)
	if err != nil || len(report.Differences) > 0 || report.Compared < 300 {
		t.Fatalf("%d figures compared: %v %v", report.Compared, err, report.Differences)
	}
	for _, part := range []string{"production/short", "production/long"} {
		levels := strings.Split(files["results.json"], `"workload": "`) // those of the run come first
		n := slices.IndexFunc(levels, func(l string) bool { return strings.HasPrefix(l, part+`"`) })
		cases := strings.SplitAfterN(files["results.json"], `"completed": `, n+1) // the same number of a case
		changed := strings.Join(cases[:n], "") + "1" + cases[n]
		report, err := run(map[string]string{"samples.jsonl": files["samples.jsonl"], "results.json": changed})
		if err != nil || len(report.Differences) != 1 || !strings.HasPrefix(report.Differences[0].Where, part+" at 2") {
			t.Errorf("%s has ten requests more: %v %v", part, err, report.Differences)
		}
	}
}

// The audit finds each of these changes in the reports of a run, and reports its size. An unchanged
// run has no difference. The golden file has the messages.
func TestAudit(t *testing.T) {
	var said strings.Builder
	for _, tt := range []struct{ name, file, old, new, after string }{
		{"as it was recorded", "", "", "", ""},
		{"another percentile", "results.json", `"p95": 0.0`, `"p95": 0.1`, ""},
		{"another mean", "results.json", `"mean": 0.0`, `"mean": 0.3`, ""},
		{"one request more", "results.json", `"completed": 8`, `"completed": 9`, ""},
		{"a failure less", "results.json", `"failed": 0`, `"failed": 1`, ""},
		{"another throughput", "results.json", `"metric": "throughput",`, `"metric": "throughput", "n": 8, "value": 1234, "was": {`, ""},
		{"another outcome", "results.json", `"outcome": "pass",`, `"outcome": "fail",`, ""},
		{"another exit code", "results.json", `"exit_code": 0`, `"exit_code": 1`, ""},
		{"another recording", "results.json", `"recording": "`, `"recording": "00`, ""},
		{"a limit that the value breaks", "results.json", `"limit": 1,`, `"limit": 0.001,`, `"verdicts"`},
		{"a case that nobody measured", "results.json", `"name": "1",`, `"name": "64",`, ""},
		{"JUnit of another recording", "junit.xml", `recording.sha256" value="`, `recording.sha256" value="00`, ""},
		{"JUnit with another sum", "junit.xml", ` tests="`, ` tests="1`, ""},
		{"JUnit with a failure", "junit.xml", "<system-out>", `<failure message="no"></failure><system-out>`, ""},
	} {
		files := recorded(t)
		if tt.file != "" {
			from := max(strings.Index(files[tt.file], tt.after), 0)
			changed := files[tt.file][:from] + strings.Replace(files[tt.file][from:], tt.old, tt.new, 1)
			if tt.name == "another throughput" { // put the real value into an unknown field "was"
				at := strings.Index(changed, `"was": {`)
				end := at + strings.Index(changed[at:], "}")
				changed = changed[:end] + "}" + changed[end:]
			}
			must.Need(t, changed != files[tt.file], "%s: %s holds no %q", tt.name, tt.file, tt.old)
			files[tt.file] = changed
		}
		r, err := run(files)
		fmt.Fprintf(&said, "## %s\n", tt.name)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		must.Hold(t, (len(r.Differences) > 0) == (tt.file != "") && r.Compared >= 100, "%s: %d differences, %d compared", tt.name, len(r.Differences), r.Compared)
		for _, d := range r.Differences {
			fmt.Fprintln(&said, d)
		}
		for _, n := range r.Notes {
			fmt.Fprintln(&said, "note:", n)
		}
	}
	const path = "testdata/said.golden"
	if *update {
		must.Do(t, os.WriteFile(path, []byte(said.String()), 0o644))
	}
	want := must.Get(os.ReadFile(path))(t)
	must.Same(t, "", string(want), said.String())
}

// Changed lines and unreadable files are errors.
func TestUnreadable(t *testing.T) {
	for _, tt := range []struct{ name, file, old, new, want string }{
		{"a changed time", "samples.jsonl", `"first_ns":`, `"first_ns":1`, "its checksum does not match"},
		{"a line that is missing", "samples.jsonl", "\n{", "{", "not valid JSON"},
		{"no header", "samples.jsonl", "tokgate.samples/1", "tokgate.samples/9", "schema"},
		{"no results", "results.json", "{", "", "results.json"},
		{"no XML", "junit.xml", "<testsuites", "<testsuits", "junit.xml"},
	} {
		files := recorded(t)
		files[tt.file] = strings.Replace(files[tt.file], tt.old, tt.new, 1)
		_, err := run(files)
		must.Hold(t, err != nil && strings.Contains(err.Error(), tt.want), "%s: %v, want %q", tt.name, err, tt.want)
	}
	_, err := Run(&bytes.Buffer{}, strings.NewReader("{}"), nil)
	must.Hold(t, err != nil, "an empty recording is none")
	files := recorded(t)
	delete(files, "junit.xml")
	if r, err := run(files); err != nil || len(r.Differences) > 0 || !strings.Contains(strings.Join(r.Notes, ""), "junit.xml") {
		t.Errorf("without JUnit: %v %v", r, err)
	}
}

// The audit shares no code with the rest of tokgate.
func TestAuditImportsNothingOfOurs(t *testing.T) {
	paths, _ := filepath.Glob("*.go")
	checked := 0
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f := must.Get(parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly))(t)
		for _, spec := range f.Imports {
			checked++
			name, _ := strconv.Unquote(spec.Path.Value)
			must.Hold(t, !strings.Contains(name, "."), "%s imports %s", path, name)
		}
	}
	must.Need(t, checked != 0, "no import was checked")
}

// For any files, Run returns either a report or an error.
func FuzzAudit(f *testing.F) {
	files := recorded(f)
	lines := strings.SplitAfter(files["samples.jsonl"], "\n")
	f.Add([]byte(files["samples.jsonl"]), []byte(files["results.json"]), []byte(files["junit.xml"]))
	f.Add([]byte(strings.Join(lines[:5], "")), []byte(`{"run":{"levels":[{"name":"1"}]},"cases":[{"metrics":[{"metric":"ttft","mean":"+Inf"}]}]}`), []byte("<testsuites><testsuite/></testsuites>"))
	f.Add([]byte(`{"type":"header","schema":"tokgate.samples/1.0"}`+"\n"+`{"type":"round_done","of":{},"round":{"window_end_ns":5}}`), []byte("null"), []byte(""))
	f.Fuzz(func(t *testing.T, samples, results, junit []byte) {
		r, err := Run(bytes.NewReader(samples), bytes.NewReader(results), bytes.NewReader(junit))
		must.Hold(t, (r == nil) != (err == nil), "%v and %v", r, err)
	})
}
