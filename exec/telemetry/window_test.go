package telemetry

import (
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// at returns a reading of a server at time t. waiting is the number of waiting requests, and
// preempted the preemptions since the start. The rest is a histogram of times: the number below 1
// s, the number above 1 s, and their sum in seconds.
func at(t time.Duration, waiting, preempted, below, above, sum float64) stamped {
	return stamped{t, &Reading{
		Gauges:     map[string]float64{"waiting": waiting},
		Counters:   map[string]float64{metric.Preempted: preempted},
		Histograms: map[string]metric.Histogram{"queue_wait": {Bounds: []float64{1}, Counts: []float64{below, above}, Sum: sum}},
	}}
}

const s = time.Second

func TestSummarize(t *testing.T) {
	server := history{every: s, readings: []stamped{
		at(1*s, 9, 5, 10, 0, 2), // before the window
		at(2*s+10*time.Millisecond, 2, 5, 12, 0, 3),
		at(3*s, 4, 6, 14, 1, 6),
		at(4*s, 3, 9, 15, 4, 14),
		at(6*s-20*time.Millisecond, 0, 19, 20, 5, 20),
		at(7*s, 9, 30, 90, 90, 90), // after it
	}}
	got := summarize(span{2 * s, 6 * s, 2 * s, 6 * s}, server, history{absent: true, reason: "no GPU here"})
	if got.From != 2010*time.Millisecond || got.To != 5980*time.Millisecond || got.Reads != 6 || got.Failed != 0 {
		t.Errorf("from %v to %v, %d reads, %d failed", got.From, got.To, got.Reads, got.Failed)
	}
	// 19 − 5 preemptions.
	must.Same(t, "", map[string]float64{metric.Preempted: 14}, got.Added)
	// The histogram covers only the window: the counts and the sum at the start of the window are
	// subtracted from those at its end.
	must.Same(t, "", map[string]metric.Histogram{"queue_wait": {Bounds: []float64{1}, Counts: []float64{8, 5}, Sum: 17}}, got.Histograms)
	// The window has four readings, with the mean (2 + 4 + 3 + 0)/4 = 2.25. The two readings of 9
	// are outside.
	must.Same(t, "", map[string]metric.Gauge{"waiting": {N: 4, Mean: 2.25, Min: 0, Max: 4}}, got.Gauges)
	// The series of the gauge has its value at each reading of the round. The series of the counter
	// has, for each reading in the window, the increase since the reading before.
	want := []metric.Series{
		{Metric: "waiting", At: []int64{1000, 2010, 3000, 4000, 5980, 7000}, Values: []float64{9, 2, 4, 3, 0, 9}},
		{Metric: "preemptions", At: []int64{3000, 4000, 5980}, Values: []float64{1, 3, 10}},
	}
	must.Same(t, "", want, got.Series)
	for name, why := range map[string]string{
		"kv_usage": "the server reports no such value", "prefill": "the server reports no such value", metric.Drafts: "the server reports no such value",
		"power": "no GPU here", "gpu_clock": "no GPU here", "accept_rate": "no speculative decoding, or the server does not report it",
	} {
		must.Hold(t, got.Missing[name] == why, "%s: %q, want %q", name, got.Missing[name], why)
	}
	_, ok := got.Missing["waiting"]
	must.Hold(t, !ok, "waiting is there and missing")
}

// A window of 8 s has four parts of 2 s. One reading is late, and one fails. Both sides of an edge
// use the reading nearest to it: 0, 1.1, 4.9, 4.9 and 8 s. So the third part has nothing, and the
// parts add up to what the window has.
func TestPartsTouch(t *testing.T) {
	const ms = time.Millisecond
	server := history{every: s, readings: []stamped{
		at(0, 0, 5, 10, 0, 2), at(1100*ms, 0, 6, 11, 0, 3), at(4900*ms, 0, 9, 14, 2, 9), at(8*s, 0, 10, 20, 2, 12),
	}, failed: []failure{{2 * s, "503"}}}
	whole := summarize(span{0, 8 * s, 0, 8 * s}, server, history{absent: true})
	sum, counts := 0.0, 0.0
	for i, want := range []float64{1, 3, 0, 1} {
		from := time.Duration(2*i) * s
		part := summarize(span{from, from + 2*s, 0, 8 * s}, server, history{absent: true})
		if got, ok := part.Added[metric.Preempted]; !ok || got != want || part.To == 0 {
			t.Errorf("part %d: %v preemptions, %q; want %v", i, got, part.Missing[metric.Preempted], want)
		}
		sum, counts = sum+part.Added[metric.Preempted], counts+part.Histograms["queue_wait"].N()
		// By itself the second part would have nothing: its readings are 1.8 s away in all.
		alone := summarize(span{from, from + 2*s, from, from + 2*s}, server, history{absent: true})
		must.Hold(t, i != 1 || alone.Missing[metric.Preempted] != "", "the second part alone has a value")
	}
	if sum != 5 || whole.Added[metric.Preempted] != 5 || counts != 12 || whole.Histograms["queue_wait"].N() != 12 {
		t.Errorf("%v preemptions and %v requests in the parts, %v and %v in the window; want 5 and 12",
			sum, counts, whole.Added[metric.Preempted], whole.Histograms["queue_wait"].N())
	}
	// The first reading is 2.1 s late, more than a quarter of the window.
	server.failed, server.readings = nil, []stamped{at(2100*ms, 0, 6, 11, 0, 3), at(8*s, 0, 10, 20, 2, 12)}
	for _, of := range []span{{0, 8 * s, 0, 8 * s}, {4 * s, 6 * s, 0, 8 * s}} {
		got := summarize(of, server, history{absent: true}).Missing["queue_wait"]
		must.Hold(t, got == "no two readings are close enough to the edges of the window of 8s", "%v: %q", of, got)
	}
}

// added returns a history as if its readings had come one after another.
func added(h history) history {
	readings := h.readings
	h.readings = nil
	for _, r := range readings {
		h.add(r)
	}
	return h
}

// A value that cannot be trusted counts as missing. It is not reported as 0, and no mean includes
// it.
func TestSummarizeFailsClosed(t *testing.T) {
	good := []stamped{at(2*s, 1, 5, 10, 0, 2), at(4*s, 2, 6, 12, 0, 3), at(6*s, 3, 7, 14, 0, 4)}
	for _, tt := range []struct {
		name   string
		server history
		metric string
		want   string
	}{
		{"nothing was read", history{failed: []failure{{2 * s, "first"}, {4 * s, "500 Internal Server Error"}}}, "queue_wait", "500 Internal Server Error"},
		{"nothing was asked", history{}, "waiting", "it was not read"},
		{"off", history{absent: true, reason: "telemetry is off in the plan"}, "preemptions", "telemetry is off in the plan"},
		{"the counter began anew", history{readings: []stamped{good[0], at(4*s, 1, 0, 0, 0, 0), at(6*s, 1, 9, 20, 0, 9)}}, "preemptions", "it was restarted"},
		{"the histogram began anew", history{readings: []stamped{good[0], at(6*s, 1, 9, 9, 5, 9)}}, "queue_wait", "it was restarted"},
		{"other buckets", history{readings: []stamped{good[0], {6 * s, &Reading{Histograms: map[string]metric.Histogram{"queue_wait": {Bounds: []float64{2}, Counts: []float64{99, 99}, Sum: 99}}}}}}, "queue_wait", "it was restarted"},
		{"one reading alone", history{readings: good[:1]}, "queue_wait", "no two readings are close enough to the edges of the window of 4s"},
		{"readings far from the edges", history{readings: []stamped{good[0], at(4*s, 1, 6, 12, 0, 3)}, failed: []failure{{6 * s, "cut off"}}}, "preemptions", "since some failed: cut off"},
		{"no reading within", history{every: 5 * s, readings: []stamped{at(1900*time.Millisecond, 1, 5, 1, 1, 1), at(6100*time.Millisecond, 1, 5, 1, 1, 1)}}, "waiting", metric.TooShort},
		{"none in the window came", history{every: s, readings: []stamped{at(1*s, 1, 5, 1, 1, 1)}, failed: []failure{{3 * s, "a"}, {4 * s, "cut off"}}}, "waiting", "all readings in the window failed: cut off"},
		{"three in a row failed", history{every: s, readings: []stamped{good[0], good[2]}, failed: []failure{{3 * s, "a"}, {4 * s, "a"}, {5 * s, "cut off"}}}, "waiting",
			"nothing was read for 4s of the window; a reading was due every 1s: cut off"},
		{"nothing at the end", history{every: s, readings: good[:1]}, "waiting", "nothing was read for 4s of the window"},
		{"nothing at the beginning", history{every: s, readings: good[2:]}, "waiting", "nothing was read for 4s of the window"},
		// After a restart the server reports an empty queue, so a mean over the window would be
		// wrong.
		{"the queue of one that began anew", history{every: 2 * s, readings: []stamped{good[0], at(4*s, 0, 0, 0, 0, 0), at(6*s, 0, 9, 20, 0, 9)}}, "waiting", "it was restarted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := summarize(span{2 * s, 6 * s, 2 * s, 6 * s}, added(tt.server), history{absent: true})
			why := got.Missing[tt.metric]
			must.Hold(t, contains(why, tt.want), "%s is missing because %q, want %q", tt.metric, why, tt.want)
			_, a := got.Added[tt.metric]
			_, h := got.Histograms[tt.metric]
			_, g := got.Gauges[tt.metric]
			must.Hold(t, !a && !h && !g, "%s has a value all the same", tt.metric)
		})
	}
	got := summarize(span{6 * s, 6 * s, 6 * s, 6 * s}, history{readings: good}, history{absent: true})
	must.Hold(t, got.Missing["queue_wait"] == "there was no measured window", "without a window: %q", got.Missing["queue_wait"])
}

// Two servers behind one URL show their pages in turn. One counter that goes back voids the whole page,
// also the values that only grow, because all of them are of both servers.
func TestCounterThatWentBack(t *testing.T) {
	first, second := at(2*s, 1, 5, 10, 0, 2), at(4*s, 7, 4, 12, 0, 3) // only the preemptions fell, from 5 to 4
	third := at(6*s, 2, 6, 14, 0, 4)
	for _, tt := range []struct {
		name     string
		readings []stamped
		want     bool
	}{
		{"went back", []stamped{first, second, third}, true},
		{"went back before the window", []stamped{at(s, 1, 9, 1, 0, 1), first, third}, true},
		{"grew", []stamped{first, third}, false},
		{"one reading", []stamped{first}, false},
		{"none", nil, false},
	} {
		got := summarize(span{2 * s, 6 * s, 2 * s, 6 * s}, added(history{readings: tt.readings}), history{absent: true})
		must.Hold(t, got.Restarted == tt.want, "%s: restarted %v, want %v", tt.name, got.Restarted, tt.want)
		if tt.want && (len(got.Added)+len(got.Histograms)+len(got.Gauges)+len(got.Series) > 0 || got.Missing["server_e2e"] != restarted || got.Missing[metric.Preempted] != restarted) {
			t.Errorf("%s: values of the page are left: %+v", tt.name, got)
		}
	}
}

// A failed reading in the middle of a window does not change the values. It is only counted.
func TestSummarizeBridgesAFailure(t *testing.T) {
	got := summarize(span{2 * s, 6 * s, 2 * s, 6 * s}, history{
		every: s, readings: []stamped{at(2*s, 1, 5, 10, 0, 2), at(3*s, 2, 6, 12, 0, 3), at(6*s, 3, 7, 14, 0, 4)},
		failed: []failure{{4 * s, "500"}, {5 * s, "cut off"}},
	}, history{absent: true})
	if got.Added[metric.Preempted] != 2 || got.Gauges["waiting"] != (metric.Gauge{N: 3, Mean: 2, Min: 1, Max: 3, Missed: 2, Why: "cut off"}) || got.Failed != 2 || got.Reads != 5 {
		t.Errorf("got %+v", got)
	}
}

// If a reading of the server's metrics lacks the gauge, it counts as missed.
func TestGaugeThatIsNotTold(t *testing.T) {
	silent := at(4*s, 0, 5, 10, 0, 2)
	delete(silent.Gauges, "waiting")
	got := summarize(span{2 * s, 6 * s, 2 * s, 6 * s}, history{every: 4 * s, readings: []stamped{at(2*s, 1, 5, 10, 0, 2), silent, at(6*s, 3, 7, 14, 0, 4)}}, history{absent: true})
	g := got.Gauges["waiting"]
	must.Hold(t, g == (metric.Gauge{N: 2, Mean: 2, Min: 1, Max: 3, Missed: 1, Why: "it was not told"}), "got %+v", g)
}

// If a server reports a counter only after its first event, the counter was 0 before.
func TestCounterThatAppears(t *testing.T) {
	got := summarize(span{2 * s, 6 * s, 2 * s, 6 * s}, history{readings: []stamped{
		{2 * s, &Reading{Gauges: map[string]float64{"running": 1}}}, at(6*s, 3, 7, 14, 1, 4),
	}}, history{absent: true})
	must.Hold(t, got.Added[metric.Preempted] == 7 && got.Histograms["queue_wait"].N() == 15, "got %+v", got)
}

func TestGPUEnergy(t *testing.T) {
	gpu := func(t time.Duration, watts, joules float64) stamped {
		return stamped{t, &Reading{Gauges: map[string]float64{"power": watts}, Counters: map[string]float64{metric.Energy: joules}}}
	}
	got := summarize(span{2 * s, 6 * s, 2 * s, 6 * s}, history{}, history{every: 2 * s, readings: []stamped{gpu(2*s, 300, 1000), gpu(4*s, 500, 1800), gpu(6*s, 400, 2600)}})
	// The GPU used 2600 − 1000 = 1600 J in 4 s. The power is the mean over the readings.
	if got.Added[metric.Energy] != 1600 || got.Added[metric.EnergySeconds] != 4 || got.Gauges["power"].Mean != 400 || got.Gauges["power"].Max != 500 {
		t.Errorf("got %+v %+v", got.Added, got.Gauges)
	}
}
