package metric

import (
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
)

// Two replicas as one server. Counters and histograms are summed: 3 + 4, (1, 2) + (0, 1). The gauge
// has the mean of all readings, (2·1 + 1·4) / 3, and the extremes of both. The series is that with
// the larger mean. What one of them lacks is missing, with its name.
func TestTogether(t *testing.T) {
	a := &Telemetry{From: time.Second, To: 9 * time.Second, Reads: 3,
		Added: map[string]float64{"preemptions": 3}, Histograms: map[string]Histogram{"server_ttft": {Bounds: []float64{1}, Counts: []float64{1, 2}, Sum: 5}},
		Gauges: map[string]Gauge{"waiting": {N: 2, Mean: 1, Min: 0, Max: 2}, "kv_usage": {N: 1, Mean: 0.5, Min: 0.5, Max: 0.5}},
		Series: []Series{{"waiting", []int64{1, 2}, []float64{0, 2}}}, Missing: map[string]string{}}
	b := &Telemetry{From: 2 * time.Second, To: 8 * time.Second, Reads: 2, Failed: 1,
		Added: map[string]float64{"preemptions": 4}, Histograms: map[string]Histogram{"server_ttft": {Bounds: []float64{1}, Counts: []float64{0, 1}, Sum: 2}},
		Gauges: map[string]Gauge{"waiting": {N: 1, Mean: 4, Min: 4, Max: 4}},
		Series: []Series{{"waiting", []int64{1}, []float64{4}}}, Missing: map[string]string{"kv_usage": "not told"}}
	want := &Telemetry{From: 2 * time.Second, To: 8 * time.Second, Reads: 5, Failed: 1,
		Added: map[string]float64{"preemptions": 7}, Histograms: map[string]Histogram{"server_ttft": {Bounds: []float64{1}, Counts: []float64{1, 3}, Sum: 7}},
		Gauges: map[string]Gauge{"waiting": {N: 3, Mean: 2, Min: 0, Max: 4}},
		Series: []Series{{"waiting", []int64{1}, []float64{4}}}, Missing: map[string]string{"kv_usage": "http://b: not told"}}
	must.Same(t, "together (-want +got)", want, Together([]*Telemetry{a, b}, []string{"http://a", "http://b"}))

	b.Histograms["server_ttft"] = Histogram{Bounds: []float64{2}, Counts: []float64{0, 1}}
	if got := Together([]*Telemetry{a, b}, []string{"a", "b"}); got.Missing["server_ttft"] == "" || len(got.Histograms) > 0 {
		t.Errorf("histograms with other buckets give %v", got.Histograms)
	}
}
