package exec_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// gated returns a plan with one level, and a threshold for it.
func gated(l *plan.Load, on plan.OnInconclusive) *plan.Plan {
	p := planOf(1, l)
	p.Workloads[0].Policy.OnInconclusive = on
	ttft, _ := metric.Lookup("ttft")
	p95 := &plan.Threshold{Metric: ttft, Stat: metric.Stat{Kind: metric.Percentile, P: 95}, Op: plan.Less, Limit: 1}
	p.Workloads[0].SLAs = []*plan.SLA{{At: []string{l.Levels[0].Name}, Severity: plan.SeverityError, Thresholds: []*plan.Threshold{p95}}}
	return p
}

func TestLooks(t *testing.T) {
	fail := exec.Judgement{Outcome: metric.Fail}
	pass := exec.Judgement{Outcome: metric.Pass}
	more := exec.Judgement{Outcome: metric.Inconclusive, Needs: 50}
	never := exec.Judgement{Outcome: metric.Inconclusive, Needs: -1}
	invalid := exec.Judgement{Outcome: metric.Fail, Invalid: "cache"}
	tens := []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	burst := &plan.Load{Kind: metric.Burst, Seeds: []int64{1}, Levels: []plan.Level{{Name: "burst 8", N: 8, Requests: 80, Rounds: 10}}}
	for _, tt := range []struct {
		name   string
		load   *plan.Load
		on     plan.OnInconclusive
		most   int
		script []exec.Judgement // one judgement for each look
		looks  []string         // each look as "requests/planned share outcome"
		due    int
		note   string
	}{
		{"a pass half-way ends it", closedLoad(4, 200, tens...), plan.Stop, 0,
			[]exec.Judgement{pass}, []string{"100/3 0.25 pass"}, 100, "the level passed after 100 of 200 requests and ended early"},
		{"a failure half-way ends it", closedLoad(4, 200, tens...), plan.Stop, 0,
			[]exec.Judgement{fail}, []string{"100/3 0.25 fail"}, 100, "the level failed after 100 of 200 requests and ended early"},
		{"a pass after seven rounds", closedLoad(4, 200, tens...), plan.Stop, 0,
			[]exec.Judgement{more, pass}, []string{"100/3 0.25 inconclusive", "140/3 0.49 pass"}, 140, "the level passed after 140 of 200 requests and ended early"},
		{"undecided on the way", closedLoad(4, 200, tens...), plan.Stop, 0,
			[]exec.Judgement{never, more}, []string{"100/3 0.25 inconclusive", "140/3 0.49 inconclusive", "200/3 1.00 pending"}, 200, ""},
		{"what is invalid does not", closedLoad(4, 200, tens...), plan.Stop, 0,
			[]exec.Judgement{invalid, more}, []string{"100/3 0.25 inconclusive", "140/3 0.49 inconclusive", "200/3 1.00 pending"}, 200, ""},
		// Neither look (early judgement) can pass. 50 or 70 requests could all be good by chance
		// too easily: 0.95^50 and 0.95^70 are more than the error that these looks may make.
		{"too few to pass half-way", closedLoad(4, 100, tens...), plan.Stop, 0,
			[]exec.Judgement{pass, pass}, []string{"50/20 0.00 inconclusive", "70/20 0.00 inconclusive", "100/1 1.00 pending"}, 100, ""},
		{"too few to pass, but not to fail", closedLoad(4, 100, tens...), plan.Stop, 0,
			[]exec.Judgement{fail}, []string{"50/20 0.00 fail"}, 50, "the level failed after 50 of 100 requests and ended early"},
		{"one round has no half", closedLoad(4, 200, 1), plan.Stop, 0, nil, nil, 200, ""},
		// The look (early judgement) at 100 requests can only fail. With 5% bad requests, all 100
		// would be good with probability 0.95^100, which is more than the error that this look may
		// make. At 140 requests a look may pass.
		{"nothing to extend", closedLoad(4, 200, tens...), plan.Extend, 0,
			[]exec.Judgement{more, more, pass}, []string{"100/30 0.00 inconclusive", "140/4 0.16 inconclusive", "200/4 0.33 pass"}, 200, ""},
		{"extended once", closedLoad(4, 200, tens...), plan.Extend, 0,
			[]exec.Judgement{more, more, more, pass}, []string{"100/30 0.00 inconclusive", "140/4 0.16 inconclusive", "200/4 0.33 inconclusive", "400/4 0.67 pass"}, 400, ""},
		{"extended to the end", closedLoad(4, 200, tens...), plan.Extend, 0,
			[]exec.Judgement{more, more, more, more, more}, []string{"100/30 0.00 inconclusive", "140/4 0.16 inconclusive", "200/4 0.33 inconclusive", "400/4 0.67 inconclusive", "800/4 1.00 inconclusive"}, 800, ""},
		{"max_requests", closedLoad(4, 200, tens...), plan.Extend, 500,
			[]exec.Judgement{more, more, more, more, fail}, []string{"100/30 0.00 inconclusive", "140/4 0.16 inconclusive", "200/4 0.33 inconclusive", "400/4 0.67 inconclusive", "500/4 1.00 fail"}, 500, ""},
		{"of no use", closedLoad(4, 200, tens...), plan.Extend, 0,
			[]exec.Judgement{more, more, never}, []string{"100/30 0.00 inconclusive", "140/4 0.16 inconclusive", "200/4 0.33 inconclusive"}, 200, "not extended: no number of requests would settle it"},
		{"invalid is not extended", closedLoad(4, 200, tens...), plan.Extend, 0,
			[]exec.Judgement{more, more, invalid}, []string{"100/30 0.00 inconclusive", "140/4 0.16 inconclusive", "200/4 0.33 fail"}, 200, ""},
		{"bursts stay whole", burst, plan.Extend, 190,
			[]exec.Judgement{more, more, more, more, pass}, []string{"40/60 0.00 inconclusive", "56/60 0.00 inconclusive", "80/3 0.33 inconclusive", "160/3 0.67 inconclusive", "184/3 1.00 pass"}, 184, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := gated(tt.load, tt.on)
			p.Workloads[0].Policy.MaxRequests = tt.most
			b := newBench(t, clock.NewVirtual(), p, steady(s, 0))
			asked := 0
			b.Judge = func(w *plan.Workload, l *metric.Level, look exec.Look) exec.Judgement {
				if len(l.MeasuredSamples()) != look.Requests || !l.Rounds[len(l.Rounds)-1].Complete {
					t.Errorf("a look at %d requests finds %d", look.Requests, len(l.MeasuredSamples()))
				}
				asked++
				must.Need(t, asked <= len(tt.script), "a look too many, at %d requests", look.Requests)
				return tt.script[asked-1]
			}
			run := must.Get(exec.Run(t.Context(), b.Config))(t)
			l := run.Levels[0]
			var looks []string
			for _, k := range l.Looks {
				looks = append(looks, fmt.Sprintf("%d/%d %.2f %s", k.Requests, k.Planned, k.Spent, k.Outcome))
			}
			must.Same(t, "looks (-want +got):\n", "", cmp.Diff(tt.looks, looks))
			must.Hold(t, l.Due() == tt.due && asked == len(tt.script), "%d requests and %d judgements, want %d and %d", l.Due(), asked, tt.due, len(tt.script))
			must.Same(t, "notes", tt.note, strings.Join(l.Notes, "; "))
			for i, r := range l.Rounds {
				must.Hold(t, r.Index == i && r.Due >= l.N && (l.Kind != metric.Burst || r.Due == l.N), "round %d: %+v", i, r)
			}
		})
	}
}

// TestNoLooks checks that no look (an early judgement) is taken if no verdict depends on it.
func TestNoLooks(t *testing.T) {
	tens := []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for name, change := range map[string]func(*plan.Plan){
		"point estimates":  func(p *plan.Plan) { p.Workloads[0].Policy.Decide = plan.Estimate },
		"nothing required": func(p *plan.Plan) { p.Gate.MeasureOnly = true },
		"only warnings":    func(p *plan.Plan) { p.Workloads[0].SLAs[0].Severity = plan.SeverityWarn },
		"another level's":  func(p *plan.Plan) { p.Workloads[0].SLAs[0].At = []string{"8"} },
	} {
		p := gated(closedLoad(4, 200, tens...), plan.Extend)
		change(p)
		b := newBench(t, clock.NewVirtual(), p, steady(s, 0))
		b.Judge = func(*plan.Workload, *metric.Level, exec.Look) exec.Judgement {
			t.Errorf("%s: a look was held", name)
			return exec.Judgement{Outcome: metric.Fail}
		}
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		l := run.Levels[0]
		must.Hold(t, l.Due() == 200 && len(l.Looks) == 0, "%s: %d requests, looks %v", name, l.Due(), l.Looks)
	}
}

// TestExtensionIsShedFirst checks that a level is not extended if the budget is short. The time is
// kept for the levels that have not run yet, and for the capacity search.
func TestExtensionIsShedFirst(t *testing.T) {
	tens := []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for _, tt := range []struct {
		budget, search time.Duration
		due            []int
		note           string
	}{
		// A level with ten rounds of 200 requests in total takes about a minute here.
		{10 * time.Minute, 0, []int{400, 400}, ""},
		{170 * s, 0, []int{200, 200}, "not extended to 400 requests: that takes about 1m"},
		{10 * time.Minute, 8 * time.Minute, []int{200, 200}, "not extended to 400 requests: that takes about 1m"},
	} {
		p := gated(closedLoad(4, 200, tens...), plan.Extend)
		second := *p.Workloads[0]
		second.Name = "second"
		if tt.search > 0 {
			second.Capacity = &plan.Capacity{Budget: tt.search, From: 1, UpTo: 8, Resolution: 1, Load: closedLoad(1, 1, 1)}
		}
		p.Workloads = append(p.Workloads, &second)
		p.Gate.Budget = tt.budget
		b := newBench(t, clock.NewVirtual(), p, steady(s, 0))
		b.Judge = func(w *plan.Workload, l *metric.Level, look exec.Look) exec.Judgement {
			j := exec.Judgement{Outcome: metric.Inconclusive, Needs: 10}
			if look.Requests == 400 || l.Probe != nil {
				j.Outcome = metric.Pass
			}
			return j
		}
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		got := []int{run.Levels[0].Due(), run.Levels[1].Due()}
		if notes := strings.Join(run.Levels[0].Notes, ""); !slices.Equal(got, tt.due) || !strings.HasPrefix(notes, tt.note) || (tt.note == "") != (notes == "") || run.Stopped != "" {
			t.Errorf("budget %v: %v requests, notes %q, stopped %q; want %v, %q", tt.budget, got, notes, run.Stopped, tt.due, tt.note)
		}
	}
}

// TestRoundsAreShedLast checks what a budget that is too short for all rounds still allows: five
// rounds of every level, and a few probes of every search.
func TestRoundsAreShedLast(t *testing.T) {
	tens := []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for _, tt := range []struct {
		name   string
		budget time.Duration
		on     plan.OnInconclusive
		seeds  []int64
		search bool
		rounds []int // number of rounds measured at each level
		shed   []int
	}{
		// Ten rounds of a level take 70 s, so 118 s are enough for 16 of the 30 rounds of three
		// workloads.
		{"enough", 4 * time.Minute, plan.Stop, tens, false, []int{10, 10, 10}, []int{0, 0, 0}},
		{"none", 0, plan.Stop, tens, false, []int{10, 10, 10}, []int{0, 0, 0}},
		{"short", 118 * s, plan.Stop, tens, false, []int{6, 5, 5}, []int{4, 5, 5}},
		{"no extension either", 118 * s, plan.Extend, tens, false, []int{6, 5, 5}, []int{4, 5, 5}},
		// The budget also has to be enough for a capacity search, which needs as long as four
		// levels.
		{"a search to come", 7 * time.Minute, plan.Stop, tens, true, []int{10, 8, 7}, []int{0, 2, 3}},
		{"five are never shed", 190 * s, plan.Stop, tens[:5], false, []int{5, 5, 5}, []int{0, 0, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := gated(closedLoad(4, 200, tt.seeds...), tt.on)
			for _, name := range []string{"second", "third"} {
				w := *p.Workloads[0]
				w.Name = name
				p.Workloads = append(p.Workloads, &w)
			}
			if tt.search {
				p.Workloads[2].Capacity = &plan.Capacity{From: 1, UpTo: 4, Resolution: 1, Load: closedLoad(1, 1, tens...)}
			}
			p.Gate.Budget = tt.budget
			b := newBench(t, clock.NewVirtual(), p, steady(s, 0))
			b.Judge = func(_ *plan.Workload, l *metric.Level, look exec.Look) exec.Judgement {
				must.Hold(t, l.Probe != nil || len(l.MeasuredSamples()) == look.Requests, "a look at %d requests finds %d", look.Requests, len(l.MeasuredSamples()))
				return exec.Judgement{Outcome: metric.Inconclusive, Needs: 10}
			}
			run := must.Get(exec.Run(t.Context(), b.Config))(t)
			var rounds, shed []int
			for _, l := range run.Levels {
				if l.Probe != nil {
					continue
				}
				rounds, shed = append(rounds, len(l.Rounds)), append(shed, l.Shed)
				want := fmt.Sprintf("measured in %d of %d rounds: the budget of", len(l.Rounds), len(l.Rounds)+l.Shed)
				must.Hold(t, (l.Shed > 0) == strings.Contains(strings.Join(l.Notes, "\n"), want), "shed %d, notes %q", l.Shed, l.Notes)
				for _, look := range l.Looks {
					must.Hold(t, l.Shed <= 0 || look.Requests <= l.Due(), "a look at %d of %d requests", look.Requests, l.Due())
				}
			}
			t.Log(rounds, run.End, run.Stopped)
			if !slices.Equal(rounds, tt.rounds) || !slices.Equal(shed, tt.shed) || run.Stopped != "" {
				t.Errorf("%v rounds, %v shed, stopped %q after %v; want %v, %v", rounds, shed, run.Stopped, run.End, tt.rounds, tt.shed)
			}
			if tt.search && len(run.Capacities[0].Probes) == 0 {
				t.Errorf("the search made no probe: %+v", run.Capacities[0])
			}
		})
	}
}

// TestCutShortAfterALook checks a level that was cut short after its half-way look (judgement). The
// result of the look does not stand for the whole level.
func TestCutShortAfterALook(t *testing.T) {
	p := gated(closedLoad(4, 200, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10), plan.Stop)
	b := newBench(t, clock.NewVirtual(), p, steady(s, 0))
	drain, interrupt := context.WithCancel(t.Context())
	b.Drain = drain
	b.Clock.Timer(45*s, interrupt)
	b.Judge = func(*plan.Workload, *metric.Level, exec.Look) exec.Judgement {
		return exec.Judgement{Outcome: metric.Inconclusive}
	}
	run := must.Get(exec.Run(t.Context(), b.Config))(t)
	l := run.Levels[0]
	if diff := cmp.Diff([]metric.Look{{Requests: 100, Planned: 3, Spent: 0.25, Outcome: metric.Inconclusive}, {Requests: 200, Planned: 3, Spent: 1}}, l.Looks); diff != "" || run.Stopped != "interrupted" {
		t.Errorf("stopped %q, looks (-want +got):\n%s", run.Stopped, diff)
	}
}
