package report

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/text"
)

// big returns the document of a run with n cases. Each case has a failed threshold and a failure
// with hostile text.
func big(n int) *Document {
	run, p, v, m := fixture()
	level, failed := run.Levels[1], v.List[6]
	level.Rounds[0].Samples = level.Rounds[0].Samples[:20]
	level.Rounds = level.Rounds[:1]
	small := New(&metric.Run{Levels: []*metric.Level{level}}, p, assert.Verdicts{List: []assert.Verdict{failed}}, m)
	d := New(run, p, v, m)
	for i := range n {
		c, v := small.Cases[0], small.Verdicts[0]
		c.Workload = fmt.Sprintf("workload_%d_%s", i/100, strings.Repeat("|", 200))
		c.Level = fmt.Sprint(i)
		v.Workload, v.Level, v.Message = c.Workload, c.Level, strings.Repeat(hostile, 20)
		d.Cases, d.Verdicts = append(d.Cases, c), append(d.Verdicts, v)
	}
	return d
}

func TestLongMarkdownIsBounded(t *testing.T) {
	var b bytes.Buffer
	d := big(10_000)
	if err := Markdown(&b, d); err != nil {
		t.Fatal(err)
	}
	if b.Len() > MarkdownBytes {
		t.Errorf("%d bytes, want at most %d", b.Len(), MarkdownBytes)
	}
	out := b.String()
	if !strings.HasPrefix(out, "## 🛑 ERROR · chatbot\n") {
		t.Errorf("begins with %.60q, want the verdict", out)
	}
	if n := len(regexp.MustCompile(`… \d+ more rows left out here`).FindAllString(out, -1)); n != 2 {
		t.Errorf("%d sections say that something was left out, want problems and levels", n)
	}
	if n := strings.Count(out, "\n"); n > MarkdownLines {
		t.Errorf("%d lines, want at most %d", n, MarkdownLines)
	}
	for _, want := range []string{"sla.ttft.p95 at 30", "`report.html`"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing", want)
		}
	}
	// No row is cut in the middle.
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "|") && !strings.HasSuffix(line, "|\n") {
			t.Errorf("a row was cut: …%.40q", line[max(len(line)-40, 0):])
		}
	}
}

// In the Markdown, every row of a table has as many cells as the head, for any text in the cells.
func TestMarkdownTablesAreWhole(t *testing.T) {
	var b bytes.Buffer
	if err := Markdown(&b, document()); err != nil {
		t.Fatal(err)
	}
	unescaped := regexp.MustCompile(`(^|[^\\])\|`)
	want := 0
	for line := range strings.Lines(b.String()) {
		if !strings.HasPrefix(line, "|") {
			want = 0
			continue
		}
		// Count the bars one by one. The pattern matches a bar with the character before it, so the
		// matches of adjacent bars overlap.
		n := 0
		for rest := strings.TrimSpace(line); ; n++ {
			loc := unescaped.FindStringIndex(rest)
			if loc == nil {
				break
			}
			rest = " " + rest[loc[1]:]
		}
		if want == 0 {
			want = n
		}
		if n != want {
			t.Errorf("%d bars, want %d: %s", n, want, line)
		}
	}
}

func TestEscape(t *testing.T) {
	tests := []struct{ in, want string }{
		{"a|b", `a\|b`},
		{"`x`", "\\`x\\`"},
		{`a\|b`, `a\\\|b`}, // a backslash in the text does not cancel the escaping
		{"<script>", "&lt;script&gt;"},
		{"&lt;", "&amp;lt;"},
		{"**b** _i_ ~~s~~", `\*\*b\*\* \_i\_ \~\~s\~\~`},
		{"![x](https://evil)", `\!\[x\](https&#58;//evil)`},
		{"@everyone", "&#64;everyone"},
		{"www.evil.example", "www&#46;evil.example"},
		{"a\nb", "a b"},
		{"::error::x", ": :error::x"},
		{"", " "},
	}
	for _, tt := range tests {
		if got := cell(tt.in, 100); got != tt.want {
			t.Errorf("cell(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

var ansi = regexp.MustCompile("\x1b\\[[0-9;]*m")

// The terminal output is safe. No line can be taken for a command, contains a server's control
// characters, or is much wider than requested.
func TestTerminalIsSafe(t *testing.T) {
	for _, d := range []*Document{document(), big(20), emptyDocument()} {
		for _, width := range []int{0, 1, 80, 200} {
			for _, color := range []bool{false, true} {
				var b bytes.Buffer
				if err := Terminal(&b, d, width, color); err != nil {
					t.Fatal(err)
				}
				out := b.String()
				if color {
					out = ansi.ReplaceAllString(out, "")
				}
				most := max(width, minWidth)
				if width == 0 {
					most = 80
				}
				lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
				for i, line := range lines {
					if text.Inert(line) != line {
						t.Errorf("width %d: a command: %q", width, line)
					}
					if clean := text.Line(line); clean != strings.Join(strings.Fields(line), " ") {
						t.Errorf("width %d: control characters: %q", width, line)
					}
					// Three kinds of lines may be longer. The last line is always complete, because
					// scripts read it. Tables in a narrow terminal keep two columns. A marker in a
					// line may take one more cell.
					if w := text.Width(line); w > most+2 && i < len(lines)-1 && width >= 80 {
						t.Errorf("width %d: %d cells: %q", width, w, line)
					}
				}
				if last := lines[len(lines)-1]; !strings.Contains(last, fmt.Sprintf("exit %d", d.ExitCode)) {
					t.Errorf("the last line is %q", last)
				}
			}
		}
	}
}

func TestLastLine(t *testing.T) {
	sla := func(o Outcome, severity string) Verdict { return Verdict{Kind: "sla", Outcome: o, Severity: severity} }
	tests := []struct {
		name     string
		outcome  Outcome
		exit     int
		folder   string
		verdicts []Verdict
		want     string
	}{
		{"fail", Fail, 1, "results/x", []Verdict{sla(Pass, "error"), sla(Fail, "error"), sla(Pass, "error")},
			"FAIL  1 of 3 requirements failed · exit 1 · results in results/x"},
		{"pass", Pass, 0, "", []Verdict{sla(Pass, "error"), sla(Pass, "error")}, "PASS  2 requirements met · exit 0"},
		{"pass with a warning", Pass, 0, "", []Verdict{sla(Pass, "error"), sla(Fail, "warn")}, "PASS  1 requirement met · 1 warning · exit 0"},
		{"inconclusive", Inconclusive, 3, "", []Verdict{sla(Pass, "error"), sla(Inconclusive, "error")},
			"INCONCLUSIVE  1 of 2 requirements met · 1 inconclusive · exit 3"},
		{"not measured", Error, 4, "", []Verdict{sla(Pass, "error"), {Kind: "load", Outcome: Error}},
			"ERROR  1 requirement met · 1 not measured · exit 4"},
		{"nothing required", Pass, 0, "", []Verdict{{Kind: "load", Outcome: Pass}}, "PASS  nothing was required · exit 0"},
		{"a load that failed counts", Fail, 1, "", []Verdict{sla(Pass, "error"), {Kind: "load", Outcome: Fail}},
			"FAIL  1 of 2 requirements failed · exit 1"},
		{"skipped", Error, 4, "", []Verdict{sla(Pass, "error"), sla(Skipped, "error"), sla(Skipped, "error"), {Kind: "load", Outcome: Error}},
			"ERROR  1 requirement met · 1 not measured · 2 skipped · exit 4"},
		{"all skipped", Error, 4, "", []Verdict{sla(Skipped, "error"), {Kind: "server", Outcome: Error}},
			"ERROR  no requirement was judged · 1 not measured · 1 skipped · exit 4"},
		{"inconclusive under warn", Pass, 0, "", []Verdict{sla(Pass, "error"), {Kind: "sla", Outcome: Inconclusive, Warn: true}},
			"PASS  1 of 2 requirements met · 1 warning · exit 0"},
		{"interrupted", Pass, 130, "", []Verdict{sla(Pass, "error")}, "INTERRUPTED  1 requirement met · exit 130"},
	}
	for _, tt := range tests {
		d := &Document{Outcome: tt.outcome, ExitCode: tt.exit, Folder: tt.folder, Verdicts: tt.verdicts}
		if tt.exit == 130 {
			d.Stopped = "interrupted" // the headline must not repeat this reason
		}
		var b bytes.Buffer
		if err := Terminal(&b, d, 80, false); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		if got := lines[len(lines)-1]; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestSamplesCSV(t *testing.T) {
	run, _, _, _ := fixture()
	run.Levels[1].Rounds[0].Samples[0].Failure.Message = "=HYPERLINK(\"x\")"
	var b bytes.Buffer
	if err := SamplesCSV(&b, run); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	// The table has a head and one row for each request. The run has two rounds of each level. The
	// requests of a round are 30 and 60 at the first two levels, 40 at the probe, and 40 at each of
	// two rates.
	if len(rows) != 1+2*30+2*60+2*40+2*2*40 {
		t.Fatalf("%d rows, want 421", len(rows))
	}
	at := func(row int, column string) string {
		i := slices.Index(rows[0], column)
		if i < 0 {
			t.Fatalf("no column %s", column)
		}
		return rows[row][i]
	}
	tests := []struct {
		row          int
		column, want string
	}{
		{1, "sent_s", "0"}, // the first request of the run, sent at 0 s
		{2, "sent_s", "0.1"},
		{2, "ttft", "0.22"},                 // 200 ms × 1.1
		{2, "ttfa", ""},                     // no answer came
		{2, "tpot", "0.020999999999999998"}, // 0.42 s / 20 tokens as a binary floating-point number
		{2, "output", "21"},
		{2, "cached", "0"},
		{2, "failure", ""},
		{61, "failure", "timeout"},
		{61, "ttft", ""},
		{61, "e2e", ""},
		{61, "output", ""},
		{61, "message", "'=HYPERLINK(\"x\")"}, // no formula
	}
	for _, tt := range tests {
		if got := at(tt.row, tt.column); got != tt.want {
			t.Errorf("row %d, %s = %q, want %q", tt.row, tt.column, got, tt.want)
		}
	}
}

func TestLevelsCSV(t *testing.T) {
	var b bytes.Buffer
	if err := LevelsCSV(&b, document()); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1+4+1+2 {
		t.Fatalf("%d rows, want a head, 4 cases, a probe and 2 rates", len(rows))
	}
	for _, tt := range []struct {
		row          int
		column, want string
	}{
		{1, "ttft_p95", "0.38"}, {1, "ttfa_p95", ""}, {2, "ttft_p95", "+Inf"}, {2, "failed", "16"},
		{3, "skipped", "the budget of 12m was spent"}, {3, "ttft_mean", ""},
		{1, "probe", ""}, {5, "probe", "bisect"}, {5, "level", "probe 24"}, {5, "due", "80"},
	} {
		if got := rows[tt.row][slices.Index(rows[0], tt.column)]; got != tt.want {
			t.Errorf("row %d, %s = %q, want %q", tt.row, tt.column, got, tt.want)
		}
	}
}

func TestOutputErrors(t *testing.T) {
	for _, f := range written {
		if err := f.write(failing{}, document()); err == nil {
			t.Errorf("%s: a full disk is no error", f.file)
		}
	}
	run, _, _, _ := fixture()
	if err := SamplesCSV(failing{}, run); err == nil {
		t.Error("SamplesCSV: a full disk is no error")
	}
}

// The overview of a summary has a line for each workload. The line shows the values of both servers
// of a comparison.
func TestOverviewOfComparisons(t *testing.T) {
	d := passing()
	change := func(workload, level, metric string, o Outcome, limit bool) Change {
		return Change{Workload: workload, Level: level, Metric: metric, Stat: "p95", Unit: "s", Severity: "error",
			Control: numberOf(1.2), Candidate: numberOf(1.3), Outcome: o, Message: "8.3% worse " + hostile, Limit: Number{V: 0.1, OK: limit}}
	}
	d.Comparisons = []Comparison{
		{Name: "bump", Control: "old", Candidate: "new", Changes: []Change{
			change("chat", "4", "speed", Skipped, false), // has no limit, so it is only shown
			change("chat", "4", "ttft", Pass, true),
			change("chat", "8", "e2e", Fail, true), // the worst of the changes with a limit
			change("code", "4", "ttft", Inconclusive, true),
		}},
		{Name: "off", Control: "a", Candidate: "b", Skipped: "no control was given"},
	}
	m := markdown{doc: d, size: MarkdownBytes}
	var rows []string
	for line := range strings.Lines(m.overview()) {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| |") {
			rows = append(rows, regexp.MustCompile(` 8\.3% worse.*`).ReplaceAllString(strings.TrimSpace(line), " …"))
		}
	}
	want := []string{
		"| ❌ fail | chat at 8 | e2e p95 1.2 s | 1.3 s | …",
		"| ❔ inconclusive | code at 4 | ttft p95 1.2 s | 1.3 s | …",
		"| ⏭️ skipped |   |   |   | no control was given |",
		"| ✅ pass | general\\_chatbot | vllm on | 2 requirements met | 39 |",
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// The reason why a server could not be measured is printed once, even if a verdict repeats its
// beginning.
func TestTerminalSaysAServersErrorOnce(t *testing.T) {
	d := passing()
	s := &d.Servers[0]
	s.Error = "the server died: " + strings.Repeat("why ", 100)
	d.Verdicts = append(d.Verdicts, Verdict{Kind: "server", Server: s.Address, Name: "start", Outcome: Error, Message: s.Error[:300] + "…"})
	var b bytes.Buffer
	if err := Terminal(&b, d, 80, false); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "the server died"); n != 1 {
		t.Errorf("said %d times:\n%s", n, b.String())
	}
}
