package assert

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// stream returns an answer whose chunks arrive at the given times, in ms.
func stream(at ...int) *metric.Sample {
	ms := func(i int) time.Duration { return time.Duration(i) * time.Millisecond }
	x := &metric.Sample{Phase: metric.Measured, Sent: ms(at[0] - 10), First: ms(at[0]), Last: ms(at[len(at)-1]), End: ms(at[len(at)-1])}
	for i := range len(at) - 1 {
		x.Gaps.Add(ms(at[i+1] - at[i]))
	}
	return x
}

// ticks returns the times of chunks that arrive at every multiple of step between from and to.
func ticks(step, from, to int) []int {
	var out []int
	for at := from; at <= to; at += step {
		out = append(out, at)
	}
	return out
}

func TestSilences(t *testing.T) {
	steady := func(from, to int) *metric.Sample { return stream(ticks(10, from, to)...) }
	frozen := func(from, a, b, to int) *metric.Sample {
		return stream(append(ticks(10, from, a), ticks(10, b, to)...)...)
	}
	for _, c := range []struct {
		name    string
		samples []*metric.Sample
		stall   time.Duration
		want    [][2]int // ms
	}{
		{"none", []*metric.Sample{steady(100, 1000), steady(150, 1200)}, 0, nil},
		{"all streams", []*metric.Sample{frozen(100, 500, 1500, 2000), frozen(100, 500, 1500, 2000)}, 0, [][2]int{{500, 1500}}},
		{"one goes on", []*metric.Sample{frozen(100, 500, 1500, 2000), steady(100, 2000)}, 0, nil},
		{"one begins in it", []*metric.Sample{frozen(100, 500, 1500, 2000), stream(ticks(10, 900, 905)...)}, 0, [][2]int{{500, 900}, {900, 1500}}},
		{"one alone", []*metric.Sample{frozen(100, 500, 1500, 2000)}, 0, [][2]int{{500, 1500}}},
		{"shorter than ten usual gaps", []*metric.Sample{frozen(100, 500, 590, 2000)}, 0, nil},
		{"waiting between two answers", []*metric.Sample{steady(100, 500), steady(1500, 2000)}, 0, nil},
		{"the generator's own", []*metric.Sample{frozen(100, 500, 1500, 2000)}, 900 * time.Millisecond, nil},
		{"no chunk", []*metric.Sample{{Phase: metric.Measured}}, 0, nil},
	} {
		var got [][2]int
		for _, s := range silences(&metric.Round{Start: 0, End: 3 * time.Second, Samples: c.samples, Health: metric.Health{Stall: c.stall}}) {
			got = append(got, [2]int{int(s.from.Milliseconds()), int(s.to.Milliseconds())})
		}
		must.Same(t, c.name+" (-want +got)", c.want, got)
	}
}

// The server sends nothing during one of ten observed seconds. Requests that arrive in the other
// nine seconds wait 0.1 s.
func TestWaits(t *testing.T) {
	st := standstill{spans: []span{{2 * time.Second, 3 * time.Second}}, longest: time.Second, share: 0.1, seconds: 10}
	measured := []float64{0.1, 0.1, 0.1, 0.1}
	for _, c := range []struct{ x, share float64 }{
		{0.05, 1},  // every request waits longer than 0.05 s
		{0.1, 0.1}, // only requests that arrive during the silence
		{0.2, 0.09},
		{0.6, 0.05}, // only requests that arrive in the first half of the silence
		{1.1, 0}, {2, 0},
	} {
		got := st.waits(measured, c.x)
		must.Hold(t, math.Abs(got-c.share) <= 1e-9, "longer than %v: %v, want %v", c.x, got, c.share)
	}
	got := st.quantile(measured, 0.05)
	must.Hold(t, math.Abs(got-0.6) <= 1e-6, "p95 %v, want 0.6", got)
}

// TestFreezeIsSeen: a server sends nothing for one second in every ten. The samples of a closed
// loop hardly show that, because its requests wait too. So the verdict says how long requests that
// arrive at any time would wait.
func TestFreezeIsSeen(t *testing.T) {
	// Four requests are in flight. An answer has a TTFT of 0.1 s and 40 gaps of 10 ms. The server
	// stands still for the last second of every ten.
	freeze := func(at time.Duration) time.Duration {
		if r := at % (10 * time.Second); r >= 9*time.Second {
			return at + 10*time.Second - r
		}
		return at
	}
	level := func(freeze func(time.Duration) time.Duration) *metric.Level {
		l := &metric.Level{Server: "sim", Workload: "chat", Name: "4", Kind: metric.ClosedLoop, N: 4, Exact: true}
		for r := range 5 {
			begin := time.Duration(r)*40*time.Second + time.Second
			round := &metric.Round{Index: r, Start: begin, WindowStart: begin, Busy: 1, Complete: true}
			for slot := range l.N {
				at := begin + time.Duration(slot)*125*time.Millisecond
				for at < begin+30*time.Second {
					x := &metric.Sample{Server: "sim", Workload: "chat", Level: "4", Round: r, Slot: slot, Phase: metric.Measured, Scheduled: at, Sent: at,
						InputAsked: 1000, OutputAsked: 41, Usage: &metric.Usage{Input: 1000, Output: 41}, Finish: "length", Status: 200, Chunks: 41, FirstTokens: 1}
					last := freeze(at + 100*time.Millisecond)
					x.Headers, x.First, x.FirstAnswer = last, last, last
					for range 40 {
						next := freeze(last + 10*time.Millisecond)
						x.Gaps.Add(next - last)
						last = next
					}
					x.Last, x.End, at = last, last, last
					round.Samples = append(round.Samples, x)
					round.End, round.WindowEnd = max(round.End, last), max(round.WindowEnd, last)
				}
			}
			order := 0
			for _, x := range round.MeasuredSamples() {
				x.Order, order = order, order+1
			}
			round.Due = len(round.Samples)
			l.Rounds = append(l.Rounds, round)
		}
		return l
	}
	for name, l := range map[string]*metric.Level{"frozen": level(freeze), "sound": level(func(at time.Duration) time.Duration { return at })} {
		p, run := gate(l, threshold("ttft", "p95 < 2s"))
		p.Workloads[0].SLAs[0].Thresholds[0].Limit = 0.2
		v := Judge(p, run, Options{})
		load, ttft := verdictOf(t, v, "load at 4"), verdictOf(t, v, "sla.ttft.p95 at 4")
		must.Need(t, load.Outcome == verdict.Pass && ttft.Outcome == verdict.Pass, "%s: %v %s, %v %s", name, load.Outcome, load.Message, ttft.Outcome, ttft.Message)
		said := strings.Contains(strings.Join(load.NotesOf(), "\n"), "standstill: all streams stood still 15 times, for up to 1.01 s each time, and for 9.96% of the time in total")
		told := strings.Contains(strings.Join(ttft.NotesOf(), "\n"), "standstill: if requests arrived at random times, about ")
		frozen := name == "frozen"
		must.Hold(t, said == frozen && told == frozen, "%s: %q, %q", name, load.Notes, ttft.Notes)
	}
}
