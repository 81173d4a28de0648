package compare

import (
	"fmt"
	"math"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/metric"
)

// outcomes counts the prompts that both servers answered, for one metric of answers. lost counts
// those with a good answer only on the control, and won those with a good answer only on the
// candidate. If rounds differ by more than chance, a prompt counts as less than one.
type outcomes struct{ lost, won, all float64 }

// place identifies a question that both servers were asked. It is an item of a task, or the prompt
// at a position in a round.
type place struct {
	item         string
	round, order int
}

// paired compares the answers of both servers to the same prompts. An item of a task that was asked
// several times counts once, with its share of bad answers. A request that has no sample counts as
// bad. If the control is a recorded run, only items of tasks have the same prompts.
func (m matched) paired(def metric.Def, alpha float64) (o outcomes, ok bool) {
	type item struct {
		bad, n [2]float64
		round  int
	}
	items := map[place]*item{}
	for side, l := range []*metric.Level{m.control, m.candidate} {
		for i, r := range l.Rounds {
			for _, s := range r.MeasuredSamples() {
				if s.Canceled() || s.Says(def) == metric.Unasked {
					continue
				}
				at := place{item: s.Answer.Item}
				if at.item == "" {
					if m.unpaired {
						return outcomes{}, false
					}
					at.round, at.order = i, s.Order
				}
				x := items[at]
				if x == nil {
					x = &item{round: i}
					items[at] = x
				}
				if x.n[side]++; s.Bad(def) {
					x.bad[side]++
				}
			}
		}
	}
	groups := make([]stat.Group, max(len(m.control.Rounds), len(m.candidate.Rounds)))
	for _, x := range items {
		var bad [2]float64
		for side := range bad {
			if bad[side] = 1; x.n[side] > 0 {
				bad[side] = x.bad[side] / x.n[side]
			}
		}
		change := bad[1] - bad[0]
		o.lost += max(change, 0)
		o.won += max(-change, 0)
		o.all++
		groups[x.round].K += math.Abs(change)
		groups[x.round].N++
	}
	if o.all == 0 {
		return outcomes{}, false
	}
	if def.Name == "accuracy" {
		return o, true // items of a task are independent of each other, so each counts in full
	}
	part := stat.Effective(o.all, groups, nil, alpha) / o.all
	return outcomes{o.lost * part, o.won * part, o.all * part}, true
}

// needs says how many answers would suffice to certify that an unchanged candidate is within the
// limit: ": about 600 in all, …". It assumes that the servers disagree on the same share of answers
// as in o. It returns "" if there is no such number.
func (o outcomes) needs(limit, alpha float64) string {
	disagree := (o.lost + o.won) / o.all
	if n, ok := stat.PairedNeeded(disagree, limit, alpha, 0.5, mostAnswers); ok && limit > 0 {
		return fmt.Sprintf(": about %d in all, if the servers disagree on the same share of answers as in this run", n)
	}
	return ""
}

// mostAnswers is the largest number of answers that a report recommends. If more were needed, it
// recommends none.
const mostAnswers = 5000
