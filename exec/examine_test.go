package exec_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// TestCacheTest: after the load, a new prompt is sent three times, and then another new one. An
// answer has 48 tokens. At 2 ms a token, the 47 gaps take 94 ms, and a whole request with a TTFT of
// 10 ms takes 104 ms. From a cache, whole requests take the 1 ms of their TTFT.
func TestCacheTest(t *testing.T) {
	const ms = time.Millisecond
	written := reply{text: "w", ttft: 10 * ms, itl: 2 * ms}
	cached := reply{text: "w", ttft: ms}
	for _, tt := range []struct {
		name string
		said [4]reply
		held time.Duration // the generator stands still when it sends the second request
		want *metric.CacheTest
	}{
		{name: "written each time", said: [4]reply{written, written, written, written},
			want: &metric.CacheTest{First: 94 * ms, Fresh: 94 * ms, Again: []time.Duration{104 * ms, 104 * ms}}},
		{name: "a cache", said: [4]reply{written, cached, cached, written},
			want: &metric.CacheTest{First: 94 * ms, Fresh: 94 * ms, Again: []time.Duration{ms, ms}}},
		{name: "in one piece", said: [4]reply{cached, cached, cached, written},
			want: &metric.CacheTest{First: 0, Fresh: 94 * ms, Again: []time.Duration{ms, ms}}},
		{name: "another answer the second time", said: [4]reply{written, {text: "v", ttft: ms}, cached, written}},
		{name: "a failure", said: [4]reply{written, cached, cached, {status: errBusy}}},
		{name: "a standstill", said: [4]reply{written, cached, cached, written}, held: 2 * metric.LeastStall},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sent := 0
				b := newBench(t, clock.NewReal(), planOf(48, closedLoad(1, 2)), func(_ int, r *client.Request) reply {
					if !strings.Contains(r.Prompt.Text, "Phase:again") {
						return written
					}
					if sent++; sent == 2 {
						time.Sleep(tt.held) // holds up the loop
					}
					return tt.said[sent-1]
				})
				b.target.Tokens = func(context.Context, string, string) (int, error) { return 48, nil }
				run := must.Get(exec.Run(t.Context(), b.Config))(t)
				var got *metric.CacheTest
				if a := run.Levels[0].Answers; a != nil {
					got = a.Cache
				}
				must.Same(t, "(-want +got)", tt.want, got)
			})
		})
	}
}
