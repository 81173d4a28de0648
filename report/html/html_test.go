package html

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/report"
)

// recorded reads a document from the tests of package report. The document "pass" is small and has
// no problems. "rich" has everything that a run may contain, including hostile text.
func recorded(t testing.TB, name string) *report.Document {
	t.Helper()
	f := must.Get(os.Open(filepath.Join("..", "testdata", name+".results.json")))(t)
	defer f.Close()
	d := must.Get(report.ReadDocument(f))(t)
	return d
}

func render(t testing.TB, docs ...*report.Document) string {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, Write(&b, docs...))
	return b.String()
}

// The head of a table's column begins with a capital letter, unless it is a symbol or a name.
func TestHeads(t *testing.T) {
	heads := regexp.MustCompile(`<th scope="col">(.*?)</th>`)
	n := 0
	names := regexp.MustCompile(`^vllm`) // a server's column
	for _, page := range []string{render(t, recorded(t, "pass")), render(t, recorded(t, "rich"))} {
		for _, m := range heads.FindAllStringSubmatch(page, -1) {
			n++
			m[1] = strings.TrimSuffix(regexp.MustCompile(`^<abbr title="[^"]*">`).ReplaceAllString(m[1], ""), "</abbr>")
			must.Hold(t, names.MatchString(m[1]) || regexp.MustCompile(`^(\p{Lu}|\d|p\d+\b)`).MatchString(m[1]), "a table has the head %q", m[1])
		}
	}
	must.Hold(t, n >= 50, "%d heads", n)
}

// The page loads nothing. It has no script, no style attribute (its own policy would block it), and
// no links except to its own anchors.
func TestSelfContained(t *testing.T) {
	for _, docs := range [][]*report.Document{{recorded(t, "pass")}, {recorded(t, "rich")}, {recorded(t, "pass"), recorded(t, "rich")}} {
		out := render(t, docs...)
		for _, bad := range []string{`<script`, `<link`, `<img`, `<iframe`, `<object`, `<[^>]* style=`, `<[^>]* src=`, `<[^>]*javascript:`, `<[^>]*\son[a-z]+=`} {
			must.Same(t, fmt.Sprintf("the page holds %s", bad), "", regexp.MustCompile(`(?i)`+bad).FindString(out))
		}
		must.Hold(t, !strings.Contains(styleSource, "url(") && !strings.Contains(styleSource, "@import"), "the style sheet loads something")
		ids := map[string]bool{}
		for _, m := range regexp.MustCompile(`\sid="([^"]+)"`).FindAllStringSubmatch(out, -1) {
			must.Hold(t, !ids[m[1]], "the id %q is there twice", m[1])
			ids[m[1]] = true
		}
		for _, m := range regexp.MustCompile(`\shref="([^"]*)"`).FindAllStringSubmatch(out, -1) {
			must.Hold(t, strings.HasPrefix(m[1], "#") && ids[m[1][1:]], "a link to %q, which is not on the page", m[1])
		}
	}
}

// hostile is a dangerous text. The tests put it wherever a document may have text from outside.
const hostile = "\x1b[31m<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{.}}</style>--><!--</title>&lt;\x00\u202e`${x}`\r\n::error::x"

// poison replaces every string in v by the text of the parameter with.
func poison(v reflect.Value, with string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			poison(v.Elem(), with)
		}
	case reflect.Slice:
		for i := range v.Len() {
			poison(v.Index(i), with)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			poison(v.Field(i), with)
		}
	case reflect.String:
		v.SetString(with)
	}
}

// tags and attributes are all that a page may use. There is no script, no style attribute and no
// handler.
var (
	tags = wordSet(`!DOCTYPE html head meta title style body a header footer div nav ul li main section strong span b p h1 h2 h3 dl dt dd
		details summary table caption thead tbody tr th td figure figcaption ol code pre svg g rect circle path polyline polygon line text abbr img`)
	attributes = wordSet(`html lang charset http-equiv content name class id href role tabindex scope open aria-hidden aria-label aria-labelledby data-label viewBox
		width height x y x1 x2 y1 y2 cx cy r rx d points fill stroke stroke-opacity stroke-dasharray text-anchor visibility title src alt preserveAspectRatio`)
)

func wordSet(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}

// harmless returns an error if text of a document became a part of the page's HTML. It looks for
// tags and attributes that the page does not use, values without quotes, and invisible characters.
func harmless(out string) error {
	if i := strings.IndexAny(out, "\x00\x1b\u202e"); i >= 0 {
		return fmt.Errorf("a control character came through near %q", out[max(i-40, 0):i])
	}
	for rest := out; ; {
		i := strings.IndexByte(rest, '<')
		if i < 0 {
			return nil
		}
		rest = rest[i+1:]
		n := tagLength(rest)
		if n == 0 {
			return fmt.Errorf("not one of the page's tags: <%.120q", rest)
		}
		rest = rest[n:]
	}
}

// tagLength returns the length of a tag after its "<", or 0 if the page does not use such a tag.
func tagLength(s string) int {
	word := func(i int) int {
		for i < len(s) && (s[i] == '-' || s[i] == '!' || s[i] >= '0' && s[i] <= '9' || s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z') {
			i++
		}
		return i
	}
	start := 0
	if strings.HasPrefix(s, "/") {
		start = 1
	}
	i := word(start)
	if !tags[s[start:i]] {
		return 0
	}
	for i < len(s) {
		switch {
		case s[i] == '>':
			return i + 1
		case s[i] == ' ' || s[i] == '/':
			i++
			continue
		}
		end := word(i)
		if !attributes[s[i:end]] {
			return 0
		}
		if i = end; strings.HasPrefix(s[i:], `="`) {
			n := strings.IndexAny(s[i+2:], `"<>`)
			if n < 0 || s[i+2+n] != '"' {
				return 0
			}
			i += 2 + n + 1
		}
	}
	return 0
}

func TestHostileText(t *testing.T) {
	for _, name := range []string{"pass", "rich"} {
		err := harmless(render(t, recorded(t, name)))
		must.Hold(t, err == nil, "%s: %v", name, err)
		d := recorded(t, name)
		poison(reflect.ValueOf(d), hostile)
		if err := harmless(render(t, d)); err != nil {
			t.Errorf("%s, every string hostile: %v", name, err)
		}
		// This page has hostile text only in names. Levels keep their kinds, and metrics their
		// names, so that the charts are drawn too.
		d = recorded(t, name)
		for i := range d.Cases {
			d.Cases[i].Workload, d.Cases[i].Server, d.Cases[i].Name = hostile, hostile, hostile
		}
		for i := range d.Workloads {
			d.Workloads[i].Address, d.Workloads[i].Description = hostile, hostile
		}
		out := render(t, d, recorded(t, "rich"))
		if err := harmless(out); err != nil {
			t.Errorf("%s, hostile names: %v", name, err)
		}
		must.Hold(t, strings.Contains(out, "<svg"), "nothing was drawn")
	}
}

func FuzzText(f *testing.F) {
	f.Add(hostile)
	f.Add(`chat["a"]`)
	f.Add(strings.Repeat("漢", 300))
	f.Fuzz(func(t *testing.T, s string) {
		d := recorded(t, "pass")
		s = strings.ToValidUTF8(s[:min(len(s), 4000)], "\uFFFD") // as JSON brings it
		for i := range d.Cases {
			d.Cases[i].Workload, d.Cases[i].Notes = s, []string{s}
		}
		for i := range d.Verdicts {
			d.Verdicts[i].Message, d.Verdicts[i].Name = s, s
		}
		for i := range d.Plan.Sources {
			d.Plan.Sources[i].Text = s
		}
		err := harmless(render(t, d))
		must.Hold(t, err == nil, "%v", err)
	})
}

// No number in a document may break the page, because anybody may have written the document.
func FuzzNumbers(f *testing.F) {
	f.Add(0.0, 1.0, 1, 2)
	f.Add(math.Inf(1), math.MaxFloat64, 0, -1)
	f.Add(1e-300, -5.0, math.MaxInt, 1)
	f.Fuzz(func(t *testing.T, a, b float64, n, m int) {
		d := recorded(t, "pass")
		number := func(v float64) metric.Value { return metric.Value{V: v, OK: !math.IsNaN(v)} }
		d.Cases = append(d.Cases, d.Cases[0])
		for i := range d.Cases {
			c := &d.Cases[i]
			c.N = []int{n, m}[i%2]
			c.Metrics = slices.Clone(c.Metrics)
			for j := range c.Metrics {
				c.Metrics[j].Mean, c.Metrics[j].Value, c.Metrics[j].Max = number(a), number(b), number(a+b)
				c.Metrics[j].Curve = []metric.Value{number(a), number(b), {}}
			}
		}
		for i := range d.Timelines {
			d.Timelines[i].To, d.Timelines[i].Requests[0].Slot = b, n
			for j := range d.Timelines[i].Requests {
				d.Timelines[i].Requests[j].End = a
			}
		}
		for i := range d.Run.Capacities {
			d.Run.Capacities[i].Pass, d.Run.Capacities[i].Fail = n, m
		}
		for i := range d.Workloads {
			for j := range d.Workloads[i].Bounds {
				d.Workloads[i].Bounds[j].Threshold.Limit = number(b)
			}
		}
		out := render(t, d)
		must.Same(t, "a coordinate", "", regexp.MustCompile(`="-?(NaN|[+-]?Inf)`).FindString(out))
	})
}

// The pages of recorded documents must avoid mistakes of published benchmark reports.
func TestPageKeepsItsWord(t *testing.T) {
	for _, name := range []string{"pass", "rich"} {
		d := recorded(t, name)
		found := report.Check(d)
		must.Hold(t, len(found) <= 0, "%s: figures that do not go together: %q", name, found)
		out := render(t, d)
		plain := html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(strings.ReplaceAll(out, "><", "> <"), " "))
		// The page must show as the peak the highest value at a load that holds: of the rich document
		// level 30 fails, and an open loop has no throughput of its own. Its range of loads must cover
		// all cases.
		peak, low, high := 0.0, math.MaxInt, 0
		for i := range d.Cases {
			c := &d.Cases[i]
			if c.Skipped != "" {
				continue
			}
			if c.Kind != "rate" && (name != "rich" || c.Name != "30") {
				peak = max(peak, c.Summary("throughput").Value.V)
			}
			if c.Kind == "closed" {
				low, high = min(low, c.N), max(high, c.N)
			}
		}
		if want := metric.Format(metric.TokensPerSecond, peak); !regexp.MustCompile(`Peak throughput\s+` + regexp.QuoteMeta(want)).MatchString(plain) {
			t.Errorf("%s: the highlight is not the peak, %s", name, want)
		}
		want := fmt.Sprintf("%d requests in flight", low)
		if low != high {
			want = fmt.Sprintf("%d to %d requests in flight", low, high)
		}
		must.Hold(t, strings.Contains(plain, want), "%s: the loads are not said to be %s", name, want)
		// The page must not call requests "users". A number of users must be a range, or begin with
		// ≈.
		for _, m := range regexp.MustCompile(`(?i).{0,60}\busers\b`).FindAllString(plain, -1) {
			if regexp.MustCompile(`\d+ users\b`).MatchString(m) && !regexp.MustCompile(`(\d+ to \d+|≈).* users`).MatchString(m) {
				t.Errorf("%s: requests are called users: %q", name, m)
			}
		}
		// Every number in a table cell has a unit, unless the head of its column names the unit.
		for _, m := range regexp.MustCompile(`<td[^>]*>([^<]*)</td>`).FindAllStringSubmatch(out, -1) {
			must.Hold(t, !regexp.MustCompile(`^\d+\.\d+$`).MatchString(m[1]), "%s: %q has no unit", name, m[1])
		}
		// Every definition that the page links to is there exactly once.
		for _, m := range regexp.MustCompile(`href="#(def-[^"]+)"`).FindAllStringSubmatch(out, -1) {
			if n := strings.Count(out, `id="`+m[1]+`"`); n != 1 {
				t.Errorf("%s: %s is defined %d times", name, m[1], n)
			}
		}
	}
}

// A section without data is not on the page.
func TestAbsentSections(t *testing.T) {
	out := render(t, recorded(t, "pass"))
	for _, id := range []string{"burst", "rates", "arrivals", "power", "comparison", "configurations", "failures", "runs", "consistency", "inside", "guidance", "highlights"} {
		must.Hold(t, !strings.Contains(out, `<section class="numbered" id="`+id+`"`), "%s is there without data", id)
	}
	for _, id := range []string{"brief", "problems", "case-1", "system", "distributions", "timeline", "levels", "environment", "plan", "definitions"} {
		must.Hold(t, strings.Contains(out, `id="`+id+`"`), "%s is missing", id)
	}
	d := recorded(t, "pass")
	d.Run.Simulated = true
	if out := render(t, d); !strings.Contains(out, `<header class="simulated">`) || !strings.Contains(out, "<title>SIMULATED") {
		t.Error("a simulated run is not marked")
	}
}

// The charts of a rate show the plan's limit, and the largest rate as a vertical line.
func TestRates(t *testing.T) {
	_, part, _ := strings.Cut(render(t, recorded(t, "rich")), `<section class="numbered" id="rates"`)
	part, _, _ = strings.Cut(part, "</section>")
	for want, n := range map[string]int{"<svg": 2, "Time to first token at a fixed rate": 1, "Whole answer at a fixed rate": 1, ">limit: p95 &lt; 8 s<": 1, ">largest rate 9.4 req/s<": 2} {
		got := strings.Count(part, want)
		must.Hold(t, got >= n && (want != "<svg" || got == n), "%q is there %d times, want %d", want, got, n)
	}
}

// A workload with an open loop has charts over time in the section of its use case. All stages of a
// load share one line. Each chart has its own caption.
func TestOverTime(t *testing.T) {
	d := recorded(t, "rich")
	part := func(page, id string) string {
		_, part, _ := strings.Cut(page, `<section class="numbered" id="`+id+`"`)
		part, _, _ = strings.Cut(part, "</section>")
		return part
	}
	own := part(render(t, d), "case-1")
	for _, want := range []string{">Arrivals over time, general_chatbot", ">In flight over time, general_chatbot", ">Waiting over time, general_chatbot", "The first of 2 windows.", "Most: 28 requests at 0:01 · 8 req/s."} {
		must.Hold(t, strings.Count(own, want) != 0, "%q is missing", want)
	}
	p := d.Passages[0]
	p.Workload, p.Levels, p.Begins = "spike", []string{"calm", "rush"}, []float64{0, 20}
	d.Passages = []report.Passage{p}
	page := render(t, d)
	alone := part(page, "arrivals")
	if strings.Contains(part(page, "case-1"), "over time") || strings.Count(alone, "<svg") != 3 || !strings.Contains(alone, ">rush<") || !strings.Contains(alone, "where each stage begins (calm, rush)") {
		t.Errorf("a workload without a section of its own: %.2000s", alone)
	}
}

// large returns a document of 200 levels of 5000 requests each, as it is in results.json.
func large(t testing.TB) *report.Document {
	d := recorded(t, "rich")
	c, v := d.Cases[1], d.Verdicts[6]
	d.Cases, d.Verdicts = nil, nil
	for i := range 200 {
		l := *c.Level
		l.Workload, l.N = fmt.Sprintf(`chat["%d"]`, i/10), 1<<(i%10)
		l.Name, l.Rounds = fmt.Sprint(l.N), []*metric.Round{{Due: 5000}}
		c.Level, c.Completed, c.Failed = &l, 4998, 2
		d.Cases = append(d.Cases, c)
		v.Workload, v.Level = c.Workload, c.Name
		d.Verdicts = append(d.Verdicts, v)
	}
	return d
}

func TestLongLargePageIsBounded(t *testing.T) {
	n := len(render(t, large(t)))
	must.Hold(t, n <= 5<<20, "%d bytes, want at most 5 MiB", n)
}

func BenchmarkWrite200Levels(b *testing.B) {
	d := large(b)
	b.ReportAllocs()
	for b.Loop() {
		must.Do(b, Write(io.Discard, d))
	}
}

// A comparison shows its tolerance and the differences between the servers. HTML in the servers'
// texts is escaped.
func TestComparison(t *testing.T) {
	n := func(v float64) metric.Value { return metric.Value{V: v, OK: true} }
	d := recorded(t, "pass")
	d.Comparisons = []*compare.Comparison{{
		Name: "mtp", Control: `vllm["off"]`, Candidate: `vllm["on"]`, Paired: true, Rounds: 8, Units: 8, Outcome: verdict.Pass, Line: "mtp: yes for chat",
		Differences: []plan.Difference{{Key: "version", Control: "0.19.0", Candidate: hostile, Allowed: true}},
		Decisions:   []compare.Decision{{Workload: "chat", Level: "8", Answer: "yes", Why: "throughput +28%"}},
		Changes: []compare.Change{
			{Workload: "chat", Level: "8", Metric: metric.MustLookup("throughput"), Shift: compare.Shift{Control: n(212), Candidate: n(270), Change: n(0.274), Interval: verdict.Interval{Low: n(0.26), High: n(0.29), Confidence: 0.95}}, Limit: n(-0.05), Outcome: verdict.Pass},
			{Workload: "chat", Level: "8", Metric: metric.MustLookup("ttft"), Stat: metric.Stat{Kind: metric.Percentile, P: 95}, Shift: compare.Shift{Control: n(0.5), Candidate: n(0.53), Change: n(0.06), Interval: verdict.Interval{Low: n(-0.1), High: n(0.2)}}, Outcome: verdict.Skipped},
			{Workload: "chat", Level: "8", Metric: metric.MustLookup("success"), Shift: compare.Shift{Points: true, Control: n(1), Candidate: n(0.99), Change: n(-0.01)}, Outcome: verdict.Skipped},
		},
		Notes: []string{hostile},
	}}
	out := render(t, d)
	err := harmless(out)
	must.Hold(t, err == nil, "%v", err)
	at := strings.Index(out, `<section class="numbered" id="comparison"`)
	must.Need(t, at >= 0, "there is no comparison")
	part := out[at:][:strings.Index(out[at:], "</section>")]
	for _, want := range []string{"vllm on against vllm off", "212 tok/s", "270 tok/s", "+27%", "+26%", "-5.0%", "+6.0%", "-1.0pp", `class="mark pass"`, `class="mark unsure"`, `class="limit"`, "0.19.0"} {
		must.Hold(t, strings.Contains(part, want), "the comparison does not hold %q", want)
	}
	must.Hold(t, strings.Count(part, `class="limit"`) == 1, "a change without a limit has one drawn")
}

// Without thresholds, use cases get no sections. These would only say that nothing is required.
func TestNoUseCaseIsAsked(t *testing.T) {
	d := recorded(t, "pass")
	must.Need(t, strings.Contains(render(t, d), `id="case-1"`), "no use cases")
	for i := range d.Workloads {
		d.Workloads[i].Bounds = nil
	}
	d.Verdicts, d.Run.Capacities = nil, nil
	must.Hold(t, !strings.Contains(render(t, d), `id="case-`), "use cases of which nothing is asked are listed")
}

// Brief renders only the first page. It contains texts of the plan, and escapes them.
func TestBrief(t *testing.T) {
	d := recorded(t, "pass")
	logo := must.Get(base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg=="))(t)
	d.Plan.Cover = &report.Cover{Title: "Chat " + hostile, Subtitle: hostile, Organization: hostile, Notes: []string{hostile},
		Logo: logo}
	d.Workloads[0].Title, d.Workloads[0].Users = "Talk", []float64{2, 3}
	var b bytes.Buffer
	must.Do(t, Brief(&b, d))
	out := b.String()
	err := harmless(out)
	must.Hold(t, err == nil, "%v", err)
	for _, want := range []string{`<img class="logo" src="data:image/png;base64,iVBOR`, "img-src data:", ">Talk<", "about 78 to 117 users", "Peak throughput", "statistical test at 95% confidence"} {
		must.Hold(t, strings.Contains(out, want), "the brief does not hold %q", want)
	}
	if strings.Contains(out, "general_chatbot") || strings.Contains(out, "<nav") || strings.Contains(out, `id="system"`) {
		t.Error("the brief holds an id that has a title, or more than the first page")
	}
	d.Plan.Cover.Logo = []byte("<svg>")
	must.Hold(t, !strings.Contains(render(t, d), "<img"), "a logo that is no picture is shown")
}

// A wrong answer stands beside the expected answer and the control's answer. HTML in the answers is
// escaped.
func TestAnswersSideBySide(t *testing.T) {
	control := "12-34-56"
	d := &report.Document{Schema: report.Schema, Outcome: verdict.Fail, Run: &metric.Run{},
		Answers: []report.Answer{{Server: "next", Workload: "recall", Level: "8", Row: 4, Metrics: []string{"empty", "accuracy"}, Expected: "12-34-56"},
			{Comparison: "up", Server: "next", Workload: "recall", Level: "8", Row: 13, Metrics: []string{"accuracy"}, Expected: "12-34-56", Control: &control, Said: "<script>alert(1)</script>\x1b[31m\u202egnp"},
		},
		Comparisons: []*compare.Comparison{{Name: "up", Control: "today", Candidate: "next"}},
	}
	var b bytes.Buffer
	must.Do(t, Write(&b, d))
	page := b.String()
	for _, want := range []string{"Answers that count as bad", "The worst pairs of answers", "(nothing)", "&lt;script&gt;alert(1)", "row 13", "empty, wrong"} {
		must.Hold(t, strings.Contains(page, want), "the page lacks %q", want)
	}
	for _, bad := range []string{"<script", "\x1b", "\u202e"} {
		must.Hold(t, !strings.Contains(page, bad), "the page holds %q", bad)
	}
}
