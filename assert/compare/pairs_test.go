package compare

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// answerLevel returns a level with the given rounds. Each character is an answer: "." is good, "x"
// is bad, "-" is lost, and "?" was not asked for.
func answerLevel(rounds ...string) *metric.Level {
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
		{"alike", answerLevel("..x.", "...."), answerLevel("..x.", "...."), outcomes{0, 0, 8}},
		{"one lost, two won", answerLevel("..x.", "x..."), answerLevel(".x..", "...."), outcomes{1, 2, 8}},
		{"lost requests are bad", answerLevel("....", "...."), answerLevel("...-", "-..."), outcomes{2, 0, 8}},
		{"what neither was asked is none", answerLevel("?...", "...."), answerLevel("?...", "...."), outcomes{0, 0, 7}},
	} {
		got, ok := matched{control: tt.control, candidate: tt.candidate}.paired(def, 0.05)
		must.Hold(t, ok && cmp.Equal(tt.want, got, cmp.AllowUnexported(outcomes{})), "%s: %+v, %v; want %+v", tt.name, got, ok, tt.want)
	}
	// All lost prompts are in one of five rounds. Losses in one round depend on each other, so each
	// of them counts as less than one prompt.
	at := func(first string) *metric.Level { return answerLevel(first, "....", "....", "....", "....") }
	got, _ := (matched{control: at("...."), candidate: at("xxxx")}).paired(def, 0.05)
	must.Hold(t, got.all <= 3 && got.lost/got.all == 0.2, "one round alone: %+v", got)
	_, ok := (matched{control: answerLevel("."), candidate: answerLevel("."), unpaired: true}).paired(def, 0.05)
	must.Hold(t, !ok, "prompts of two runs were paired")
}

// All requests for an item count as one item, in whatever rounds they are. This also holds if the
// two servers were measured in two runs.
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
	// There are three items. Item a: the control is always right, the candidate half of the time.
	// Item b: both are always right. Item c: both are always wrong.
	control, candidate := items(answerLevel(".", ".", ".", "x"), "aabc"), items(answerLevel("x.", ".x"), "aabc")
	got, ok := matched{control: control, candidate: candidate, unpaired: true}.paired(metric.MustLookup("valid_json"), 0.05)
	want := (outcomes{0.5, 0, 3})
	must.Hold(t, ok && cmp.Equal(want, got, cmp.AllowUnexported(outcomes{})), "%+v, %v; want %+v", got, ok, want)
}

// With a tolerance of 1 percentage point, hardly any candidate that is 2 points worse may pass.
// With a tolerance of 2 points, most unchanged candidates must pass.
func TestLongPairedAccuracy(t *testing.T) {
	const items, rounds, runs = 601, 8, 2000
	def := metric.MustLookup("accuracy")
	passes := func(lost, won, margin float64, seed uint64) int {
		r, passed := rand.New(rand.NewPCG(seed, 1)), 0
		levels := [2]*metric.Level{answerLevel("."), answerLevel(".")}
		for i := range levels {
			levels[i].Rounds = nil
			for round := range rounds {
				from, to := items*round/rounds, items*(round+1)/rounds
				rd := &metric.Round{Index: round, Due: to - from, Complete: true}
				for n := from; n < to; n++ {
					rd.Samples = append(rd.Samples, &metric.Sample{Phase: metric.Measured, Order: n - from, Answer: &metric.Answer{Item: strconv.Itoa(n)}})
				}
				levels[i].Rounds = append(levels[i].Rounds, rd)
			}
		}
		for range runs {
			for round := range rounds {
				for n, s := range levels[0].Rounds[round].Samples {
					a, b := r.Float64() < 0.85, false
					switch x := r.Float64(); {
					case x < lost:
						a, b = true, false
					case x < lost+won:
						a, b = false, true
					default:
						b = a
					}
					s.Answer.Right, levels[1].Rounds[round].Samples[n].Answer.Right = metric.FoundIf(a), metric.FoundIf(b)
				}
			}
			o, _ := matched{control: levels[0], candidate: levels[1]}.paired(def, 0.05)
			if (delta{paired: &o}).below(margin, 0.05) {
				passed++
			}
		}
		return passed
	}
	n := passes(0.0275, 0.0075, 0.01, 1)
	must.Hold(t, n <= runs/20, "%d of %d that are 2 points worse passed at 1 point", n, runs)
	if n := passes(0.0175, 0.0175, 0.02, 2); n < runs*77/100 || n > runs*83/100 {
		t.Errorf("%d of %d unchanged ones passed at 2 points, want 80%%", n, runs)
	}
}
