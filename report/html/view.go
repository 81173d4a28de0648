package html

import (
	"html/template"
	"unicode"
	"unicode/utf8"
)

// view is what the template shows.
type view struct {
	Policy    string
	Style     template.CSS
	Title     string
	Simulated bool
	Brief     *briefView    // of one run
	Verdicts  []verdictView // one for each run of several
	Sections  []section
	Foot      string
}

// section is one part of the page.
type section struct {
	ID, Title string
	Lead      string // one or two sentences for a reader who is no specialist
	Blocks    []block
}

// block is one piece of a section: one field is set; Figures may have Beside.
type block struct {
	Figures []figure // side by side where there is room
	Beside  []*table // tables that stand so, after the figures
	Pairs   bool     // of the figures each two belong together
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

// fold is blocks that show when a reader asks for them.
type fold struct {
	Title  string
	Blocks []block
}

// figure is a chart with the words that explain it and its data as a table.
type figure struct {
	ID      string // unique on the page: it ties the words to the chart
	Title   string
	Words   string   // what it shows and how to read it
	Finding string   // what this run's data say
	Terms   []string // metrics whose definitions it rests on
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
	Left    int  // rows that are not shown
	Words   bool // cells hold sentences, not numbers
}

// Class says how the table folds where there is little room: tables of words below
// each other on a phone, those of many columns sooner.
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

// Label names the cell of a column where it stands by itself; "" where it never does.
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

// capital begins a head as all begin; p95 and its like are symbols.
func capital(s string) string {
	if len(s) > 1 && s[0] == 'p' && s[1] >= '0' && s[1] <= '9' {
		return s
	}
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// text is a cell that is a text, whatever it holds.
func text(s string) cell { return cell{Text: line(s)} }

// limitView is the answer of one capacity search in large.
type limitView struct {
	Class, Value, Unit, Kind, Sentence string
	Facts                              []string
}

// tile is one headline figure.
type tile struct {
	Label, Value, Note string
	Link               string
}

// verdictView is the top of the page: the outcome, and all that led to it.
type verdictView struct {
	ID, Name  string
	Class     string // "pass", "fail", "unsure" or "error"
	Word      string
	Plan      string
	Headline  string
	Meaning   string   // the outcome in a sentence for a reader who is no specialist
	Answers   []answer // of capacity searches
	Lines     []string // of comparisons
	Problems  []checkView
	More      []checkView // problems beyond the first screen
	Warnings  []checkView
	Facts     [][2]string
	Simulated bool
	Partial   bool
}

// answer is a capacity in a few words.
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

// sourceView is the plan with what came of each line beside it.
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

// token is a piece of a line with its class.
type token struct{ Class, Text string }

// briefView is page one: what gets forwarded.
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

// answerView is what a comparison says of one workload, with what carries it.
type answerView struct {
	Title, Answer, Class, Why string
	Changes                   []string
}
