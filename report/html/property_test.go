package html

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/markdown"
	"github.com/tokgate/tokgate/report/page"
	"github.com/tokgate/tokgate/report/terminal"
)

var documents = flag.Int("documents", 40, "generated documents that TestLongNoViewContradictsItself renders")

// generated returns a copy of a document with a random comparison and a random capacity. Both are
// possible results of a run. The same seed gives the same document.
func generated(base *report.Document, seed uint64) *report.Document {
	r := rand.New(rand.NewPCG(seed, 23))
	copied := *base
	d := &copied
	run, capacity := *base.Run, *base.Run.Capacities[0]
	run.Capacities = []*metric.Capacity{&capacity}
	d.Verdicts, d.Run = slices.Clone(base.Verdicts), &run
	n := func(v float64) metric.Value { return metric.Value{V: v, OK: true} }
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	c := &compare.Comparison{Name: "x", Control: "a", Candidate: "b", Paired: true, Rounds: 8}
	for _, level := range []string{"1", "8"} {
		worse, better := false, false
		for _, m := range []struct{ name, stat, better string }{{"throughput", "", "higher"}, {"ttft", "p95", "lower"}, {"e2e", "mean", "lower"}, {"speed", "mean", "higher"}} {
			mid, half := r.NormFloat64()*0.1, 0.2*r.Float64()
			x := compare.Change{Workload: "chat", Level: level, Metric: metric.MustLookup(m.name), Severity: "error",
				Shift: compare.Shift{Control: n(1), Candidate: n(1 + mid), Change: n(mid), Interval: verdict.Interval{Low: n(mid - half), High: n(mid + half)}}, Outcome: verdict.Skipped}
			x.Stat, _ = metric.ParseStat(m.stat)
			up := mid > 0 == (m.better == "higher")
			if mid-half > 0 || mid+half < 0 {
				x.Direction = map[bool]compare.Direction{true: compare.Better, false: compare.Worse}[up]
			}
			if r.IntN(3) == 0 {
				limit := 0.1 * r.Float64()
				bad := mid
				if m.better == "higher" {
					limit, bad = -limit, -mid
				}
				x.Limit, x.Outcome = n(limit), verdict.Pass
				switch abs := max(limit, -limit); {
				case bad-half > abs:
					x.Outcome = verdict.Fail
				case bad+half > abs:
					x.Outcome = verdict.Inconclusive
				}
			}
			worse, better = worse || x.Direction == "worse" && x.Outcome != verdict.Pass, better || x.Direction == "better"
			c.Changes = append(c.Changes, x)
		}
		answer := map[[2]bool]string{{true, false}: "no", {false, true}: "yes", {true, true}: "mixed", {false, false}: "no difference"}[[2]bool{worse, better}]
		c.Decisions = append(c.Decisions, compare.Decision{Workload: "chat", Level: level, Answer: answer, Why: "because"})
	}
	d.Comparisons = []*compare.Comparison{c}
	d.Plan.Decide = pick("certified", "estimate")
	capacity.Confirmed = r.IntN(2) == 0
	capacity.Probes = slices.Clone(capacity.Probes)
	for i := range capacity.Probes { // the allowed TTFT is 8 s
		p := &capacity.Probes[i]
		v := 8 * (1 + 2*r.Float64())
		if p.Outcome == metric.Pass {
			v = 8 * r.Float64()
		}
		x := metric.ProbeValue{Threshold: "ttft p95", Outcome: p.Outcome, Value: n(v), Low: n(v * r.Float64()), High: n(v * (1 + 100*r.Float64()*r.Float64()))}
		if r.IntN(4) == 0 {
			x.High = metric.Value{}
		}
		p.Values = []metric.ProbeValue{x}
	}
	d.Passages = nil
	for range r.IntN(4) {
		c := &d.Cases[0]
		p := report.Passage{Server: c.Server, Workload: c.Workload, Levels: []string{c.Name}, Begins: []float64{0}, Windows: 1 + r.IntN(3), Step: 10 * r.Float64()}
		for range 48 {
			waiting := r.IntN(1 + r.IntN(500))
			p.Arrivals, p.Waiting, p.InFlight = append(p.Arrivals, r.IntN(2)), append(p.Waiting, waiting), append(p.InFlight, waiting+r.IntN(20))
		}
		d.Passages = append(d.Passages, p)
	}
	if v := &d.Verdicts[2]; r.IntN(2) == 0 { // a failure at a level below the capacity
		v.Outcome, v.Value, d.Outcome, d.ExitCode = verdict.Fail, n(9), verdict.Fail, 1
		if above := d.Above(v); above != nil {
			v.Notes = slices.Clone(v.Notes)
			v.Note(d.Joining(v, above))
		}
	}
	return d
}

var (
	changeSVG = regexp.MustCompile(`(?s)<svg class="chart"[^>]*aria-label="Changes of [^"]*">.*?</svg>`)
	cross     = regexp.MustCompile(`<path class="cross" d="M([\d.]+) `)
	whisker   = regexp.MustCompile(`<path class="whisker s0" d="M(-?[\d.]+) [\d.]+H(-?[\d.]+)"`)
	zeroLine  = regexp.MustCompile(`<line class="axis" x1="([\d.]+)"`)
	chartSVG  = regexp.MustCompile(`(?s)<svg class="chart" viewBox="0 0 ([\d.]+) ([\d.]+)".*?</svg>`)
	pathData  = regexp.MustCompile(`<path class="([^"]*)" d="([^"]*)"`)
	lineData  = regexp.MustCompile(`<polyline class="([^"]*)" points="([^"]*)"`)
	pathStep  = regexp.MustCompile(`([MlVHhvz])((?:-?[\d.]+[ ,]?)*)`)
)

// leaves describes the lines of a chart that go beyond the edges of its picture.
func leaves(svg string) (found []string) {
	size := chartSVG.FindStringSubmatch(svg)
	number := func(s string) float64 { v, _ := strconv.ParseFloat(s, 64); return v }
	inside := func(what string, x, y float64) {
		if x < -6 || x > number(size[1])+6 || y < -6 || y > number(size[2])+6 {
			found = append(found, fmt.Sprintf("%s leaves its picture at %g, %g", what, x, y))
		}
	}
	for _, m := range lineData.FindAllStringSubmatch(svg, -1) {
		for _, p := range strings.Fields(m[2]) {
			x, y, _ := strings.Cut(p, ",")
			inside(m[1], number(x), number(y))
		}
	}
	for _, m := range pathData.FindAllStringSubmatch(svg, -1) {
		x, y := 0.0, 0.0
		for _, step := range pathStep.FindAllStringSubmatch(m[2], -1) {
			at := strings.FieldsFunc(step[2], func(r rune) bool { return r == ' ' || r == ',' })
			for len(at) > 0 {
				n, pair := number(at[0]), 0.0
				if len(at) > 1 {
					pair = number(at[1])
				}
				switch step[1] {
				case "M":
					x, y = n, pair
				case "l":
					x, y = x+n, y+pair
				case "H":
					x = n
				case "h":
					x += n
				case "V":
					y = n
				case "v":
					y += n
				}
				inside(m[1], x, y)
				at = at[min(len(at), map[string]int{"M": 2, "l": 2}[step[1]]+map[string]int{"H": 1, "h": 1, "V": 1, "v": 1}[step[1]]):]
			}
		}
	}
	return found
}

// contradictions lists the places where a page contradicts itself or the document.
func contradictions(d *report.Document, page string) []string {
	found := report.Check(d)
	if d.Plan.Decide == "estimate" {
		if m := regexp.MustCompile(`.{0,40}(?i:\bexact\b).{0,40}`).FindString(strings.ReplaceAll(page[strings.Index(page, "<main"):], "\n", " ")); m != "" && !strings.Contains(m, "exact for the") {
			found = append(found, "exact is said of point estimates: "+m)
		}
	}
	for _, svg := range changeSVG.FindAllString(page, -1) {
		at := func(s string) float64 { v, _ := strconv.ParseFloat(s, 64); return v }
		zero := at(zeroLine.FindStringSubmatch(svg)[1])
		for _, m := range cross.FindAllStringSubmatch(svg, -1) {
			if at(m[1])+4.5 > zero+0.2 {
				found = append(found, "a red mark on the better side")
			}
		}
		for _, m := range whisker.FindAllStringSubmatch(svg, -1) {
			if at(m[1]) < 0 || at(m[2]) > 480 {
				found = append(found, "an interval leaves its picture")
			}
			if (at(m[2]) >= 470 || at(m[1]) <= 64) && !strings.Contains(svg, "arrow") {
				found = append(found, fmt.Sprintf("an interval ends at the edge without an arrow: %s", m[0]))
			}
		}
	}
	for _, svg := range chartSVG.FindAllString(page, -1) {
		found = append(found, leaves(svg)...)
	}
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if above := d.Above(v); above != nil && !strings.Contains(page, "the capacity stays") {
			found = append(found, "a level failed below a capacity, and the page does not join them")
		}
	}
	if strings.Contains(page, ">skipped<") {
		found = append(found, "what was measured is called skipped")
	}
	for _, m := range figureSaid.FindAllStringSubmatch(page, -1) {
		if id := figureTitle.FindStringSubmatch(m[0]); id == nil || strings.Count(page, `id="`+id[1]+`-title"`) != 1 || strings.Count(m[0], `<svg class="chart`) != 1 {
			found = append(found, "a caption is not that of one chart")
		}
		for _, value := range extremeSaid.FindAllStringSubmatch(m[0], -1) {
			if strings.Count(m[0], value[1]) < 2 {
				found = append(found, "a caption names "+value[1]+", which is not in its chart")
			}
		}
	}
	return found
}

var (
	figureSaid  = regexp.MustCompile(`(?s)<figure .*?</figure>`)
	figureTitle = regexp.MustCompile(`^<figure id="([^"]+)"[^>]* aria-labelledby="([^"]+)-title">`)
	extremeSaid = regexp.MustCompile(`(?:Highest|Lowest|Most): ([^<]*?)(?: \([^)]*\))? at `)
)

// findContradictions lists contradictions in the other forms of the report: Markdown, the comment
// on a pull request, and the terminal's text.
func findContradictions(t *testing.T, d *report.Document) (found []string) {
	for name, write := range map[string]func(io.Writer) error{
		"Markdown": func(w io.Writer) error { return markdown.Write(w, d) },
		"comment":  func(w io.Writer) error { return markdown.Comment(w, d) },
		"terminal": func(w io.Writer) error { return terminal.Write(w, d, 120, false) },
		"summary":  func(w io.Writer) error { return terminal.Summary(w, d, 120, false) },
	} {
		var b bytes.Buffer
		must.Do(t, write(&b))
		for line := range strings.Lines(b.String()) {
			if strings.Contains(line, "throughput") && strings.Contains(line, "skipped") {
				found = append(found, name+" calls skipped what was measured: "+line)
			}
			if d.Plan.Decide == "estimate" && strings.Contains(strings.ToLower(line), "exact") && !strings.Contains(line, "exact for the") {
				found = append(found, name+" says exact of a point estimate: "+line)
			}
			if strings.Contains(line, "no difference") && strings.Contains(line, "worse") && !strings.Contains(line, "no worse") {
				found = append(found, name+" says no difference and worse: "+line)
			}
		}
	}
	return found
}

// judged returns, as HTML, the parts of the page that show verdicts.
func judged(t *testing.T, d *report.Document) string {
	p := page.Of(d)
	p.Sections = slices.DeleteFunc(p.Sections, func(s page.Section) bool {
		return !strings.HasPrefix(s.ID, "case-") && !slices.Contains([]string{"problems", "comparison", "plan", "definitions"}, s.ID)
	})
	var b bytes.Buffer
	must.Do(t, write(&b, p))
	return b.String()
}

// No output contradicts itself, for any verdicts.
func TestLongNoViewContradictsItself(t *testing.T) {
	base := recorded(t, "pass")
	for seed := range uint64(*documents) {
		d := generated(base, seed)
		found := contradictions(d, judged(t, d))
		if seed%50 == 0 {
			found = append(found, findContradictions(t, d)...)
			found = append(found, contradictions(d, render(t, d))...)
		}
		must.Need(t, len(found) <= 0, "document %d: %q", seed, found)
	}
}

// Contradictions are found.
func TestContradictionsAreFound(t *testing.T) {
	d := generated(recorded(t, "pass"), 1)
	d.Comparisons[0].Decisions[0].Answer = "no difference"
	x := &d.Comparisons[0].Changes[0]
	x.Limit, x.Direction = metric.Value{}, "worse"
	must.Hold(t, len(report.Check(d)) != 0, "no difference above a row that is worse is not found")
	page := `<main><svg class="chart" aria-label="Changes of chat at 1"><line class="axis" x1="200" x2="200"/><path class="cross" d="M300 10l9 9"/></svg>`
	must.Hold(t, len(contradictions(recorded(t, "pass"), page)) != 0, "a red mark on the better side is not found")
	for _, bad := range []string{
		`<path class="whisker s0" d="M18 60V40M14 60h860M14 40h8"/>`, `<path class="cross" d="M470 10l29 9"/>`, `<polyline class="line s0" points="1,2 3,-40"/>`,
	} {
		svg := `<svg class="chart" viewBox="0 0 480 300">` + bad + `</svg>`
		must.Hold(t, len(leaves(svg)) != 0, "%s is not found", bad)
	}
	found := leaves(`<svg class="chart" viewBox="0 0 480 300"><path class="whisker s0" d="M18 60V40M14 60h8M14 46l4 -6l4 6"/></svg>`)
	must.Hold(t, len(found) <= 0, "%v", found)
}
