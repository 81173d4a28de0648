package report_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/markdown"
	"github.com/tokgate/tokgate/report/terminal"
	"github.com/tokgate/tokgate/report/text"
)

// written lists the outputs for a terminal, with their golden files.
var written = []struct {
	file  string
	write func(io.Writer, *report.Document) error
}{
	{"terminal-80.txt", func(w io.Writer, d *report.Document) error { return terminal.Write(w, d, 80, false) }},
	{"terminal-120-color.txt", func(w io.Writer, d *report.Document) error { return terminal.Write(w, d, 120, true) }},
	{"summary-80.txt", func(w io.Writer, d *report.Document) error { return terminal.Summary(w, d, 80, false) }},
}

func TestGoldenTerminal(t *testing.T) {
	for _, doc := range []struct {
		name string
		doc  *report.Document
	}{{"rich", report.Rich()}, {"pass", report.Passing()}, {"mix", report.Mixed()}, {"compared", report.Compared()}} {
		for _, f := range written {
			t.Run(doc.name+"/"+f.file, func(t *testing.T) {
				var b bytes.Buffer
				must.Do(t, f.write(&b, doc.doc))
				report.Golden(t, doc.name+"."+f.file, b.Bytes())
				must.Hold(t, !strings.Contains(b.String(), report.Secret), "%s holds the secret", f.file)
				err := f.write(failing{}, doc.doc)
				must.Hold(t, err != nil, "%s: a full disk is no error", f.file)
			})
		}
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// evil is text from outside. Its markup and links must have no effect in a comment.
const evil = "x --><script>alert(1)</script> <!-- tokgate:other -->\n\n<!-- tokgate:other -->\n![a](https://evil.example/x.png) @everyone [b](javascript:x) <img src=//evil.example> | `c` | https://evil.example #1"

// The heads of all tables begin with a capital letter.
func TestHeads(t *testing.T) {
	for _, doc := range []*report.Document{report.Rich(), report.Passing(), report.Compared()} {
		var b bytes.Buffer
		must.Do(t, markdown.Write(&b, doc))
		lines := strings.Split(b.String(), "\n")
		n := 0
		for i, line := range lines[1:] {
			if !strings.HasPrefix(line, "|---") && !strings.HasPrefix(line, "|--:") {
				continue
			}
			n++
			for cell := range strings.SplitSeq(lines[i], "|") {
				if cell = strings.TrimSpace(cell); cell != "" && unicode.IsLower([]rune(cell)[0]) {
					t.Errorf("a table has the head %q", cell)
				}
			}
		}
		must.Hold(t, n != 0, "no table")
	}
}

func TestLongMarkdownIsBounded(t *testing.T) {
	var b bytes.Buffer
	d := report.Big(3000)
	must.Do(t, markdown.Write(&b, d))
	must.Hold(t, b.Len() <= markdown.Bytes, "%d bytes, want at most %d", b.Len(), markdown.Bytes)
	out := b.String()
	must.Hold(t, strings.HasPrefix(out, "## 🛑 ERROR · chatbot\n"), "begins with %.60q, want the verdict", out)
	n := len(regexp.MustCompile(`… \d+ more(: .*\d+)? failed`).FindAllString(out, -1))
	must.Hold(t, n == 2, "%d tables say that failures were left out, want workloads and checks", n)
	if n := strings.Count(out, "\n"); n > markdown.Lines {
		t.Errorf("%d lines, want at most %d", n, markdown.Lines)
	}
	for _, want := range []string{"sla.ttft.p95 at 30", "`report.html`"} {
		must.Hold(t, strings.Contains(out, want), "%q is missing", want)
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
	must.Do(t, markdown.Write(&b, report.Rich()))
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
		must.Hold(t, n == want, "%d bars, want %d: %s", n, want, line)
	}
}

var ansi = regexp.MustCompile("\x1b\\[[0-9;]*m")

// The terminal output is safe. No line can be taken for a command, contains a server's control
// characters, or is much wider than requested.
func TestTerminalIsSafe(t *testing.T) {
	for _, d := range []*report.Document{report.Rich(), report.Big(20), report.EmptyDocument()} {
		for _, width := range []int{0, 1, 80, 200} {
			for _, color := range []bool{false, true} {
				var b bytes.Buffer
				must.Do(t, terminal.Write(&b, d, width, color))
				out := b.String()
				if color {
					out = ansi.ReplaceAllString(out, "")
				}
				most := max(width, 40)
				if width == 0 {
					most = 80
				}
				lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
				for i, line := range lines {
					must.Hold(t, text.Inert(line) == line, "width %d: a command: %q", width, line)
					clean := text.Line(line)
					must.Hold(t, clean == strings.Join(strings.Fields(line), " "), "width %d: control characters: %q", width, line)
					// Three kinds of lines may be longer. The last line is always complete, because
					// scripts read it. Tables in a narrow terminal keep two columns. A marker in a
					// line may take one more cell.
					w := text.Width(line)
					must.Hold(t, w <= most+2 || i >= len(lines)-1 || width < 80, "width %d: %d cells: %q", width, w, line)
				}
				last := lines[len(lines)-1]
				must.Hold(t, strings.Contains(last, fmt.Sprintf("exit %d", d.ExitCode)), "the last line is %q", last)
			}
		}
	}
}

func TestLastLine(t *testing.T) {
	sla := func(o verdict.Outcome, severity verdict.Severity) verdict.Verdict {
		return verdict.Verdict{Kind: "sla", Outcome: o, Severity: severity}
	}
	tests := []struct {
		name     string
		outcome  verdict.Outcome
		exit     int
		folder   string
		verdicts []verdict.Verdict
		want     string
	}{
		{"fail", verdict.Fail, 1, "results/x", []verdict.Verdict{sla(verdict.Pass, "error"), sla(verdict.Fail, "error"), sla(verdict.Pass, "error")},
			"FAIL  1 of 3 requirements failed · exit 1 · results in results/x"},
		{"pass", verdict.Pass, 0, "", []verdict.Verdict{sla(verdict.Pass, "error"), sla(verdict.Pass, "error")}, "PASS  2 requirements met · exit 0"},
		{"pass with a warning", verdict.Pass, 0, "", []verdict.Verdict{sla(verdict.Pass, "error"), sla(verdict.Fail, "warn")}, "PASS  1 requirement met · 1 warning · exit 0"},
		{"inconclusive", verdict.Inconclusive, 3, "", []verdict.Verdict{sla(verdict.Pass, "error"), sla(verdict.Inconclusive, "error")},
			"INCONCLUSIVE  1 of 2 requirements met · 1 inconclusive · exit 3"},
		{"not measured", verdict.Error, 4, "", []verdict.Verdict{sla(verdict.Pass, "error"), {Kind: "load", Outcome: verdict.Error}},
			"ERROR  1 requirement met · 1 not measured · exit 4"},
		{"nothing required", verdict.Pass, 0, "", []verdict.Verdict{{Kind: "load", Outcome: verdict.Pass}}, "PASS  nothing was required · exit 0"},
		{"a load that failed counts", verdict.Fail, 1, "", []verdict.Verdict{sla(verdict.Pass, "error"), {Kind: "load", Outcome: verdict.Fail}},
			"FAIL  1 of 2 requirements failed · exit 1"},
		{"skipped", verdict.Error, 4, "", []verdict.Verdict{sla(verdict.Pass, "error"), sla(verdict.Skipped, "error"), sla(verdict.Skipped, "error"), {Kind: "load", Outcome: verdict.Error}},
			"ERROR  1 requirement met · 1 not measured · 2 skipped · exit 4"},
		{"all skipped", verdict.Error, 4, "", []verdict.Verdict{sla(verdict.Skipped, "error"), {Kind: "server", Outcome: verdict.Error}},
			"ERROR  no requirement was judged · 1 not measured · 1 skipped · exit 4"},
		{"inconclusive under warn", verdict.Pass, 0, "", []verdict.Verdict{sla(verdict.Pass, "error"), {Kind: "sla", Outcome: verdict.Inconclusive, Warn: true}},
			"PASS  1 of 2 requirements met · 1 warning · exit 0"},
		{"interrupted", verdict.Pass, 130, "", []verdict.Verdict{sla(verdict.Pass, "error")}, "INTERRUPTED  1 requirement met · exit 130"},
	}
	for _, tt := range tests {
		d := &report.Document{Run: &metric.Run{}, Outcome: tt.outcome, ExitCode: tt.exit, Folder: tt.folder, Verdicts: tt.verdicts}
		if tt.exit == 130 {
			d.Run.Stopped = "interrupted" // the headline must not repeat this reason
		}
		var b bytes.Buffer
		must.Do(t, terminal.Write(&b, d, 80, false))
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		must.Same(t, tt.name, tt.want, lines[len(lines)-1])
	}
}

// The reason why a server could not be measured is printed once, even if a verdict repeats its
// beginning.
func TestTerminalSaysAServersErrorOnce(t *testing.T) {
	d := report.Passing()
	s := d.Run.Servers[0]
	s.Error = "the server died: " + strings.Repeat("why ", 100)
	d.Verdicts = append(d.Verdicts, verdict.Verdict{Kind: "server", Server: s.Address, Name: "start", Outcome: verdict.Error, Message: s.Error[:300] + "…"})
	var b bytes.Buffer
	must.Do(t, terminal.Write(&b, d, 80, false))
	n := strings.Count(b.String(), "the server died")
	must.Hold(t, n == 1, "said %d times:\n%s", n, b.String())
}

// A comment has a bounded size and a single marker, whatever text a run contains. It contains no
// markup but tokgate's own, and nothing that GitHub would load, link or mention.
func TestCommentHoldsForeignText(t *testing.T) {
	long := strings.Repeat(evil, 1000)
	for _, n := range []int{1, 3, 40} {
		for _, foreign := range []string{evil, long} {
			d := report.Rich()
			d.Plan.Name, d.Plan.Path, d.Run.Tool, d.Folder, d.Why, d.Run.Stopped, d.Outcome = foreign, foreign, foreign, foreign, foreign, foreign, -1
			var verdicts []verdict.Verdict
			for range n {
				for _, v := range d.Verdicts {
					v.Name, v.Workload, v.Server, v.Message, v.Needs, v.Notes, v.File = foreign, foreign, foreign, foreign, foreign, []verdict.Note{{Text: foreign}, {Text: foreign}}, foreign
					verdicts = append(verdicts, v)
				}
				d.Comparisons = append(d.Comparisons, &compare.Comparison{
					Name: foreign, Line: foreign, Outcome: verdict.Fail, Decisions: []compare.Decision{{Answer: foreign}},
					Changes: []compare.Change{{Workload: foreign, Level: foreign, Metric: metric.Def{Name: foreign, Title: foreign, Unit: metric.Unit(foreign)}, Limit: metric.Some(0.05), Outcome: -1, Direction: compare.Direction(foreign)}},
				})
			}
			d.Verdicts = verdicts
			for i := range d.Run.Capacities {
				d.Run.Capacities[i].Workload, d.Run.Capacities[i].Server, d.Run.Capacities[i].Kind = foreign, foreign, metric.CapacityKind(foreign)
			}
			var b bytes.Buffer
			must.Do(t, markdown.Comment(&b, d))
			out := b.String()
			lines := strings.Count(out, "\n")
			must.Hold(t, lines <= markdown.CommentLines && len(out) <= 60_000, "%d × %d bytes: %d lines, %d bytes", n, len(foreign), lines, len(out))
			head, rest, _ := strings.Cut(out, "\n<!-- red -->\n")
			must.Hold(t, regexp.MustCompile(`^<!-- tokgate:[A-Za-z0-9._-]+ -->$`).MatchString(head), "it begins with %q", head)
			for _, own := range []string{"<br>", "<sub>", "</sub>", "<!-- red -->", "<!-- -->"} {
				rest = strings.ReplaceAll(rest, own, "")
			}
			rest = strings.ReplaceAll(rest, `\]`, "")
			link := regexp.MustCompile(`[^&]#\d`).FindString(out)
			must.Hold(t, link == "", "%d × %d bytes: %q is a link to an issue", n, len(foreign), link)
			for _, markup := range []string{"<", "@", "://", "](", "\n#1"} {
				if at := strings.Index(rest, markup); at >= 0 {
					t.Errorf("%d × %d bytes: %q in %q", n, len(foreign), markup, rest[max(0, at-30):min(len(rest), at+30)])
				}
			}
		}
	}
}

// A passed check is shown briefly, with its value, limit and headroom.
func TestTerminalPassed(t *testing.T) {
	long := "ttft p95 77.6 ms < 500 ms: 0 of 150 requests over (0%, allowed 5%), 95% bounds 73.7 ms to 87.9 ms"
	th := &verdict.Threshold{Metric: metric.MustLookup("ttft"), Stat: metric.Stat{Kind: metric.Percentile, P: 95}, Op: "<", Limit: metric.Some(0.5)}
	v := verdict.Verdict{Kind: "sla", Name: "sla.ttft.p95 at 8", Outcome: verdict.Pass, Message: long, Threshold: th, Test: verdict.Test{Value: metric.Some(0.0776), N: 150}}
	v.Note("exact for the requests of this run")
	v.Caution("lock-step: in phase")
	v.Caution("certified by its margin: 9 of 10")
	tests := []struct {
		name  string
		width int
		v     verdict.Verdict
		want  []string
	}{
		{"room for all", 140, v, []string{"  pass    sla.ttft.p95 at 8  77.6 ms < 500 ms: 0 of 150 requests over (0%, allowed 5%), 95% bounds 73.7 ms to 87.9 ms; 6.4 × to spare"}},
		{"without bounds", 80, v, []string{"  pass    sla.ttft.p95 at 8  77.6 ms < 500 ms; 6.4 × to spare, n = 150"}},
		{"without the count", 65, v, []string{"  pass    sla.ttft.p95 at 8  77.6 ms < 500 ms; 6.4 × to spare"}},
		{"on a line of its own", 40, v, []string{"  pass    sla.ttft.p95 at 8", "          77.6 ms < 500 ms; 6.4 × to", "          spare"}},
	}
	noLimit := v
	noLimit.Threshold = &verdict.Threshold{Metric: metric.MustLookup("success"), Stat: metric.Stat{Kind: metric.Every}}
	noLimit.Message, noLimit.Name = "success every 100%: 0 of 150 requests failed", "sla.success.every at 8"
	tests = append(tests, struct {
		name  string
		width int
		v     verdict.Verdict
		want  []string
	}{"no limit", 50, noLimit, []string{"  pass    sla.success.every at 8", "          100%: 0 of 150 requests failed"}})
	for _, tt := range tests {
		var b bytes.Buffer
		must.Do(t, terminal.Write(&b, &report.Document{Run: &metric.Run{}, Verdicts: []verdict.Verdict{tt.v}}, tt.width, false))
		lines := strings.Split(b.String(), "\n")
		i := slices.Index(lines, tt.want[0])
		must.Hold(t, i >= 0 && (len(tt.want) <= 1 || lines[i+1] == tt.want[1]), "%s: no %q in:\n%s", tt.name, tt.want, b.String())
		if strings.Contains(b.String(), "this run") || !strings.Contains(b.String(), "lock-step") || !strings.Contains(b.String(), "its margin") {
			t.Errorf("%s: the wrong notes are left out:\n%s", tt.name, b.String())
		}
	}
}

// The kind of a capacity and its line agree in every output. They state what is known below and
// above the limit, even if a confirmation failed or the budget ended.
func TestCapacityKinds(t *testing.T) {
	tests := []struct {
		c           metric.Capacity
		line, limit string
	}{
		{metric.Capacity{Bracket: metric.Bracket{Kind: metric.CapacityExact, Pass: 39, Fail: 40, Confirmed: true}, Reason: "the limit is found to within the resolution"},
			"39 requests in flight", "39"},
		{metric.Capacity{Bracket: metric.Bracket{Kind: metric.CapacityExact, Pass: 39, Fail: 40}, Reason: "budget: 3s left, the next probe takes about 2m"},
			"39 requests in flight, not confirmed", "39"},
		// Level 39 passed once and failed once, so it is not decided.
		{metric.Capacity{Bracket: metric.Bracket{Kind: metric.CapacityInterpolated, Pass: 38, Fail: 40, Confirmed: true, Crossing: 39.4, CrossingLow: 38, CrossingHigh: 40}, Reason: "39 could not be decided"},
			"~39 requests in flight (38 passes, 40 fails)", "38 to 39"},
		{metric.Capacity{Bracket: metric.Bracket{Kind: metric.CapacityInterpolated, Pass: 12, Fail: 18}, Reason: "budget: 3s left, the next probe takes about 2m"},
			"~12 requests in flight (12 passes, 18 fails), not confirmed", "12 to 17"},
		{metric.Capacity{Bracket: metric.Bracket{Kind: metric.CapacityAtLeast, Pass: 125, Confirmed: true}, Reason: "the search goes up to 125"},
			"125+ requests in flight (the search goes up to 125)", "125+"},
		// The search ended at load 40, because the generator was saturated. But a fixed level of
		// load 128 failed.
		{metric.Capacity{Bracket: metric.Bracket{Kind: metric.CapacityAtLeast, Pass: 20, Fail: 128, Confirmed: true}, Reason: "the generator was saturated at 40"},
			"20+ requests in flight, and 128 fails (the generator was saturated at 40)", "20+"},
		{metric.Capacity{Bracket: metric.Bracket{Kind: metric.CapacityBelow, Fail: 1}, Reason: "the search goes down to 1"}, "does not hold at 1 request in flight", "<1"},
		// The budget ended after load 8 had passed once, and then failed its confirmation.
		{metric.Capacity{Bracket: metric.Bracket{Kind: metric.CapacityBelow, Fail: 12}, Reason: "budget: 3s left, the next probe takes about 2m"},
			"does not hold at 12 requests in flight (budget: 3s left, the next probe takes about 2m)", "<12"},
		{metric.Capacity{Bracket: metric.Bracket{Kind: metric.CapacityServerCap, Pass: 64, Confirmed: true}, Reason: "the server admitted 64 of 128"},
			"64 requests in flight (admission cap)", "64"},
		{metric.Capacity{Bracket: metric.Bracket{Kind: metric.CapacityUnknown}, Reason: "the generator was saturated at 8"}, "unknown: the generator was saturated at 8", "unknown"},
	}
	for _, tt := range tests {
		run, p, v, m := report.Fixture()
		c := tt.c
		c.Server, c.Workload, c.Over, c.From, c.UpTo = run.Capacities[0].Server, run.Capacities[0].Workload, metric.ClosedLoop, 1, 125
		c.Line = c.Words()
		must.Hold(t, c.Line == tt.line, "%s: %q, want %q", c.Kind, c.Line, tt.line)
		run.Capacities[0] = &c
		i := slices.IndexFunc(v.List, func(v verdict.Verdict) bool { return v.Kind == "capacity" })
		v.List[i].Capacity, v.List[i].Message, v.List[i].Notes = &c, c.Line, nil
		d := report.New(run, p, v, m)
		var screen, summary, junit bytes.Buffer
		must.Do(t, errors.Join(terminal.Write(&screen, d, 400, false), markdown.Write(&summary, d), report.JUnit(&junit, d)))
		for name, got := range map[string]string{"terminal": screen.String(), "Markdown": summary.String(), "JUnit": junit.String()} {
			want := tt.line
			switch name {
			case "Markdown":
				want = markdown.Text(want)
			case "JUnit":
				want = strings.NewReplacer("<", "&lt;").Replace(want)
			}
			must.Hold(t, strings.Contains(got, want), "%s: %s does not say %q:\n%s", c.Kind, name, want, got)
		}
		for _, want := range []string{`name="capacity.limit" value="` + strings.NewReplacer("<", "&lt;").Replace(tt.limit) + `"`, `name="capacity.kind" value="` + string(c.Kind) + `"`} {
			must.Hold(t, strings.Contains(junit.String(), want), "%s: report.JUnit lacks %s", c.Kind, want)
		}
	}
}

// Every output shows the answers first, then the numbers, then the differences.
func TestComparisons(t *testing.T) {
	d := report.Compared()
	for _, row := range []struct {
		name  string
		write func(*bytes.Buffer) error
		words []string // in order
		not   []string
	}{
		{"terminal", func(b *bytes.Buffer) error { return terminal.Write(b, d, 160, false) },
			[]string{`compare mtp: vllm on against vllm off · 8 rounds in turns, restart leg`, "mtp: no for chat and prefill", "round 2 of chat at 4, TTFT p95: stands out",
				"Answer", "+15% to +", "+10%", "fail", "not applicable", "FAIL    compare.mtp.tolerate.ttft.p95 at 4"}, []string{"\n::error::"}},
		{"markdown", func(b *bytes.Buffer) error { return markdown.Write(b, d) },
			[]string{"### compare mtp", "mtp: no for chat and prefill", "lock-step", "stands out", "| chat | 4 | worse |", "| +20% |", "| flags.x | – | --x &lt;b&gt;&#64;someone", "| version | 1 | 2 | no |"}, []string{"<b>", "@someone"}},
		{"junit", func(b *bytes.Buffer) error { return report.JUnit(b, d) },
			[]string{`<testsuite name="vllm[&#34;on&#34;]/chat"`, `<failure message="ttft p95 +20%" type="compare">`, `<testsuite name="comparisons"`, `name="compare.mtp"`}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			var b bytes.Buffer
			must.Do(t, row.write(&b))
			at := 0
			for _, w := range row.words {
				i := strings.Index(b.String()[at:], w)
				must.Need(t, i >= 0, "%q is missing, or not in order:\n%s", w, b.String())
				at += i
			}
			for _, w := range row.not {
				must.Hold(t, !strings.Contains(b.String(), w), "%q is there:\n%s", w, b.String())
			}
		})
	}
	got := d.Tally()
	must.Hold(t, got.Required == 1 && got.Failed == 1, "%+v: a required change is a requirement", got)
}

// A failed verdict quotes answers in the files for CI systems. The quotes must be harmless there.
func TestAnswersAreQuoted(t *testing.T) {
	d := report.Answered()
	for name, write := range map[string]func(*bytes.Buffer) error{
		"JUnit":    func(b *bytes.Buffer) error { return report.JUnit(b, d) },
		"Markdown": func(b *bytes.Buffer) error { return markdown.Write(b, d) },
		"terminal": func(b *bytes.Buffer) error { return terminal.Write(b, d, 100, false) },
	} {
		var b bytes.Buffer
		must.Do(t, write(&b))
		out := b.String()
		must.Hold(t, strings.Contains(out, "for example row 4"), "%s quotes no answer:\n%s", name, out)
		for _, bad := range []string{"\x1b[31m", "\n::error", report.Secret, "\u202e"} {
			must.Hold(t, !strings.Contains(out, bad), "%s holds %q", name, bad)
		}
	}
}

func TestTogether(t *testing.T) {
	a, b := report.Passing(), report.Rich()
	a.Folder, b.Folder = "results/before/", `results\after`
	a.Run.Simulated = true
	docs := []*report.Document{a, b, b}
	var out bytes.Buffer
	must.Do(t, terminal.Together(&out, docs, 100, false))
	report.Golden(t, "together.terminal.txt", out.Bytes())
	must.Hold(t, !strings.ContainsAny(out.String(), "\x1b\x07") && !strings.Contains(out.String(), "<script>"), "foreign text came through")
}

func TestMarkdownTogetherIsBounded(t *testing.T) {
	var out bytes.Buffer
	must.Do(t, markdown.Together(&out, []*report.Document{report.Big(5000), report.Big(5000)}))
	must.Hold(t, out.Len() <= markdown.Bytes, "%d bytes, want at most %d", out.Len(), markdown.Bytes)
	must.Hold(t, strings.Contains(out.String(), "more row"), "nothing says that rows were left out")
}
