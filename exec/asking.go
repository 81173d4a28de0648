package exec

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/tokgate/tokgate/answers"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

// asking is what the requests of a level are made of: all of them, or in a mix those of
// one part.
type asking struct {
	workload *plan.Workload
	level    *metric.Level // of a part its own, not that of its mix
	planned  int           // requests of the level
	prompts  Prompts
	request  client.Request // what all of them have in common
	asked    *answers.Ask   // what they ask of their answers
	kept     *kept
}

// lot is what a round sends of an asking.
type lot struct {
	*asking
	lengths  load.Lengths
	due      int   // measured requests
	measured []int // lengths of their answers, by order of start
	// first is how many measured requests of the workload came before the round's on
	// the server.
	first int
}

// pick is which lot a request of a mix is of, and its number there.
type pick struct{ lot, nth int }

// askings prepares what a level is asked; nil when it cannot be run, and l says why.
func (r *runner) askings(t *Target, c Case, l *metric.Level) (out []*asking, lost error) {
	if c.Workload.Mix == nil {
		a, lost := r.asking(t, c, l, l)
		if a == nil {
			return nil, lost
		}
		return []*asking{a}, nil
	}
	l.Exact = true
	for i, part := range c.Workload.Mix {
		of := c
		of.Workload, of.Level = part, part.Portion(c.Level)
		a, lost := r.asking(t, of, l.Parts[i], l)
		if a == nil {
			return nil, lost
		}
		l.Exact = l.Exact && a.level.Exact
		out = append(out, a)
	}
	return out, nil
}

// asking prepares what is asked by a workload at a level of its own, in a case of
// which whole is the level.
func (r *runner) asking(t *Target, c Case, l, whole *metric.Level) (a *asking, lost error) {
	prompts, err := t.Prompts(r.starting, c.Workload, r.run.Salt)
	if err != nil {
		whole.Skipped = r.secrets.Text(fmt.Sprintf("no prompts could be made: %v", err))
		if !r.check() {
			whole.Skipped = r.why()
		} else if t.Err != nil {
			lost = t.Err()
		}
		return nil, lost
	}
	request, err := requestOf(t, c)
	if err != nil {
		whole.Skipped = err.Error()
		return nil, nil
	}
	l.Exact = prompts.Exact()
	ask, err := c.Workload.Ask(0)
	if err != nil && c.Workload.Output.Natural {
		l.Notes = append(l.Notes, r.secrets.Text(unheld(err)))
	}
	return &asking{workload: c.Workload, level: l, planned: c.Level.Requests, prompts: prompts, request: request, asked: ask, kept: keptOf(l)}, nil
}

// lots prepares what a round sends, of so many measured requests in each of its parts.
func (s *series) lots(rd *round, due []int) {
	counts := []int{rd.out.Due}
	if s.Workload.Mix != nil {
		counts = s.deal(rd, due)
	}
	for i, a := range s.asks {
		l := &lot{asking: a, due: counts[i]}
		of := [2]string{a.level.Server, a.level.Workload}
		l.first = s.sent[of]
		s.sent[of] += l.due
		l.lengths = load.Lengths{
			Mean: a.workload.Output.Mean, Jitter: a.workload.Output.Jitter,
			Seed: rd.out.Seed, Workload: a.level.Workload, Level: rd.level.Name, Round: rd.out.Index,
		}
		if a.workload.Output.Natural {
			l.lengths.Jitter = 0 // the mean is the cap of an answer that ends by itself
		}
		if rd.out.Time == 0 {
			l.measured = l.lengths.Measured(l.due)
		}
		rd.lots = append(rd.lots, l)
	}
}

// deal draws which part of its mix each measured request of the round is of, and says
// how many are of each: both sides of a comparison are dealt the same.
func (s *series) deal(rd *round, due []int) []int {
	shares := s.Workload.Shares()
	counts := make([]int, len(shares))
	given := map[*series][]int{}
	for i, n := range due {
		of := s
		if len(s.stages) > 0 {
			of = s.stages[i]
		}
		if given[of] == nil {
			given[of] = of.given()
		}
		part := shares.Counts(given[of], n)
		for k, n := range part {
			counts[k], given[of][k] = counts[k]+n, given[of][k]+n
		}
		rd.pick(metric.Measured, part, i)
	}
	return counts
}

// given is how many measured requests of the level each part of its mix had so far.
func (s *series) given() []int {
	out := make([]int, len(s.asks))
	for _, r := range slices.Concat(s.before, s.level.Rounds) {
		for _, x := range r.Samples {
			for k, a := range s.asks {
				if x.Phase == metric.Measured && x.Part == a.workload.PartName() {
					out[k]++
				}
			}
		}
	}
	return out
}

// pick draws the order of further requests of a phase, so many of each part.
func (rd *round) pick(phase metric.Phase, counts []int, block int) {
	if rd.picks == nil {
		rd.picks, rd.given = map[metric.Phase][]pick{}, map[metric.Phase][]int{}
	}
	if rd.given[phase] == nil {
		rd.given[phase] = make([]int, len(counts))
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %s %d %s mix %d", rd.level.Workload, rd.level.Name, rd.out.Index, phase, block)
	for _, part := range traffic.Order(counts, rand.New(rand.NewPCG(uint64(rd.out.Seed), h.Sum64()))) {
		rd.picks[phase] = append(rd.picks[phase], pick{part, rd.given[phase][part]})
		rd.given[phase][part]++
	}
}

// of is the lot that a request is of, and its number there among those of its phase.
// What is not measured is drawn stratum by stratum: nobody knows how many there will be.
func (rd *round) of(phase metric.Phase, order int) (l *lot, nth int) {
	if rd.Workload.Mix == nil {
		return rd.lots[0], order
	}
	shares := rd.Workload.Shares()
	for len(rd.picks[phase]) <= order {
		given := rd.given[phase]
		if given == nil {
			given = make([]int, len(shares))
		}
		rd.pick(phase, shares.Counts(given, min(shares.Stratum(), mostStratum)), len(rd.picks[phase]))
	}
	p := rd.picks[phase][order]
	return rd.lots[p.lot], p.nth
}

// mostStratum bounds how many requests are drawn at a time.
const mostStratum = 100
