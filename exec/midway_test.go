package exec_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// A rate is judged after a quarter and after half of its requests have ended, and may only fail there.
// The load goes on meanwhile. A failure ends the window, and what was in flight is cancelled.
func TestLooksMidway(t *testing.T) {
	fail, pass := exec.Judgement{Outcome: metric.Fail}, exec.Judgement{Outcome: metric.Pass}
	for _, tt := range []struct {
		name     string
		script   []exec.Judgement // at the looks midway; then it passes
		looks    []string
		complete int // rounds
		note     bool
	}{
		{"a failure after a quarter", []exec.Judgement{fail}, []string{"20 fail"}, 3, true},
		{"after half", []exec.Judgement{{}, fail}, []string{"20 inconclusive", "40 fail"}, 6, true},
		{"a pass is none", []exec.Judgement{pass, pass}, []string{"20 inconclusive", "40 inconclusive", "80 pending"}, 10, false},
		{"what is invalid is no failure", []exec.Judgement{{Outcome: metric.Fail, Invalid: "cache"}, {}}, []string{"20 inconclusive", "40 inconclusive", "80 pending"}, 10, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answers := steady(400*time.Millisecond, 400*time.Millisecond)
			b := newBench(t, clock.NewVirtual(), gated(rateLoad(2, 80, 10), plan.Stop), func(n int, r *client.Request) reply {
				if strings.Contains(r.Prompt.Text, metric.SaturationName) {
					return reply{ttft: 1200 * time.Millisecond, itl: 1200 * time.Millisecond}
				}
				return answers(n, r)
			})
			asked := 0
			b.Judge = func(_ *plan.Workload, l *metric.Level, look exec.Look) exec.Judgement {
				ended := 0
				for _, x := range l.MeasuredSamples() {
					if !x.Canceled() {
						ended++
					}
				}
				must.Hold(t, ended >= look.Requests, "a look at %d requests finds %d", look.Requests, ended)
				if asked++; asked > len(tt.script) {
					return pass
				}
				return tt.script[asked-1]
			}
			run := must.Get(exec.Run(t.Context(), b.Config))(t)
			l := run.Levels[0]
			var looks []string
			for _, k := range l.Looks {
				looks = append(looks, fmt.Sprintf("%d %s", k.Requests, k.Outcome))
			}
			must.Same(t, "looks (-want +got):\n", "", cmp.Diff(tt.looks, looks))
			complete := 0
			for _, r := range l.Rounds {
				if r.Complete {
					complete++
				}
			}
			must.Hold(t, complete == tt.complete && len(l.Notes) > 0 == tt.note, "%d complete rounds, want %d; notes %q", complete, tt.complete, l.Notes)
		})
	}
}
