package main

import (
	"cmp"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
	"github.com/tokgate/tokgate/record"
	"github.com/tokgate/tokgate/traffic"
)

var (
	replayedRun   = flag.String("replayed", "", "hold the replays of the run in this `folder`")
	replayedPlan  = flag.String("replayed-plan", "", "against their traces in this `plan`")
	replayedBlock = flag.Int("replayed-block", 16, "of a server whose cache has blocks of so many `tokens`")
	replayedVars  vars
)

func init() { flag.Var(&replayedVars, "replayed-var", "`name=value` of a variable of it") }

// vars is a flag that may be repeated.
type vars []decode.Input

// String implements flag.Value.
func (v *vars) String() string { return "" }

// Set implements flag.Value.
func (v *vars) Set(s string) error {
	*v = append(*v, decode.Input{Var: s})
	return nil
}

// TestReplayed checks the requests of `make replay` against the trace. It compares when each
// request was due and sent, its length, and its cached tokens.
func TestReplayed(t *testing.T) {
	if *replayedRun == "" {
		t.Skip("make replay")
	}
	for _, line := range replayed(t, *replayedRun, *replayedPlan, *replayedBlock, replayedVars) {
		fmt.Println(line)
	}
}

// replayed compares the replayed levels of a run with the traces of its plan. It returns a line for
// each level.
func replayed(t *testing.T, folder, path string, block int, inputs []decode.Input) (lines []string) {
	t.Helper()
	p, diags := decode.File(decode.Options{Path: path, Inputs: inputs})
	must.Need(t, !diags.HasErrors(), "%v", diags)
	run, _, err := record.Read(folder)
	must.Do(t, err)
	for _, w := range p.Workloads {
		for _, l := range run.Levels {
			if l.Workload == w.Address() && l.Speedup > 0 && l.Skipped == "" {
				context, _ := strconv.Atoi(run.Servers[0].Fingerprint["max_model_len"])
				lines = append(lines, w.Address()+" at "+l.Name+": "+held(t, w.Replays(), l, context, block))
			}
		}
	}
	return lines
}

// held compares the requests of a level with the rows of its trace. It returns a line with the
// result.
func held(t *testing.T, r *traffic.Replay, l *metric.Level, context, block int) string {
	first := r.Before(r.First, time.Duration(float64(plan.TraceWarmup)*l.Speedup))
	implied := r.Repeats(first, r.First+r.Due, context, false)
	var sent []*metric.Sample
	for _, round := range l.Rounds {
		sent = append(sent, round.MeasuredSamples()...)
	}
	slices.SortStableFunc(sent, func(a, b *metric.Sample) int { return cmp.Compare(a.Scheduled, b.Scheduled) })
	must.Need(t, len(sent) == r.Due, "%d requests of %d rows", len(sent), r.Due)
	var lags []time.Duration
	off, input, cached, due, most, within := time.Duration(0), 0, 0, 0, 0, 0
	for i, s := range sent {
		row := &r.Rows[r.First+i]
		in, out, _ := row.Fit(context)
		if s.InputAsked != in || s.OutputAsked != out {
			t.Errorf("line %d: %d and %d tokens were asked for, the row has %d and %d", row.Line, s.InputAsked, s.OutputAsked, in, out)
		}
		at := time.Duration(float64(row.At-r.From) / l.Speedup)
		off = max(off, (s.Scheduled - l.Rounds[0].WindowStart - at).Abs())
		lags = append(lags, s.Sent-s.Scheduled)
		if s.Usage == nil || s.Usage.Cached < 0 {
			continue
		}
		// A server computes at least the last token of a prompt, so this token is never cached.
		share := min(implied[r.First-first+i], s.Usage.Input-1)
		input, cached, due = input+s.Usage.Input, cached+s.Usage.Cached, due+share
		distance := max(share-s.Usage.Cached, s.Usage.Cached-share)
		if most = max(most, distance); distance <= block {
			within++
		}
	}
	text := fmt.Sprintf("%d requests, due within %v of the trace, sent %s later", len(sent), off, spread(lags))
	if due > 0 {
		text += fmt.Sprintf("; %.2f %% of their prompt tokens found in the cache, %.2f %% implied; %d within a block of %d tokens, %d tokens off at most",
			100*float64(cached)/float64(input), 100*float64(due)/float64(input), within, block, most)
	}
	return text
}
