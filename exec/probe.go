package exec

import (
	"cmp"
	"fmt"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/search"
)

// mostInvalid is the number of invalid probes in a row after which a search ends.
const mostInvalid = 2

// units returns how much of a level was measured: its number of requests. For a load of users it is
// the number of complete rounds, because the requests of users are not known beforehand.
func (h *hunt) units(s *levelRun) int {
	if !h.counts().ByUnits {
		return s.measured()
	}
	n := 0
	for _, r := range s.level.Rounds {
		if r.Complete {
			n++
		}
	}
	return n
}

// judged returns the judge's verdict on the first requests of a level.
func (h *hunt) judged(n int, view *metric.Level, look Look) search.Result {
	j := h.judge(h.workload, view, look)
	h.follows = j.Follows
	h.invalidity = cmp.Or(j.Unjudged(), h.invalidity)
	return j.Result(n, look.Requests, view)
}

func (h *hunt) probe(p search.Probe) (search.Result, error) {
	begin := h.Clock.Now()
	h.reset()
	h.invalidity, h.last, h.spent = "", visit{}, false
	s, lost := h.samples(p)
	result := search.Result{N: p.N, Outcome: metric.Inconclusive, Requests: p.Have}
	if s.level.Skipped != "" {
		h.invalidity = s.level.Skipped
		result.Needs, result.Note = -1, h.invalidity
		return result, lost
	}
	if p.Within > 0 {
		stop := h.Clock.Timer(begin+p.Within, func() {
			if s.now != nil {
				h.spent = h.spent || s.now.out.Stopped == ""
				s.now.cut("the budget of the search was spent")
			}
		})
		defer stop()
	}
	have := h.units(s)
	h.last.requests = s.measured()
	h.observe(metric.LevelStarted{Level: s.level, Due: p.Looks[len(p.Looks)-1] - p.Have, Expected: p.Expected})
	for i, k := range p.Looks {
		if k <= have {
			continue
		}
		s.ahead = h.later(s, p.Looks[i:])
		var ended bool
		if ended, lost = s.play(h.share(s, k-have)); lost != nil {
			break
		}
		if !ended {
			h.cutShort(s, &result)
			break
		}
		have, h.last = h.units(s), visit{split: p.Planned, requests: s.measured()}
		look := Look{Requests: h.last.requests, Planned: p.Planned}
		if !h.counts().Rates && have >= k { // fewer if an exact threshold failed
			look.Spent = h.workload.SpentAtProbe(p.N, p.Planned, k)
		}
		if result = h.judged(p.N, h.view(s.level), look); h.follows && p.Purpose == search.Certify && h.check() {
			if lost = s.follow(); lost != nil {
				break
			}
			result = h.judged(p.N, h.view(s.level), look)
		}
		look.Outcome = result.Outcome
		s.level.Looks = append(s.level.Looks, look)
		if result.Outcome != metric.Inconclusive || result.Needs < 0 && k >= s.Level.Requests {
			break // before the planned end, too few requests show how many would decide
		}
	}
	s.closes()
	s.examine()
	h.done(s.level)
	result.Spent = h.Clock.Now() - begin
	return result, lost
}

// later returns the rounds from the first look to the last.
func (h *hunt) later(s *levelRun, looks []int) (due []int) {
	for i := range looks[1:] {
		due = append(due, h.share(s, looks[i+1]-looks[i])...)
	}
	return due
}

// samples returns the level whose samples a probe extends. It creates the level if it is new, and
// sets the field Skipped if the level cannot run.
func (h *hunt) samples(p search.Probe) (s *levelRun, lost error) {
	key := sampleSet{p.N, p.Set}
	if s := h.levels[key]; s != nil {
		return s, nil
	}
	c := Case{Server: h.server, Workload: h.workload, Load: h.capacity.Load, Level: h.capacity.Level(p.N)}
	if p.Set > 0 {
		c.Level.Name += fmt.Sprintf(" set %d", p.Set+1)
	}
	l := h.newLevel(c)
	l.Probe = &metric.Probe{Purpose: string(p.Purpose), Set: p.Set}
	if h.saturation != nil {
		takes(l, h.saturation)
	}
	s, lost = h.runOf(h.target, c, l)
	if s == nil {
		h.done(l)
		s = &levelRun{level: l}
	} else if h.workload.Exact() {
		s.fails = func() bool { return h.judge(h.workload, h.view(l), Look{Planned: 1}).ForGood }
	}
	h.levels[key] = s
	return s, lost
}

func (h *hunt) cutShort(s *levelRun, r *search.Result) {
	if len(s.level.Rounds) == 0 {
		return // the run ended before the round began
	}
	why := s.level.Rounds[len(s.level.Rounds)-1].Stopped
	r.Note = why
	late := s.level.Late()
	switch cut := search.CutShort(r.N, s.level); {
	case h.counts().Rates && late != "":
		r.Outcome, r.Note = metric.Saturated, late
		h.last = visit{} // no look decided it
	case cut.Outcome == metric.Fail:
		r.Outcome, r.Binding = cut.Outcome, cut.Binding
		h.last = visit{} // no look decided it
	case h.check() && !h.spent:
		r.Needs, h.invalidity = -1, why
	}
}

func (h *hunt) reset() {
	if h.target.Reset == nil || !h.check() || len(h.levels) == 0 && len(h.known) == 0 {
		return
	}
	if err := h.target.Reset(h.starting); err != nil && h.check() && !h.unreset {
		h.unreset = true
		h.notes = append(h.notes, "the server's caches were not reset between probes: "+h.secrets.Text(err.Error()))
	}
}
