package report

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// loop returns an open-loop level with requests that are due at the given seconds. Each request has
// its first token after 1 s and ends after 3 s.
func loop(name string, stage *metric.Stage, from, to time.Duration, due ...int) *metric.Level {
	r := &metric.Round{Due: len(due), Complete: true, WindowStart: from, WindowEnd: to}
	for _, at := range due {
		s := &metric.Sample{Server: "s", Workload: "w", Level: name, Phase: metric.Measured, FromDue: true}
		s.Scheduled = time.Duration(at) * time.Second
		s.Sent, s.First, s.End = s.Scheduled, s.Scheduled+time.Second, s.Scheduled+3*time.Second
		r.Samples = append(r.Samples, s)
	}
	return &metric.Level{Server: "s", Workload: "w", Name: name, Kind: metric.OpenLoop, Rate: 1, Stage: stage, Rounds: []*metric.Round{r}}
}

// sums adds up the 48 steps of a passage in four groups of 12 steps. If most is true, it returns
// the maximum of each group instead of the sum.
func sums(steps []int, most bool) (out []int) {
	for part := range slices.Chunk(steps, passageSteps/4) {
		n := 0
		for _, x := range part {
			if most {
				n = max(n, x)
			} else {
				n += x
			}
		}
		out = append(out, n)
	}
	return out
}

func TestPassages(t *testing.T) {
	stage := &metric.Stage{From: 1, To: 1}
	calm, spike := loop("calm", stage, 10*time.Second, 34*time.Second, 10, 20), loop("spike", stage, 34*time.Second, 58*time.Second, 35, 36, 36, 37, 50)
	calm.Rounds[0].Samples[0].Phase = metric.Warmup // a warm-up request in flight, not an arrival
	alone := loop("1 req/s", nil, 100*time.Second, 148*time.Second, 100, 148)
	again := loop("1 req/s", nil, 200*time.Second, 248*time.Second, 200)
	alone.Rounds = append(alone.Rounds, again.Rounds...)
	probe := loop("probe", nil, 300*time.Second, 348*time.Second, 300)
	probe.Probe = &metric.Probe{}
	part := loop("1 req/s", nil, 100*time.Second, 148*time.Second, 100)
	part.Workload = "w/part"
	alone.AddPart(part, 0.5)
	run := &metric.Run{Servers: []*metric.ServerRun{{Address: "s"}}, Levels: []*metric.Level{calm, spike, alone, probe}}
	d := New(run, nil, assert.Verdicts{}, Meta{})
	must.Need(t, len(d.Passages) == 2, "%d passages, want that of the stages and that of the rate", len(d.Passages))
	p := d.Passages[0]
	diff := cmp.Diff([]string{"calm", "spike"}, p.Levels)
	must.Hold(t, diff == "" && p.Begins[1] == 24 && p.Windows == 1 && p.At == 10 && p.Step == 1, "%s%+v", diff, p)
	// The window is from 10 s to 58 s, in four parts of 12 s. Requests are due at 20 s, at 35, 36,
	// 36 and 37 s, and at 50 s.
	if diff := cmp.Diff([]int{1, 0, 4, 1}, sums(p.Arrivals, false)); diff != "" {
		t.Error("arrivals", diff)
	}
	// At 37 s four requests are in flight, due at 35, 36, 36 and 37 s. The last three count as
	// waiting: two of them get their first token just when the last one begins.
	if diff := cmp.Diff([]int{1, 1, 4, 1}, sums(p.InFlight, true)); diff != "" {
		t.Error("in flight", diff)
	}
	if diff := cmp.Diff([]int{1, 0, 3, 1}, sums(p.Waiting, true)); diff != "" {
		t.Error("waiting", diff)
	}
	// A request is due exactly at the end of the window. It counts in the window's last step.
	if p := d.Passages[1]; p.Windows != 2 || p.sum() != 2 || p.Arrivals[passageSteps-1] != 1 {
		t.Errorf("%+v", p)
	}
	found := Check(d)
	must.Hold(t, len(found) <= 0, "%q", found)
}
