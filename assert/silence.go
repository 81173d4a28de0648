package assert

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// When a server stands still, every slot of a closed loop waits for its answer. So few requests are
// sent during a standstill, and the samples hardly show it. But if requests arrived at random
// times, many would meet it. The chunk gaps of all streams together show when the server stood
// still. leastSilence is the shortest time that counts.
const (
	leastSilence = 100 * time.Millisecond
	// A silence must be at least this many times as long as the usual gap between chunks.
	unusual = 10
)

// span is a period of time.
type span struct{ from, to time.Duration }

// silences returns the periods, in order, in which no stream of the round received a chunk although
// requests were being answered. A period in which the generator itself stood still does not count.
func silences(r *metric.Round) []span {
	var usual []time.Duration
	for _, x := range r.All() {
		if n := len(x.Gaps); n > 0 && x.Last > x.First {
			usual = append(usual, (x.Last-x.First)/time.Duration(n))
		}
	}
	if len(usual) == 0 {
		return nil
	}
	slices.Sort(usual)
	least := max(leastSilence, unusual*usual[len(usual)/2], 2*r.Health.Stall)
	// First find the silences of single streams. Below, only those of all streams together remain.
	var gaps []span
	for _, x := range r.All() {
		if len(x.Gaps) == 0 || time.Duration(slices.Max(x.Gaps))*time.Microsecond <= least {
			continue
		}
		chunks(x, func(from, to time.Duration) {
			if to-from > least {
				gaps = append(gaps, span{from, to})
			}
		})
	}
	if len(gaps) == 0 {
		return nil
	}
	slices.SortFunc(gaps, func(a, b span) int { return int(a.from - b.from) })
	all := gaps[:1]
	for _, g := range gaps[1:] {
		if last := &all[len(all)-1]; g.from <= last.to {
			last.to = max(last.to, g.to)
		} else {
			all = append(all, g)
		}
	}
	// A chunk on any stream ends a silence, so split silences at the chunks that came within them.
	var came []time.Duration
	for _, x := range r.All() {
		chunks(x, func(_, at time.Duration) {
			i, _ := slices.BinarySearchFunc(all, at, func(g span, at time.Duration) int { return int(g.to - at) })
			if i < len(all) && at > all[i].from {
				came = append(came, at)
			}
		})
	}
	slices.Sort(came)
	var out []span
	for _, g := range all {
		from := g.from
		for len(came) > 0 && came[0] <= g.to {
			if at := came[0]; at-from > least {
				out = append(out, span{max(from, r.Start), min(at, r.End)})
			}
			from, came = came[0], came[1:]
		}
	}
	return slices.DeleteFunc(out, func(s span) bool { return s.to-s.from <= least })
}

// chunks calls the given function for every chunk of an answer, with the times of the previous
// chunk and of the chunk itself. For the first chunk, both are its own time.
func chunks(x *metric.Sample, use func(from, to time.Duration)) {
	if x.First == 0 {
		return
	}
	at := x.First
	use(at, at)
	for _, us := range x.Gaps {
		next := at + time.Duration(us)*time.Microsecond
		use(at, next)
		at = next
	}
}

// standstill describes how often and how long a server stood still during a level.
type standstill struct {
	spans   []span
	longest time.Duration
	share   float64 // share of the rounds' time in which the server stood still
	seconds float64 // duration of the rounds, in seconds
}

// standstill finds the times in the rounds of a closed loop at which the server stood still.
func (e evidence) standstill() standstill {
	st := standstill{seconds: e.seconds()}
	if e.level.Kind != metric.ClosedLoop || !(st.seconds > 0) {
		return st
	}
	rounds := e.level.Rounds
	if e.batched() {
		rounds = []*metric.Round{e.level.Window()} // streams of several batches run at the same time
	}
	for _, r := range rounds {
		st.spans = append(st.spans, silences(r)...)
	}
	for _, s := range st.spans {
		st.longest = max(st.longest, s.to-s.from)
		st.share += (s.to - s.from).Seconds() / st.seconds
	}
	return st
}

// waits returns a lower bound for the share of requests that would take longer than x seconds if
// they arrived at random. A silence is a time in which the server sent nothing.
//
// waits assumes that a request in a silence waits until the silence ends, and then takes the median
// of the measured times. Any other request takes one of the measured times. measured is in
// ascending order, in seconds.
func (st standstill) waits(measured []float64, x float64) float64 {
	met, _ := slices.BinarySearch(measured, math.Nextafter(x, math.Inf(1)))
	share := (1 - st.share) * (1 - float64(met)/float64(len(measured)))
	usual := measured[len(measured)/2]
	for _, s := range st.spans {
		length := (s.to - s.from).Seconds()
		share += min(length, max(0, length-(x-usual))) / st.seconds
	}
	return share
}

// quantile returns the time in seconds that at most the given share of requests would exceed, if
// they arrived at random times; see waits.
func (st standstill) quantile(measured []float64, share float64) float64 {
	most := measured[len(measured)-1] + st.longest.Seconds() + measured[len(measured)/2]
	return stat.Bisect(0, most, func(x float64) bool { return st.waits(measured, x) <= share })
}

// stoodStill adds a note if the server stood still. The note says what the TTFT would be for
// requests that arrive at any time. The verdict on the load gets it, and so does a passing
// threshold on TTFT that such requests would not meet.
func (s *subject) stoodStill(load *verdict.Verdict, thresholds []judgedThreshold) {
	st := s.standstill()
	if len(st.spans) == 0 {
		return
	}
	measured := s.observe(metric.MustLookup("ttft")).all(plan.Less).Values
	if len(measured) == 0 {
		return
	}
	const p = 0.05
	at, seen := st.quantile(measured, p), measured[nearestRank(100*(1-p), len(measured))-1]
	note := fmt.Sprintf("standstill: all streams stood still %s, for up to %s each time, and for %s of the time in total",
		verdict.Count(len(st.spans), "times"), metric.Format(metric.Seconds, st.longest.Seconds()), metric.Format(metric.Ratio, st.share))
	if random, sent := metric.Format(metric.Seconds, at), metric.Format(metric.Seconds, seen); random != sent {
		note += fmt.Sprintf(". A closed loop sends few requests during a standstill. If requests arrived at random times, the ttft p95 would be about %s, not %s", random, sent)
	}
	load.Note(note)
	for i := range thresholds {
		t := thresholds[i].threshold
		if name := t.Metric.Name; name != "ttft" && name != "ttfa" || t.Stat.Kind != metric.Percentile || sample.Upward(t.Op) ||
			thresholds[i].Outcome != verdict.Pass {
			continue
		}
		if over := st.waits(s.observe(t.Metric).all(t.Op).Values, t.Limit); over > t.Allowed() {
			thresholds[i].Caution(fmt.Sprintf("standstill: if requests arrived at random times, about %s of them would wait longer than %s (allowed %s). This verdict covers only the requests that the closed loop sent",
				metric.Format(metric.Ratio, over), metric.Format(t.Metric.Unit, t.Limit), metric.Format(metric.Ratio, t.Allowed())))
		}
	}
}
