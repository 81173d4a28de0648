package compare

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/metric"
)

// said is a level with rounds of answers: "." good, "x" bad, "-" lost, "?" not asked.
func said(rounds ...string) *metric.Level {
	l := &metric.Level{}
	for i, marks := range rounds {
		r := &metric.Round{Index: i, Due: len(marks), Complete: true}
		for order, mark := range marks {
			s := &metric.Sample{Round: i, Order: order, Phase: metric.Measured, Answer: &metric.Answer{}}
			switch mark {
			case '-':
				continue
			case 'x':
				s.Answer.JSON = metric.No
			case '.':
				s.Answer.JSON = metric.Yes
			}
			r.Samples = append(r.Samples, s)
		}
		l.Rounds = append(l.Rounds, r)
	}
	return l
}

func TestPairedOutcomes(t *testing.T) {
	def := metric.MustLookup("valid_json")
	for _, tt := range []struct {
		name               string
		control, candidate *metric.Level
		want               outcomes
	}{
		{"alike", said("..x.", "...."), said("..x.", "...."), outcomes{0, 0, 8}},
		{"one lost, two won", said("..x.", "x..."), said(".x..", "...."), outcomes{1, 2, 8}},
		{"lost requests are bad", said("....", "...."), said("...-", "-..."), outcomes{2, 0, 8}},
		{"what neither was asked is none", said("?...", "...."), said("?...", "...."), outcomes{0, 0, 7}},
	} {
		got, ok := matched{control: tt.control, candidate: tt.candidate}.paired(def, 0.05)
		if !ok || !cmp.Equal(tt.want, got, cmp.AllowUnexported(outcomes{})) {
			t.Errorf("%s: %+v, %v; want %+v", tt.name, got, ok, tt.want)
		}
	}
	// All in one of five rounds: so many that go together are worth few.
	at := func(first string) *metric.Level { return said(first, "....", "....", "....", "....") }
	if got, _ := (matched{control: at("...."), candidate: at("xxxx")}).paired(def, 0.05); got.all > 3 || got.lost/got.all != 0.2 {
		t.Errorf("one round alone: %+v", got)
	}
	if _, ok := (matched{control: said("."), candidate: said("."), unpaired: true}).paired(def, 0.05); ok {
		t.Error("prompts of two runs were paired")
	}
}

// An item that is asked twice is one, whichever rounds it is asked in, also of two runs.
func TestItemsPair(t *testing.T) {
	items := func(l *metric.Level, names string) *metric.Level {
		i := 0
		for _, r := range l.Rounds {
			for _, s := range r.Samples {
				s.Answer.Item = names[i : i+1]
				i++
			}
		}
		return l
	}
	// a: right, then half wrong; b: right on both; c: wrong on both.
	control, candidate := items(said(".", ".", ".", "x"), "aabc"), items(said("x.", ".x"), "aabc")
	got, ok := matched{control: control, candidate: candidate, unpaired: true}.paired(metric.MustLookup("valid_json"), 0.05)
	if want := (outcomes{0.5, 0, 3}); !ok || !cmp.Equal(want, got, cmp.AllowUnexported(outcomes{})) {
		t.Errorf("%+v, %v; want %+v", got, ok, want)
	}
}
