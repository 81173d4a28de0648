package html

import (
	"html/template"
	"unicode"
	"unicode/utf8"
)

// view holds everything that the template shows.
type view struct {
	Policy    string
	Style     template.CSS
	Title     string
	Simulated bool
	Brief     *briefView    // of one run
	Verdicts  []verdictView // one for each run if there are several
	Sections  []section
	Foot      string
}

// section is one part of the page.
type section struct {
	ID, Title string
	Lead      string // one or two sentences for readers who are not specialists
	Blocks    []block
}

// block is one piece of a section. Only one field is set, except that Figures and Beside may be set
// together.
type block struct {
	Figures []figure // side by side if there is room
	Beside  []*table // tables beside each other, after the figures
	Pairs   bool     // the figures form pairs
	Table   *table
	Tiles   []tile
	Source  *sourceView
	Defs    []definition
	Checks  []checkView
	Fold    *fold
	Text    string
	Sub     string // a heading
	List    []string
	Limit   *limitView
	Log     *logView
}

// fold holds blocks that are hidden until the reader opens them.
type fold struct {
	Title  string
	Blocks []block
}

// figure is a chart with an explanation, and with its data as a table.
type figure struct {
	ID      string // unique on the page; it links the explanation to the chart
	Title   string
	Words   string   // what the chart shows and how to read it
	Finding string   // what the data of this run show
	Terms   []string // metrics whose definitions the figure needs
	Legend  []legend
	Chart   template.HTML
	Wide    bool
	Table   *table
}

type legend struct {
	Swatch template.HTML
	Name   string
}

// table is a table with a caption. The first cell of a row is its head.
type table struct {
	Caption string
	Head    []string
	Rows    [][]cell
	Left    int  // number of rows that were left out
	Words   bool // cells hold sentences, not numbers
}

// Class returns the CSS class for how a table looks on a narrow screen. In tables of sentences the
// cells are placed below each other on a phone. Tables with many columns do this on wider screens
// too.
func (t *table) Class() string {
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

// Label returns the name that a cell of the column shows when the table is folded; "" if it shows
// none.
func (t *table) Label(column int) string {
	if t.Class() == "few" || column >= len(t.Head) {
		return ""
	}
	return t.Head[column]
}

type cell struct {
	Text  string
	Class string
	Link  string // "#id"; "": none
}

// capital writes the first letter of a column head in upper case. Symbols such as p95 are kept.
func capital(s string) string {
	if len(s) > 1 && s[0] == 'p' && s[1] >= '0' && s[1] <= '9' {
		return s
	}
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// text returns a table cell with a text. Any text may be passed: line makes it safe.
func text(s string) cell { return cell{Text: line(s)} }

// limitView shows the result of one capacity search in large type.
type limitView struct {
	Class, Value, Unit, Kind, Sentence string
	Facts                              []string
}

// tile is one headline figure.
type tile struct {
	Label, Value, Note string
	Link               string
}

// verdictView is the top of the page: the outcome and what led to it.
type verdictView struct {
	ID, Name  string
	Class     string // "pass", "fail", "unsure" or "error"
	Word      string
	Plan      string
	Headline  string
	Meaning   string   // the outcome in a sentence for readers who are not specialists
	Answers   []answer // of capacity searches
	Lines     []string // of comparisons
	Problems  []checkView
	More      []checkView // problems that are folded
	Warnings  []checkView
	Facts     [][2]string
	Simulated bool
	Partial   bool
}

// answer is a capacity in a few words, or the answer of a comparison.
type answer struct{ Name, Value, Note string }

// checkView is one verdict.
type checkView struct {
	Class, Sign, Word string
	Name, Where       string
	Message           string
	Notes             []string
	Place, Link       string // file:line, and the anchor of the line on the page
}

type logView struct{ Title, Text string }

// definition is one term.
type definition struct{ ID, Term, Unit, Text, NoValue string }

// sourceView shows the lines of a plan's file, and next to each line its verdicts.
type sourceView struct {
	File  string
	Lines []sourceLine
	Left  int
}

type sourceLine struct {
	ID     string
	Number int
	Tokens []token
	Checks []checkView
}

// token is a piece of a line with its CSS class.
type token struct{ Class, Text string }

// briefView is page one, which people forward.
type briefView struct {
	Title, Subtitle    string
	Organization, Date string
	Logo               template.URL // "": none
	Class, Word        string
	Sentence           string // the verdict
	Partial, Simulated bool
	System             *table
	Tiles              []tile
	Uses               []useView
	Answers            []answerView
	Chart              *figure
	How                []string // how it was measured
	Notes              []string // the plan's
}

// useView is a use case with its limit.
type useView struct {
	Title, About string
	Link         string
	Class        string
	Value, Unit  string
	Binds        string
	Bar          template.HTML // "": nothing to draw
}

// answerView is the result of a comparison for one workload, with the changes that
// decide it.
type answerView struct {
	Title, Answer, Class, Why string
	Changes                   []string
}
