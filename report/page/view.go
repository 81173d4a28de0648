// Package page makes what every report shows from the document of a run: sections of blocks, and
// the brief. It decides what is said and in which order. Packages terminal, markdown and html render
// it, and decide nothing.
//
// A section is a function of the runs. A new table of a section is seen in every format, because
// the formats render blocks.
package page

import (
	"html/template"
	"unicode"
	"unicode/utf8"
)

// Section is one part of the page.
type Section struct {
	ID, Title string
	Lead      string // one or two sentences for readers who are not specialists
	Blocks    []Block
}

// Block is one element of a section. Only one field is set, but Figures and Beside may be set
// together.
type Block struct {
	Figures []Figure // side by side if the page is wide enough
	Beside  []*Table // tables that stand side by side below the figures
	Pairs   bool     // the figures form pairs
	Table   *Table
	Tiles   []Tile
	Source  *Source
	Defs    []Definition
	Checks  []Check
	Fold    *Fold
	Text    string
	Sub     string // a heading
	List    []string
	Limit   *Result
	Log     *Log
}

// Fold holds blocks that stay hidden until the reader opens them.
type Fold struct {
	Title  string
	Blocks []Block
}

// Figure is a chart with an explanation, and with its data as a table.
type Figure struct {
	ID      string // unique on the page; links the explanation to the chart
	Title   string
	Words   string   // explains what the chart shows and how to read it
	Finding string   // what the data of this run show
	Terms   []string // metrics of this figure that the page must explain
	Legend  []Legend
	Chart   template.HTML
	Wide    bool
	Table   *Table
}

type Legend struct {
	Swatch template.HTML
	Name   string
}

// Table is a table with a caption. In each row, the first cell is the heading of the row.
type Table struct {
	Caption string
	Head    []string
	Rows    [][]Cell
	Left    int  // number of rows that were left out
	Words   bool // cells hold sentences, not numbers
}

// Class returns the CSS class of the table, which depends on how many columns it has. On narrow
// screens the class decides whether the cells of a row are stacked. In tables of sentences this
// happens only on phones.
func (t *Table) Class() string {
	switch n := len(t.Head); {
	case t.Words:
		return "words"
	case n > 8:
		return "many"
	case n > 4:
		return "some"
	}
	return "few"
}

// Label returns the column's title for each cell of a folded table. It returns "" if cells show no
// title.
func (t *Table) Label(column int) string {
	if t.Class() == "few" || column >= len(t.Head) {
		return ""
	}
	return t.Head[column]
}

type Cell struct {
	Text  string
	Class string
	Link  string // "#id"; "": none
}

// capital writes the first letter of a column head in upper case. It leaves symbols such as p95 as
// they are.
func capital(s string) string {
	if len(s) > 1 && s[0] == 'p' && s[1] >= '0' && s[1] <= '9' {
		return s
	}
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// text returns a table cell with any text. The function line makes the text safe.
func text(s string) Cell { return Cell{Text: line(s)} }

// Result shows the result of one capacity search in large type.
type Result struct {
	Class, Value, Unit, Kind, Sentence string
	Facts                              []string
}

// Tile is one important figure of the page, in large type.
type Tile struct {
	Label, Value, Note string
	Link               string
}

// Verdict is the top of the page. It has the outcome and the reasons for it.
type Verdict struct {
	ID, Name  string
	Class     string // CSS class: "pass", "fail", "unsure" or "error"
	Word      string
	Plan      string
	Headline  string
	Meaning   string     // the outcome in a sentence for readers who are not specialists
	Answers   []Capacity // of capacity searches
	Lines     []string   // of comparisons
	Problems  []Check
	More      []Check // problems that are folded
	Warnings  []Check
	Facts     [][2]string
	Simulated bool
	Partial   bool
}

// Capacity is the short result of a capacity search or of a comparison.
type Capacity struct{ Name, Value, Note string }

// Check is one verdict.
type Check struct {
	Class, Sign, Word string
	Name, Where       string
	Message           string
	Notes             []string
	Place, Link       string // "file:line", and the link to that line on the page
}

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
	Partial, Simulated bool
	System             *Table
	Tiles              []Tile
	Uses               []Use
	Answers            []Change
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

// Change is the result of a comparison for one workload, with the changes behind it.
type Change struct {
	Title, Answer, Class, Why string
	Changes                   []string
}
