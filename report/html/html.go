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
		distributions, timelines, levels, failures, strength, consistency, environment, source, definitions,
	} {
		if s, ok := build(runs); ok {
			v.Sections = append(v.Sections, s)
		}
	}
	return v
}
