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
	"github.com/tokgate/tokgate/plan"
)

// read returns a scored answer of 64 tokens. Each token has the given loss, in nats.
func read(nats float64) *metric.PairedAnswer {
	return &metric.PairedAnswer{Finish: "length", Asked: 64, Tokens: 64, Loss: 64 * nats, Scored: 64, Agrees: 1}
}

// answersOf returns n prompts with the answers of both servers. Each token of an answer has the
// loss 0.3 nats. The control answers a quarter of the prompts twice. The function change may alter
// the answers to prompt i.
func answersOf(n int, change func(i int, p *metric.AnswerPair)) *metric.PairedAnswers {
	r := &metric.PairedAnswers{Due: n, Again: (n + 3) / 4}
	for i := range n {
		p := metric.AnswerPair{Workload: "chat", Level: "8", Order: i, Control: read(0.3), Candidate: read(0.3)}
		if i%4 == 0 {
			p.Again = read(0.3)
		}
		change(i, &p)
		r.Pairs = append(r.Pairs, p)
	}
	return r
}

// judgeAnswers judges paired answers of a vLLM server by the default limits of an answers block.
func judgeAnswers(r *metric.PairedAnswers) map[string]Change { return judgeAnswersOf("vllm", r) }

// judgeAnswersOf judges paired answers like judgeAnswers, but of a server with the given engine.
func judgeAnswersOf(engine string, r *metric.PairedAnswers) map[string]Change {
	return judgeAnswersTo(&plan.Workload{Name: "chat"}, engine, r)
}

func judgeAnswersTo(w *plan.Workload, engine string, r *metric.PairedAnswers) map[string]Change {
	control, candidate := &plan.Server{Engine: engine}, &plan.Server{Engine: engine}
	w.Servers = []*plan.Server{control, candidate}
	x := comparison{alpha: 0.05, whole: 0.05, nominal: once, out: &Comparison{}, Input: Input{Level: func(string, string, string) *metric.Level { return nil },
		Plan: &plan.Plan{Workloads: []*plan.Workload{w}}, Block: &plan.Compare{Name: "upgrade", Answers: &plan.Answering{Prompts: 200, MaxTokens: 64}, Policy: plan.Policy{Confidence: 0.95},
			Control: plan.Control{Server: control}, Candidate: candidate}}}
	if r != nil {
		x.record = &metric.Comparison{Answers: r}
	}
	x.reads = x.readings()
	x.read()
	out := map[string]Change{}
	for _, c := range x.out.Changes {
		out[c.Metric.Name] = c
	}
	return out
}

func TestOddAnswers(t *testing.T) {
	worse := func(nats float64) func(*metric.AnswerPair) {
		return func(p *metric.AnswerPair) { p.Candidate = read(0.3 + nats) }
	}
	every := func(n int, change func(*metric.AnswerPair)) func(int, *metric.AnswerPair) {
		return func(i int, p *metric.AnswerPair) {
			if i < n {
				change(p)
			}
		}
	}
	for _, tt := range []struct {
		name   string
		change func(int, *metric.AnswerPair)
		odd    float64
		want   verdict.Outcome
	}{
		{"none", every(0, nil), 0, verdict.Pass},
		{"two unlikely ones", every(2, worse(5)), 2, verdict.Pass},
		{"a third", every(3, worse(5)), 3, verdict.Fail},
		{"all of them by less than a nat", every(200, worse(0.9)), 0, verdict.Pass}, // answer_nll detects this
		{"more likely than the control's", every(9, worse(-0.2)), 0, verdict.Pass},
		{"three empty ones", every(3, func(p *metric.AnswerPair) { p.Candidate.Empty = true }), 3, verdict.Fail},
		{"three that repeat themselves, likely as they are", every(3, func(p *metric.AnswerPair) { p.Candidate.Repeats, p.Candidate.Loss = true, 1 }), 3, verdict.Fail},
		{"as the control's do too", every(3, func(p *metric.AnswerPair) { p.Candidate.Repeats, p.Control.Repeats = true, true }), 0, verdict.Pass},
		{"three that failed", every(3, func(p *metric.AnswerPair) { *p.Candidate = metric.PairedAnswer{Failure: "HTTP 500", Asked: 64} }), 3, verdict.Fail},
		{"three that are too long", every(3, func(p *metric.AnswerPair) { p.Candidate.Tokens, p.Control.Stops, p.Control.Finish = 900, true, "stop" }), 3, verdict.Fail},
		{"three that stop in the middle", every(3, func(p *metric.AnswerPair) {
			p.Candidate.Tokens, p.Candidate.Finish, p.Candidate.Stops = 20, "stop", true
		}), 3, verdict.Fail},
		{"three that stop in the middle and say length", every(3, func(p *metric.AnswerPair) { p.Candidate.Tokens, p.Candidate.Stops = 20, true }), 3, verdict.Fail},
		// 8 of the control's 250 answers are odd. At that rate ⌈8·200/250⌉ = 7 of the candidate's
		// 200 are odd. The default limit tolerates two more, so 9 pass.
		{"nine, where the control has eight", func(i int, p *metric.AnswerPair) {
			if i < 9 {
				p.Candidate = read(5)
			} else if i < 17 {
				p.Control = read(5)
				p.Again = nil
			}
		}, 9, verdict.Pass},
		// 10 odd answers are three more than at the control's rate, and only two are tolerated. But
		// chance may explain them. If 18 of all 450 answers are odd at random, 10 or more are among
		// the candidate's 200 with probability P(Bin(18, 200/450) ≥ 10) = 0.24.
		{"ten, where the control has eight", func(i int, p *metric.AnswerPair) {
			if i < 10 {
				p.Candidate = read(5)
			} else if i < 18 {
				p.Control = read(5)
				p.Again = nil
			}
		}, 10, verdict.Inconclusive},
		// Chance does not explain 30 odd answers of the candidate's 200. Together with the
		// control's 250 answers, 38 of 450 are odd. If they were odd at random, 30 or more would be
		// the candidate's with probability P(Bin(38, 200/450) ≥ 30) < 0.001.
		{"thirty, where the control has eight", func(i int, p *metric.AnswerPair) {
			if i < 30 {
				p.Candidate = read(5)
			} else if i < 38 {
				p.Control = read(5)
				p.Again = nil
			}
		}, 30, verdict.Fail},
	} {
		r := answersOf(200, tt.change)
		r.Again = 0
		got := judgeAnswers(r)["odd_answers"]
		must.Hold(t, got.Candidate.V == tt.odd && got.Outcome == tt.want, "%s: %v odd ones, %v: %s", tt.name, got.Candidate.V, got.Outcome, got.Message)
	}
}

func TestAnswerNLL(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	shifted := func(by, sd float64) *metric.PairedAnswers {
		return answersOf(200, func(_ int, p *metric.AnswerPair) { p.Candidate = read(0.3 + by + sd*rng.NormFloat64()) })
	}
	for _, tt := range []struct {
		name string
		r    *metric.PairedAnswers
		want verdict.Outcome
	}{
		{"none", shifted(0, 0.02), verdict.Pass},
		{"0.02 nats", shifted(0.02, 0.05), verdict.Pass},
		{"0.05 nats", shifted(0.05, 0.05), verdict.Inconclusive},
		{"0.08 nats", shifted(0.08, 0.05), verdict.Fail},
		// The candidate's answers are 0.08 nats less likely than the control's. But so are the
		// control's own second answers. What counts is the difference, 0.08 − 0.08 = 0.
		{"0.08 nats, and the control's second ones too", answersOf(200, func(_ int, p *metric.AnswerPair) {
			p.Candidate = read(0.38 + 0.01*rng.NormFloat64())
			if p.Again != nil {
				p.Again = read(0.38 + 0.01*rng.NormFloat64())
			}
		}), verdict.Pass},
		// One odd answer must not dominate the mean over 200 answers. Its loss is 9 nats for each
		// of its 64 tokens. So odd answers are counted, and left out of the mean.
		{"one odd one", answersOf(200, func(i int, p *metric.AnswerPair) {
			if p.Candidate = read(0.3 + 0.01*rng.NormFloat64()); i == 7 {
				p.Candidate = read(9)
			}
		}), verdict.Pass},
	} {
		got := judgeAnswers(tt.r)["answer_nll"]
		must.Hold(t, got.Outcome == tt.want, "%s: %v: %s", tt.name, got.Outcome, got.Message)
		must.Hold(t, strings.Contains(got.Message, "nats/token") && !strings.Contains(got.Message, "pp"), "%s: %s", tt.name, got.Message)
	}
}

// TestAnswersThatLack checks that a comparison never passes if answers, scores or records are
// missing. An engine that is known not to score texts is no error: then only the form of the
// answers is judged.
func TestAnswersThatLack(t *testing.T) {
	lacks := func(change func(r *metric.PairedAnswers)) *metric.PairedAnswers {
		r := answersOf(200, func(int, *metric.AnswerPair) {})
		change(r)
		return r
	}
	mute := lacks(func(r *metric.PairedAnswers) {
		r.Unscored = "no values"
		for i := range r.Pairs {
			r.Pairs[i].Control.Scored, r.Pairs[i].Candidate.Scored = 0, 0
		}
	})
	for _, tt := range []struct {
		name        string
		r           *metric.PairedAnswers
		odd, loss   verdict.Outcome
		emptyAnswer verdict.Outcome
	}{
		// 200 prompts are too few to certify a rate of empty answers to within one point. So the
		// rate is only shown.
		{"nothing", lacks(func(*metric.PairedAnswers) {}), verdict.Pass, verdict.Pass, verdict.Skipped},
		{"no record", nil, verdict.Error, verdict.Error, verdict.Error},
		{"no prompt", &metric.PairedAnswers{}, verdict.Error, verdict.Error, verdict.Error},
		{"a pair", lacks(func(r *metric.PairedAnswers) { r.Pairs = r.Pairs[1:] }), verdict.Error, verdict.Error, verdict.Error},
		{"an answer of the candidate's", lacks(func(r *metric.PairedAnswers) { r.Pairs[5].Candidate = nil }), verdict.Error, verdict.Error, verdict.Error},
		{"a second answer", lacks(func(r *metric.PairedAnswers) { r.Pairs[4].Again = nil }), verdict.Error, verdict.Error, verdict.Error},
		{"a score of the candidate's", lacks(func(r *metric.PairedAnswers) { r.Pairs[5].Candidate.Scored = 0 }), verdict.Error, verdict.Error, verdict.Skipped},
		{"a score of the control's", lacks(func(r *metric.PairedAnswers) { r.Pairs[5].Control.Scored = 0 }), verdict.Error, verdict.Error, verdict.Skipped},
		// If the control gave no answer at all, nothing is decided, because no change for the worse
		// could be seen.
		{"what either says", lacks(func(r *metric.PairedAnswers) {
			for i := range r.Pairs {
				r.Pairs[i].Control, r.Pairs[i].Candidate = &metric.PairedAnswer{Failure: "HTTP 400"}, &metric.PairedAnswer{Failure: "HTTP 400"}
			}
		}), verdict.Error, verdict.Error, verdict.Error},
		{"a scorer", mute, verdict.Error, verdict.Error, verdict.Skipped},
	} {
		got := judgeAnswers(tt.r)
		for name, want := range map[string]verdict.Outcome{"odd_answers": tt.odd, "answer_nll": tt.loss, "empty": tt.emptyAnswer} {
			c := got[name]
			must.Hold(t, c.Outcome == want, "%s: %s is %v, want %v: %s", tt.name, name, c.Outcome, want, c.Message)
		}
	}
	// tokgate knows that llama.cpp cannot score texts, and tells the plan's author before the run.
	// So the comparison reports no error.
	got := judgeAnswersOf("llama.cpp", mute)
	odd, loss := got["odd_answers"], got["answer_nll"]
	must.Hold(t, odd.Outcome == verdict.Pass && loss.Outcome == verdict.Skipped, "llama.cpp: %v: %s; %v: %s", odd.Outcome, odd.Message, loss.Outcome, loss.Message)
}

// TestDistanceOfVectors: how far the control's second embeddings are from its first is subtracted, and
// a comparison does not pass without embeddings of the control. Embeddings have no score. The bounds
// of equal distances are the distances themselves.
func TestDistanceOfVectors(t *testing.T) {
	vectors := func(candidate, again float64, change func(i int, p *metric.AnswerPair)) *metric.PairedAnswers {
		far := func(d float64) *metric.PairedAnswer { return &metric.PairedAnswer{Distance: &d} }
		return &metric.PairedAnswers{Pairs: []metric.AnswerPair{}, Embedded: answersOf(200, func(i int, p *metric.AnswerPair) {
			p.Control, p.Candidate = &metric.PairedAnswer{}, far(candidate)
			if p.Again != nil {
				p.Again = far(again)
			}
			change(i, p)
		})}
	}
	nothing := func(int, *metric.AnswerPair) {}
	for _, tt := range []struct {
		name string
		r    *metric.PairedAnswers
		want verdict.Outcome
	}{
		{"equal", vectors(1e-6, 1e-6, nothing), verdict.Pass},
		{"noise of 3 %: 0.03² / 2 = 0.00045", vectors(0.00045, 0, nothing), verdict.Pass},
		{"noise of 5 %: 0.05² / 2 = 0.00125", vectors(0.00125, 0, nothing), verdict.Fail},
		{"as much noise on the control", vectors(0.00125, 0.00125, nothing), verdict.Pass},
		{"one of another input: 1 / 200 = 0.005 on average", vectors(0, 0, func(i int, p *metric.AnswerPair) {
			if i == 7 {
				*p.Candidate.Distance = 1
			}
		}), verdict.Inconclusive},
		{"no embeddings of the control", vectors(0, 0, func(i int, p *metric.AnswerPair) {
			if i == 7 {
				p.Control, p.Candidate = &metric.PairedAnswer{Failure: "HTTP 500"}, &metric.PairedAnswer{}
			}
		}), verdict.Error},
		{"no second embeddings", vectors(0, 0, func(i int, p *metric.AnswerPair) { p.Again = nil }), verdict.Error},
		{"no record of embeddings", &metric.PairedAnswers{}, verdict.Error},
	} {
		got := judgeAnswersTo(&plan.Workload{Name: "index", API: plan.Embeddings}, "vllm", tt.r)
		c, ok := got["cosine_distance"]
		must.Hold(t, ok && len(got) == 1 && c.Outcome == tt.want, "%s: %d changes, %v: %s", tt.name, len(got), c.Outcome, c.Message)
	}
}

func TestFormOfAnswers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(int, *metric.AnswerPair)
		metric string
		want   verdict.Outcome
	}{
		// 10 bad answers of 200, all on the candidate, are 5 points more. The lower bound of
		// Tango's interval for them is above the tolerance of 1 point.
		{"one in 20 repeats itself", func(i int, p *metric.AnswerPair) { p.Candidate.Repeats = i%20 == 0 }, "repetition", verdict.Fail},
		{"a fifth shorter", func(_ int, p *metric.AnswerPair) { p.Candidate.Tokens = 51 }, "answer_tokens", verdict.Fail},
		{"a fifth longer", func(_ int, p *metric.AnswerPair) { p.Candidate.Tokens, p.Control.Tokens = 60, 50 }, "answer_tokens", verdict.Fail},
		{"a twentieth shorter", func(i int, p *metric.AnswerPair) { p.Candidate.Tokens = 60 + i%3 }, "answer_tokens", verdict.Pass},
	} {
		got := judgeAnswers(answersOf(200, tt.change))[tt.metric]
		must.Hold(t, got.Outcome == tt.want, "%s: %v: %s", tt.name, got.Outcome, got.Message)
	}
	r := answersOf(200, func(i int, p *metric.AnswerPair) { p.Candidate.Agrees = 0.5 })
	got := judgeAnswers(r)["agreement"]
	must.Hold(t, got.Outcome == verdict.Skipped && !got.Limit.OK && math.Abs(got.Change.V+0.5) <= 1e-9, "agreement: %+v", got)
}

// TestLogprobGap: the gap is the mean difference of log-probabilities between the servers. Two
// answers of 64 tokens differ by 3.2 and 9.6 nats in all: 12.8 / 128 = 0.1 nats per token. An odd
// answer, whose loss is far too high, does not count. The gap has no verdict.
func TestLogprobGap(t *testing.T) {
	r := answersOf(200, func(i int, p *metric.AnswerPair) {
		if gaps := map[int]float64{0: 3.2, 9: 9.6, 20: 500}; gaps[i] > 0 {
			p.Candidate.Gap, p.Candidate.Weighed = gaps[i], 64
		}
		if i == 20 {
			p.Candidate.Loss = 64 * 9
		}
	})
	got := judgeAnswers(r)["logprob_gap"]
	must.Hold(t, got.Outcome == verdict.Skipped && !got.Limit.OK && math.Abs(got.Candidate.V-0.1) <= 1e-9 && strings.Contains(got.Message, "over 2 of"), "%+v", got)
	if got, ok := judgeAnswers(answersOf(200, func(int, *metric.AnswerPair) {}))["logprob_gap"]; ok {
		t.Errorf("of no answer: %+v", got)
	}
}

var oddGates = flag.Int("odd-gates", 100, "simulated gates of each row of odd answers")

// TestLongOddAnswersCharacteristics measures how often a gate fails if each answer is odd with
// probability p.
//
// Of n answers, at least three are odd with probability 1 − P(Bin(n, p) ≤ 2). This is 99.8 % for n
// = 200 and p = 5 %, 99.7 % for n = 500 and p = 2 %, and 97.1 % for n = 700 and p = 1 %.
func TestLongOddAnswersCharacteristics(t *testing.T) {
	gates := *oddGates
	// A share measured on these gates is rarely off by more than three standard deviations.
	about := 3 * math.Sqrt(0.05*0.95/float64(gates))
	for _, tt := range []struct {
		n              int
		both, share    float64 // share of odd answers on both servers, and additional share on the candidate
		least, most    float64 // red
		mostUnfinished float64 // not passed
	}{
		{200, 0, 0, 0, 0, 0},
		{700, 0, 0, 0, 0, 0},
		{200, 0, 0.05, 0.99, 1, 1},
		{500, 0, 0.02, 0.99, 1, 1},
		{700, 0, 0.01, 0.95, 1, 1},
		{200, 0.002, 0, 0, 0.05, 0.05},
		{500, 0.002, 0, 0, 0.05, 0.06},
		{700, 0.002, 0, 0, 0.05, 0.08},
		{700, 0.002, 0.02, 0.95, 1, 1},
	} {
		red, unfinished := 0, 0
		for seed := range gates {
			rng := rand.New(rand.NewPCG(uint64(seed), uint64(tt.n)))
			answer := func(share float64) *metric.PairedAnswer {
				if rng.Float64() < share {
					return read(6)
				}
				return read(0.3)
			}
			r := answersOf(tt.n, func(i int, p *metric.AnswerPair) {
				p.Control, p.Candidate = answer(tt.both), answer(tt.both+tt.share)
				if p.Again != nil {
					p.Again = answer(tt.both)
				}
			})
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
		t.Logf("%d answers, %.1f %% odd on both, %.0f %% on the candidate besides: red in %.1f %%, not passed in %.1f %%", tt.n, 100*tt.both, 100*tt.share, 100*share, 100*rest)
		if share < tt.least-about || share > tt.most+about || rest > tt.mostUnfinished+about {
			t.Errorf("%d answers, %v and %v odd: red in %v, not passed in %v", tt.n, tt.both, tt.share, share, rest)
		}
	}
}
