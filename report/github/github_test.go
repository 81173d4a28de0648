package github

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/internal/studies/runner"
	"github.com/tokgate/tokgate/report"
)

// commands returns the commands that the runner finds in a log. It fails the test if a line of the
// log is not a command.
func commands(t *testing.T, log string) []runner.Command {
	t.Helper()
	list, text := runner.Commands(log)
	must.Hold(t, len(text) <= 0 || log == "", "the runner takes %q for text", text)
	return list
}

// GitHub shows at most ten errors and ten warnings of a step. So of both kinds only nine
// annotations are written, and a tenth says how many are left out.
func TestAnnotationsAreBounded(t *testing.T) {
	d := document()
	// Nine of the document's 14 errors are written, and an annotation counts the other five.
	list := commands(t, Write(Annotations(d, Workspace{})))
	var got []string
	for _, c := range list {
		got = append(got, c.Name+" "+c.Properties["title"]+" "+c.Properties["file"]+":"+c.Properties["line"])
		if len(c.Data) > 4096 || strings.ContainsAny(c.Data, "\r\n") {
			t.Errorf("message %.80q … of %d bytes, want one line of at most 4096", c.Data, len(c.Data))
		}
	}
	want := []string{"error error: start (vllm) plans/chat.hcl:3"}
	for i := range 8 {
		want = append(want, fmt.Sprintf("error fail: sla.ttft.p%d at 30 (chat on vllm) plans/chat.hcl:%d", 80+i, 42+i))
	}
	want = append(want, "error tokgate :", "warning warning: sla.success.rate at 30 (chat on vllm) plans/chat.hcl:61")
	must.Same(t, "annotations (-want +got)", want, got)
	must.Same(t, "the last error", "5 more annotations are left out here: see the summary of the job", list[9].Data)
}

func TestNothingToAnnotate(t *testing.T) {
	d := document()
	d.Verdicts, d.Outcome, d.ExitCode = d.Verdicts[:1], verdict.Pass, 0
	must.Same(t, "a green run", "", Write(Annotations(d, Workspace{})))
	// A run that was interrupted before its first verdict still has an annotation.
	d.Verdicts, d.Outcome, d.ExitCode, d.Run.Stopped = nil, verdict.Error, 130, "interrupted"
	list := commands(t, Write(Annotations(d, Workspace{})))
	must.Hold(t, len(list) == 1 && list[0].Name == "error" && strings.Contains(list[0].Data, "interrupted (exit code 130)"), "an interrupted run says %+v", list)
}

func TestPathsInTheWorkspace(t *testing.T) {
	root := t.TempDir()
	tests := []struct {
		name             string
		dir, file        string // dir is the command's working directory, relative to root
		want             string
		line             int
		message          string
		withoutWorkspace bool
	}{
		{name: "as it was named", file: "plans/chat.hcl", want: "plans/chat.hcl", line: 7},
		{name: "in a working directory", dir: "serving", file: "chat.hcl", want: "serving/chat.hcl", line: 7},
		{name: "above the working directory", dir: "serving", file: "../plans/chat.hcl", want: "plans/chat.hcl", line: 7},
		{name: "absolute", file: filepath.Join(root, "plans", "chat.hcl"), want: "plans/chat.hcl", line: 7},
		{name: "outside", file: filepath.Join(filepath.Dir(root), "chat.hcl"), message: filepath.Join(filepath.Dir(root), "chat.hcl") + ":7: m"},
		{name: "outside by its name", file: "../chat.hcl", message: "../chat.hcl:7: m"},
		{name: "a name that begins with dots", file: "..chat.hcl", want: "..chat.hcl", line: 7},
		{name: "no workspace is known", file: "./plans/chat.hcl", want: "plans/chat.hcl", line: 7, withoutWorkspace: true},
		{name: "no file", message: "m"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := Workspace{Root: root, Dir: filepath.Join(root, tt.dir)}
			if tt.withoutWorkspace {
				w = Workspace{}
			}
			if tt.message == "" {
				tt.message = "m"
			}
			got := w.Annotation(report.Problem{Title: "t", Message: "m", File: tt.file, Line: 7})
			must.Same(t, "(-want +got)", Annotation{Title: "t", Message: tt.message, File: tt.want, Line: tt.line}, got)
		})
	}
}

func TestOutputs(t *testing.T) {
	d := document()
	d.Run.Capacities[1].Workload, d.Recording = "code", "beef"
	got := Outputs([]*report.Document{d}, 4, Workspace{})
	want := []Output{
		{"verdict", "error"}, {"exit-code", "4"},
		{"capacity", "chat=24\ncode=0"}, {"capacity-kind", "chat=interpolated\ncode=unknown"},
		{"results", "results/chat"}, {"junit", "results/chat/junit.xml"},
		{"recording", "beef"},
	}
	must.Same(t, "(-want +got)", want, got)
	// With several servers, the output names the server of each capacity.
	d.Plan.Servers = []report.Server{{Address: "vllm"}, {Address: "sglang"}}
	must.Same(t, "capacity", "vllm/chat=24\nvllm/code=0", Outputs([]*report.Document{d}, 0, Workspace{})[2].Value)
	// The output has one line for each plan of the step.
	must.Same(t, "results", "results/chat\nresults/chat", Outputs([]*report.Document{d, d}, 0, Workspace{})[4].Value)
	// A path in an output is relative to the workspace, where later steps resolve it. The folder in
	// which tokgate ran does not matter.
	root := t.TempDir()
	must.Same(t, "junit", "serving/results/chat/junit.xml", Outputs([]*report.Document{d}, 0, Workspace{root, filepath.Join(root, "serving")})[5].Value)
	d.Folder = filepath.Join(filepath.Dir(root), "x")
	must.Same(t, "results", filepath.ToSlash(d.Folder), Outputs([]*report.Document{d}, 0, Workspace{root, root})[4].Value)
	// A command that ended without a verdict still outputs how it ended.
	if got := Outputs(nil, 2, Workspace{}); got[0].Value != "invalid" || got[1].Value != "2" || got[2].Value != "" {
		t.Errorf("outputs of an invalid plan: %v", got)
	}
}

func TestVerdictOfEveryExitCode(t *testing.T) {
	for code, want := range map[int]string{0: "pass", 1: "fail", 2: "invalid", 3: "inconclusive", 4: "error", 130: "interrupted", 7: "error", -1: "error"} {
		must.Same(t, fmt.Sprintf("Verdict(%d)", code), want, Verdict(code))
	}
}

// A server may give itself any name. In an output, such a name cannot end the value and set another
// output.
func TestOutputsHoldForeignText(t *testing.T) {
	outputs := append(Outputs([]*report.Document{document()}, 4, Workspace{}), Output{"raw", hostile})
	s := must.Get(Encode(outputs, "tokgate-1234"))(t)
	got := must.Get(runner.Pairs(s))(t)
	want := map[string]string{}
	for _, o := range outputs {
		want[o.Name] = o.Value
	}
	must.Same(t, "the runner reads (-want +got)", want, got)
	_, err := Encode([]Output{{"a", "b\ntokgate-1234\nverdict<<x\npass\nx"}}, "tokgate-1234")
	must.Hold(t, err != nil, "a value that holds the token was written")
}

func TestFolds(t *testing.T) {
	fold := Folds()
	got := fold("starting servers") + fold("chat, on %: "+"\n::error::x") + fold("") + fold("") + fold("end")
	want := "::group::starting servers\n::endgroup::\n::group::chat, on %25: %0A::error::x\n::endgroup::\n::group::end\n"
	must.Hold(t, got == want, "got %q, want %q", got, want)
}

// The runner of GitHub Actions ignores commands between the outputs of Stop and Resume.
func TestStopAndResume(t *testing.T) {
	list, text := runner.Commands(Stop("tok") + hostile + "\n::other::\n" + Resume("tok") + "::error::ours\n")
	must.Hold(t, len(list) == 1 && list[0].Data == "ours" && len(text) != 0, "the runner reads %+v", list)
}

// A summary file never becomes so large that the runner drops it. If parts must be left out, the
// verdicts are left out last.
func TestLongSummaryIsBounded(t *testing.T) {
	d := document()
	for range 3000 {
		d.Verdicts = append(d.Verdicts, d.Verdicts[2])
	}
	var many []Part
	for range 40 {
		many = append(many, Run(d))
	}
	for _, tt := range []struct {
		name     string
		parts    []Part
		used     int64
		verdicts int
	}{
		{"one run", many[:1], 0, 1},
		{"forty runs", many, 0, 40},
		{"after other text", many[:2], SummaryBytes - 20_000, 2},
		{"hardly any room", many[:1], SummaryBytes - 1000, 1},
		{"no room", many, SummaryBytes - 10, 0},
		{"already too large", many, 2 * SummaryBytes, 0},
		{"after what is not cut", []Part{Whole(func(w io.Writer) error { _, err := w.Write(make([]byte, SummaryBytes)); return err }), many[0]}, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			must.Do(t, Summary(&b, tt.parts, tt.used))
			total := tt.used + int64(b.Len())
			must.Hold(t, b.Len() <= 0 || total <= SummaryBytes, "%d bytes, want at most %d", total, SummaryBytes)
			n := strings.Count(b.String(), "## 🛑 ERROR · chat")
			must.Hold(t, n == tt.verdicts, "%d verdicts, want %d", n, tt.verdicts)
		})
	}
}

// The runner reads an annotation with any text as a single command. The text of the command is the
// text of the annotation.
func FuzzAnnotation(f *testing.F) {
	f.Add("fail: sla", "9.1 s > 8 s: 100%", "plans/chat.hcl", 3)
	f.Add(hostile, hostile, hostile, -1)
	f.Fuzz(func(t *testing.T, title, message, file string, line int) {
		out := Write([]Annotation{{Title: title, Message: message, File: file, Line: line}})
		must.Need(t, strings.Count(out, "\n") == 1 && !strings.ContainsAny(out, "\r"), "%q is not one line", out)
		list, _ := runner.Commands(out)
		must.Need(t, len(list) == 1 && list[0].Name == "error", "%q is read as %+v", out, list)
		for name := range list[0].Properties {
			must.Hold(t, name == "title" || name == "file" || name == "line", "%q has a property %q", out, name)
		}
	})
}

// For any value, the runner reads an output that tokgate wrote as the same value, and reads no
// other outputs.
func FuzzOutput(f *testing.F) {
	f.Add("24", "results/chat")
	f.Add(hostile, "\ntokgate-\r\n")
	f.Fuzz(func(t *testing.T, a, b string) {
		const token = "tokgate-1234"
		s, err := Encode([]Output{{"a", a}, {"b", b}}, token)
		if err != nil {
			must.Need(t, strings.Contains(a+b, token), "%v", err)
			return
		}
		got, err := runner.Pairs(s)
		must.Do(t, err)
		must.Same(t, "(-want +got)", map[string]string{"a": a, "b": b}, got)
	})
}
