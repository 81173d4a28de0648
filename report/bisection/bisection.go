// Package bisection shows a bisection: its answer, how likely each value is, and every leg.
package bisection

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tokgate/tokgate/assert/bisect"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/chart"
	"github.com/tokgate/tokgate/report/html"
	"github.com/tokgate/tokgate/report/markdown"
	"github.com/tokgate/tokgate/report/page"
	"github.com/tokgate/tokgate/report/terminal"
)

// Question is what is the same for each leg of a bisection.
type Question struct {
	Variable string   `json:"variable"`
	Values   []string `json:"values"` // the first is known good, and the last known bad
	// Server, Workload and Level are the cell that is measured, and Metric is the metric and its statistic.
	Server   string `json:"server"`
	Workload string `json:"workload"`
	Level    string `json:"level"`
	Metric   string `json:"metric"`
	// Worse is +1 if larger values of the metric are worse, and else −1. Least is how much worse the last
	// value must be, as a share.
	Worse     float64   `json:"worse"`
	Least     float64   `json:"least"`
	Simulated bool      `json:"simulated,omitempty"`
	Salt      uint64    `json:"salt"`
	Began     time.Time `json:"began,omitzero"`
}

// Name returns value i, with its place if the list has it several times.
func (q *Question) Name(i int) string {
	name := q.Values[i]
	if slices.Index(q.Values, name) != i || slices.Contains(q.Values[i+1:], name) {
		name += fmt.Sprintf(" (%d of %d)", i+1, len(q.Values))
	}
	return name
}

// Leg is one leg, as the journal keeps it.
type Leg struct {
	Value  int     `json:"value"`
	At     float64 `json:"at"` // in seconds from the start; of a simulation, the number of the leg
	Figure float64 `json:"figure,omitempty"`
	Start  float64 `json:"start_s,omitempty"` // until the server was ready
	Took   float64 `json:"took_s,omitempty"`
	Asked  string  `json:"asked,omitempty"`  // digest of what was asked
	Broken string  `json:"broken,omitempty"` // why the leg has no figure; "" if it has one
}

// Result is a bisection that has ended, and the folder that holds it.
type Result struct {
	Question
	bisect.State
	Legs   []Leg
	Folder string
}

// Answer returns the result in one line.
func (r Result) Answer() string {
	change := func(x float64) string { return fmt.Sprintf("%+.1f%%", 100*math.Expm1(r.Worse*x)) }
	bounds := fmt.Sprintf("%s (95%% bounds %s and %s)", change(r.Change), change(r.Low), change(r.High))
	asked := metric.Format(metric.Ratio, r.Least)
	switch r.Outcome {
	case bisect.Found:
		out := fmt.Sprintf("the change came with %s: probability %.3f", r.Name(r.Bad), r.Sure)
		if r.Bad-r.Good > 1 {
			out = fmt.Sprintf("the change came after %s, with %s at the latest: what lies between them cannot be measured (probability %.3f)", r.Name(r.Good), r.Name(r.Bad), r.Sure)
		}
		out += fmt.Sprintf(". %s from the first value to the last: %s", r.Metric, bounds)
		if r.Two > 0.5 {
			out += fmt.Sprintf(". There is another change, between %s and %s (probability %.2f of two)", r.Name(r.Other[0]), r.Name(r.Other[1]), r.Two)
		}
		return out
	case bisect.Unchanged:
		return fmt.Sprintf("nothing to bisect: the last value is certainly not worse than the first by more than %s. %s changed by %s", asked, r.Metric, bounds)
	}
	if r.Ends {
		return fmt.Sprintf("cannot tell whether the last value is worse than the first by more than %s: %s by %s. %s", asked, r.Metric, bounds, r.more())
	}
	return fmt.Sprintf("cannot tell: the change lies between %s and %s. %s", r.Name(r.Good), r.Name(r.Bad), r.more())
}

func (r Result) more() string {
	if r.Needed > 0 {
		return fmt.Sprintf("It would take about %d more legs that differ by %s, or legs with more requests", r.Needed, metric.FormatDigits(metric.Ratio, r.Noise, 2))
	}
	return "Longer legs, with more requests, differ less"
}

// Sections returns what a report shows.
func (r Result) Sections() []page.Section {
	class := map[bisect.Outcome]string{bisect.Found: page.Failed, bisect.Unchanged: page.Passed}[r.Outcome]
	cell := fmt.Sprintf("%s of %s at %s on %s, %d values of %s, %d legs", r.Metric, r.Workload, r.Level, r.Server, len(r.Values), r.Variable, len(r.Legs))
	notes := []string{}
	if r.Simulated {
		notes = append(notes, "this was a simulation: nothing was measured on a real server")
	}
	for _, l := range r.Legs {
		if l.Broken != "" {
			notes = append(notes, fmt.Sprintf("%s was left out: %s", r.Name(l.Value), l.Broken))
		}
	}
	answer := page.Capital(r.Answer())
	first := page.Section{ID: "answer", Title: "Bisection", Blocks: []page.Block{
		{Result: &page.Result{Class: class, Line: answer, Value: page.Capital(string(r.Outcome)), Sentence: answer}},
		{Text: page.Line(cell)}, {List: notes}}}
	if len(notes) == 0 {
		first.Blocks = first.Blocks[:2]
	}
	return []page.Section{first, {ID: "values", Title: "Values", Blocks: []page.Block{{Figures: []page.Figure{r.chances(), r.figures()}}}},
		{ID: "legs", Title: "Legs", Blocks: []page.Block{{Table: r.table()}}}}
}

func (r Result) axis() chart.Axis {
	return chart.Axis{Title: r.Variable + ", by number", Whole: true, Min: 1, Max: float64(len(r.Values)),
		Format: func(v float64) string { return strconv.Itoa(int(math.Round(v))) }}
}

func (r Result) chances() page.Figure {
	c := chart.Chart{Name: "probability that the change came with each value", Height: 220,
		X: r.axis(), Y: chart.Axis{Title: "probability", Min: 0, Max: 1, Format: func(v float64) string { return fmt.Sprintf("%.1f", math.Abs(v)) }}}
	t := &page.Table{Caption: "Probability that the change came with a value", Columns: page.Heads("Value", "Probability")}
	var line chart.Series
	for i, p := range r.Chances {
		line.Points = append(line.Points, chart.Point{X: float64(i + 1), Y: p, Tip: []string{r.Name(i), fmt.Sprintf("%.3f", p)}})
		if p >= 0.01 {
			t.Rows = append(t.Rows, page.Row(r.Name(i), fmt.Sprintf("%.3f", p)))
		}
	}
	line.Name = "probability"
	c.Series = []chart.Series{line}
	return page.Figure{ID: "chances", Title: "With which value the change came", Words: "The probability that the change came with each value, after all legs.", Chart: c.SVG(), Table: t}
}

func (r Result) figures() page.Figure {
	c := chart.Chart{Name: r.Metric + " of each leg", Height: 220,
		X: r.axis(), Y: chart.Axis{Title: r.Metric, Format: r.format}}
	dots := chart.Series{Name: "legs", Loose: true}
	for v := range r.Values {
		for i, l := range r.Legs {
			if l.Value == v && l.Broken == "" {
				tip := []string{r.Name(v), r.format(l.Figure), "leg " + strconv.Itoa(i+1)}
				dots.Points = append(dots.Points, chart.Point{X: float64(v + 1), Y: l.Figure, Tip: tip})
			}
		}
	}
	c.Series = []chart.Series{dots}
	return page.Figure{ID: "figures", Title: "What the legs measured", Words: "Each point is one leg: one start of a server with that value.", Chart: c.SVG()}
}

func (r Result) format(x float64) string {
	name, stat, _ := strings.Cut(r.Metric, " ")
	def, _ := metric.Lookup(name)
	kind, _ := metric.ParseStat(stat)
	return metric.Format(def.UnitOf(kind), x)
}

func (r Result) table() *page.Table {
	t := &page.Table{Caption: "Every leg, in its order", Words: true, Columns: page.Heads("Leg", r.Variable, r.Metric, "Start")}
	for i, l := range r.Legs {
		value := r.format(l.Figure)
		if l.Broken != "" {
			value = "left out"
		}
		t.Rows = append(t.Rows, page.Row(strconv.Itoa(i+1), r.Name(l.Value), value, metric.Format(metric.Seconds, l.Start)))
	}
	return t
}

// Terminal writes the result for a terminal, and where the report is: the answer last.
func Terminal(w io.Writer, r Result, width int, color bool) error {
	s := r.Sections()
	if err := terminal.Sections(w, append(s[1:], s[0]), width, color); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nReport in %s\n", r.Folder)
	return err
}

// Write writes report.html and report.md to the folder.
func Write(dir string, r Result) error {
	f, err := os.Create(filepath.Join(dir, "report.html"))
	if err != nil {
		return err
	}
	err = html.Sections(f, "tokgate bisect · "+r.Variable, r.Sections())
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	text := fmt.Sprintf("## Bisection of %s\n%s", markdown.Text(r.Variable), markdown.Sections(r.Sections()))
	return os.WriteFile(filepath.Join(dir, "report.md"), []byte(text), 0o644)
}
