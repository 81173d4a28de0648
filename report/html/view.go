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
	Verdicts  []verdictView // one verdict for each run
	Sections  []section
	Foot      string
}

// section is one part of the page.
type section struct {
	ID, Title string
	Lead      string // one or two sentences for readers who are not specialists
	Blocks    []block
}

// block is one element of a section. Only one field is set, but Figures and Beside may be set
// together.
type block struct {
	Figures []figure // side by side if the page is wide enough
	Beside  []*table // tables that stand side by side below the figures
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

// fold holds blocks that stay hidden until the reader opens them.
type fold struct {
	Title  string
	Blocks []block
}

// figure is a chart with an explanation, and with its data as a table.
type figure struct {
	ID      string // unique on the page; links the explanation to the chart
	Title   string
	Words   string   // explains what the chart shows and how to read it
	Finding string   // what the data of this run show
	Terms   []string // metrics of this figure that the page must explain
	Legend  []legend
	Chart   template.HTML
	Wide    bool
	Table   *table
}

type legend struct {
	Swatch template.HTML
	Name   string
}

// table is a table with a caption. In each row, the first cell is the heading of the row.
type table struct {
	Caption string
	Head    []string
	Rows    [][]cell
	Left    int  // number of rows that were left out
	Words   bool // cells hold sentences, not numbers
}

// Class returns the CSS class of the table, which depends on how many columns it has. On narrow
// screens the class decides whether the cells of a row are stacked. In tables of sentences this
// happens only on phones.
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

// Label returns the column's title for each cell of a folded table. It returns "" if cells show no
// title.
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
func text(s string) cell { return cell{Text: line(s)} }

// limitView shows the result of one capacity search in large type.
type limitView struct {
	Class, Value, Unit, Kind, Sentence string
	Facts                              []string
}

// tile is one important figure of the page, in large type.
type tile struct {
	Label, Value, Note string
	Link               string
}

// verdictView is the top of the page. It has the outcome and the reasons for it.
type verdictView struct {
	ID, Name  string
	Class     string // CSS class: "pass", "fail", "unsure" or "error"
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

// answer is the short result of a capacity search or of a comparison.
type answer struct{ Name, Value, Note string }

// checkView is one verdict.
type checkView struct {
	Class, Sign, Word string
	Name, Where       string
	Message           string
	Notes             []string
	Place, Link       string // "file:line", and the link to that line on the page
}

type logView struct{ Title, Text string }

// definition is one term.
type definition struct{ ID, Term, Unit, Text, NoValue string }

// sourceView shows the lines of a plan's file. Next to each line are the verdicts on it.
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

// briefView is the data of the brief: the first page, which people forward.
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

// useView is a use case with the result of its capacity search.
type useView struct {
	Title, About string
	Link         string
	Class        string
	Value, Unit  string
	Binds        string
	Bar          template.HTML // "": nothing to draw
}

// answerView is the result of a comparison for one workload, with the changes behind it.
type answerView struct {
	Title, Answer, Class, Why string
	Changes                   []string
}
