package report

import (
	"strings"
	"testing"

	"github.com/tokgate/tokgate/answers"
	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

// answered returns a report of a task with wrong answers, and of a comparison that lost an answer.
// The texts of the answers are hostile and contain a secret.
func answered() *Document {
	w := &plan.Workload{Name: "recall", Score: &answers.Rule{Match: "contains"}, Output: plan.Output{Natural: true, Mean: 64}}
	w.Prompt.Dataset = &traffic.Dataset{}
	p := &plan.Plan{Workloads: []*plan.Workload{w}, Secrets: []string{secret}}
	level := &metric.Level{Server: "next", Workload: "recall", Name: "8", Natural: true, Rounds: []*metric.Round{{}}}
	for i := range 20 {
		w.Prompt.Dataset.Rows = append(w.Prompt.Dataset.Rows, traffic.Row{Answer: []byte(`"12-34-56"`)})
		s := &metric.Sample{Server: "next", Workload: "recall", Level: "8", Order: i, Row: i + 1, Phase: metric.Measured, Finish: "stop",
			Answer: &metric.Answer{Right: metric.Yes}, Said: &metric.Said{Text: "12-34-56"}}
		switch {
		case i == 3: // wrong, and nothing
			s.Answer, s.Said = &metric.Answer{Right: metric.No, Empty: true}, &metric.Said{}
		case i == 4:
			s.Answer, s.Said = &metric.Answer{Right: metric.No}, &metric.Said{Hash: "ab"}
		case i > 11:
			s.Answer.Right, s.Said = metric.No, &metric.Said{Text: "my key is " + secret + ", " + hostile + strings.Repeat("long ", 200) + "the end"}
		}
		level.Rounds[0].Samples = append(level.Rounds[0].Samples, s)
	}
	run := &metric.Run{ID: "x", Servers: []*metric.ServerRun{{Address: "next"}}, Levels: []*metric.Level{level}}
	lost := compare.Lost{Metrics: []string{"accuracy"}, Candidate: level.Rounds[0].Samples[12], Control: level.Rounds[0].Samples[0]}
	var odd []compare.Lost // seven odd answers, of which the report shows five
	for i := range 7 {
		odd = append(odd, compare.Lost{Metrics: []string{"odd_answers"}, Why: "improbable to the control",
			Candidate: &metric.Sample{Server: "next", Workload: "chat", Level: "8", Order: i, Said: &metric.Said{Text: secret + hostile}},
			Control:   &metric.Sample{Said: &metric.Said{Text: "Yes."}}})
	}
	v := assert.Verdicts{Outcome: verdict.Fail, List: []verdict.Verdict{
		{Kind: verdict.KindSLA, Server: "next", Workload: "recall", Level: "8", Name: "sla.accuracy.rate at 8", Outcome: verdict.Fail, Threshold: &verdict.Threshold{Metric: metric.MustLookup("accuracy")}},
		{Kind: verdict.KindSLA, Server: "next", Workload: "recall", Level: "8", Name: "sla.empty.rate at 8", Outcome: verdict.Pass, Threshold: &verdict.Threshold{Metric: metric.MustLookup("empty")}},
		{Kind: verdict.KindCompare, Compares: verdict.Compares{Comparison: "up", Metric: "accuracy"}, Server: "next", Workload: "recall", Level: "8", Name: "compare.up.tolerate.accuracy.rate at 8", Outcome: verdict.Fail},
		{Kind: verdict.KindCompare, Compares: verdict.Compares{Comparison: "up", Metric: "odd_answers"}, Server: "next", Workload: "chat, recall", Level: "answers", Name: "compare.up.tolerate.odd_answers at answers", Outcome: verdict.Fail},
	}, Comparisons: []*compare.Comparison{{Name: "up", Control: "today", Candidate: "next", Paired: true, Lost: append(odd, lost)}}}
	return New(run, p, v, Meta{ExitCode: 1})
}

func TestWorstAnswers(t *testing.T) {
	d := answered()
	worst := d.AnswersOf("")
	must.Need(t, len(worst) == mostAnswers, "%d answers", len(worst))
	first, second := worst[0], worst[1]
	must.Hold(t, first.Row == 4 && first.Bad() == "empty, wrong" && first.Expected == "12-34-56" && first.Said == "", "the worst is bad in two ways: %+v", first)
	// The list skips one answer between its first two. That answer was recorded only as a hash, so
	// it has no text.
	if second.Row != 13 || strings.Contains(second.Said, secret) || !strings.Contains(second.Said, "[redacted]") || len([]rune(second.Said)) > 610 || !strings.HasSuffix(second.Said, "the end") {
		t.Errorf("%+v", second)
	}
	pair := d.AnswersOf("up")
	if len(pair) != mostAnswers+1 || *pair[mostAnswers].Control != "12-34-56" || pair[mostAnswers].Row != 13 || pair[0].Where() != "prompt 1" || pair[0].Bad() != "improbable to the control" {
		t.Fatalf("%+v", pair)
	}
	for i, want := range []string{`for example row 4: expected "12-34-56", got ""`, "", `for example row 13: expected "12-34-56", got "my key is [redacted]`, `for example prompt 1: got "[redacted]`} {
		notes := d.Verdicts[i].NotesOf()
		if got := strings.Join(notes, "\n"); !strings.HasPrefix(got, want) || (want == "") != (got == "") {
			t.Errorf("%s quotes %q, want %q", d.Verdicts[i].Name, got, want)
		}
	}
}
