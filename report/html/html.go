// Package html renders recorded runs as one self-contained page: charts are inline SVG, and there
// are no scripts and nothing to load. The page follows the reader's light or dark scheme, fits a
// phone, and prints.
//
// The page consists of sections, with those that readers need first at the top. Each section is
// built in a file here from the report's Document alone. Foreign text is escaped by html/template
// and, in charts, by package chart.
package html

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"strings"

	"github.com/tokgate/tokgate/report"
)

//go:embed page.gohtml
var pageSource string

//go:embed style.css
var styleSource string

var page = template.Must(template.New("page").Funcs(template.FuncMap{"meaning": func(word string) string { return glossary[word] }, "gloss": gloss}).Parse(pageSource))

// glossary explains the heads of tables. The explanation shows on hover.
var glossary = map[string]string{
	"Level":              "One load of the plan: a number of requests kept in flight, of requests sent together in a burst, or of users; a rate in requests per second; or a replayed trace",
	"Load":               "The number of requests kept in flight, of requests sent together in a burst, or of users; the rate in requests per second; or the speed of the replayed trace",
	"Leg":                "One server's half of a round. Control and candidate take turns, one leg each",
	"Rounds":             "Each round sends the load again with new prompts, and counts as one observation",
	"Effective":          "How many independent requests the measured requests are worth. Requests that are sent together tend to be slow together, so they are worth fewer",
	"Requests in flight": "This number of requests is kept in flight: when one ends, its slot sends the next one",
	"Control":            "The server that the candidate is compared with. The two servers take turns, one leg each, in every round",
	"Candidate":          "The server under test. Candidate and control take turns, one leg each, in every round",
	"Outcome":            "pass and fail hold at the plan's confidence, unless the plan decides by estimates. inconclusive means that the measurements decide neither",
}

// terms are the words that the page also explains inside sentences. The values are their names in
// the glossary.
var terms = map[string]string{"level": "Level", "round": "Rounds", "leg": "Leg", "effective": "Effective"}

var termWord = regexp.MustCompile(`\b(?i:(level|round|leg)s?|(effective))\b`)

// gloss returns a sentence in which the first occurrence of each glossary term carries its
// explanation.
func gloss(sentence string) template.HTML {
	var out strings.Builder
	last, said := 0, map[string]bool{}
	for _, at := range termWord.FindAllStringSubmatchIndex(sentence, -1) {
		stem := strings.ToLower(sentence[max(at[2], at[4]):max(at[3], at[5])])
		if said[stem] {
			continue
		}
		said[stem] = true
		out.WriteString(template.HTMLEscapeString(sentence[last:at[0]]))
		fmt.Fprintf(&out, `<abbr title="%s">%s</abbr>`, template.HTMLEscapeString(glossary[terms[stem]]), template.HTMLEscapeString(sentence[at[0]:at[1]]))
		last = at[1]
	}
	out.WriteString(template.HTMLEscapeString(sentence[last:]))
	return template.HTML(out.String())
}

// policy is the page's own Content Security Policy.
var policy = func() string {
	sum := sha256.Sum256([]byte(styleSource))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}()

// Write renders a page with one run or several runs. Several runs have their verdicts next to each
// other and their curves in the same charts. Write panics if there is no document.
func Write(w io.Writer, docs ...*report.Document) error { return write(w, newView(docs)) }

// Brief renders only the first page of a run: one page of A4 in print.
func Brief(w io.Writer, d *report.Document) error {
	v := newView([]*report.Document{d})
	v.Sections = nil
	return write(w, v)
}

func write(w io.Writer, v view) error {
	out := bufio.NewWriter(w)
	if err := page.Execute(out, v); err != nil {
		return err
	}
	return out.Flush()
}

// The lists before and after hold the sections of the page in their order. The use cases come
// between the two lists. Each function gets the runs, and returns false if its section has no data.
var (
	before = []func([]run) (section, bool){problems, highlights, guidance, differences, comparisons, configurations, requirements}
	after  = []func([]run) (section, bool){
		systemFigures, capacities, rates, bursts, arrivals, serverSection, caches, hardware, power, speculative, distributions, timelines, levels, badAnswers, failures, strength, consistency,
		environment, source, definitions,
	}
)

func newView(docs []*report.Document) view {
	v := view{Policy: policy, Style: template.CSS(styleSource), Foot: line(docs[0].Tool)}
	for _, d := range docs {
		v.Simulated = v.Simulated || d.Simulated
	}
	runs := named(docs)
	v.Title = pageTitle(runs)
	if len(runs) == 1 {
		v.Brief = brief(runs[0])
		if v.Brief.Logo != "" {
			v.Policy += "; img-src data:"
		}
	} else {
		for _, r := range runs {
			v.Verdicts = append(v.Verdicts, verdict(r))
		}
	}
	build := func(list []func([]run) (section, bool)) {
		for _, of := range list {
			if s, ok := of(runs); ok {
				v.Sections = append(v.Sections, s)
			}
		}
	}
	build(before)
	v.Sections = append(v.Sections, useCases(runs)...)
	build(after)
	v.number()
	return v
}

// number gives each figure on the page a number as its ID, and folds long tables.
func (v *view) number() {
	figures := 0
	if v.Brief != nil && v.Brief.Chart != nil {
		v.Brief.Chart.ID = number(&figures)
	}
	for i := range v.Sections {
		v.Sections[i].Blocks = shut(v.Sections[i].Blocks)
		numbered(v.Sections[i].Blocks, &figures)
	}
}

// numbered gives the figures their IDs, in the order of the page.
func numbered(blocks []block, n *int) {
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

func shut(blocks []block) []block {
	for i, b := range blocks {
		if b.Table != nil && len(b.Table.Rows) > mostRows {
			blocks[i] = block{Fold: &fold{fmt.Sprintf("%s, %d rows", b.Table.Caption, len(b.Table.Rows)), []block{b}}}
		}
	}
	return blocks
}
