package metric

import (
	"math"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
)

// window returns a level of batches that begin at the given seconds, each with one request that
// streams ten tokens in the second from its start.
func window(ends time.Duration, starts ...time.Duration) *Level {
	l := &Level{Kind: ClosedLoop, Batches: true, N: 1}
	for i, at := range starts {
		end := ends
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		s := &Sample{Round: i, Phase: Measured, Scheduled: at * time.Second, Sent: at * time.Second, First: at*time.Second + 100*time.Millisecond, Chunks: 10, FirstTokens: 1,
			Usage: &Usage{Output: 10}}
		for range 9 {
			s.Gaps.Add(100 * time.Millisecond)
		}
		s.Last = at*time.Second + time.Second
		s.End = s.Last
		l.Rounds = append(l.Rounds, &Round{Index: i, Due: 1, Start: s.Sent, End: s.End, WindowStart: at * time.Second, WindowEnd: end * time.Second, Busy: 1, Complete: true, Samples: []*Sample{s}})
	}
	return l
}

// Rates come from equal times, not from the batches' own: those that start quickly after each other
// would count as much as those that take long.
func TestWindowsOfBatches(t *testing.T) {
	l := window(8, 0, 1, 2, 4) // batches of 1, 1, 2 and 4 seconds
	cuts := l.Windows(Steady)
	must.Need(t, len(cuts) == 4, "%d parts", len(cuts))
	for i, want := range []struct{ from, to time.Duration }{{0, 2}, {2, 4}, {4, 6}, {6, 8}} {
		must.Hold(t, cuts[i].From == want.from*time.Second && cuts[i].To == want.to*time.Second, "part %d lasts from %v to %v", i+1, cuts[i].From, cuts[i].To)
		got := RateOver("throughput", cuts[i:i+1], nil)
		tokens := []float64{20, 10, 10, 0}[i]
		must.Hold(t, (tokens <= 0 || got.V == tokens/2) && (tokens == 0) != got.OK, "part %d: %+v", i+1, got)
	}
	if got := l.Value("throughput", Steady, nil, nil); got.V != 5 { // 40 tokens in 8 seconds
		t.Errorf("throughput %v", got)
	}
}

// A batch that was left out divides the window into two. Its requests still made tokens in the
// others' time.
func TestWindowsAroundAVoidedBatch(t *testing.T) {
	l := window(4, 0, 1, 2, 3)
	l.Rounds[1].Samples[0].Last += 500 * time.Millisecond // it ends within the next batch
	l.Rounds[1].Samples[0].Gaps = nil
	l.Rounds[1].Samples[0].End = l.Rounds[1].Samples[0].Last
	l.Voided, l.Rounds = []*Round{l.Rounds[1]}, []*Round{l.Rounds[0], l.Rounds[2], l.Rounds[3]}
	cuts := l.Windows(Steady)
	var got []float64
	for i, c := range cuts {
		got = append(got, c.From.Seconds(), RateOver("throughput", cuts[i:i+1], nil).V)
	}
	// From 1.1 s to 2.5 s nine tokens are spread evenly: 0.5/1.4 of them come from 2 s on.
	want := []float64{0, 10, 2, 10 + 9*0.5/1.4, 3, 10}
	for i := range want {
		must.Need(t, len(got) == len(want) && math.Abs(got[i]-want[i]) <= 1e-6, "%v, want %v", got, want)
	}
}

func TestJudged(t *testing.T) {
	l := window(8, 0, 1, 2, 4)
	l.Rounds[3].Complete = false
	for _, c := range []struct {
		name    string
		batches bool
		looks   []Look
		want    int
	}{
		{"judged at its end", true, nil, 4},
		{"ended early", true, []Look{{Requests: 2}}, 2},
		{"the last look counts", true, []Look{{Requests: 1}, {Requests: 3}}, 3},
		{"a look at more than there is", true, []Look{{Requests: 9}}, 4},
		{"rounds", false, []Look{{Requests: 2}}, 4},
	} {
		l.Batches, l.Looks = c.batches, c.looks
		got := l.Judged()
		must.Hold(t, len(got.Rounds) == c.want && len(l.Rounds) == 4, "%s: %d batches", c.name, len(got.Rounds))
	}
	must.Hold(t, (*Level)(nil).Judged() == nil, "no level has batches")
}

func TestJoined(t *testing.T) {
	l := window(8, 0, 1, 2, 4)
	for i, r := range l.Rounds {
		r.Busy = []float64{1, 1, 0.5, 0.75}[i]
	}
	w := l.Window()
	must.Hold(t, w.Due == 4 && len(w.Samples) == 4 && w.WindowEnd-w.WindowStart == 8*time.Second && w.Busy == (1+1+0.5*2+0.75*4)/8, "%+v", w)
	if w := (&Level{Batches: true}).Window(); w.Due != 0 || w.Busy != 0 {
		t.Errorf("no batches: %+v", w)
	}
	for i, one := range l.Each() {
		want := []float64{10, 5, 5, 0}[i] // as in TestWindowsOfBatches
		got := one.Value("throughput", Steady, nil, nil)
		must.Hold(t, len(one.Rounds) == 1 && one.Rounds[0].Index == i && got.V == want, "batch %d: %v, want %v", i+1, got, want)
	}
}
