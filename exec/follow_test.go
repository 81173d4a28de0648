package exec_test

import (
	"slices"
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
	"github.com/tokgate/tokgate/search"
)

// saturable answers 20 req/s if 20 requests are in flight, each of three tokens. Requests at a rate
// are fast.
func saturable(_ int, r *client.Request) reply {
	if strings.Contains(r.Prompt.Text, metric.SaturationName) {
		return reply{ttft: 400 * ms, itl: 300 * ms}
	}
	return reply{ttft: 20 * ms, itl: ms}
}

// awaiting judges that a saturation after the level is missing, until there is one.
func awaiting(_ *plan.Workload, l *metric.Level, _ exec.Look) exec.Judgement {
	if l.After == nil {
		return exec.Judgement{Outcome: metric.Inconclusive, Follows: true, Needs: -1}
	}
	return exec.Judgement{Outcome: metric.Pass}
}

func namesOf(levels []*metric.Level) (names []string) {
	for _, l := range levels {
		names = append(names, l.Name)
	}
	return names
}

// The server answers 20 req/s. After a level at 2 req/s, a saturation of 20 s shows that this is
// certainly more. After a level at 20 req/s, 60 s do not.
func TestFollows(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rate  float64
		judge exec.Judge
		takes time.Duration // the window of the saturation after the level; 0: there is none
	}{
		{"below the largest rate", 2, awaiting, 20 * time.Second},
		{"at the largest rate", 20, awaiting, time.Minute},
		{"not awaited", 2, func(*plan.Workload, *metric.Level, exec.Look) exec.Judgement {
			return exec.Judgement{Outcome: metric.Pass}
		}, 0},
		{"nobody judges", 2, nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, c clock.Clock) {
				b := newBench(t, c, planOf(3, rateLoad(tt.rate, 100, 10)), saturable)
				b.Judge = tt.judge
				run := must.Get(exec.Run(t.Context(), b.Config))(t)
				l, first := run.Levels[0], run.Levels[1]
				if w := first.Rounds[0]; w.WindowEnd-w.WindowStart != time.Minute || l.Unrecovered || len(l.Saturation) != 10 {
					t.Errorf("the first saturation lasts %v, unrecovered %v, %v", w.WindowEnd-w.WindowStart, l.Unrecovered, l.Saturation)
				}
				want := []string{l.Name, metric.SaturationName}
				if tt.takes > 0 {
					want = append(want, "saturation after "+l.Name)
				}
				diff := cmp.Diff(want, namesOf(run.Levels))
				must.Need(t, diff == "", "%v", diff)
				if tt.takes == 0 {
					must.Hold(t, l.After == nil, "after it %v", l.After)
					return
				}
				w := run.Levels[2].Rounds[0]
				if w.WindowEnd-w.WindowStart != tt.takes || w.WindowStart < l.Rounds[9].End || len(l.After) != 10 || l.After[0] < 19 || l.After[0] > 21 {
					t.Errorf("the saturation after the level lasts %v, from %v on (the level ended at %v): %v", w.WindowEnd-w.WindowStart, w.WindowStart, l.Rounds[9].End, l.After)
				}
			})
		})
	}
}

// A search saturates the server again only after the probe that it would certify, and after levels
// of the plan.
func TestSearchFollows(t *testing.T) {
	load := rateLoad(5, 20, 4)
	p := planOf(3, load)
	p.Workloads[0].Capacity = &plan.Capacity{
		Over: metric.OpenLoop, From: 1, UpTo: 200_000, Relative: 0.2, Requests: 50, MaxRequests: 4000,
		Load: &plan.Load{Kind: metric.OpenLoop, Seeds: []int64{1}, Timeout: 10 * time.Minute, Open: load.Open},
	}
	p.Workloads[0].SLAs = []*plan.SLA{{AtCapacity: true, Severity: plan.SeverityError}}
	b := newBench(t, clock.NewVirtual(), p, saturable)
	b.Judge = func(w *plan.Workload, l *metric.Level, look exec.Look) exec.Judgement {
		j := awaiting(w, l, look)
		j.Margins = []search.Margin{{Threshold: "ttft p95", Log: -0.1, Low: -1, High: 1}}
		return j
	}
	run := must.Get(exec.Run(t.Context(), b.Config))(t)
	found := run.Capacities[0]
	var want, certified []string
	for _, p := range found.Probes {
		if p.Purpose == "known" || p.Purpose == "certify" {
			want = append(want, "saturation after "+p.Level)
		}
		if p.Purpose == "certify" && p.Outcome == metric.Pass {
			certified = append(certified, p.Level)
		}
	}
	got := slices.DeleteFunc(namesOf(run.Levels), func(name string) bool { return !strings.HasPrefix(name, "saturation after") })
	diff := cmp.Diff(want, got)
	must.Hold(t, diff == "" && len(certified) != 0 && found.Pass != 0, "certified %q, %+v; %s", certified, found.Probes, diff)
}

// Requests alone take 0.4 s before the saturation. So the server has recovered when one takes at
// most 1.5 · 0.4 s + 20 ms = 620 ms.
func TestRecovers(t *testing.T) {
	for _, tt := range []struct {
		name        string
		after       func(nth int) reply // answers the requests alone after the saturation, from 0
		sent        int                 // of them
		waits       time.Duration       // from the end of the saturation until the level begins, at least
		unrecovered bool
	}{
		{"at once", func(int) reply { return reply{ttft: 620 * ms} }, 1, 620 * ms, false},
		// Each of the slow ones is followed by the next when it has ended, after 2 s.
		{"after three", func(nth int) reply {
			return reply{ttft: []time.Duration{2000 * ms, 2000 * ms, 2000 * ms, 500 * ms}[nth]}
		}, 4, 6500 * ms, false},
		// The fast ones that fail come a second after each other.
		{"after two that fail", func(nth int) reply {
			if nth < 2 {
				return reply{status: errBusy}
			}
			return reply{ttft: 500 * ms}
		}, 3, 2500 * ms, false},
		{"never", func(int) reply { return reply{ttft: 621 * ms} }, 120, 2 * time.Minute, true},
		{"never any answer", func(int) reply { return reply{} }, 1, 2 * time.Minute, true},
		{"never, and deaf", func(int) reply { return reply{deaf: true} }, 1, 2 * time.Minute, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, c clock.Clock) {
				alone, saturated := 0, time.Duration(0)
				b := newBench(t, c, planOf(3, rateLoad(2, 40, 4)), func(n int, r *client.Request) reply {
					switch {
					case strings.Contains(r.Prompt.Text, "Phase:"+string(exec.Alone)):
						must.Hold(t, r.Output == 1, "a request alone asks for %d tokens", r.Output)
						if alone++; alone <= 3 {
							return reply{ttft: 400 * ms}
						}
						if alone == 4 {
							saturated = c.Now()
						}
						return tt.after(alone - 4)
					}
					return saturable(n, r)
				})
				run := must.Get(exec.Run(t.Context(), b.Config))(t)
				l := run.Levels[0]
				began := l.Rounds[0].Samples[0].Scheduled
				if alone != 3+tt.sent || began-saturated < tt.waits || l.Unrecovered != tt.unrecovered || run.Levels[1].Unrecovered != tt.unrecovered || len(l.Saturation) != 10 {
					t.Errorf("%d requests alone after the saturation, want %d; the level begins %v later, want %v; unrecovered %v, saturation %v", alone-3, tt.sent, began-saturated, tt.waits, l.Unrecovered, l.Saturation)
				}
				for _, x := range run.Levels[1].Rounds[0].Samples {
					must.Hold(t, x.Phase != exec.Alone, "a request alone is recorded")
				}
			})
		})
	}
}
