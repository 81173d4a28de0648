package history

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Demo returns the same generated history of 120 nights at each call. It shows the noise of 1.5 %,
// one slow night, a slower engine version that is accepted later, and a slower driver.
func Demo() metric.History {
	const bad, upgraded, pinned, driver, nights = 30, 50, 62, 110, 120
	rng := rand.New(rand.NewPCG(120, 1))
	noisy := func(v float64) float64 { return v * math.Exp(0.015*rng.NormFloat64()) }
	run := func(n int) (string, time.Time) {
		at := time.Date(2026, 1, n, 3, 0, 0, 0, time.UTC)
		return at.Format("20060102T150405Z") + "-demo", at
	}
	var h metric.History
	for n := 1; n <= nights; n++ {
		ttft, e2e := 0.4, 6.0
		prints := metric.Fingerprint{"engine": "vllm", "version": "0.19.1", "gpu": "1 x H100", "gpu_driver": "570.86"}
		if n >= upgraded {
			ttft, prints["version"] = ttft*1.06, "0.20.0"
		}
		if n >= driver {
			e2e, prints["gpu_driver"] = e2e*1.05, "580.65"
		}
		if n == bad {
			ttft *= 1.15
		}
		id, at := run(n)
		night := metric.Night{
			Run: id, Tool: "demo", Plan: "demo", Started: at, Simulated: true,
			Job:     &metric.Job{Commit: fmt.Sprintf("%07x", 0x5eed00+n/10), Ref: "refs/heads/main", Runner: "made-up"},
			Servers: map[string]metric.Fingerprint{"vllm": prints},
		}
		for _, f := range []struct {
			name, stat string
			value      float64
		}{{"ttft", "p95", noisy(ttft)}, {"e2e", "mean", noisy(e2e)}, {"speed", "mean", noisy(42)}, {"success", "rate", 1}} {
			key := metric.Trend{Server: "vllm", Workload: "chat", Level: "16", Metric: f.name, Stat: f.stat}
			night.Figures = append(night.Figures, metric.Figure{Trend: key, Value: f.value})
		}
		h.Nights = append(h.Nights, night)
	}
	id, _ := run(upgraded)
	_, at := run(pinned)
	h.Pins = []metric.Pin{{Run: id, At: at.Add(6 * time.Hour), Why: "0.20.0 is wanted"}}
	return h
}
