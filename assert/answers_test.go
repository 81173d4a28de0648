package assert

import (
	"strings"
	"testing"

	"github.com/tokgate/tokgate/answers"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

// Recorded answers are scored again by the current plan. The answer "it is 48" was wrong by the
// rule "exact", but is right by the rule "number". An answer that was recorded only as a hash keeps
// its result.
func TestReread(t *testing.T) {
	w := &plan.Workload{Name: "w", Output: plan.Output{Natural: true, Mean: 64}, Score: &answers.Rule{Match: "number"}}
	w.Prompt.Dataset = &traffic.Dataset{Rows: []traffic.Row{
		{Answer: []byte(`"48"`)},
		{Answer: []byte(`"7"`), ResponseFormat: []byte(`{"type": "json_object"}`)},
	}}
	p := &plan.Plan{Workloads: []*plan.Workload{w}}
	hashed := metric.Said{Text: "it is 48"}.Hashed()
	wrong := metric.Answer{Right: metric.No, Item: "1"}
	said := func(row int, s *metric.Said) *metric.Sample {
		found := wrong
		return &metric.Sample{Phase: metric.Measured, Row: row, Said: s, Answer: &found}
	}
	samples := []*metric.Sample{
		said(1, &metric.Said{Text: "it is 48"}), said(1, &hashed), said(1, nil), said(2, &metric.Said{Text: "7"}), said(2, &metric.Said{Text: "no JSON: 8"}),
		{Phase: metric.Warmup},
	}
	l := &metric.Level{Workload: "w", Natural: true, Rounds: []*metric.Round{{Samples: samples}}}
	other := &metric.Level{Workload: "gone", Natural: true, Rounds: []*metric.Round{{Samples: []*metric.Sample{said(1, &metric.Said{Text: "48"})}}}}
	Reread(p, &metric.Run{Levels: []*metric.Level{l, nil, other}})
	for i, want := range []metric.Answer{
		{Right: metric.Yes, Item: "1"}, wrong, wrong,
		{Right: metric.Yes, Item: "2", JSON: metric.Yes}, {Right: metric.No, Item: "2", JSON: metric.No},
	} {
		got := *samples[i].Answer
		must.Hold(t, got == want, "answer %d: %+v, want %+v", i, got, want)
	}
	must.Hold(t, len(l.Notes) == 1 && strings.Contains(l.Notes[0], "2 of 5 answers was not kept"), "notes %q", l.Notes)
	must.Hold(t, *other.Rounds[0].Samples[0].Answer == wrong && other.Notes == nil, "answers of a workload that the plan does not have were looked at")
}

// A new score reaches the level of a part of a mix, and leaves the other parts alone.
func TestRereadOfAPart(t *testing.T) {
	base := &plan.Workload{Name: "asks", Output: plan.Output{Natural: true, Mean: 64}, Score: &answers.Rule{Match: "number"}}
	base.Prompt.Dataset = &traffic.Dataset{Rows: []traffic.Row{{Answer: []byte(`"48"`)}}}
	mix := &plan.Workload{Name: "all"}
	mix.Mix = []*plan.Workload{mix.Part(base, 500_000), mix.Part(&plan.Workload{Name: "fills", Output: plan.Output{Mean: 8}}, 500_000)}
	l := &metric.Level{Workload: "all", Natural: true, Parts: []*metric.Level{{Workload: "all/asks", Of: "all", Share: 0.5}}, Rounds: []*metric.Round{{Due: 2}}}
	for _, part := range []string{"asks", "fills"} {
		l.Rounds[0].Samples = append(l.Rounds[0].Samples,
			&metric.Sample{Part: part, Phase: metric.Measured, Row: 1, Said: &metric.Said{Text: "it is 48"}, Answer: &metric.Answer{Right: metric.No}})
	}
	run := &metric.Run{Levels: []*metric.Level{l}}
	Reread(&plan.Plan{Workloads: mix.Whole()}, run)
	of := run.All()[1].MeasuredSamples()
	must.Hold(t, len(of) == 1 && of[0].Answer.Right == metric.Yes, "%d answers of the part", len(of))
	must.Hold(t, l.Rounds[0].Samples[1].Answer.Right == metric.No, "the other part was scored")
}
