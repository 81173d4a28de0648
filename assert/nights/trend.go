package nights

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

func (l *judgedLane) trend(nights []metric.Night, opts Options) Trend {
	def, _ := l.src.definition()
	t := Trend{Trend: l.src.key, Unit: def.Unit, Better: def.Better, Outcome: verdict.Error}
	t.Points, t.Changes = l.points(nights), l.told(nights)
	tonight := len(nights) - 1
	if len(l.others) > 0 {
		t.Runner = l.name.runner
		if t.Runner == "" {
			t.Runner = "a runner without a name"
		}
		if l.common {
			t.Runner = SeveralRunners
		}
	}
	last, lane := l.src.at[len(l.src.at)-1], l.at[len(l.at)-1]
	switch {
	case lane == tonight:
		l.decide(&t, nights, opts)
	case l.failing(tonight):
		l.decide(&t, nights, opts)
		t.Message = fmt.Sprintf("not measured here tonight, but in run %s: %s", nights[lane].Run, t.Message)
	case last == tonight:
		t.Outcome, t.Message = verdict.Skipped, fmt.Sprintf("tonight ran on another runner; run %s is the last on this one", nights[lane].Run)
	case l.src.next != nil:
		t.Outcome, t.Message = verdict.Skipped, fmt.Sprintf("this series ends with run %s, because the workload has changed since", nights[lane].Run)
	case last == lane:
		t.Message = fmt.Sprintf("was not measured tonight; the last run that measured this series is %s", nights[lane].Run)
	default:
		t.Outcome, t.Message = verdict.Skipped, fmt.Sprintf("was not measured tonight; run %s is the last on this runner", nights[lane].Run)
	}
	return t
}

func (l *judgedLane) points(nights []metric.Night) []Point {
	changed, worse := make([]bool, len(nights)), make([]bool, len(nights))
	mark := func(w night, to int) {
		from := w.From
		if l.alarm >= 0 && l.changes[l.alarm].weekly == 0 && from == l.last.From {
			from = l.changes[l.alarm].Night // where the change was located
		}
		for k := from; k <= to; k++ {
			changed[k], worse[k] = true, w.Worse
		}
	}
	for i, w := range l.watched {
		if w.Changed {
			mark(w, i)
		}
	}
	if l.last.Changed { // confirmed in hindsight
		mark(l.last, l.at[len(l.at)-1])
	}
	out := make([]Point, 0, len(l.at))
	for _, i := range l.at {
		n := nights[i]
		p := Point{Run: n.Run, Started: n.Started, Value: l.src.scale.invert(l.values[i]),
			Alarm: changed[i], Worse: worse[i], Suspect: l.watched[i].Suspect && !changed[i]}
		if n.Job != nil {
			p.URL = n.Job.URL
		}
		out = append(out, p)
	}
	return out
}

func (l *judgedLane) told(nights []metric.Night) []Move {
	var out []Move
	for _, c := range l.changes {
		n := nights[c.Night]
		t := Move{Run: n.Run, Started: n.Started, Weekly: c.weekly, P: c.P}
		t.Before, t.After = l.src.scale.invert(c.Before), l.src.scale.invert(c.After)
		if i, _ := slices.BinarySearch(l.at, c.Night); c.weekly == 0 && i > 0 {
			t.Job, t.Differs = n.Job, differs(nights[l.at[i-1]], n, l.src.key.Server)
		}
		out = append(out, t)
	}
	return out
}

func (l *judgedLane) decide(t *Trend, nights []metric.Night, opts Options) {
	at := l.at[len(l.at)-1]
	x := l.values[at]
	said := metric.Format(t.Unit, l.src.scale.invert(x))
	low, high := l.last.bounds()
	end := func(x float64) metric.Value { return metric.Some(l.src.scale.invert(l.src.scale.within(x))) }
	switch {
	case !l.last.Judged:
		t.Outcome = verdict.Skipped
		t.Message = fmt.Sprintf("%s, recorded only: this is night %d, and judging begins with night %d", said, l.last.Reference+1, l.needed()+1) + l.moved(nights)
		return
	case math.IsInf(low, 0):
		t.Outcome = verdict.Skipped
		t.Message = fmt.Sprintf("%s, recorded only: each night is so much like the night before that %d nights are too few to judge by", said, l.last.Reference)
		return
	}
	t.Tonight = &Bounds{
		Reference: l.last.Reference,
		Center:    l.src.scale.invert(l.last.Expected.Center),
		Interval:  verdict.Interval{Low: end(low), High: end(high), Confidence: 1 - l.last.Level*ofSingle},
		Noise:     l.last.Expected.Sigma,
		Shift:     l.last.Shift,
		Soon:      l.src.scale.size(max(l.last.soon(), opts.Ignore)),
	}
	t.Outcome = verdict.Pass
	if l.alarm >= 0 {
		l.decideChange(t, said, nights, opts)
		return
	}
	t.Message = fmt.Sprintf("%s, expected %s after %d nights", said, t.Tonight.Span(metric.In(t.Unit)), l.last.Reference) + l.moved(nights)
	if l.last.Back {
		t.Message += "; the value is back where it was before the alarm"
	}
	if l.last.Suspect {
		t.Suspect = true
		off := x - l.last.Expected.Center
		t.Message = fmt.Sprintf("%s, suspect: %s %s than %s, the mean of %d nights; not yet certain, the next night decides", said,
			l.src.scale.shift(off), direction(off), metric.Format(t.Unit, t.Tonight.Center), l.last.Reference)
	}
}

func (l *judgedLane) needed() int {
	if l.before.noise.N >= leastReference || !l.common && len(l.others) > 0 {
		return leastKnown
	}
	return leastReference
}

func (l *judgedLane) moved(nights []metric.Night) string {
	run := nights[l.last.Moved].Run
	for _, c := range l.changes { // the same change, where it was located
		if c.Night >= l.last.Moved-leastSegment && c.Night <= l.last.Moved+leastSegment {
			run = nights[c.Night].Run
		}
	}
	switch {
	case l.last.Moved == 0:
		return ""
	case l.last.Adopted:
		return fmt.Sprintf("; compared with the better level since run %s, which has lasted", run)
	default:
		return fmt.Sprintf("; the recorded nights are of two levels: compared with the nights since run %s", run)
	}
}

// decideChange writes the outcome and the message of a lane that has changed. It names the levels
// before and after the change, and no interval.
func (l *judgedLane) decideChange(t *Trend, said string, nights []metric.Night, opts Options) {
	c := l.changes[l.alarm]
	from := nights[c.Night]
	since := fmt.Sprintf("since run %s of %s", from.Run, from.Started.UTC().Format(time.DateOnly))
	before, after := metric.Format(t.Unit, l.src.scale.invert(c.Before)), metric.Format(t.Unit, l.src.scale.invert(c.After))
	if c.weekly != 0 {
		from = nights[l.at[len(l.at)-1]]
		t.Message = fmt.Sprintf("%s: the value creeps %s a week %s %s, from %s to %s", said, l.src.scale.shift(c.weekly), upward(c.weekly), since, before, after)
	} else {
		t.Message = fmt.Sprintf("%s: %s the value is %s %s, from %s to %s", said, since, l.src.scale.shift(c.After-c.Before), direction(c.After-c.Before), before, after)
	}
	switch {
	case l.last.Worse && l.accepted(t, nights):
	case l.last.Worse:
		t.Outcome, t.Since = verdict.Fail, from.Run
		t.Message += fmt.Sprintf("; every night fails until the value is back, or until run %s is pinned to accept the change", from.Run)
	case opts.Wait:
		t.Message += fmt.Sprintf("; this is an improvement. To hold later nights to this value, pin run %s", from.Run)
	default:
		t.Message += fmt.Sprintf("; this is an improvement, and becomes the reference when it has lasted %d nights", leastReference)
	}
}

func direction(shift float64) string { return pick(shift < 0, "lower", "higher") }

func upward(shift float64) string { return pick(shift < 0, "down", "up") }

func of(a *metric.Accept, t metric.Trend) bool {
	level := t.Level
	if t.Metric == limitMetric {
		level = ""
	}
	return a.Covers(metric.AcceptNights, t.Workload, level, t.Metric, t.Stat)
}

// accepted reports whether an accept block of the last night lets the lane's change for the worse pass.
// If so, it sets the outcome and the message.
func (l *judgedLane) accepted(t *Trend, nights []metric.Night) bool {
	accepts := nights[len(nights)-1].Accepts
	for i := range accepts {
		a := &accepts[i]
		if !of(a, l.src.key) {
			continue
		}
		var worse []float64 // since the change, the last night first
		for i := len(l.at) - 1; i >= 0 && l.at[i] >= l.last.From; i-- {
			worse = append(worse, float64(l.worse)*(l.values[l.at[i]]-l.last.Expected.Center))
		}
		if beyond(worse, l.last.Expected.Sigma, l.src.scale.allowed(a.Limit)) {
			t.Message += fmt.Sprintf("; this is beyond %s, which accept.%s accepts", a.Text, a.Name)
			return false
		}
		t.Outcome, t.Accepted = verdict.Pass, a.Name
		t.Message += "; " + a.Holds("no change")
		return true
	}
	return false
}

func remarksOn(accepts []metric.Accept, trends []Trend) (out []string) {
	for i := range accepts {
		a := &accepts[i]
		covered, needed, wide := false, false, false
		for _, t := range trends {
			if !of(a, t.Trend) || t.Tonight == nil {
				continue
			}
			covered = true
			needed = needed || t.Accepted == a.Name || t.Outcome == verdict.Fail
			s := scale{log: t.Unit != metric.Ratio}
			wide = wide || t.Accepted == a.Name && a.Wide(s.size(t.Tonight.Shift), math.Abs(a.Limit))
		}
		switch {
		case covered && !needed:
			out = append(out, fmt.Sprintf("accept.%s is no longer needed: no series that it covers is worse. Remove the block", a.Name))
		case wide:
			out = append(out, fmt.Sprintf("accept.%s is too wide: %s is more than twice the change that was measured. Accept less", a.Name, a.Text))
		}
	}
	return out
}
