package report

import (
	"math"
	"slices"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// VLLMBench holds the figures of a level by the definitions of `vllm bench serve`, for comparison
// with that tool. They count completed requests only, and no verdict uses them. Times are in
// milliseconds. Read at vllm-project/vllm@009e6d4a, vllm/benchmarks/serve.py and
// lib/endpoint_request_func.py.
type VLLMBench struct {
	Completed int `json:"completed"`
	// Duration is the time from the first request to the end of the last one, in seconds. Of rounds
	// with a pause between them it is the total.
	Duration          float64 `json:"duration"`
	RequestThroughput float64 `json:"request_throughput"`     // requests per second
	OutputThroughput  float64 `json:"output_throughput"`      // tokens per second
	TotalThroughput   float64 `json:"total_token_throughput"` // of prompts and answers
	TTFT              Spread  `json:"ttft_ms"`                // from sending to the first chunk
	TPOT              Spread  `json:"tpot_ms"`                // (E2EL − TTFT) / (tokens − 1), of answers with two tokens or more
	ITL               Spread  `json:"itl_ms"`                 // between chunks
	E2EL              Spread  `json:"e2el_ms"`                // from sending to the last chunk
}

// Spread is the mean, the median and the 99th percentile of a figure, in milliseconds.
type Spread struct {
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
}

// vllmBench returns the figures of a level; nil if no request completed, or the server counts no
// tokens.
func vllmBench(l *metric.Level) *VLLMBench {
	rounds := l.Rounds
	if l.Windowed() {
		rounds = slices.Concat(rounds, l.Voided) // parts of the same window
	}
	var v VLLMBench
	var counted []*metric.Sample
	var in, out int
	var took time.Duration
	first, last := time.Duration(math.MaxInt64), time.Duration(0)
	for _, r := range rounds {
		for _, s := range r.MeasuredSamples() {
			if !s.Completed() || s.Usage == nil || s.First == 0 {
				continue
			}
			first, last, counted = min(first, s.Sent), max(last, s.Last), append(counted, s)
			in, out = in+s.Usage.Input, out+s.Usage.Output
		}
		if !l.Windowed() && last > first {
			took += last - first
			first, last = time.Duration(math.MaxInt64), 0
		}
	}
	if l.Windowed() {
		took = last - first
	}
	if len(counted) == 0 || took <= 0 {
		return nil
	}
	v.Completed, v.Duration = len(counted), took.Seconds()
	v.RequestThroughput, v.OutputThroughput = float64(v.Completed)/v.Duration, float64(out)/v.Duration
	v.TotalThroughput = float64(in+out) / v.Duration
	v.TTFT = timesOf(counted, func(s *metric.Sample) (time.Duration, int) { return s.First - s.Sent, 1 })
	v.TPOT = timesOf(counted, func(s *metric.Sample) (time.Duration, int) { return s.Last - s.First, s.Usage.Output - 1 })
	v.E2EL = timesOf(counted, func(s *metric.Sample) (time.Duration, int) { return s.Last - s.Sent, 1 })
	v.ITL = spreadOf(metric.Of(metric.MustLookup("itl"), counted), 1000)
	return &v
}

// timesOf returns the spread of a time per token: that of each request, divided by its number of tokens. A
// request with fewer than one is left out.
func timesOf(samples []*metric.Sample, of func(*metric.Sample) (took time.Duration, tokens int)) Spread {
	values := make([]float64, 0, len(samples))
	for _, s := range samples {
		if took, tokens := of(s); tokens > 0 {
			values = append(values, float64(took)/float64(time.Millisecond)/float64(tokens))
		}
	}
	return spreadOf(metric.NewDistribution(values, 0, metric.LowerIsBetter), 1)
}

// spreadOf interpolates between values, as numpy.percentile does. A unit of them has that many milliseconds.
func spreadOf(d metric.Distribution, unit float64) Spread {
	mean, ok := d.Mean()
	if !ok {
		return Spread{}
	}
	at := func(share float64) float64 {
		place := share * float64(d.Count()-1)
		rank := int(place) + 1
		low, high := d.Rank(rank), d.Rank(min(rank+1, d.Count()))
		return unit * (low + (place-math.Floor(place))*(high-low))
	}
	return Spread{unit * mean, at(0.5), at(0.99)}
}
