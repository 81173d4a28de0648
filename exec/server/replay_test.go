package server

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/sim"
	"github.com/tokgate/tokgate/traffic"
)

// TestLongReplayHits replays one minute of a Mooncake trace. The hit rate of the built-in server's
// cache must differ from the trace's hit rate by at most one percentage point.
func TestLongReplayHits(t *testing.T) {
	traces := filepath.Join("..", "..", "plans", "traces")
	trace := must.Get(traffic.ReadTrace(filepath.Join(traces, "mooncake-synthetic.jsonl"), "", nil))(t)
	t.Run("in virtual time", func(t *testing.T) {
		c := clock.NewVirtual()
		s := &plan.Server{Name: "s", Engine: "openai", Simulator: &plan.Simulator{Profile: "./large.json"}}
		replayHits(t, trace, s, exec.Config{Clock: c, Launch: (&Virtual{Clock: c, Dir: traces}).Launch})
	})
	t.Run("over HTTP", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			profile := must.Get(sim.LoadProfile("./large.json", traces))(t)
			w := newWorld(t, sim.Options{Profile: profile, Seed: 1, Engine: "vllm"})
			replayHits(t, trace, vllm(), exec.Config{Clock: w.clock, Launch: w.Launch})
		})
	})
}

// replayHits replays the third minute of the trace. The number of prompt tokens that the server
// took from its cache must agree with the block ids in the trace.
func replayHits(t *testing.T, trace *traffic.Trace, s *plan.Server, config exec.Config) {
	t.Helper()
	r, err := trace.Replay(traffic.Stretch{From: 2 * time.Minute, To: 3 * time.Minute, Spread: 3 * time.Second, Seed: 1})
	must.Do(t, err)
	load := &plan.Load{
		Kind: metric.OpenLoop, Seeds: []int64{1}, Timeout: time.Hour, Open: &plan.Open{MaxInFlight: 4096, Warmup: plan.OpenWarmupAuto, Trace: r},
		Levels: []plan.Level{{Name: "trace", Rate: r.Rate(), Requests: r.Due, Rounds: 10, Speedup: 1}},
	}
	w := &plan.Workload{Name: "w", API: plan.Chat, Servers: []*plan.Server{s}, Output: plan.Output{Mean: 1}, Loads: []*plan.Load{load}}
	config.Plan = &plan.Plan{Servers: []*plan.Server{s}, Workloads: []*plan.Workload{w}}
	config.Observer, config.Run = silent, metric.Run{Salt: 7}
	run, err := exec.Run(t.Context(), config)
	if err != nil || run.Levels[0].Skipped != "" {
		t.Fatal(err, run.Levels[0].Skipped)
	}
	input, cached, n := 0, 0, 0
	rows := r.Measured()
	begin := run.Levels[0].Rounds[0].WindowStart
	for _, round := range run.Levels[0].Rounds {
		for _, x := range round.MeasuredSamples() {
			if !x.Completed() || x.Usage.Input != rows[n].Input || x.Usage.Output != rows[n].Output {
				t.Fatalf("request %d has %+v, the trace %d + %d tokens", n, x.Usage, rows[n].Input, rows[n].Output)
			}
			off := (x.Scheduled - begin) - (rows[n].At - r.From)
			must.Need(t, off.Abs() <= time.Millisecond, "request %d is due %v off its time", n, off)
			if float64(x.Usage.Cached) > x.Shared*float64(x.Usage.Input)+0.5 {
				t.Fatalf("request %d found %d tokens in the cache, and shares %.4f of %d", n, x.Usage.Cached, x.Shared, x.Usage.Input)
			}
			input, cached, n = input+x.Usage.Input, cached+x.Usage.Cached, n+1
		}
	}
	implied, found := r.HitRate(r.Before(r.First, time.Minute), 0), float64(cached)/float64(input)
	t.Logf("%d requests: %.2f %% found, %.2f %% implied", n, 100*found, 100*implied)
	must.Hold(t, n == r.Due && math.Abs(found-implied) <= 0.01, "%.4f of %d requests' prompts was found, %.4f implied", found, n, implied)
}

// A trace may hold texts in place of lengths. Of each, the built-in server finds in its cache what an
// earlier text began with: 150 words of a group, to within a block and what tokens the words make.
func TestTextsOfATrace(t *testing.T) {
	const rows, groups, block = 60, 3, 16
	var b strings.Builder
	for i := range rows {
		shared := strings.Repeat(fmt.Sprintf("river%d lake ", i%groups), 75)
		fmt.Fprintf(&b, "{\"timestamp\": %d, \"text_input\": \"%s%d %s\", \"output_length\": 4}\n", 500*i, shared, 100+i, strings.Repeat("hill ", 50))
	}
	trace := must.Get(traffic.ParseTrace(strings.NewReader(b.String()), "texts.jsonl", "", nil))(t)
	onBothSims(t, func() *plan.Workload {
		r := must.Get(trace.Replay(traffic.Stretch{}))(t)
		return &plan.Workload{Output: plan.Output{Mean: 1}, Loads: []*plan.Load{{
			Kind: metric.OpenLoop, Seeds: []int64{1}, Timeout: time.Hour, Open: &plan.Open{MaxInFlight: 4096, Warmup: plan.OpenWarmupAuto, Trace: r},
			Levels: []plan.Level{{Name: "trace", Rate: r.Rate(), Requests: r.Due, Rounds: 10, Speedup: 1}},
		}}}
	}, func(t *testing.T, samples []*metric.Sample) {
		must.Need(t, len(samples) >= rows, "%d requests", len(samples))
		for i, s := range samples {
			implied := s.Shared * float64(s.Usage.Input)
			must.Need(t, s.Usage.Output == 4 && (s.Shared > 0.5) == (i >= groups), "request %d has %+v, %.3f implied", i, s.Usage, s.Shared)
			must.Need(t, math.Abs(float64(s.Usage.Cached)-implied) <= 2*block, "request %d found %d of %d tokens, %.0f implied", i, s.Usage.Cached, s.Usage.Input, implied)
		}
	})
}
