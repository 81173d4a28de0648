package nights

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	judged "github.com/tokgate/tokgate/assert/nights"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/chart"
	"github.com/tokgate/tokgate/report/html"
	"github.com/tokgate/tokgate/report/page"
)

// HTML writes one self-contained page: the verdict, one line a series, then each series over its
// nights, and every night with its CI run.
func HTML(w io.Writer, n judged.Result, o Options) error {
	out := []page.Section{overview(n, o)}
	for i, t := range n.Trends {
		if len(t.Points) < 2 {
			continue
		}
		title := place(t)
		if t.Metric == metric.MetricForeign {
			title = "Series"
		}
		if last := &out[len(out)-1]; len(out) == 1 || last.Title != title {
			out = append(out, page.Section{ID: fmt.Sprintf("series-%d", i), Title: title, Blocks: []page.Block{{Pairs: true}}})
		}
		figures := &out[len(out)-1].Blocks[0].Figures
		*figures = append(*figures, figure(i, t))
	}
	return html.Sections(w, strings.Join(append([]string{"tokgate history"}, slices.DeleteFunc([]string{o.Folder}, isEmpty)...), " · "),
		append(out, allNights(n), howToRead(n)))
}

func isEmpty(s string) bool { return s == "" }

// overview returns the verdict and a table with one line a series: those that need attention first.
func overview(n judged.Result, o Options) page.Section {
	t := &page.Table{Caption: verdict.Count(len(n.Trends), "series"), Words: true, Columns: page.Heads("Series", "Verdict", "Tonight", "Level, since", "Noise", "Nights")}
	for _, detail := range []bool{true, false} {
		for i, x := range n.Trends {
			if hasDetail(x) != detail {
				continue
			}
			c := cells(x)
			row := page.Row(subject(x), "", c[2], level(x), c[4], c[5])
			row[0].Link, row[1] = either(len(x.Points) > 1, "#"+figureID(i), ""), page.Cell{Text: word(x), Class: classes[x.Outcome]}
			row[5].Class = "spark"
			t.Rows = append(t.Rows, row)
		}
	}
	verdict := page.Result{Class: classes[n.Outcome], Value: conclusion(n), Sentence: summary(n)}
	blocks := []page.Block{{Result: &verdict}, {Text: heading(n, o)}, {List: slices.Concat(suspects(n, o), events(n), remarks(n, o))},
		{Text: accept(n, o)}, {Table: t}}
	return page.Section{ID: "overview", Title: "Overview", Blocks: slices.DeleteFunc(blocks, page.Block.Empty)}
}

// level says how high a series is, and since when: since its last change, or since its first night.
func level(t judged.Trend) string {
	if len(t.Points) == 0 {
		return ""
	}
	since := t.Points[0].Started
	if k := len(t.Changes); k > 0 {
		c := t.Changes[k-1]
		return fmt.Sprintf("%s since %s (%s)", metric.Format(t.Unit, c.After), c.Started.UTC().Format(time.DateOnly), signed(t.Unit, c.Before, c.After))
	}
	if t.Tonight == nil {
		return ""
	}
	return fmt.Sprintf("%s since %s", metric.Format(t.Unit, t.Tonight.Center), since.UTC().Format(time.DateOnly))
}

func figureID(trend int) string { return fmt.Sprintf("figure-%d", trend+1) }

func figure(i int, t judged.Trend) page.Figure {
	first := t.Points[0].Started
	days := func(at time.Time) float64 { return at.Sub(first).Hours() / 24 }
	title := subject(t)
	c := chart.Chart{Name: fmt.Sprintf("%s, %s", title, verdict.Count(len(t.Points), "nights")), Height: 220,
		X: chart.Axis{Title: "night", Max: days(t.Points[len(t.Points)-1].Started), Format: func(v float64) string {
			return first.Add(time.Duration(v * 24 * float64(time.Hour))).UTC().Format(time.DateOnly)
		}},
		Y: chart.Axis{Title: name(t), Format: metric.In(t.Unit)},
	}
	if b := t.Tonight; b != nil {
		c.Y.Include = []float64{b.Low.V, b.High.V}
		c.Zones = []chart.Zone{{From: b.Low.V, To: b.High.V, Class: "z0"}}
	}
	line := chart.Series{Name: title, Plain: !hasDetail(t)}
	nights := &page.Table{Caption: title, Columns: page.Heads("Night (UTC)", "Value", "Verdict")}
	for _, p := range t.Points {
		date, value := p.Started.UTC().Format("2006-01-02 15:04"), metric.Format(t.Unit, p.Value)
		point := chart.Point{X: days(p.Started), Y: p.Value, Tip: []string{date, value, p.Run, said(p)}}
		switch {
		case p.Suspect:
			point.Mark = chart.Unsure
		case p.Alarm && p.Worse:
			point.Mark = chart.Fail
		case p.Alarm:
			point.Mark = chart.Pass
		}
		line.Points = append(line.Points, point)
		nights.Rows = append(nights.Rows, page.Row(date, value, said(p)))
	}
	c.Series = []chart.Series{line}
	for _, ch := range t.Changes {
		c.Rules = append(c.Rules, chart.Rule{At: days(ch.Started) - 0.5, Vertical: true, Word: signed(t.Unit, ch.Before, ch.After)})
	}
	f := page.Figure{ID: figureID(i), Title: title, Words: page.Line(t.Message), Chart: c.SVG(), Table: nights}
	var changes []string
	for _, ch := range t.Changes {
		changes = append(changes, change(t, ch))
	}
	if len(changes) > 0 {
		f.Finding = page.Capital(strings.Join(changes, ". "))
	}
	return f
}

// said returns the verdict on a night of a series; "" for most nights.
func said(p judged.Point) string {
	switch {
	case p.Suspect:
		return "suspect"
	case !p.Alarm:
		return ""
	case p.Worse:
		return "worse"
	}
	return "better"
}

// mostShown is the number of nights that the page lists; earlier ones are folded.
const mostShown = 14

// allNights lists the nights, the last one first, with what they said, and the CI runs behind them.
func allNights(n judged.Result) page.Section {
	type night struct {
		judged.Point
		said []string
	}
	byRun := map[string]*night{}
	var list []*night
	for _, t := range n.Trends {
		for _, p := range t.Points {
			if byRun[p.Run] == nil {
				byRun[p.Run] = &night{Point: p}
				list = append(list, byRun[p.Run])
			}
			if s := said(p); s != "" {
				byRun[p.Run].said = append(byRun[p.Run].said, subject(t)+": "+s)
			}
		}
	}
	slices.SortFunc(list, func(a, b *night) int { return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(b.Run, a.Run)) })
	columns := page.Heads("Night (UTC)", "Run", "Verdict")
	var rows [][]page.Cell
	for _, x := range list {
		row := page.Row(x.Started.UTC().Format("2006-01-02 15:04"), x.Run, strings.Join(x.said, "; "))
		if strings.HasPrefix(x.URL, "https://") || strings.HasPrefix(x.URL, "http://") {
			row[1].Link = x.URL
		}
		rows = append(rows, row)
	}
	shown := min(len(rows), mostShown)
	table := func(caption string, rows [][]page.Cell) []page.Block {
		return []page.Block{{Table: &page.Table{Caption: caption, Words: true, Columns: columns, Rows: rows}}}
	}
	blocks := table("Last nights", rows[:shown])
	if earlier := rows[shown:]; len(earlier) > 0 {
		title := "Before: " + verdict.Count(len(earlier), "nights")
		blocks = append(blocks, page.Block{Fold: &page.Fold{Title: title, Blocks: table(title, earlier)}})
	}
	return page.Section{ID: "nights", Title: "Nights", Lead: "A run that has a link was a job of a CI system.", Blocks: blocks}
}

func howToRead(n judged.Result) page.Section {
	return page.Section{ID: "reading", Title: "How to read this", Blocks: []page.Block{
		{Text: "Each night is one run of the same plan. A series is compared with its first nights, or with the first nights after a pin: at most 90. They change only if the report says so: they move behind a change that was found in them, or to a better level that lasted. So a slow decline cannot pass as normal."},
		{Text: strings.TrimSpace("The shaded band shows where one more such night is expected. A cross marks a night of a change for the worse: it stays until at least three nights in a row are as before, or until somebody pins the change. A green dot marks a change for the better, and a diamond a night that was suspect by itself. A dashed line marks where a series changed, as found in hindsight. " + chance(n))},
	}}
}

// Badge returns what shields.io reads from an endpoint (shields.io/badges/endpoint-badge): the verdict
// and its colour as JSON.
func Badge(n judged.Result) map[string]any {
	message, color := strings.ToLower(conclusion(n)), map[verdict.Outcome]string{verdict.Pass: "brightgreen", verdict.Fail: "red"}[n.Outcome]
	worse, suspect := 0, 0
	for _, t := range n.Trends {
		if t.Outcome == verdict.Fail {
			worse++
		}
		if t.Suspect {
			suspect++
		}
	}
	switch {
	case n.Outcome == verdict.Fail:
		message = fmt.Sprintf("%d of %d worse", worse, len(n.Trends))
	case n.Outcome == verdict.Pass && suspect > 0:
		message, color = fmt.Sprintf("%d suspect", suspect), "yellow"
	case n.Recorded:
		color = "lightgrey"
	}
	return map[string]any{"schemaVersion": 1, "label": "nightly", "message": message, "color": cmp.Or(color, "orange")}
}
