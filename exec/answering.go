package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Answered is the phase of requests whose answers are compared. They belong to no level and give no
// samples.
const Answered metric.Phase = "answers"

// answering compares how the servers of a comparison answer the same prompts. It sends them after
// the measured requests of each leg, a server's turn, at the same concurrency. Then the control
// computes how likely each answer is, if necessary in its next leg. It does the same with some of
// the measured answers (see sampled.go).
type answering struct {
	*alternation
	places []place // where answers are compared: for each workload, the level with the highest load
	due    []int   // number of prompts, for each round
	most   int     // largest number of tokens in one answer
	picks  []int   // number of measured answers to score at each place, for each round
}

// question is a prompt that both servers of a comparison answer. The control answers some prompts a
// second time.
type question struct {
	place
	number   int // of all; for a measured request the round
	order    int // number of the question at this workload and level; for a measured request in its round
	repeated bool
	measured bool
}

// response is one server's answer to a question, with the scores that servers gave it.
type response struct {
	question
	metric.PairedAnswer
	raw     string              // text of the answer; secrets are not redacted yet
	values  map[*side][]float64 // the tokens' log-probabilities, by each server that scored
	prompt  client.Prompt       // of a measured request; the prompts of other questions are made again
	vectors [][]float32         // embeddings, which are kept until the run ends; nil for text
	part    int                 // index of a measured request's workload in levelRun.asks
}

// answersOf prepares the answers for a group of comparisons. It returns nil if none of them has an
// answers block.
func (t *alternation) answersOf() *answering {
	a := &answering{alternation: t}
	prompts := 0
	for _, c := range t.group.Compares {
		if c.Answers != nil {
			prompts, a.most = max(prompts, c.Answers.Prompts), max(a.most, c.Answers.MaxTokens)
		}
	}
	rounds := answerRounds(t.looks)
	a.due, a.picks = load.Split(prompts, rounds), load.Split(sampledAnswers, rounds)
	for _, p := range t.places(t.sides) {
		i := len(a.places) - 1
		switch {
		case i < 0 || a.places[i].workload != p.workload:
			a.places = append(a.places, p)
		case heavier(p, a.places[i]):
			a.places[i] = p
		}
	}
	if prompts == 0 || len(a.places) == 0 {
		return nil
	}
	return a
}

// answerRounds returns in how many rounds the servers answer the prompts. Where a comparison may end
// at its first look, all are answered and scored by then: the round before that look is the last
// with prompts, because the control has scored their answers when the look comes.
func answerRounds(looks []int) int {
	if len(looks) > 1 {
		return max(looks[0]-1, 1)
	}
	return looks[0]
}

// heavier reports whether p's level has a larger load than q's level.
func heavier(p, q place) bool {
	x, y := p.workload.Fixed(p.level), q.workload.Fixed(q.level)
	return x != nil && y != nil && cmp.Or(cmp.Compare(x.Rate, y.Rate), cmp.Compare(x.N, y.N)) > 0
}

// questions returns the questions of a round at one workload and level. If again is true, it
// returns the questions of the previous round that the control must answer a second time.
func (a *answering) questions(round int, at place, again bool) []question {
	var out []question
	if again {
		round--
	}
	if round < 0 || round >= len(a.due) || again && round == len(a.due)-1 && len(a.looks) == 1 {
		return nil // no round follows
	}
	first := 0
	for _, n := range a.due[:round] {
		first += n
	}
	for n := first; n < first+a.due[round]; n++ {
		if a.places[n%len(a.places)] == at && (!again || repeats(n)) {
			out = append(out, question{place: at, number: n, order: n / len(a.places), repeated: again})
		}
	}
	return out
}

// repeats reports whether the control answers prompt n a second time. It does so for one prompt in
// four. The golden ratio spreads these prompts evenly, also over workloads that take turns.
func repeats(n int) bool { return uint32(n)*0x9e3779b9 < 1<<30 }

// Asks returns how many prompts the servers of a comparison answer, and how many of these prompts
// the control answers a second time. Both numbers are 0 if the comparison has no answers block.
func Asks(c *plan.Compare) (prompts, again int) {
	if c.Answers == nil || !c.Live() {
		return 0, 0
	}
	due, last := load.Split(c.Answers.Prompts, answerRounds(c.Looks())), 0
	if len(c.Looks()) == 1 {
		last = due[len(due)-1] // no round follows in which the control could answer these again
	}
	for n := range c.Answers.Prompts - last {
		if repeats(n) {
			again++
		}
	}
	return c.Answers.Prompts, again
}

// readsLast reports whether the control must start once more to score the last answers. It must if
// the number of rounds is odd and the comparison is judged once, because the candidate then runs last.
func readsLast(g plan.Group, s *plan.Server) bool {
	first := g.Compares[0]
	return len(first.Looks()) == 1 && first.Rounds%2 == 1 && !first.SideBySide &&
		slices.ContainsFunc(g.Compares, func(c *plan.Compare) bool { return c.Answers != nil && c.Control.Server == s })
}

// control reports whether server x is the control of a comparison that also compares answers.
func (a *answering) control(x *side) bool {
	for _, c := range a.group.Compares {
		if c.Answers != nil && c.Control.Server == x.server {
			return true
		}
	}
	return false
}

// ask sends the questions of the current round to server x. A second call in the same round does
// nothing.
func (a *answering) ask(x *side) {
	if a == nil || x.asked > a.rounds {
		return
	}
	x.asked = a.rounds + 1
	asked, due := make([][]question, len(x.cases)), 0
	for i, c := range x.cases {
		at := placeOf(c)
		asked[i] = a.questions(a.rounds, at, false)
		if a.control(x) {
			asked[i] = append(asked[i], a.questions(a.rounds, at, true)...)
		}
		due += len(asked[i])
	}
	done := a.count(x, false, due)
	for i, s := range x.runs {
		a.askAll(x, s, asked[i], done)
	}
}

func (a *answering) askAll(x *side, s *levelRun, questions []question, done func()) {
	ctx, cancel := context.WithCancel(a.flying)
	defer cancel()
	a.several(len(questions), inFlight(s), func(i int, over func(func())) {
		q := questions[i]
		request, err := a.request(s, q)
		if err != nil {
			over(done)
			return
		}
		var answer *client.Answer
		answer = client.NewAnswer(&metric.Sample{OutputAsked: request.Output}, func(sample *metric.Sample) {
			over(func() {
				a.hear(x, s, q, sample, answer.Said())
				done()
			})
		})
		answer.Keep(lookedAtBytes)
		s.target.Transport.Send(ctx, &request, answer)
	})
}

// count tells the observer that server x will give as many answers as the parameter due says, or
// score as many if reading is true. Each call of the returned function reports one more as done.
func (a *answering) count(x *side, reading bool, due int) func() {
	if due == 0 {
		return func() {}
	}
	e := metric.AnswersDone{Server: x.found.Address, Reading: reading, Due: due}
	a.observe(e)
	return func() {
		e.Done++
		a.observe(e)
	}
}

// request returns the request that sends a question to a server.
func (a *answering) request(s *levelRun, q question) (client.Request, error) {
	of := s.asks[q.order%len(s.asks)] // the parts of a mix take turns
	request, greedy := of.request, 0.0
	prompt, err := of.prompts.Prompt(PromptID{Level: q.level, Phase: Answered, Order: q.order / len(s.asks)})
	request.Prompt, request.Natural, request.Temperature = prompt, true, &greedy
	request.Output = min(a.most, cmp.Or(prompt.Output, of.workload.Output.Max()))
	request.Input = cmp.Or(prompt.Tokens, request.Input)
	return request, err
}

// hear keeps an answer.
func (a *answering) hear(x *side, s *levelRun, q question, sample *metric.Sample, said client.Said) {
	if sample.Canceled() {
		return // there is no answer
	}
	h := a.response(q, s.asks[q.order%len(s.asks)], sample, said)
	h.Text = a.secrets.Text(h.raw)
	x.heard = append(x.heard, h)
}

// response describes an answer that nobody has scored yet.
func (a *answering) response(q question, of *asking, sample *metric.Sample, said client.Said) *response {
	h := &response{question: q, raw: said.String(), vectors: said.Vectors, values: map[*side][]float64{}}
	h.Leg, h.Finish = a.slot, a.secrets.Text(sample.Finish)
	if h.Asked = sample.OutputAsked; sample.Usage != nil {
		h.Tokens = sample.Usage.Output
	}
	if f := sample.Failure; f != nil {
		h.Failure = a.secrets.Text(f.Message)
	}
	form := of.asked.Look(saidBy(said, sample, a.secrets))
	// form is found in the reasoning too, because a short answer may consist only of reasoning.
	h.Empty, h.Repeats, h.Invalid = strings.TrimSpace(h.raw) == "" && len(h.vectors) == 0, form.Repeats, form.Invalid
	return h
}

// score asks server x for the scores of answers that it has not scored yet. A control scores its
// own answers and those of its candidates. A candidate scores some of its own answers.
func (a *answering) score(x *side) {
	if a == nil || x.target == nil {
		return
	}
	scorer, unscored := x.target.Scorer, a.unscored(x)
	if scorer == nil && len(unscored) > 0 {
		x.unscored = "nothing reports how likely a text is"
	}
	done := a.count(x, true, len(unscored))
	for i, c := range x.cases {
		var list []*response
		for _, h := range unscored {
			if h.place == placeOf(c) {
				list = append(list, h)
			}
		}
		s := x.runs[i]
		a.several(len(list), inFlight(s), func(i int, over func(func())) {
			h := list[i]
			request, err := a.scoredRequest(s, h)
			if err != nil || x.unscored != "" {
				over(done)
				return
			}
			salt := fmt.Sprintf("%x %d %d", a.run.Salt, x.starts, x.questions)
			x.questions++
			scorer.Score(a.flying, &request, h.raw, salt, func(logprobs []float64, err error) {
				over(func() {
					a.scored(x, h, logprobs, err)
					done()
				})
			})
		})
	}
}

// scored stores the scores that server x gave to the answer h. If the server cannot score at all,
// it is not asked again. After any other error it is asked again the next time it runs.
func (a *answering) scored(x *side, h *response, logprobs []float64, err error) {
	switch {
	case errors.Is(err, client.ErrNoScores):
		x.unscored = a.secrets.Text(err.Error())
	case err == nil && !slices.ContainsFunc(logprobs, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }):
		h.values[x] = logprobs
	}
}

// unscored lists the answers that server x has not scored yet. It leaves out answers without text,
// which cannot be scored.
func (a *answering) unscored(x *side) []*response {
	var out []*response
	if x.unscored != "" {
		return nil
	}
	for _, y := range a.sides {
		for _, h := range y.heard {
			if _, known := h.values[x]; !known && h.vectors == nil && h.Readable() && a.reads(x, y, h) {
				out = append(out, h)
			}
		}
	}
	return out
}

// reads reports whether server x is to score the answer h of server y. A control scores its own
// answers and those of its candidates. A candidate scores some of its own answers.
func (a *answering) reads(x, y *side, h *response) bool {
	if x == y {
		return a.control(x) || !h.measured && repeats(h.number)
	}
	return slices.ContainsFunc(a.group.Compares, func(c *plan.Compare) bool {
		return c.Answers != nil && c.Control.Server == x.server && c.Candidate == y.server
	})
}

// unread explains why a control cannot score answers although it should; "" if it can.
func (a *answering) unread() string {
	if a == nil {
		return ""
	}
	for _, c := range a.group.Compares {
		i := slices.IndexFunc(a.sides, func(x *side) bool { return x.server == c.Control.Server })
		if c.Answers != nil && a.sides[i].unscored != "" && c.Unread(c.Workloads(a.Plan)) == "" {
			return fmt.Sprintf("the control, %s, cannot be asked how likely an answer is (%s); name the engine behind it, or leave the answers block out", c.Control.Server.Address(), a.sides[i].unscored)
		}
	}
	return ""
}

// shed drops the questions of rounds that the budget leaves out.
func (a *answering) shed() {
	if a != nil {
		a.due = a.due[:min(a.rounds, len(a.due))]
		a.picks = a.picks[:min(a.rounds, len(a.picks))]
	}
}

// rest lets each control score its remaining answers after the last round. It must run before the
// last leg ends. A control that is not running is started once more.
func (a *answering) rest() {
	if a == nil {
		return
	}
	for _, x := range a.sides {
		if len(a.unscored(x)) == 0 || !a.control(x) || !a.check() || x.target == nil && !a.start(x) {
			continue
		}
		a.score(x)
	}
}

// pairs returns the pairs of answers, from control and candidate, that a comparison judges.
func (a *answering) pairs(c *plan.Compare) *metric.PairedAnswers {
	if a == nil || c.Answers == nil {
		return nil
	}
	out := &metric.PairedAnswers{Pairs: []metric.AnswerPair{}}
	var control, candidate *side
	for _, x := range a.sides {
		switch x.server {
		case c.Control.Server:
			control = x
		case c.Candidate:
			candidate = x
		}
	}
	out.Unscored = control.unscored
	ofControl, ofCandidate := control.answered(), candidate.answered()
	all := out
	for _, at := range a.places {
		if out = all; at.workload.API.Embeds() {
			if all.Embedded == nil {
				all.Embedded = &metric.PairedAnswers{Pairs: []metric.AnswerPair{}}
			}
			out = all.Embedded
		}
		for round := range a.due {
			out.Again += len(a.questions(round+1, at, true))
			for _, q := range a.questions(round, at, false) {
				out.Due++
				pair := metric.AnswerPair{Workload: at.workload.Address(), Level: at.level, Order: q.order}
				pair.Control, pair.Candidate = ofControl[q].pairedAnswer(control), ofCandidate[q].pairedAnswer(control)
				ofCandidate[q].weigh(pair.Candidate, candidate, control)
				q.repeated = true
				pair.Again = ofControl[q].pairedAnswer(control)
				pair.Hold()
				first := q
				first.repeated = false
				ofCandidate[first].apart(pair.Candidate, ofControl[first])
				ofControl[q].apart(pair.Again, ofControl[first])
				if withheld(at.workload) {
					for _, x := range []*metric.PairedAnswer{pair.Control, pair.Candidate, pair.Again} {
						if x != nil {
							x.Text = ""
						}
					}
				}
				if pair.Control != nil || pair.Candidate != nil {
					out.Pairs = append(out.Pairs, pair)
				}
			}
		}
		out.Sampled = append(append(out.Sampled, control.sampled(at, control)...), candidate.sampled(at, control)...)
	}
	return all
}

// apart sets how far embeddings are from the control's first ones. Embeddings that are missing are as
// far as those of another input.
func (h *response) apart(out *metric.PairedAnswer, first *response) {
	if h == nil || first == nil {
		return
	}
	if d, ok := metric.Distance(first.vectors, h.vectors); ok {
		out.Distance = &d
	}
}

// withheld reports whether w or a part of its mix does not record the text of its answers.
func withheld(w *plan.Workload) bool {
	return slices.ContainsFunc(w.Whole(), func(w *plan.Workload) bool {
		return w.Answers.Store == plan.StoreHash || w.Answers.Store == plan.StoreNone
	})
}

// answered returns the answers of server x by question.
func (x *side) answered() map[question]*response {
	out := map[question]*response{}
	for _, h := range x.heard {
		out[h.question] = h
	}
	return out
}

// pairedAnswer returns the answer together with the control's scores of it; nil if there is no
// answer.
func (h *response) pairedAnswer(control *side) *metric.PairedAnswer {
	if h == nil {
		return nil
	}
	out := h.PairedAnswer
	for _, v := range h.values[control] {
		out.Loss, out.Scored, out.Worst = out.Loss-v, out.Scored+1, max(out.Worst, -v)
	}
	return &out
}

// weigh adds up how much the log-probabilities of an answer differ between two servers, own and
// control. It does nothing if the servers count different numbers of tokens.
func (h *response) weigh(out *metric.PairedAnswer, own, control *side) {
	if h == nil || len(h.values[own]) != len(h.values[control]) {
		return
	}
	for i, v := range h.values[own] {
		out.Gap, out.Weighed = out.Gap+math.Abs(v-h.values[control][i]), out.Weighed+1
	}
}
