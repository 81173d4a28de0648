package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
	"github.com/tokgate/tokgate/record"
)

var (
	longSamples = flag.Int("samples", 100_000, "requests of the recording that BenchmarkJudge judges: one takes 2 KB on disk")
	longKept    = flag.String("recording", "", "folder in which BenchmarkJudge leaves its recording and plan.hcl; one that is there is judged as it is")
)

// BenchmarkJudge judges a long recording: 20 workloads at 10 levels each, 5 rounds a level,
// answers of 250 tokens. It reports the time and the largest memory of one tokgate process.
func BenchmarkJudge(b *testing.B) {
	dir := *longKept
	if dir == "" {
		dir = b.TempDir()
	}
	if _, err := os.Stat(filepath.Join(dir, record.File)); err != nil {
		longRecording(b, dir, *longSamples)
	}
	for b.Loop() {
		var out, errs bytes.Buffer
		code := Main(context.Background(), []string{"judge", dir, filepath.Join(dir, "plan.hcl"), "--out", filepath.Join(dir, "reports")}, os.Environ(), Streams{Out: &out, Err: &errs})
		if code != 0 {
			b.Fatalf("exit %d: %s\n%.3000s", code, &errs, &out)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N)*1e6/float64(*longSamples), "ms/million")
}

// longPlan returns a plan with 200 levels.
func longPlan(samples int) string {
	var out strings.Builder
	out.WriteString("server \"s\" {\n  endpoint { url = \"http://127.0.0.1:1\" }\n}\n")
	for i := range 20 {
		fmt.Fprintf(&out, `
workload "w%d" {
  input_tokens  = %d
  output_tokens = 250
  load {
    concurrency = [4, 8, 12, 16, 20, 24, 28, 32, 48, 64]
    requests    = %d
    seeds       = [1, 2, 3, 4, 5]
  }
  sla {
    ttft  = "p95 < 3s"
    itl   = "p99 < 80ms"
    speed = "mean > 10 tok/s"
    e2e   = "p95 < 20s"
  }
}
`, i, 100*(i+1), samples/200)
	}
	return out.String()
}

// longRecording records an undisturbed run of longPlan.
func longRecording(tb testing.TB, dir string, samples int) {
	tb.Helper()
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	w, err := record.Create(dir)
	must(err)
	file := filepath.Join(dir, "plan.hcl")
	must(os.WriteFile(file, []byte(longPlan(samples)), 0o644))
	p, diags := decode.File(decode.Options{Path: file})
	if diags.HasErrors() {
		tb.Fatal(diags)
	}
	run := &metric.Run{ID: "long", Tool: "test", Plan: p.Path, PlanHash: p.Hash, Started: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)}
	must(w.Observe(metric.RunStarted{Run: run}))
	s := &metric.ServerRun{Address: p.Servers[0].Address()}
	must(w.Observe(metric.ServerReady{Server: s}))
	rng := rand.New(rand.NewPCG(1, 2))
	for _, workload := range p.Workloads {
		load := workload.Loads[0]
		for _, level := range load.Levels {
			l := &metric.Level{Server: s.Address, Workload: workload.Address(), Name: level.Name, Kind: load.Kind, N: level.N, Exact: true, Asked: workload.Asked(p.Servers[0], load)}
			must(w.Observe(metric.LevelStarted{Level: l, Due: level.Requests}))
			for i := range level.Rounds {
				run.End = longRound(tb, w, rng, l, level, i, run.End)
			}
			must(w.Observe(metric.LevelDone{Level: l}))
		}
	}
	must(w.Observe(metric.ServerDone{Server: s}))
	must(w.Observe(metric.RunDone{Run: run}))
	must(w.Close())
}

// longRound records a round that starts at begin, and returns when it ended.
func longRound(tb testing.TB, w *record.Writer, rng *rand.Rand, l *metric.Level, level plan.Level, index int, begin time.Duration) (end time.Duration) {
	r := &metric.Round{Index: index, Seed: int64(index + 1), Due: level.RoundRequests(index), Busy: 1, Complete: true, Health: metric.Health{CPU: 0.1}}
	next := make([]time.Duration, l.N)
	for slot := range next {
		next[slot] = begin + time.Duration(1+slot)*time.Millisecond
	}
	r.Start, r.WindowStart = next[0], next[l.N-1]
	for i := range r.Due {
		slot := i % l.N
		sent := next[slot]
		x := &metric.Sample{Server: l.Server, Workload: l.Workload, Level: l.Name, Round: index, Slot: slot, Order: i, Phase: metric.Measured,
			Scheduled: sent, Sent: sent + 20_000, Headers: sent + 300_000, First: sent + time.Duration(2e8*(0.5+rng.Float64())), Chunks: 250, FirstTokens: 1,
			InputAsked: l.Asked.Input, OutputAsked: 250, Usage: &metric.Usage{Input: l.Asked.Input, Output: 250}, Finish: "length", Status: 200}
		x.FirstAnswer, x.Last = x.First, x.First
		for range x.Chunks - 1 {
			gap := time.Duration(20e6 * (0.8 + 0.4*rng.Float64()))
			x.Gaps.Add(gap)
			x.Last += gap
		}
		x.End = x.Last + 100_000
		next[slot] = x.End
		r.End = max(r.End, x.End)
		must.Do(tb, w.Observe(metric.SampleDone{Sample: x}))
	}
	r.WindowEnd = next[0]
	for _, t := range next {
		r.WindowEnd = min(r.WindowEnd, t)
	}
	must.Do(tb, w.Observe(metric.RoundDone{Level: l, Round: r}))
	return r.End
}
