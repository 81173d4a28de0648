// Package html renders recorded runs as one self-contained page: charts are inline SVG, and there
// are no scripts and nothing to load. The page follows the reader's light or dark scheme, fits a
// phone, and prints.
//
// What the page shows is made by package page. Foreign text is escaped by html/template and, in
// charts, by package chart.
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
	"slices"
	"strings"

	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/page"
)

//go:embed page.gohtml
var pageSource string

//go:embed style.css
var styleSource string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"meaning": func(word string) string { return glossary[word] }, "gloss": gloss, "class": class, "cells": cells, "turned": turned,
}).Parse(pageSource))

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
func Write(w io.Writer, docs ...*report.Document) error { return write(w, page.Of(docs...)) }

// Brief renders only the first page of a run: one page of A4 in print.
func Brief(w io.Writer, d *report.Document) error {
	p := page.Of(d)
	p.Sections = nil
	return write(w, p)
}

// Sections renders sections alone, as a page of their own.
func Sections(w io.Writer, title string, sections []page.Section) error {
	return write(w, page.Page{Title: title, Sections: sections})
}

// view is a page with what only HTML needs.
type view struct {
	page.Page
	Policy string
	Style  template.CSS
}

func write(w io.Writer, p page.Page) error {
	v := view{p, policy, template.CSS(styleSource)}
	if p.Brief != nil && p.Brief.Logo != "" {
		v.Policy += "; img-src data:"
	}
	out := bufio.NewWriter(w)
	if err := pageTemplate.Execute(out, v); err != nil {
		return err
	}
	return out.Flush()
}

// class returns the CSS class of a table, which depends on how many columns it has. On narrow
// screens the class decides whether the cells of a row are stacked. In tables of sentences this
// happens only on phones.
func class(t *page.Table) string {
	switch n := len(t.Columns); {
	case t.Words:
		return "words"
	case n > 8:
		return "many"
	case n > 4:
		return "some"
	}
	return "few"
}

// cell is a cell of page with the title of its column, for tables whose rows are stacked; "" if cells show
// none. It is flat, because a template finds the fields of a struct in a struct slowly.
type cell struct{ Text, Class, Sign, Link, Label string }

func cells(t *page.Table, row []page.Cell) []cell {
	out, few := make([]cell, len(row)), class(t) == "few"
	for i := range row {
		out[i] = cell{row[i].Text, row[i].Class, row[i].Sign, row[i].Link, ""}
		if i > 0 && !few && i < len(t.Columns) {
			out[i].Label = t.Columns[i].Head
		}
	}
	return out
}

// The largest number of columns of a table of numbers, and of rows that become columns. Nobody reads
// a wider table.
const (
	mostColumns = 10
	mostTurned  = 10
)

// turned returns a table as it is shown. A table of numbers with many columns has its rows as
// columns instead, in several tables if there are many rows.
func turned(t *page.Table) []*page.Table {
	if t.Words || len(t.Columns) <= mostColumns {
		return []*page.Table{t}
	}
	var out []*page.Table
	for part := range slices.Chunk(t.Rows, mostTurned) {
		x := &page.Table{Caption: t.Caption, Columns: []page.Column{t.Columns[0]}, Left: t.Left}
		for _, row := range part {
			x.Columns = append(x.Columns, page.Column{Head: page.Capital(row[0].Text)})
		}
		for i, column := range t.Columns[1:] {
			cells := []page.Cell{{Text: column.Head}}
			for _, row := range part {
				cells = append(cells, row[i+1])
			}
			x.Rows = append(x.Rows, cells)
		}
		out = append(out, x)
	}
	return out
}
