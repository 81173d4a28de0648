// Package sample extracts values from the recorded requests of a level, for thresholds and
// comparisons.
package sample

import (
	"fmt"
	"slices"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// LockStep is the synchrony above which tokgate warns about TTFT. At 0.7 the standard deviation of
// the starts, over all slots, is about an eighth of the cycle.
const LockStep = 0.7

// MedianTTFT is the median TTFT of the completed requests, in seconds; 0 if no request completed.
func MedianTTFT(samples []*metric.Sample) float64 {
	d := metric.Of(metric.MustLookup("ttft"), samples)
	d.Worst = 0
	v, _ := d.Percentile(50)
	return v
}

// Held returns the longest delay with which the client may have read a token in a round of a level.
func Held(l *metric.Level, r *metric.Round) time.Duration {
	d := l.Disturbed(r)
	return max(d.Stall, d.Delay)
}

// Light reports whether a round of a level had less load than the plan declares. At a rate it never
// does, because requests do not wait for free slots.
func Light(l *metric.Level, r *metric.Round) bool {
	return l.Kind != metric.OpenLoop && l.Disturbed(r).Load != ""
}

// Silent reports whether a level was measured, but no request completed.
func Silent(l *metric.Level) bool {
	if l == nil {
		return false
	}
	samples := l.MeasuredSamples()
	return len(samples) > 0 && !slices.ContainsFunc(samples, (*metric.Sample).Completed)
}

// Elsewhere explains why the metrics page seems to belong to another server than the one that
// answered the measured requests. It returns "" if the page seems right.
//
// A page of another server would show an empty queue at any load. The same holds for the page of
// one of several servers behind a balancer. So the page must count at least half of the output
// tokens that the requests received. Only requests that ran between two readings of the page are
// compared.
func Elsewhere(l *metric.Level) string {
	counted, brought := 0.0, 0.0
	for _, r := range l.Rounds {
		if r.Telemetry == nil {
			continue
		}
		n, ok := r.Telemetry.Added[metric.GeneratedTokens]
		if !ok {
			continue
		}
		counted += n
		for _, x := range r.All() {
			if x.Usage != nil && x.Sent >= r.Telemetry.From && x.End <= r.Telemetry.To && x.Completed() {
				brought += float64(x.Usage.Output)
			}
		}
	}
	if 2*counted >= brought {
		return ""
	}
	return fmt.Sprintf("the server's metrics page counted %.0f output tokens, but the requests received %.0f: the page belongs to another server (see metrics_url)", counted, brought)
}

// Sound returns a copy of the level without nil rounds and nil samples, which a damaged record may
// have. Later checks report what is missing.
func Sound(l *metric.Level) *metric.Level {
	out := *l
	out.Rounds, out.Voided = sound(l.Rounds), sound(l.Voided)
	return &out
}

func sound(rounds []*metric.Round) []*metric.Round {
	var out []*metric.Round
	for _, r := range rounds {
		if r == nil {
			continue
		}
		if slices.Contains(r.Samples, nil) {
			r = r.With(slices.DeleteFunc(slices.Clone(r.Samples), func(s *metric.Sample) bool { return s == nil }))
		}
		out = append(out, r.AtLimit())
	}
	return out
}
