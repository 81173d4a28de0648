package compare

import (
	"flag"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// scored returns a scored answer with the given losses of its tokens, in nats.
func scored(losses ...float64) *metric.PairedAnswer {
	a := &metric.PairedAnswer{Finish: "stop", Asked: 1024, Tokens: len(losses), Scored: len(losses), Agrees: 0.5}
	for _, x := range losses {
		a.Loss, a.Worst = a.Loss+x, max(a.Worst, x)
	}
	return a
}

// sampledAnswer returns a measured answer of the workload chat.
func sampledAnswer(order int, candidate bool, a *metric.PairedAnswer) metric.SampledAnswer {
	return metric.SampledAnswer{Workload: "chat", Level: "8", Round: order / 13, Order: order % 13, Candidate: candidate, PairedAnswer: *a}
}

func TestRare(t *testing.T) {
	// Of 100 values, the largest ten are 1 to 10 above the eleventh, which is 90: 5.5 on average. One
	// in 1,000 is 90 + 5.5·ln(0.1 / 0.001) = 115.3.
	var xs []float64
	for i := range 100 {
		xs = append(xs, float64(i+1))
	}
	got := rare(xs)
	must.Hold(t, math.Abs(got-115.33) <= 0.01, "of 1 to 100: %v", got)
	if got := rare(xs[:5]); !math.IsInf(got, 1) {
		t.Errorf("of five values: %v", got)
	}
	if got := rare([]float64{2, 2, 2, 2, 2, 2}); got != 2 {
		t.Errorf("of equal values: %v", got)
	}
}

// TestBounds: the bounds for an answer come from answers of like length, if there are 20.
func TestBounds(t *testing.T) {
	r := &metric.PairedAnswers{}
	add := func(n, tokens int, worst float64) {
		for range n {
			a := scored(make([]float64, tokens)...)
			a.Worst, a.Loss = worst, worst
			r.Pairs = append(r.Pairs, metric.AnswerPair{Workload: "chat", Level: "8", Control: a})
		}
	}
	add(30, 10, 5)
	add(10, 100, 6)
	add(12, 300, 8)
	u, of := newUsual(r), group{"chat", "8", false}
	for _, tt := range []struct {
		tokens int
		worst  float64
	}{
		{10, 5},  // 30 answers of 5 to 20 tokens
		{15, 5},  // likewise
		{100, 8}, // only 10 of 50 to 200 tokens, but 22 of at least 50
		{500, 8}, // too few of any length like it, so all
	} {
		// A few larger values among equal ones make a tail, so the bound may be higher.
		got := u.boundsFor(of, tt.tokens).worst
		must.Hold(t, got >= tt.worst, "%d tokens: at most %v nats, want at least %v", tt.tokens, got, tt.worst)
	}
	got := u.boundsFor(of, 10).worst
	must.Hold(t, got == 5, "10 tokens: at most %v nats, want 5", got)
	if got := u.boundsFor(group{"other", "8", false}, 10); !math.IsInf(got.worst, 1) || !math.IsInf(got.mean, 1) {
		t.Errorf("without answers: %+v", got)
	}
}

// TestOddTokens checks answers of which one token is unlikely, and measured answers. Each answer has
// 64 tokens with a loss of 0.3 nats, one of them 1 nat.
func TestOddTokens(t *testing.T) {
	fine := func(worst float64) *metric.PairedAnswer {
		losses := make([]float64, 64)
		for i := range losses {
			losses[i] = 0.3
		}
		losses[7] = worst
		return scored(losses...)
	}
	measured := func(n int, control, candidate func(i int) *metric.PairedAnswer) (out []metric.SampledAnswer) {
		for i := range n {
			out = append(out, sampledAnswer(i, false, control(i)), sampledAnswer(i, true, candidate(i)))
		}
		return out
	}
	same := func(int) *metric.PairedAnswer { return fine(1) }
	first := func(n int, a *metric.PairedAnswer) func(int) *metric.PairedAnswer {
		return func(i int) *metric.PairedAnswer {
			if i < n {
				return a
			}
			return fine(1)
		}
	}
	blank := &metric.PairedAnswer{Asked: 64, Tokens: 1, Empty: true}
	for _, tt := range []struct {
		name               string
		greedy             func(i int) *metric.PairedAnswer // the candidate's
		control, candidate func(i int) *metric.PairedAnswer // measured
		odd                float64
		want               verdict.Outcome
		words              string
	}{
		{"none", same, same, same, 0, verdict.Pass, ""},
		// 6 such answers of the candidate's 264, and none of the control's 314: by chance with
		// probability (264/578)⁶ = 0.009. Of five the probability is 0.020, so these do not count.
		{"six with an unlikely token", first(6, fine(7.5)), same, same, 6, verdict.Fail, "with an improbable token, which the control gives a loss of 7.5 nats"},
		{"five with an unlikely token", first(5, fine(7.5)), same, same, 0, verdict.Pass, "5 answers of the candidate and 0 of the control have an improbable token"},
		{"tokens such as a harmless change chooses", first(200, fine(3.9)), same, same, 0, verdict.Pass, ""},
		{"measured garbage", same, same, first(64, read(8)), 64, verdict.Fail, "64 measured and improbable to the control"},
		{"measured garbage on both", same, first(64, read(8)), first(64, read(8)), 0, verdict.Pass, ""},
		{"measured, ten with an unlikely token", same, same, first(10, fine(7.5)), 10, verdict.Fail, "10 measured and with an improbable token"},
		{"measured, all 0.9 nats less likely", same, same, first(64, read(1.2)), 0, verdict.Pass, ""},
		{"measured, all blank", same, same, first(64, blank), 0, verdict.Inconclusive, ""},
		{"measured, all blank on both", same, first(64, blank), first(64, blank), 0, verdict.Pass, ""},
		{"measured, one blank", same, same, first(1, blank), 0, verdict.Pass, ""},
	} {
		r := answersOf(200, func(i int, p *metric.AnswerPair) {
			p.Control, p.Candidate = fine(1), tt.greedy(i)
			if p.Again != nil {
				p.Again = fine(1)
			}
		})
		r.Sampled = measured(64, tt.control, tt.candidate)
		got := judgeAnswers(r)["odd_answers"]
		if text := got.Message + strings.Join(got.Notes, "; "); got.Candidate.V != tt.odd || got.Outcome != tt.want || !strings.Contains(text, tt.words) {
			t.Errorf("%s: %v odd ones, %v: %s", tt.name, got.Candidate.V, got.Outcome, text)
		}
	}
	// A measured answer without a score is an error, unless the control can score nothing.
	r := answersOf(200, func(int, *metric.AnswerPair) {})
	r.Sampled = measured(64, same, same)
	r.Sampled[3].Scored = 0
	if got := judgeAnswers(r)["odd_answers"]; got.Outcome != verdict.Error || !strings.Contains(got.Message, "did not report how likely 1 answer") {
		t.Errorf("a measured answer without a score: %v: %s", got.Outcome, got.Message)
	}
}

var tokenGates = flag.Int("token-gates", 40, "simulated gates of each row of unlikely tokens")

// TestLongOddTokensCharacteristics measures how often a gate fails by the tokens of its answers, if
// the losses of tokens follow a given law: on equal servers, and with one impossible word of 7.5
// nats in a share of the candidate's answers.
//
// A gate has 700 prompts at temperature 0, and 64 measured answers of each server. At temperature
// 0, half of the answers to a prompt are equal. Losses at temperature 0 are halved, because the
// server takes the likeliest token.
func TestLongOddTokensCharacteristics(t *testing.T) {
	gates := *tokenGates
	for _, law := range []struct {
		name string
		draw func(*rand.Rand) float64
		find bool // whether a word of 7.5 nats stands out at temperature 0
	}{
		{"exponential, mean 0.5", func(r *rand.Rand) float64 { return 0.5 * r.ExpFloat64() }, true},
		{"exponential, mean 1", func(r *rand.Rand) float64 { return r.ExpFloat64() }, false},
		{"half-normal, mean 0.8", func(r *rand.Rand) float64 { return math.Abs(r.NormFloat64()) }, true},
		{"log-normal, median 0.1, σ 1.2", func(r *rand.Rand) float64 { return 0.1 * math.Exp(1.2*r.NormFloat64()) }, false},
		{"one token in 20 exponential, mean 2", func(r *rand.Rand) float64 {
			if r.IntN(20) == 0 {
				return 2 * r.ExpFloat64()
			}
			return 0.1 * r.Float64()
		}, false},
		{"one token in 1,000 a surprise of 7 to 10 nats", func(r *rand.Rand) float64 {
			if r.IntN(1000) == 0 {
				return 14 + 6*r.Float64()
			}
			return 0.4 * r.Float64()
		}, false},
	} {
		for _, planted := range []float64{0, 0.02, 0.05} {
			red, unfinished := 0, 0
			for seed := range gates {
				rng := rand.New(rand.NewPCG(uint64(seed), uint64(1000*planted)))
				answer := func(factor float64, planted float64) *metric.PairedAnswer {
					losses := make([]float64, 24+rng.IntN(41))
					for i := range losses {
						losses[i] = factor * law.draw(rng)
					}
					if rng.Float64() < planted {
						losses[rng.IntN(len(losses))] = 7.5
					}
					return scored(losses...)
				}
				r := &metric.PairedAnswers{Due: 700, Again: 175}
				for i := range 700 {
					p := metric.AnswerPair{Workload: "chat", Level: "8", Order: i, Control: answer(0.5, 0)}
					if p.Candidate = p.Control; rng.Float64() < max(planted, 0.5) {
						p.Candidate = answer(0.5, 2*planted) // of half of the answers, so twice as often
					}
					if i%4 == 0 {
						if p.Again = p.Control; rng.IntN(2) == 0 {
							p.Again = answer(0.5, 0)
						}
					}
					r.Pairs = append(r.Pairs, p)
				}
				for i := range 64 {
					r.Sampled = append(r.Sampled, sampledAnswer(i, false, answer(1, 0)), sampledAnswer(i, true, answer(1, planted)))
				}
				c := Change{Metric: metric.MustLookup("odd_answers"), Limit: metric.Some(2)}
				c.count(r, 0.05)
				if c.Outcome == verdict.Fail {
					red++
				}
				if c.Outcome != verdict.Pass {
					unfinished++
				}
			}
			share, rest := float64(red)/float64(gates), float64(unfinished)/float64(gates)
			t.Logf("%s, %.0f %% planted: red in %.1f %%, not passed in %.1f %%", law.name, 100*planted, 100*share, 100*rest)
			about := 3 * math.Sqrt(0.01*0.99/float64(gates))
			if planted == 0 && (share > 0.01+about || rest > 0.02+about) || planted > 0 && law.find && share < 0.95 {
				t.Errorf("%s, %v planted: red in %v, not passed in %v", law.name, planted, share, rest)
			}
		}
	}
}
