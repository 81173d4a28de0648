package bisection

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/bisect"
	"github.com/tokgate/tokgate/internal/must"
)

// result is a bisection of five images in which the fourth is 10 % worse.
func result(state bisect.State) Result {
	state.Chances = []float64{0, 0, 0, 0.999, 0.001}
	state.Change, state.Low, state.High, state.Noise = math.Log(1.1), math.Log(1.08), math.Log(1.12), 0.02
	return Result{Question: Question{Variable: "image", Values: []string{"a", "b", "c", "<d>", "e"}, Server: "vllm", Workload: "chat", Level: "8",
		Metric: "ttft p95", Worse: 1, Least: 0.03}, State: state, Folder: "results/x",
		Legs: []Leg{{Value: 0, Figure: 0.1, Start: 3}, {Value: 4, Figure: 0.11, Start: 4}, {Value: 2, Broken: "it ended by itself"}}}
}

func TestAnswer(t *testing.T) {
	for _, row := range []struct {
		state bisect.State
		want  string
	}{
		{bisect.State{Outcome: bisect.Found, Good: 2, Bad: 3, Sure: 0.999}, "the change came with <d>: probability 0.999. ttft p95 from the first value to the last: +10.0% (95% bounds +8.0% and +12.0%)"},
		{bisect.State{Outcome: bisect.Found, Good: 1, Bad: 3, Sure: 0.999}, "the change came after b, with <d> at the latest: what lies between them cannot be measured"},
		{bisect.State{Outcome: bisect.Found, Good: 2, Bad: 3, Sure: 0.999, Two: 0.8, Other: [2]int{0, 1}}, "There is another change, between a and b (probability 0.80 of two)"},
		{bisect.State{Outcome: bisect.Unchanged}, "nothing to bisect: the last value is certainly not worse than the first by more than 3%. ttft p95 changed by +10.0%"},
		{bisect.State{Outcome: bisect.Unknown, Ends: true, Needed: 30}, "cannot tell whether the last value is worse than the first by more than 3%: ttft p95 by +10.0% (95% bounds +8.0% and +12.0%). It would take about 30 more legs that differ by 2%"},
		{bisect.State{Outcome: bisect.Unknown, Good: 0, Bad: 3}, "cannot tell: the change lies between a and <d>. Longer legs, with more requests, differ less"},
	} {
		if got := result(row.state).Answer(); !strings.Contains(got, row.want) {
			t.Errorf("%+v\n%s\nwant\n%s", row.state, got, row.want)
		}
	}
}

// A value that the list has several times is named with its place.
func TestName(t *testing.T) {
	q := Question{Values: []string{"8", "2", "2"}}
	got := []string{q.Name(0), q.Name(1), q.Name(2)}
	must.Same(t, "names", []string{"8", "2 (2 of 3)", "2 (3 of 3)"}, got)
}

// Every view has the answer, every leg, and what was left out.
func TestViews(t *testing.T) {
	r, dir := result(bisect.State{Outcome: bisect.Found, Good: 2, Bad: 3, Sure: 0.999}), t.TempDir()
	must.Do(t, Write(dir, r))
	var out bytes.Buffer
	must.Do(t, Terminal(&out, r, 100, false))
	for name, words := range map[string][]string{
		"report.html": {"came with &lt;d&gt;", "c was left out: it ended by itself", "110 ms", "<svg"},
		"report.md":   {"came with", "c was left out: it ended by itself", "110 ms"},
		"terminal":    {"The change came with <d>", "c was left out: it ended by itself", "110 ms"},
	} {
		text := out.String()
		if name != "terminal" {
			raw, err := os.ReadFile(filepath.Join(dir, name))
			must.Do(t, err)
			text = string(raw)
		}
		for _, w := range words {
			if !strings.Contains(text, w) {
				t.Errorf("%s does not say %q", name, w)
			}
		}
	}
}
