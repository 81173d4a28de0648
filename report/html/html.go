// Package html renders recorded runs as one self-contained page: charts as
// inline SVG, no script, nothing that is loaded. It holds under a Content
// Security Policy of its own that allows nothing but its style sheet by hash,
// follows the reader's light or dark scheme, fits a phone, and prints.
//
// The page is made of sections, in order of how soon a reader needs them; a
// section without data is absent. Each is built in a file here from the
// report's Document alone. Foreign text is escaped by html/template and, in
// charts, by package chart.
package html

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"unicode"
	"unicode/utf8"

	"github.com/tokgate/tokgate/report"
)

//go:embed page.gohtml
var pageSource string

//go:embed style.css
var styleSource string

var page = template.Must(template.New("page").Parse(pageSource))

// policy is the page's own Content Security Policy.
var policy = func() string {
	sum := sha256.Sum256([]byte(styleSource))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}()

// view is what the template shows.
type view struct {
	Policy    string
	Style     template.CSS
	Title     string
	Simulated bool
	Verdicts  []verdictView // one for each run
	Sections  []section
	Foot      string
}

// section is one part of the page.
type section struct {
	ID, Title string
	Lead      string // one or two sentences for a reader who is no specialist
	Blocks    []block
}

// block is one piece of a section: exactly one field is set.
type block struct {
	Figures []figure // side by side where there is room
	Table   *table
	Tiles   []tile
	Source  *sourceView
	Defs    []definition
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

// Write renders one run, or several together: their verdicts side by side,
// their curves over each other. It panics without a document.
func Write(w io.Writer, docs ...*report.Document) error {
	out := bufio.NewWriter(w)
	if err := page.Execute(out, newView(docs)); err != nil {
		return err
	}
	return out.Flush()
}

func newView(docs []*report.Document) view {
	v := view{Policy: policy, Style: template.CSS(styleSource), Foot: line(docs[0].Tool)}
	for _, d := range docs {
		v.Simulated = v.Simulated || d.Simulated
	}
	runs := named(docs)
	v.Title = title(runs)
	for _, r := range runs {
		v.Verdicts = append(v.Verdicts, verdict(r, len(runs) > 1))
	}
	for _, build := range []func([]run) (section, bool){
		highlights, guidance, differences, comparisons, requirements,
		throughput, speed, ttft, capacities, gaps, prefill, queue, scaling, bursts, inside, power, speculative,
		distributions, timelines, levels, failures, consistency, environment, source, definitions,
	} {
		if s, ok := build(runs); ok {
			v.Sections = append(v.Sections, s)
		}
	}
	return v
}
