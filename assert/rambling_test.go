package assert

import (
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// TestRambling: on a single server, a level of natural answers is not valid if more than half of
// them are empty or repeat themselves. Each level has 40 answers.
func TestRambling(t *testing.T) {
	figure := func(share float64) []metric.Figure {
		return []metric.Figure{{Trend: metric.Trend{Server: "sim", Workload: "chat", Level: "4"}, Value: share}}
	}
	repeats := func(n int) func(*metric.Answer, int) {
		return func(a *metric.Answer, i int) { a.Repeats = i < n }
	}
	for _, tt := range []struct {
		name     string
		of       int // number of answers; 0 means 40
		bad      func(*metric.Answer, int)
		forced   bool // the answers do not end by themselves
		allowed  bool
		compared bool
		before   []metric.Figure // of the last green run
		want     verdict.Outcome
	}{
		{name: "none", bad: repeats(0), want: verdict.Pass},
		{name: "half", bad: repeats(20), want: verdict.Pass},
		{name: "more than half", bad: repeats(21), want: verdict.Error},
		{name: "all blank", bad: func(a *metric.Answer, _ int) { a.Empty = true }, want: verdict.Error},
		{name: "some blank, some repeating", bad: func(a *metric.Answer, i int) { a.Empty, a.Repeats = i < 11, i >= 30 }, want: verdict.Error},
		{name: "invalid text alone", bad: func(a *metric.Answer, _ int) { a.Invalid = true }, want: verdict.Pass},
		{name: "four answers show nothing", of: 4, bad: repeats(4), want: verdict.Pass},
		{name: "five do", of: 5, bad: repeats(5), want: verdict.Error},
		{name: "of forced length", bad: repeats(40), forced: true, want: verdict.Pass},
		{name: "allowed", bad: repeats(40), allowed: true, want: verdict.Pass},
		{name: "a control shows what is usual", bad: repeats(40), compared: true, want: verdict.Pass},
		{name: "as in the last green run", bad: repeats(40), before: figure(0.6), want: verdict.Pass},
		{name: "the last green run was fine", bad: repeats(40), before: figure(0.5), want: verdict.Error},
	} {
		i := -1
		l := shape{rounds: 1, perRound: max(tt.of, 40*map[bool]int{true: 1}[tt.of == 0]), change: func(x *metric.Sample) {
			i++
			if !tt.forced {
				x.Answer = &metric.Answer{}
				tt.bad(x.Answer, i)
			}
		}}.level()
		l.Natural = !tt.forced
		p, run := gate(l, threshold("ttft", "p50 < 2s"))
		w := p.Workloads[0]
		if w.Output.Natural = !tt.forced; tt.allowed {
			w.Answers.Repeating = plan.RepeatingAllowed
		}
		if tt.compared {
			p.Compares = []*plan.Compare{{Name: "c", Candidate: p.Servers[0], Control: plan.Control{Baseline: "before"}, Claims: []*plan.Claim{{Workloads: p.Workloads}}}}
		}
		v := verdictOf(t, Judge(p, run, Options{Rambling: tt.before}), "load at 4")
		if v.Outcome != tt.want || tt.want == verdict.Error && !strings.Contains(v.Message, "natural answers are empty or repeat themselves") {
			t.Errorf("%s: %v: %s", tt.name, v.Outcome, v.Message)
		}
	}
}
