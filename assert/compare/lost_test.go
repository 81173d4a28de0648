package compare

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Lost lists the prompts that only the candidate answered badly, with the text of its answers. In
// the test two rounds have four prompts each, and "x" stands for a bad answer.
func TestLost(t *testing.T) {
	w := &plan.Workload{Name: "w"}
	control, candidate := answerLevel("..x.", "x..."), answerLevel("xxx?", "xx.x")
	for _, l := range []*metric.Level{control, candidate} {
		for _, r := range l.Rounds {
			for _, s := range r.Samples {
				s.Said = &metric.Said{Text: "{"}
			}
		}
	}
	candidate.Rounds[0].Samples[0].Said = nil                              // text not kept
	*candidate.Rounds[1].Samples[1].Said = metric.Said{Text: "{"}.Hashed() // only the hash kept
	candidate.Rounds[1].Samples[3].Answer.Empty = true                     // bad by two metrics
	empty := plan.ChangeBound{Metric: metric.MustLookup("empty")}
	json := plan.ChangeBound{Metric: metric.MustLookup("valid_json")}
	for _, tt := range []struct {
		name     string
		changes  []*plan.ChangeBound
		unpaired bool
		want     []string
	}{
		{"of both", []*plan.ChangeBound{&json, &empty}, false, []string{"0/1 [valid_json]", "1/3 [valid_json empty]"}},
		{"of one", []*plan.ChangeBound{&empty}, false, []string{"1/3 [empty]"}},
		{"of speed", []*plan.ChangeBound{{Metric: metric.MustLookup("ttft")}}, false, nil},
		// Two separate runs have the same prompts only in built-in tasks. This workload has no
		// task, so the answers to it cannot be compared.
		{"of two runs", []*plan.ChangeBound{&json}, true, nil},
	} {
		x := &comparison{out: &Comparison{}, required: []*plan.Claim{{Workloads: []*plan.Workload{w}, Changes: tt.changes}}}
		x.lose(matched{workload: w, control: control, candidate: candidate, unpaired: tt.unpaired})
		var got []string
		for _, lost := range x.out.Lost {
			if lost.Control.Round != lost.Candidate.Round || lost.Control.Order != lost.Candidate.Order {
				t.Errorf("%s: another prompt: %v and %v", tt.name, lost.Control, lost.Candidate)
			}
			got = append(got, fmt.Sprintf("%d/%d %v", lost.Candidate.Round, lost.Candidate.Order, lost.Metrics))
		}
		must.Hold(t, slices.Equal(got, tt.want), "%s: %q, want %q", tt.name, got, tt.want)
	}
}

// The report first lists the odd answers, the least likely at the top. If the candidate's answers
// became less likely on average, the answers that changed most follow. Answers without recorded
// text are left out.
func TestOddest(t *testing.T) {
	shift := func(i int, p *metric.AnswerPair) {
		p.Candidate = read(0.3 + 0.2 + 0.001*float64(i)) // 0.2 to 0.399 nats more than the control
		switch i {
		case 3:
			p.Candidate = read(3)
		case 7:
			p.Candidate = read(5)
		}
		p.Control.Text, p.Candidate.Text = "yes", fmt.Sprint("no ", i)
	}
	for _, tt := range []struct {
		name   string
		change func(int, *metric.AnswerPair)
		n      int
		want   []string
	}{
		{"shifted", shift, 200, []string{"7 [odd_answers]", "3 [odd_answers]", "199 [answer_nll]", "198 [answer_nll]"}},
		{"as before", func(int, *metric.AnswerPair) {}, 0, nil},
		{"not kept", func(i int, p *metric.AnswerPair) { shift(i, p); p.Control.Text, p.Candidate.Text = "", "" }, 0, nil},
	} {
		r := answersOf(200, tt.change)
		x := comparison{alpha: 0.05, whole: 0.05, nominal: once, out: &Comparison{}, record: &metric.Comparison{Answers: r}, Input: Input{Plan: &plan.Plan{},
			Block: &plan.Compare{Answers: &plan.Answering{Prompts: 200, MaxTokens: 64}, Policy: plan.Policy{Confidence: 0.95}}}}
		x.reads = x.readings()
		x.read()
		var got []string
		for _, lost := range x.out.Lost[:min(len(x.out.Lost), 4)] {
			got = append(got, fmt.Sprintf("%d %v", lost.Candidate.Order, lost.Metrics))
			must.Hold(t, lost.Control.Said.Text == "yes" && lost.Why != "", "%s: %+v", tt.name, lost)
		}
		must.Hold(t, len(x.out.Lost) == tt.n && slices.Equal(got, tt.want), "%s: %d, %q", tt.name, len(x.out.Lost), got)
	}
}

// A comparison's sentence names failures of scored answers first.
func TestWrongAnswersComeFirst(t *testing.T) {
	odd := Change{OfAnswers: true, Shift: Shift{Points: true, Change: metric.Some(5)}, Metric: metric.MustLookup("odd_answers"), Outcome: verdict.Fail}
	fine := odd
	fine.Outcome = verdict.Pass
	for _, tt := range []struct {
		change Change
		want   string
	}{{odd, "up: wrong answers (odd_answers +5); no certain difference for chat"}, {fine, "up: no certain difference for chat"}} {
		x := comparison{Input: Input{Block: &plan.Compare{Name: "up"}}, out: &Comparison{Changes: []Change{tt.change}, Decisions: []Decision{{"chat", "8", AnswerUnknown, ""}}}}
		must.Same(t, "", tt.want, x.sentence())
	}
}
