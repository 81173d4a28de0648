// Package page makes what every report shows from the document of a run: sections of blocks, and
// the brief. It decides what is said and in which order. Packages terminal, markdown and html render
// it, and decide nothing.
//
// A section is a function of the runs. A new table of a section is seen in every format, because
// the formats render blocks.
package page

import (
	"html/template"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/tokgate/tokgate/assert/verdict"
)

// Section is one part of a report.
type Section struct {
	ID, Title string
	Lead      string // one or two sentences for readers who are not specialists; only on the page
	Blocks    []Block
}

// Block is one element of a section. Only one field is set, but Figures and Beside may be set
// together.
type Block struct {
	Heading     string
	Text        string // a paragraph
	List        []string
	Strong      bool // the text or the list is an answer
	Table       *Table
	Checks      []Check
	Left        string // checks that were left out, such as "3 passed"
	Fold        *Fold
	Figures     []Figure // side by side if the page is wide enough
	Beside      []*Table // tables that stand side by side below the figures
	Pairs       bool     // the figures form pairs
	Result      *Result
	Log         *Log
	Source      *Source
	Definitions []Definition
}

// Fold holds blocks that stay hidden until the reader opens them. A terminal cannot open them: it
// shows them if Open is set, and leaves them out otherwise.
type Fold struct {
	Title  string
	Blocks []Block
	Open   bool
}

func fold(title string, blocks ...Block) Block {
	return Block{Fold: &Fold{Title: title, Blocks: blocks}}
}

// Empty reports whether a block shows nothing. The blocks in a fold are not empty.
func (b Block) Empty() bool {
	return b.Heading+b.Text == "" && len(b.List)+len(b.Checks)+len(b.Figures)+len(b.Beside)+len(b.Definitions) == 0 &&
		(b.Table == nil || len(b.Table.Rows) == 0) &&
		(b.Fold == nil || len(b.Fold.Blocks) == 0) && b.Result == nil && b.Log == nil && b.Source == nil
}

// filled returns the section without its empty blocks.
func (s Section) filled() Section {
	s.Blocks = filled(s.Blocks)
	return s
}

func filled(blocks []Block) []Block {
	for _, b := range blocks {
		if b.Fold != nil {
			b.Fold.Blocks = filled(b.Fold.Blocks)
		}
	}
	return slices.DeleteFunc(blocks, Block.Empty)
}

// Figure is a chart with an explanation, and with its data as a table. Formats without pictures show
// the table.
type Figure struct {
	ID      string // unique on the page; links the explanation to the chart
	Title   string
	Words   string   // explains what the chart shows and how to read it
	Finding string   // what the data of this run show
	Terms   []string // metrics of this figure that the page must explain
	Legend  []Legend
	Chart   template.HTML
	Wide    bool
	Aside   bool // adds to the figure before it; formats without pictures leave it out
	Table   *Table
}

// Legend explains one line or mark of a chart.
type Legend struct {
	Swatch template.HTML
	Name   string
}

// Table is a table with a caption. In each row, the first cell is the heading of the row.
type Table struct {
	Caption string
	Columns []Column
	Rows    [][]Cell
	Left    string // what was left out, such as "3 passed"
	Words   bool   // cells hold sentences, not numbers
}

// folded returns a block in which the table stays hidden.
func (t *Table) folded() Block { return fold(t.Caption, Block{Table: t}) }

// cut keeps the first n rows, and says how many were left out.
func (t *Table) cut(n int) {
	if left := len(t.Rows) - n; left > 0 {
		t.Left, t.Rows = verdict.Count(left, "more rows"), t.Rows[:n]
	}
}

// row returns the row with the given heading, which it adds with empty cells if the table lacks it.
func (t *Table) row(heading, empty string) []Cell {
	i := slices.IndexFunc(t.Rows, func(r []Cell) bool { return r[0].Text == heading })
	if i < 0 {
		i = len(t.Rows)
		t.Rows = append(t.Rows, append([]Cell{{Text: heading}}, slices.Repeat([]Cell{text(empty)}, len(t.Columns)-1)...))
	}
	return t.Rows[i]
}

// Column is a column of a table. If the table is too wide, columns with the highest Rank go first. A
// column of Rank 0 always stays.
type Column struct {
	Head string
	Rank int
}

// Heads returns columns that always stay.
func Heads(names ...string) []Column {
	out := make([]Column, len(names))
	for i, name := range names {
		out[i].Head = name
	}
	return out
}

// Cell is one cell of a table. Class is the outcome that the cell shows, and Sign the character for
// it; both are "" in a cell without outcome. Link is where the page links the text to; "" for
// nowhere.
type Cell struct{ Text, Class, Sign, Link string }

// The classes of cells, rows and checks: how they ended. They are CSS classes too.
const (
	Missing = "error" // not measured
	Failed  = "fail"
	Unsure  = "unsure" // not decided, or only a warning
	Worse   = "worse"  // and the plan allows it
	Passed  = "pass"
)

// Capital writes the first letter of a column head in upper case. It leaves symbols such as p95 as
// they are.
func Capital(s string) string {
	if len(s) > 1 && s[0] == 'p' && s[1] >= '0' && s[1] <= '9' {
		return s
	}
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// text returns a table cell with any text. The function Line makes the text safe.
func text(s string) Cell { return Cell{Text: Line(s)} }

// Row returns a row of cells with any texts.
func Row(texts ...string) []Cell {
	out := make([]Cell, len(texts))
	for i, s := range texts {
		out[i] = text(s)
	}
	return out
}

// Result is the answer of one capacity search, in large type on the page.
type Result struct {
	Class, Value, Unit, Kind, Sentence string
	Line                               string // the answer in one line
	Facts                              []string
}

// Tile is one important figure of the page, in large type.
type Tile struct{ Label, Value, Note string }

// Check is one verdict.
type Check struct {
	Status      verdict.Status
	Kind        verdict.Kind // of the verdict: "server", "load", "sla", …
	Class       string
	Sign, Word  string
	Name        string // as in the plan: "sla.ttft.p95 at 8"
	Title       string // for readers: "TTFT p95 at 8"
	Where       string // the workload and the server, or the server
	Message     string
	Short       []string // the message in fewer and fewer words; nil if there are none
	Notes       []string
	Cautions    []string // the notes that matter even if the check passed
	Change      bool     // about one change of a comparison
	Skipped     bool     // not checked, on request or for lack of time
	Quoted      bool     // the first note quotes a bad answer
	Place, Link string   // "file:line", and the link to that line on the page
	Source      string   // the threshold as the plan writes it; "" if there is none
}

// Log is the end of a server's log.
type Log struct{ Title, Text string }

// Definition is one term.
type Definition struct{ ID, Term, Unit, Text, NoValue string }

// Source shows the lines of a plan's file. Next to each line are the verdicts on it.
type Source struct {
	File  string
	Lines []SourceLine
	Left  int
}

type SourceLine struct {
	ID     string
	Number int
	Tokens []Token
	Checks []Check
}

// Token is a piece of a line with its CSS class.
type Token struct{ Class, Text string }

// Brief is the data of the brief: the first page, which people forward.
type Brief struct {
	Title, Subtitle    string
	Organization, Date string
	Logo               template.URL // "": none
	Class, Word        string
	Sentence           string // the verdict
	Choice             string // which server to take; "" if nothing was compared
	Partial, Simulated bool
	System             *Table
	Tiles              []Tile
	Uses               []Use
	Answers            []Decided
	Left               string // use cases and answers that do not fit the page
	Chart              *Figure
	How                []string // how it was measured
	Notes              []string // the plan's
}

// Use is a use case with the result of its capacity search.
type Use struct {
	Title, About string
	Link         string
	Class        string
	Value, Unit  string
	Binds        string
	Bar          template.HTML // "": nothing to draw
}

// Decided is the result of a comparison for one workload, with the changes behind it.
type Decided struct {
	Title, Answer, Class, Why string
	Changes                   []string
}

// Filled returns the table without the columns, but for the first, in which no row has a value.
func (t *Table) Filled() *Table {
	out := *t
	out.Columns, out.Rows = nil, make([][]Cell, len(t.Rows))
	for j, c := range t.Columns {
		if j > 0 && !slices.ContainsFunc(t.Rows, func(r []Cell) bool { return j < len(r) && r[j].Text != "" && r[j].Text != "–" }) {
			continue
		}
		out.Columns = append(out.Columns, c)
		for i, r := range t.Rows {
			if j < len(r) {
				out.Rows[i] = append(out.Rows[i], r[j])
			}
		}
	}
	return &out
}
