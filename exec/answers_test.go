package exec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/answers"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/record"
)

// The check for equal answers to different prompts looks only at answers that are long enough and
// have enough different words.
func TestAlike(t *testing.T) {
	long := func(from int) string {
		var b strings.Builder
		for i := range 40 {
			fmt.Fprintf(&b, " w%d", from+i)
		}
		return b.String()
	}
	for _, tt := range []struct {
		name           string
		claimed        int
		texts          []string
		compared, same int
	}{
		{"none", 64, nil, 0, 0},
		{"different", 64, []string{long(0), long(1), long(2)}, 3, 0},
		{"one pair", 64, []string{long(0), long(1), long(0)}, 3, 2},
		{"cut to other lengths", 64, []string{long(0), long(0)[:60], long(0)[:80]}, 3, 3},
		{"the same beginning", 64, []string{long(0), long(0)[:60] + long(9)}, 2, 0},
		{"short answers", 31, []string{long(0), long(0)}, 0, 0},
		{"a tiny model", 64, []string{strings.Repeat("a b c d e f g ", 9), strings.Repeat("a b c d e f g ", 9)}, 0, 0}, // 7 words
	} {
		var kept []keptAnswer
		for _, text := range tt.texts {
			kept = append(kept, keptAnswer{claimed: tt.claimed, text: text})
		}
		compared, same := countEqual(kept)
		must.Hold(t, compared == tt.compared && same == tt.same, "%s: %d of %d, want %d of %d", tt.name, same, compared, tt.same, tt.compared)
	}
}

// A recorded answer contains no secret. If the answer was cut, it does not end with the beginning
// of a secret either. Only a hash is recorded if the plan says so, or if the run has stored too
// much text.
func TestStored(t *testing.T) {
	natural := plan.Output{Natural: true, Mean: 64}
	scored := &answers.Rule{Match: "contains"}
	said := client.Said{Whole: "hm sk-verysecret, sk-veryse", Visible: " sk-verysecret, sk-veryse", Calls: []client.Call{{Name: "look", Arguments: `{"key": "sk-verysecret"}`}}}
	cut := said
	cut.Cut = true
	clean := metric.Said{Text: " [redacted], sk-veryse", Reasoning: "hm", Calls: []metric.ToolCall{{Name: "look", Arguments: `{"key": "[redacted]"}`}}}
	cleanCut := clean
	cleanCut.Text, cleanCut.Cut = " [redacted], ", true
	hashed := clean.Hashed()
	for _, tt := range []struct {
		name   string
		w      plan.Workload
		said   client.Said
		before int
		want   *metric.Said
	}{
		{"of a task", plan.Workload{Output: natural, Score: scored}, said, 0, &clean},
		{"cut", plan.Workload{Output: natural, Score: scored}, cut, 0, &cleanCut},
		{"of pure speed", plan.Workload{Output: natural}, said, 0, nil},
		{"asked for", plan.Workload{Output: natural, Answers: plan.Answers{Store: plan.StoreText}}, said, 0, &clean},
		{"of forced length", plan.Workload{Score: scored}, said, 0, nil},
		{"the sum", plan.Workload{Output: natural, Score: scored, Answers: plan.Answers{Store: plan.StoreHash}}, said, 0, &hashed},
		{"too much", plan.Workload{Output: natural, Score: scored}, said, storedBytes, &hashed},
		{"none", plan.Workload{Output: natural, Score: scored, Answers: plan.Answers{Store: plan.StoreNone}}, said, 0, nil},
	} {
		secrets := record.NewRedactor([]string{"sk-verysecret"})
		r := &runner{Config: Config{Plan: &plan.Plan{}}, storedBytes: tt.before}
		got := r.stored(&tt.w, saidBy(tt.said, &metric.Sample{}, secrets))
		must.Same(t, tt.name+" (-want +got)", tt.want, got)
	}
}

// An answer of ten tokens is kept, so that its tokens can be counted again. Hidden reasoning was
// not sent, and is not counted. With four hidden tokens six remain, and with ten none.
func TestKeepsWhatWasSent(t *testing.T) {
	for _, tt := range []struct{ output, hidden, want int }{{10, 0, 10}, {10, 4, 6}, {10, 10, 0}} {
		rd, l := &round{out: &metric.Round{}}, &lot{asking: &asking{kept: &kept{}}}
		rd.keep(&flight{lot: l, sample: &metric.Sample{Usage: &metric.Usage{Output: tt.output, Hidden: tt.hidden}}}, client.Said{Whole: "some words"})
		got := 0
		for _, k := range l.kept.texts {
			got += k.claimed
		}
		must.Hold(t, got == tt.want, "%+v: %d tokens are to be counted again", tt, got)
	}
}
