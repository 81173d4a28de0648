package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/record"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/sim"
)

// With 64 requests in flight, the figures by vLLM's definitions are those of the server's own log,
// within 1 %: the log is worked out here as vLLM's client does with its own stamps.
func TestVLLMBenchOfTheServersLog(t *testing.T) { inVirtualTime(testVLLMBench)(t) }

func testVLLMBench(t *testing.T) {
	t.Chdir(t.TempDir())
	var lock sync.Mutex
	var log []sim.Served
	emits := map[string][]time.Time{}
	server := startSim(t, sim.Options{
		Listen:   memory.Listen,
		OnServed: func(s sim.Served) { lock.Lock(); log = append(log, s); lock.Unlock() },
		OnEmit:   func(id string, _ int, at time.Time) { lock.Lock(); emits[id] = append(emits[id], at); lock.Unlock() },
	})
	line := "vllm bench serve --random-input-len 128 --random-output-len 48 --random-range-ratio 0 --max-concurrency 64 --num-prompts 640"
	tokgate(t, "init", "--from", line, "--url", server.URL()).check(t, verdict.ExitPass)
	tokgate(t, "run", "--out", "run", "tokgate.hcl").check(t, verdict.ExitPass)

	run, _, err := record.Read("run")
	must.Do(t, err)
	f, err := os.Open(filepath.Join("run", "results.json"))
	must.Do(t, err)
	defer f.Close()
	d, err := report.ReadDocument(f)
	must.Need(t, err == nil && len(d.Cases) == 1 && d.Cases[0].VLLMBench != nil, "%+v, %v", d, err)
	got := d.Cases[0].VLLMBench

	slices.SortFunc(log, func(a, b sim.Served) int { return a.Arrived.Compare(b.Arrived) })
	measured := map[time.Duration]int{}
	level := run.Levels[0]
	for _, s := range level.MeasuredSamples() {
		measured[s.Sent]++
	}
	var ttft, tpot, itl, e2el []float64
	var first, last time.Time
	tokens := 0
	for _, s := range log {
		if sent := s.Arrived.Sub(run.Started); measured[sent] == 0 {
			continue
		} else if measured[sent]--; first.IsZero() {
			first = s.Arrived
		}
		ms := func(d time.Duration) float64 { return d.Seconds() * 1000 }
		ttft, e2el = append(ttft, ms(s.First.Sub(s.Arrived))), append(e2el, ms(s.Last.Sub(s.Arrived)))
		tpot = append(tpot, ms(s.Last.Sub(s.First))/float64(s.Tokens-1))
		for i, at := range emits[s.ID][1:] {
			itl = append(itl, ms(at.Sub(emits[s.ID][i])))
		}
		if tokens += s.Tokens; s.Last.After(last) {
			last = s.Last
		}
	}
	must.Need(t, len(ttft) == 640 && got.Completed == 640, "%d requests in the log, %d in the report", len(ttft), got.Completed)
	near := func(name string, want, got float64) {
		must.Hold(t, math.Abs(got/want-1) <= 0.01, "%s: %g, by the server's log %g", name, got, want)
	}
	took := last.Sub(first).Seconds()
	if level.Windowed() {
		near("duration", took, got.Duration)
		near("request throughput", 640/took, got.RequestThroughput)
		near("output throughput", float64(tokens)/took, got.OutputThroughput)
	}
	for _, x := range []struct {
		name string
		log  []float64
		got  report.Spread
	}{{"TTFT", ttft, got.TTFT}, {"TPOT", tpot, got.TPOT}, {"ITL", itl, got.ITL}, {"E2EL", e2el, got.E2EL}} {
		slices.Sort(x.log)
		sum := 0.0
		for _, v := range x.log {
			sum += v
		}
		at := func(p float64) float64 { return x.log[int(math.Round(p*float64(len(x.log)-1)))] }
		near("mean "+x.name, sum/float64(len(x.log)), x.got.Mean)
		near("median "+x.name, at(0.5), x.got.Median)
		near("p99 "+x.name, at(0.99), x.got.P99)
	}
}
