package server

import (
	"math"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/metric"
)

// Names of two metrics of the Go runtime: histograms in seconds.
const (
	pauses    = "/sched/pauses/total/gc:seconds"
	latencies = "/sched/latencies:seconds"
)

// Meter measures the load generator's own process.
func Meter() exec.Meter {
	return func() func() metric.Health {
		c := clock.NewReal()
		cpu, known := CPUTime()
		before := histograms()
		return func() metric.Health {
			h := metric.Health{CPU: -1}
			if after, ok := CPUTime(); known && ok {
				// Divide by the number of cores that this process may use. A container may have
				// only some of the machine's cores.
				if wall := c.Now(); wall > 0 {
					h.CPU = min(max(float64(after-cpu)/float64(wall)/float64(runtime.GOMAXPROCS(0)), 0), 1)
				}
			}
			after := histograms()
			h.GCPause = quantile(before[pauses], after[pauses], 1)
			h.Delay = quantile(before[latencies], after[latencies], 0.99)
			return h
		}
	}
}

func histograms() map[string]*metrics.Float64Histogram {
	samples := []metrics.Sample{{Name: pauses}, {Name: latencies}}
	metrics.Read(samples)
	out := map[string]*metrics.Float64Histogram{}
	for _, s := range samples {
		if s.Value.Kind() == metrics.KindFloat64Histogram {
			h := s.Value.Float64Histogram()
			out[s.Name] = &metrics.Float64Histogram{Counts: append([]uint64(nil), h.Counts...), Buckets: h.Buckets}
		}
	}
	return out
}

// quantile returns the quantile q, in (0, 1], of a histogram between two readings. It is the upper
// edge of a bucket, or the lower edge if the upper one is infinite. It is 0 without observations.
func quantile(before, after *metrics.Float64Histogram, q float64) time.Duration {
	if before == nil || after == nil || len(before.Counts) != len(after.Counts) {
		return 0
	}
	var total uint64
	for i, n := range after.Counts {
		total += n - before.Counts[i]
	}
	if total == 0 {
		return 0
	}
	rank := uint64(math.Ceil(q * float64(total)))
	var seen uint64
	for i, n := range after.Counts {
		if seen += n - before.Counts[i]; seen >= rank {
			edge := after.Buckets[i+1]
			if math.IsInf(edge, 1) {
				edge = after.Buckets[i]
			}
			return time.Duration(edge * float64(time.Second))
		}
	}
	return 0
}
