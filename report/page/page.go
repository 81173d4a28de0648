package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/report"
	clean "github.com/tokgate/tokgate/report/text"
)

// Page is everything that a report of one run or of several runs shows.
type Page struct {
	Title     string
	Simulated bool
	Brief     *Brief    // of one run; nil on a page with several
	Sections  []Section // those that readers need first at the top
	Tool      string    // version of tokgate that measured
}

// Heading names a run in one line: the tool, the plan, when it ran and for how long.
func Heading(d *report.Document) string {
	parts := []string{"tokgate " + d.Run.Tool, cmp.Or(d.Plan.Path, d.Plan.Name)}
	if date := d.Date("2006-01-02 15:04 MST"); date != "" {
		parts = append(parts, date)
	}
	parts = append(parts, d.Took())
	if d.Partial {
		parts = append(parts, "partial: some cases were left out")
	}
	return Line(strings.Join(parts, " · "))
}

// Foot names a run in one line below its results.
func Foot(d *report.Document) string {
	levels := 0
	for i := range d.Cases {
		if d.Cases[i].Alone() {
			levels++
		}
	}
	parts := []string{d.Run.Tool, d.Plan.Path, verdict.Count(levels, "levels"), clean.Clock(d.Run.End.Seconds())}
	if d.Spent.Sent > 0 {
		parts = append(parts, costWords(d))
	}
	return Line(strings.Join(parts, " · "))
}

// ClassOf returns the class of a run's outcome. A run that exits with an error is not green.
func ClassOf(d *report.Document) string {
	class, _ := meaning(d)
	return class
}

// The lists before and after hold the sections of a page in their order. The use cases come between
// the two lists. Each function gets the runs; a section without data is left out.
var (
	before = []func([]Run) Section{
		ofSeveral(ended), ofOne(problems), ofSeveral(highlights), ofSeveral(guidance), ofSeveral(differences), comparisons,
		ofOne(configurations), ofSeveral(requirements),
	}
	after = []func([]Run) Section{
		systemFigures, capacities, rates, bursts, arrivals, serverSection, caches, ofOne(hardware), power, speculative,
		distributions, timelines, levels, vllmBench, badAnswers, failures, strength, consistency,
		costOfLevels, environment, ofOne(source), definitions,
	}
)

// Of makes the page of one run or of several runs. Several runs have their verdicts next to each
// other and their curves in the same charts. It panics if there is no document.
func Of(docs ...*report.Document) Page {
	p := Page{Tool: Line(docs[0].Run.Tool)}
	for _, d := range docs {
		p.Simulated = p.Simulated || d.Run.Simulated
	}
	runs := named(docs)
	p.Title = pageTitle(runs)
	if len(runs) == 1 {
		p.Brief = brief(runs[0])
	}
	p.Sections = slices.Concat(build(runs, before...), useCases(runs), build(runs, after...))
	p.number()
	return p
}

// number gives each figure on the page a number as its ID, and folds long tables.
func (p *Page) number() {
	figures := 0
	if p.Brief != nil && p.Brief.Chart != nil {
		p.Brief.Chart.ID = number(&figures)
	}
	for i := range p.Sections {
		p.Sections[i].Blocks = shut(p.Sections[i].Blocks)
		numbered(p.Sections[i].Blocks, &figures)
	}
}

// numbered gives the figures their IDs, in the order of the page.
func numbered(blocks []Block, n *int) {
	for i := range blocks {
		b := &blocks[i]
		for j := range b.Figures {
			b.Figures[j].ID = number(n)
		}
		if b.Fold != nil {
			numbered(b.Fold.Blocks, n)
		}
	}
}

func number(n *int) string {
	*n++
	return fmt.Sprintf("figure-%d", *n)
}

// mostRows is the number of rows above which a table is folded, on the page and in print.
const mostRows = 20

func shut(blocks []Block) []Block {
	for i, b := range blocks {
		if b.Table != nil && len(b.Table.Rows) > mostRows {
			blocks[i] = fold(fmt.Sprintf("%s, %d rows", b.Table.Caption, len(b.Table.Rows)), b)
		}
	}
	return blocks
}
