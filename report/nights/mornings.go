package nights

import (
	"bufio"
	"fmt"
	"io"
	"slices"

	"github.com/tokgate/tokgate/assert"
	judged "github.com/tokgate/tokgate/assert/nights"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/text"
)

// Mornings writes what a team saw each morning after a run at night. It writes one line for each
// night that changed the verdict, and one for each pin (a change that the team accepted).
func Mornings(w io.Writer, h metric.History) error {
	out := bufio.NewWriter(w)
	line := func(day, said string) { fmt.Fprintln(out, text.Inert(text.Line(day+"  "+said))) }
	before := ""
	pins := 0
	for i, n := range h.Nights {
		for ; pins < len(h.Pins) && h.Pins[pins].At.Before(n.Started); pins++ {
			p := h.Pins[pins]
			line(p.At.UTC().Format("2006-01-02"), fmt.Sprintf("run %s was pinned: %s", p.Run, p.Why))
		}
		r := judged.Judge(metric.History{Nights: h.Nights[:i+1], Pins: h.Pins[:pins]}, judged.Options{Ignore: 0.01})
		for _, s := range suspects(r, Options{}) {
			line(n.Started.UTC().Format("2006-01-02"), s)
		}
		if word := conclusion(r); word != before {
			before = word
			why := fmt.Sprintf("night %d", i+1)
			if k := slices.IndexFunc(r.Trends, func(t judged.Trend) bool { return t.Outcome == assert.Fail }); k >= 0 {
				t := r.Trends[k]
				why += fmt.Sprintf(": %s at %s: %s", name(t), t.Level, t.Message)
			}
			line(n.Started.UTC().Format("2006-01-02"), text.Pad(word, 8, false)+"  "+why)
		}
	}
	fmt.Fprintln(out)
	return out.Flush()
}
