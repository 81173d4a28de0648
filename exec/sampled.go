package exec

import (
	"cmp"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// sampledAnswers is the number of measured answers that the control scores of each server, at the
// highest level of each workload. A level with fewer requests has fewer.
const sampledAnswers = 64

// sampled reports whether the workload, or a part of its mix, draws its answers at random.
// Otherwise its measured answers are like those to questions, at temperature 0.
func sampled(w *plan.Workload) bool {
	if w.API.Embeds() {
		return false
	}
	for _, part := range w.Whole() {
		if t := part.Request.Temperature; t == nil || *t > 0 {
			return true
		}
	}
	return false
}

// Samples returns how many measured answers of each server the control of a comparison scores. It
// is 0 if the comparison has no answers block.
func Samples(p *plan.Plan, c *plan.Compare) int {
	n := 0
	if c.Answers == nil || !c.Live() {
		return 0
	}
	for _, w := range c.Workloads(p) {
		most := 0
		for _, level := range w.Levels() {
			most = max(most, cmp.Or(level.Requests, sampledAnswers))
		}
		if sampled(w) {
			n += min(most, sampledAnswers)
		}
	}
	return n
}

// pick returns which of the due measured requests that server x gets next at case i have their
// answers scored. Both servers of a comparison have the same ones. A round that is measured again
// has none. The choice depends on the salt of the run, so a server cannot know it.
func (a *answering) pick(x *side, i, due int) *picked {
	if a == nil || x.asked > a.rounds || a.rounds >= len(a.picks) || !sampled(x.cases[i].Workload) {
		return nil
	}
	at, s, round := placeOf(x.cases[i]), x.runs[i], a.rounds
	for _, p := range a.places {
		if p != at {
			continue
		}
		step := max(due/max(a.picks[round], 1), 1)
		return &picked{step: step, first: int(a.run.Salt % uint64(step)), n: a.picks[round], heard: func(f *flight, said client.Said) {
			a.sampled(x, s, question{place: at, number: f.sample.Round, order: f.sample.Order, measured: true}, f, said)
		}}
	}
	return nil
}

// sampled keeps a measured answer. It leaves out answers whose text does not show all that the
// model wrote, and those at temperature 0 in a mix.
func (a *answering) sampled(x *side, s *levelRun, q question, f *flight, said client.Said) {
	t := f.lot.workload.Request.Temperature
	if f.sample.Canceled() || said.Cut || len(said.Calls) > 0 || t != nil && *t == 0 {
		return
	}
	h := a.response(q, f.lot.asking, f.sample, said)
	h.prompt = *f.prompt
	for h.part = range s.asks {
		if s.asks[h.part] == f.lot.asking {
			break
		}
	}
	x.heard = append(x.heard, h)
}

func (a *answering) scoredRequest(s *levelRun, h *response) (client.Request, error) {
	if !h.measured {
		return a.request(s, h.question)
	}
	return *s.asks[h.part].newRequest(h.prompt, h.Asked), nil
}

// sampled returns the measured answers of server x at a place that the control should have scored.
func (x *side) sampled(at place, control *side) []metric.SampledAnswer {
	var out []metric.SampledAnswer
	for _, h := range x.heard {
		if h.measured && h.place == at {
			out = append(out, metric.SampledAnswer{Workload: at.workload.Address(), Level: at.level, Round: h.number, Order: h.order,
				Candidate: x != control, PairedAnswer: *h.pairedAnswer(control)})
		}
	}
	return out
}
