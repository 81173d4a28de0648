package nights

import (
	"bufio"
	"fmt"
	"io"
	"slices"

	judged "github.com/tokgate/tokgate/assert/nights"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/page"
	"github.com/tokgate/tokgate/report/terminal"
	"github.com/tokgate/tokgate/report/text"
)

// Mornings writes what a team saw each morning after a run at night. It writes one line for each
// night that changed the verdict, and one for each pin (a change that the team accepted).
func Mornings(w io.Writer, h metric.History, mornings []judged.Morning) error {
	out := bufio.NewWriter(w)
	line := func(n metric.Night, said string) {
		fmt.Fprintln(out, text.Inert(text.Line(n.Started.UTC().Format("2006-01-02")+"  "+said)))
	}
	before := ""
	for i, m := range mornings {
		n := h.Nights[i]
		if p := m.Pinned; p != nil {
			line(metric.Night{Started: p.At}, fmt.Sprintf("run %s was pinned: %s", p.Run, p.Why))
		}
		if m.Told == nil {
			continue
		}
		for _, s := range suspects(*m.Told, Options{}) {
			line(n, s)
		}
		if word := conclusion(*m.Told); word != before {
			before = word
			why := fmt.Sprintf("night %d", i+1)
			if k := slices.IndexFunc(m.Told.Trends, func(t judged.Trend) bool { return t.Outcome == verdict.Fail }); k >= 0 {
				t := m.Told.Trends[k]
				why += fmt.Sprintf(": %s: %s", subject(t), t.Message)
			}
			line(n, text.Pad(word, 8, false)+"  "+why)
		}
	}
	fmt.Fprintln(out)
	return out.Flush()
}

// Replay writes the mornings of a history, and what they say of the rule on these series: how many
// were red, the noise of each series, and the smallest step that it would find within three nights.
// There is at least one morning.
func Replay(w io.Writer, h metric.History, mornings []judged.Morning, o Options) error {
	last := *mornings[len(mornings)-1].Told
	if err := Mornings(w, h, mornings); err != nil {
		return err
	}
	known, red, stretches := 0, 0, 0
	for i, m := range mornings {
		if m.Judged {
			known++
		}
		if m.Red {
			red++
			if i == 0 || !mornings[i-1].Red {
				stretches++
			}
		}
	}
	said := fmt.Sprintf("%s of %s. ", verdict.Count(len(h.Nights), "nights"), verdict.Count(len(last.Trends), "series"))
	if known == 0 {
		said += "None could be judged: there are too few nights."
	} else {
		said += fmt.Sprintf("Of %d judged mornings %d were red (%s), in %s.", known, red, metric.Format(metric.Ratio, float64(red)/float64(known)), verdict.Count(stretches, "stretches"))
		if red > known/4 && !slices.ContainsFunc(mornings, func(m judged.Morning) bool { return m.Pinned != nil }) {
			said += " Nobody pinned a change, so every change stayed red: --pin-after 4 accepts each on its fourth red morning."
		}
	}
	t := &page.Table{Words: true, Columns: []page.Column{{Head: "Series"}, {Head: "Noise"}, {Head: "Found within 3 nights"}, {Head: "Nights", Rank: 1}}}
	for _, x := range last.Trends {
		noise, soon := "not judged", ""
		if b := x.Tonight; b != nil {
			noise, soon = "±"+metric.Format(metric.Ratio, b.Noise), "from "+step(x)
		}
		t.Rows = append(t.Rows, page.Row(subject(x), noise, soon, spark(x)))
	}
	blocks := []page.Block{{Text: said}, {Table: t}, {Text: chance(last)}}
	return terminal.Sections(w, []page.Section{{Blocks: slices.DeleteFunc(blocks, page.Block.Empty)}}, o.Width, o.Color)
}

func step(t judged.Trend) string {
	from, to := 1.0, 1+t.Tonight.Soon
	if t.Better == metric.HigherIsBetter {
		from, to = to, from
	}
	return signed(t.Unit, from, to)
}
