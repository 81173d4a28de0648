package report

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

func TestTimeline(t *testing.T) {
	d := document()
	must.Need(t, len(d.Timelines) == 1, "%d timelines, want that of the one workload that was measured", len(d.Timelines))
	line := d.Timelines[0]
	// Level 1 is the smallest level with a problem: its threshold on ttfa could not be judged.
	must.Hold(t, line.Level == "1" && line.Why == "the smallest level at which a requirement did not hold", "level %s because it is %s", line.Level, line.Why)
	must.Hold(t, len(line.Requests) == 30 && line.Left == 0, "%d requests and %d left, want the 30 of one round", len(line.Requests), line.Left)
	// In the test recording, the second request is sent at 100 ms. Its first token comes 220 ms
	// later, and its end 421 ms after that.
	want := Bar{Slot: 0, Phase: "measured", Sent: 0.1, First: metric.Some(0.32), End: 0.741}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
	must.Same(t, "second request (-want +got)", want, line.Requests[1], near)
}

// A timeline shows a bounded number of requests, and counts the rest.
func TestTimelineIsBounded(t *testing.T) {
	round := &metric.Round{Due: 1000, Complete: true, End: time.Hour}
	for i := range 1000 {
		sent := ms(float64(i))
		round.Samples = append(round.Samples, &metric.Sample{Server: "s", Workload: "w", Level: "100", Slot: i % 100, Order: i, Phase: metric.Measured, Sent: sent, First: sent + ms(5), Last: sent + ms(9), End: sent + ms(10)})
	}
	round.Samples = append(round.Samples, &metric.Sample{Phase: metric.Warmup, End: ms(1)})
	run := &metric.Run{Servers: []*metric.ServerRun{{Address: "s"}}}
	for i := range 2 * mostTimelines {
		l := &metric.Level{Server: "s", Workload: fmt.Sprint("w", i), Name: "100", Kind: metric.ClosedLoop, N: 100, Rounds: []*metric.Round{round}}
		run.Levels = append(run.Levels, l)
	}
	d := New(run, nil, assert.Verdicts{}, Meta{})
	must.Hold(t, len(d.Timelines) == mostTimelines, "%d timelines, want %d", len(d.Timelines), mostTimelines)
	line := d.Timelines[0]
	must.Hold(t, len(line.Requests) == mostBars && len(line.Requests)+line.Left == 1000, "%d shown and %d left of 1000", len(line.Requests), line.Left)
	for _, b := range line.Requests {
		must.Need(t, b.Slot < mostSlots, "slot %d is shown, want the first %d", b.Slot, mostSlots)
	}
}

func TestCurve(t *testing.T) {
	s := passing().Cases[0].Summary("ttft")
	must.Need(t, len(s.Curve) == curvePoints, "%d points", len(s.Curve))
	// The 60 values are six each of 200, 220, …, 380 ms. Point 20 of the 41 points is the p50,
	// which is the 30th value: 280 ms.
	for i, want := range map[int]float64{0: 0.2, 20: 0.28, 38: 0.38, 40: 0.38} {
		got := s.Curve[i].V
		must.Hold(t, math.Abs(got-want) <= 1e-9, "point %d is %v, want %v", i, got, want)
	}
	must.Hold(t, s.Curve[38] == s.Percentiles.P95 && s.Curve[20] == s.Percentiles.P50, "the curve and the percentiles disagree")
}

func TestSources(t *testing.T) {
	d := document()
	must.Need(t, len(d.Plan.Sources) == 1 && d.Plan.Sources[0].File == "plans/chatbot.hcl", "%+v", d.Plan.Sources)
	lines := d.Plan.Sources[0].Lines()
	if len(lines) != 60 || lines[12] != `    api_key = "[redacted]" # </code><script>alert(2)</script>` {
		t.Errorf("%d lines, line 13 is %q", len(lines), lines[12])
	}
	odd := Source{Text: "  a  = 1\r\n\tb = \"x\u2028y\" \x1b[31m# c\n"}
	must.Same(t, "lines (-want +got)", []string{"  a  = 1", "    b = \"x y\" # c"}, odd.Lines())
	run, p, v, m := fixture()
	p.Files["plans/chatbot.hcl"].Bytes = make([]byte, sourceBytes+1)
	if d := New(run, p, v, m); len(d.Plan.Sources) != 0 {
		t.Error("a plan that is too long is kept in part")
	}
}
