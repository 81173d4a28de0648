package inventory

import (
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// Of the lengths 1, 2, 3 and 4, the text shows mean, p50 and p95. Control characters and HTML in
// the texts are escaped.
func TestInventory(t *testing.T) {
	v := &Inventory{
		Title: "a\x1b[31m.jsonl <b>", Facts: []Fact{{"time", "1m, 2 requests a second"}, {"repeated", "40%"}},
		Rates: []float64{2, 0, 4}, Step: 30, Lengths: []Lengths{{"prompt, tokens", []float64{4, 1, 3, 2}}}, Notes: []string{"times are rounded"},
	}
	var b strings.Builder
	must.Do(t, v.Text(&b))
	want := `a.jsonl <b>
  time      1m, 2 requests a second
  repeated  40%

Lengths
                  Mean  p5  p50  p95  p99  Max
  prompt, tokens   2.5   1    2    4    4    4

Requests a second over time
  From  Requests a second
  0:00                  2  ████████████████████
  0:30                  0
  1:00                  4  ████████████████████████████████████████

Notes
  times are rounded
`
	must.Same(t, "", want, b.String())
	b.Reset()
	must.Do(t, v.HTML(&b))
	page := b.String()
	if strings.Count(page, "<svg") != 2 || strings.Contains(page, "<b>") || strings.Contains(page, "\x1b") || !strings.Contains(page, "times are rounded") {
		t.Error(page)
	}
}

// The inventory of a file without times and lengths has no chart.
func TestEmpty(t *testing.T) {
	var b strings.Builder
	if err := (&Inventory{Title: "a"}).HTML(&b); err != nil || strings.Contains(b.String(), "<svg") {
		t.Error(err, b.String())
	}
}
