package metric_test

import (
	"fmt"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// A failed request has no value, but ranks above every value. So the p99 of these four requests is
// infinite.
func ExampleOf() {
	ttft, _ := metric.Lookup("ttft")
	var samples []*metric.Sample
	for _, first := range []time.Duration{200 * time.Millisecond, 300 * time.Millisecond, 1500 * time.Millisecond} {
		samples = append(samples, &metric.Sample{Phase: metric.Measured, First: first})
	}
	samples = append(samples, &metric.Sample{Phase: metric.Measured, Failure: &metric.Failure{Kind: metric.FailTimeout}})
	d := metric.Of(ttft, samples)
	for _, p := range []float64{50, 75, 99} {
		v, _ := d.Percentile(p)
		fmt.Printf("p%g %s\n", p, metric.Format(ttft.Unit, v))
	}
	// Output:
	// p50 300 ms
	// p75 1.5 s
	// p99 ∞
}
