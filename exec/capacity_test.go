package exec_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/search"
)

// searching makes a plan with a capacity search over the levels 1 to upTo. The parameter loads
// holds fixed levels, which the plan measures before the search.
func searching(upTo int, loads ...*plan.Load) (*plan.Plan, *plan.Capacity) {
	p := planOf(1, loads...)
	c := &plan.Capacity{
		Over: metric.ClosedLoop, From: 1, UpTo: upTo, Resolution: 1, Requests: 100, Confirm: true,
		Load: closedLoad(1, 1, 1, 2, 3, 4, 5),
	}
	p.Workloads[0].Capacity = c
	p.Workloads[0].SLAs = []*plan.SLA{{AtCapacity: true, Severity: plan.SeverityError}}
	return p, c
}

// crowded simulates a server whose TTFT is 100 ms times the number of requests in flight.
func crowded(b **bench) func(int, *client.Request) reply {
	return func(int, *client.Request) reply {
		return reply{ttft: time.Duration((*b).inFlight) * 100 * ms}
	}
}

// byMean judges a level by its mean time to first token. It ignores the uncertainty of the mean.
func byMean(limit time.Duration) exec.Judge {
	return func(w *plan.Workload, l *metric.Level, look exec.Look) exec.Judgement {
		var sum float64
		measured := l.MeasuredSamples()
		for _, x := range measured {
			ttft, _ := x.Value("ttft")
			sum += ttft
		}
		mean := sum / float64(len(measured))
		j := exec.Judgement{Outcome: metric.Pass, Binding: "ttft mean", Margins: []search.Margin{{
			Threshold: "ttft mean", Log: math.Log(mean / limit.Seconds()), Shown: fmt.Sprintf("%.1f s", mean),
		}}}
		if mean >= limit.Seconds() {
			j.Outcome = metric.Fail
		}
		return j
	}
}

// outcomes returns each probe of a search as text, such as "ladder 8 pass".
func outcomes(c *metric.Capacity) (out []string) {
	for _, p := range c.Probes {
		s := fmt.Sprintf("%s %d %s", p.Purpose, p.N, p.Outcome)
		if p.Set > 0 {
			s += fmt.Sprintf(" set %d", p.Set)
		}
		out = append(out, s)
	}
	return out
}

func TestCapacity(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		p, _ := searching(64)
		var b *bench
		b = newBench(t, c, p, func(n int, r *client.Request) reply { return crowded(&b)(n, r) })
		b.Judge = byMean(1950 * ms)
		resets := 0
		b.target.Reset = func(context.Context) error { resets++; return errors.New("404 Not Found") }
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		got := run.Capacities[0]
		// The limit is 2 s. With 19 requests in flight, the TTFT is 1.9 s. With 20 it is about 2.0
		// s, and level 20 fails.
		want := []string{
			"ladder 8 pass", "ladder 16 pass", "ladder 32 fail", "bisect 24 fail", "bisect 20 fail", "bisect 18 pass", "bisect 19 pass",
			"check 12 pass", "confirm 19 pass set 1",
		}
		must.Same(t, "visits (-want +got)", want, outcomes(got))
		if got.Kind != metric.CapacityExact || got.Pass != 19 || got.Fail != 20 || !got.Confirmed {
			t.Errorf("capacity %+v", got)
		}
		if want := "19 requests in flight · limited by ttft mean: 1.9 s at 19, 2.0 s at 20"; got.Line != want {
			t.Errorf("line %q, want %q", got.Line, want)
		}
		if resets != len(want)-1 || !slices.Equal(got.Notes, []string{"the server's caches were not reset between probes: 404 Not Found"}) {
			t.Errorf("%d resets, notes %q; want one between any two probes, and one note", resets, got.Notes)
		}
		// Each probe is a level of its own, and only its own rounds count in its verdict.
		names := []string{}
		for _, l := range run.Levels {
			names = append(names, l.Name)
			if l.Probe == nil || len(l.Looks) != 1 || l.Looks[0].Requests != l.Judged().Due() || len(l.Judged().Rounds) < 5 {
				t.Errorf("level %s: %+v, %d requests", l.Name, l, l.Due())
			}
			for _, x := range l.MeasuredSamples() {
				if x.Level != l.Name {
					t.Fatalf("%v is among the samples of %s", x, l.Name)
				}
			}
		}
		if want := []string{"probe 8", "probe 16", "probe 32", "probe 24", "probe 20", "probe 18", "probe 19", "probe 12", "probe 19 set 2"}; !slices.Equal(names, want) {
			t.Errorf("levels %q, want %q", names, want)
		}
		for i, x := range got.Probes {
			if x.Level != names[i] || x.Spent <= 0 || x.Shown == "" || x.Requests != run.Levels[i].Judged().Due() {
				t.Errorf("visit %+v, want it to name %s", x, names[i])
			}
		}
		for text, n := range b.transport.prompts {
			if n > 1 {
				t.Fatalf("prompt %q was sent %d times: the confirmation is to share none", text, n)
			}
		}
		if last := b.calls[len(b.calls)-3]; last != "capacity fake chat "+got.Line {
			t.Errorf("third from the end is %q, want the capacity", last)
		}
	})
}

func TestCapacityOverBursts(t *testing.T) {
	p, c := searching(40)
	c.Over, c.Load = metric.Burst, &plan.Load{Kind: metric.Burst, Seeds: []int64{1, 2}, Warmup: plan.WarmupAuto}
	var b *bench
	b = newBench(t, clock.NewVirtual(), p, func(n int, r *client.Request) reply { return crowded(&b)(n, r) })
	// In a burst of n requests, the i-th waits i·100 ms. Their mean, 50·(n+1) ms, reaches the limit
	// of 1 s at n = 19.
	b.Judge = byMean(s)
	run := must.Get(exec.Run(t.Context(), b.Config))(t)
	got := run.Capacities[0]
	if got.Kind != metric.CapacityExact || got.Pass != 18 || got.Fail != 19 || got.Over != metric.Burst || !strings.HasPrefix(got.Line, "18 requests at once") {
		t.Errorf("capacity %+v", got)
	}
	for _, l := range run.Levels {
		if !strings.HasPrefix(l.Name, "probe burst ") || len(l.Rounds) < 10 {
			t.Errorf("level %s of %d bursts", l.Name, len(l.Rounds))
		}
		for _, r := range l.Rounds {
			if r.Due != l.N || len(r.MeasuredSamples()) != l.N {
				t.Errorf("level %s: a burst of %d", l.Name, r.Due)
			}
		}
	}
}

// A probe ends after the batch at which an exact threshold fails for good.
func TestCapacityFailsForGood(t *testing.T) {
	p, c := searching(64)
	c.Confirm = false
	p.Workloads[0].SLAs[0].Thresholds = []*plan.Threshold{{Metric: metric.MustLookup("ttft"), Stat: metric.Stat{Kind: metric.Max}, Op: plan.Less, Limit: 1.95}}
	var b *bench
	b = newBench(t, clock.NewVirtual(), p, func(n int, r *client.Request) reply { return crowded(&b)(n, r) })
	judge := byMean(1950 * ms)
	b.Judge = func(w *plan.Workload, l *metric.Level, look exec.Look) exec.Judgement {
		j := judge(w, l, look)
		j.ForGood = j.Outcome == metric.Fail
		return j
	}
	run := must.Get(exec.Run(t.Context(), b.Config))(t)
	if got := run.Capacities[0]; got.Pass != 19 || got.Fail != 20 {
		t.Errorf("capacity %+v, visits %q", got, outcomes(got))
	}
	for i, l := range run.Levels {
		complete := 0
		for _, r := range l.Rounds {
			if r.Complete {
				complete++
			}
		}
		// The limit lies between 19 and 20 in flight. A batch is a wave, and five are the fewest.
		if fails := l.N >= 20; fails && complete != 1 || !fails && complete < 5 {
			t.Errorf("probe %d of %d in flight has %d batches, looks %+v", i, l.N, complete, l.Looks)
		}
	}
}

// TestCapacityKnowsFixedLevels: a search takes measured levels of the plan that are decided as its
// probes, and does not measure them again.
func TestCapacityKnowsFixedLevels(t *testing.T) {
	p, c := searching(64, closedLoad(16, 160, 1, 2, 3, 4, 5), closedLoad(32, 320, 1, 2, 3, 4, 5))
	c.Confirm = false
	var b *bench
	b = newBench(t, clock.NewVirtual(), p, func(n int, r *client.Request) reply { return crowded(&b)(n, r) })
	judge := byMean(1750 * ms)
	// The judge of this test gives the fixed level 16 no verdict.
	var seen []string
	b.Judge = func(w *plan.Workload, l *metric.Level, look exec.Look) exec.Judgement {
		seen = append(seen, fmt.Sprintf("%d: %d of %d at %d", l.N, look.Requests, l.Due(), look.Planned))
		if l.Probe == nil {
			t.Errorf("level %s is judged as a fixed one, and no threshold holds at it", l.Name)
		}
		j := judge(w, l, look)
		if l.Name == "16" {
			j.Outcome, j.Needs = metric.Inconclusive, 30
		}
		return j
	}
	run := must.Get(exec.Run(t.Context(), b.Config))(t)
	got := run.Capacities[0]
	want := []string{"known 32 fail", "ladder 16 pass", "bisect 24 fail", "bisect 20 fail", "bisect 18 fail", "bisect 17 pass", "check 8 pass"}
	if diff := cmp.Diff(want, outcomes(got)); diff != "" {
		t.Errorf("visits (-want +got):\n%s", diff)
	}
	// "16: 160 of 160 at 1" means that level 16 was judged once, on all of its requests.
	if diff := cmp.Diff([]string{"16: 160 of 160 at 1", "32: 320 of 320 at 1"}, seen[:2]); diff != "" {
		t.Errorf("judged (-want +got):\n%s", diff)
	}
	if fixed, probe := run.Levels[0], run.Levels[2]; fixed.Due() != 160 || len(fixed.Looks) != 0 || probe.Name != "probe 16" || probe.Rounds[0].Index != 0 {
		t.Errorf("the fixed level has %d requests, and %s begins at round %d", fixed.Due(), probe.Name, probe.Rounds[0].Index)
	}
}

// TestCapacityExtends: a level that is extended keeps its samples.
func TestCapacityExtends(t *testing.T) {
	p, c := searching(16)
	c.From, c.Confirm = 4, false
	var b *bench
	b = newBench(t, clock.NewVirtual(), p, func(n int, r *client.Request) reply { return crowded(&b)(n, r) })
	judge := byMean(1050 * ms)
	var at10 []exec.Look
	b.Judge = func(w *plan.Workload, l *metric.Level, look exec.Look) exec.Judgement {
		j := judge(w, l, look)
		if l.N == 10 {
			at10 = append(at10, look)
			if look.Requests < 200 {
				j.Outcome, j.Needs = metric.Inconclusive, 200-look.Requests
			}
		}
		return j
	}
	run := must.Get(exec.Run(t.Context(), b.Config))(t)
	got := run.Capacities[0]
	if got.Kind != metric.CapacityExact || got.Pass != 10 || got.Fail != 11 {
		t.Errorf("capacity %+v, visits %q", got, outcomes(got))
	}
	// 100 requests are ten batches: the first half of the error is spent by then, with the square.
	if diff := cmp.Diff([]exec.Look{{Requests: 50, Planned: 4, Spent: 0.125}, {Requests: 70, Planned: 4, Spent: 0.245}, {Requests: 100, Planned: 4, Spent: 0.5}, {Requests: 200, Planned: 4, Spent: 1}}, at10, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("looks at 10 (-want +got):\n%s", diff)
	}
	n := 0
	for _, l := range run.Levels {
		if l.N == 10 {
			n++
			if l.Judged().Due() != 200 || len(l.Looks) != 4 || l.Looks[3].Outcome != metric.Pass {
				t.Errorf("level %+v has %d requests", l, l.Due())
			}
			for i, r := range l.Rounds {
				if r.Index != i || r.Due < l.N {
					t.Errorf("round %d: %+v", i, r)
				}
			}
		}
	}
	started := 0
	for _, call := range b.calls {
		if strings.HasPrefix(call, "level fake chat probe 10 ") {
			started++
		}
	}
	if n != 1 || started != 2 {
		t.Errorf("10 is %d levels, started %d times; want one level, visited twice", n, started)
	}
}

// TestLongCapacityIsNotMonotone: the server passes at level 16, fails at 24 and passes at 32.
func TestLongCapacityIsNotMonotone(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		p, cp := searching(40, closedLoad(16, 100, 1, 2, 3, 4, 5), closedLoad(24, 120, 1, 2, 3, 4, 5), closedLoad(32, 160, 1, 2, 3, 4, 5))
		cp.Confirm = false
		var b *bench
		b = newBench(t, c, p, func(n int, _ *client.Request) reply {
			if n := b.inFlight; n > 20 && n < 28 {
				return reply{ttft: 5 * s}
			}
			return reply{ttft: s}
		})
		b.Judge = byMean(1950 * ms)
		// The server is slow while 21 to 27 requests are in flight. At level 32 that is so while
		// the slots start one after another, so requests of that time must not be measured.
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		got := run.Capacities[0]
		if len(got.NonMonotone) == 0 || got.Pass >= 24 || got.Kind != metric.CapacityExact && got.Kind != metric.CapacityInterpolated {
			t.Fatalf("capacity %+v, visits %q", got, outcomes(got))
		}
		retried := slices.ContainsFunc(got.Probes, func(x metric.CapacityProbe) bool { return x.Purpose == "retry" && x.Set > 0 })
		if !retried || !strings.Contains(got.Line, "not monotone") {
			t.Errorf("line %q, visits %q; want fresh samples on both sides, and to be told", got.Line, outcomes(got))
		}
	})
}

func TestCapacityAdmissionCap(t *testing.T) {
	p, _ := searching(64)
	var b *bench
	b = newBench(t, clock.NewVirtual(), p, func(int, *client.Request) reply {
		if b.accepted >= 12 {
			return reply{status: &client.Error{Kind: metric.FailStatus, Status: 429, Message: "too many requests"}, code: 429}
		}
		return reply{ttft: s}
	})
	b.Judge = func(w *plan.Workload, l *metric.Level, look exec.Look) exec.Judgement {
		j := exec.Judgement{Outcome: metric.Pass, Binding: "success"}
		if l.Completed() < l.Due() {
			j.Outcome = metric.Fail
		}
		return j
	}
	run := must.Get(exec.Run(t.Context(), b.Config))(t)
	got := run.Capacities[0]
	if got.Kind != metric.CapacityServerCap || got.Pass != 12 || !strings.HasPrefix(got.Line, "12 requests in flight (admission cap)") {
		t.Errorf("capacity %+v, visits %q", got, outcomes(got))
	}
}

func TestCapacityWhereNothingCompletes(t *testing.T) {
	p, c := searching(64)
	c.Confirm = false
	var b *bench
	b = newBench(t, clock.NewVirtual(), p, func(_ int, r *client.Request) reply {
		if strings.Contains(r.Prompt.Text, "Level:probe 32 ") {
			return reply{status: errBusy}
		}
		return crowded(&b)(0, r)
	})
	b.Judge = byMean(1850 * ms)
	run := must.Get(exec.Run(t.Context(), b.Config))(t)
	got := run.Capacities[0]
	i := slices.IndexFunc(got.Probes, func(x metric.CapacityProbe) bool { return x.N == 32 })
	if i < 0 || got.Probes[i].Outcome != metric.Fail || !strings.Contains(got.Probes[i].Note, "CUDA out of memory") || got.Pass != 18 {
		t.Errorf("capacity %+v, visits %q", got, outcomes(got))
	}
}

func TestCapacityInvalidIsNoAnswer(t *testing.T) {
	for _, tt := range []struct {
		name   string
		j      exec.Judgement
		kind   metric.CapacityKind
		words  string
		probes int
	}{
		{"invalid", exec.Judgement{Outcome: metric.Inconclusive, Invalid: "output length"}, metric.CapacityUnknown, "unknown: output length", 2},
		{"nobody knows", exec.Judgement{}, metric.CapacityUnknown, "the judge gave no verdict", 2},
		// The eight probes are two each at the levels 8, 4, 2 and 1.
		{"the generator", exec.Judgement{Outcome: metric.Saturated, Invalid: "generator: 95% of all cores"}, metric.CapacityUnknown, "generator", 8},
	} {
		p, _ := searching(16)
		b := newBench(t, clock.NewVirtual(), p, steady(s, 0))
		b.Judge = func(*plan.Workload, *metric.Level, exec.Look) exec.Judgement { return tt.j }
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		if got := run.Capacities[0]; got.Kind != tt.kind || got.Pass != 0 || !strings.Contains(got.Line, tt.words) || len(got.Probes) > tt.probes {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

func TestCapacityBudget(t *testing.T) {
	for _, tt := range []struct {
		name         string
		search, plan time.Duration
	}{
		{"of the search", 90 * s, 0},
		{"of the plan", 0, 90 * s},
	} {
		onBoth(t, func(t *testing.T, c clock.Clock) {
			p, cp := searching(64)
			cp.Budget, p.Gate.Budget = tt.search, tt.plan
			var b *bench
			b = newBench(t, c, p, func(n int, r *client.Request) reply { return crowded(&b)(n, r) })
			b.Judge = byMean(1950 * ms)
			run := must.Get(exec.Run(t.Context(), b.Config))(t)
			got := run.Capacities[0]
			// Without a budget the search takes about two minutes.
			if run.End > 92*s || run.Stopped != "" {
				t.Errorf("%s: it ended at %v, stopped %q", tt.name, run.End, run.Stopped)
			}
			if got.Kind != metric.CapacityInterpolated || got.Pass == 0 || got.Pass > 19 || got.Fail < 20 || !strings.HasPrefix(got.Reason, "budget: ") {
				t.Errorf("%s: %+v, visits %q", tt.name, got, outcomes(got))
			}
		})
	}
}

// TestCapacityProbeOutlivesTheBudget: the first probe takes longer than the budget. The search
// cannot know the duration of the probe beforehand.
func TestCapacityProbeOutlivesTheBudget(t *testing.T) {
	p, cp := searching(64)
	cp.Budget = 20 * s
	b := newBench(t, clock.NewVirtual(), p, steady(7*s, 0))
	b.Judge = byMean(1950 * ms)
	run := must.Get(exec.Run(t.Context(), b.Config))(t)
	got := run.Capacities[0]
	if got.Kind != metric.CapacityUnknown || run.End > 23*s || len(got.Probes) != 1 || got.Probes[0].Outcome != metric.Inconclusive || run.Stopped != "" {
		t.Errorf("%+v, ended at %v, stopped %q", got, run.End, run.Stopped)
	}
	if r := run.Levels[0].Rounds; len(r) == 0 || r[len(r)-1].Stopped != "the budget of the search was spent" {
		t.Errorf("rounds %+v", r)
	}
}

func TestCapacityInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewReal()
		p, _ := searching(64)
		second := *p.Workloads[0]
		second.Name = "second"
		p.Workloads = append(p.Workloads, &second)
		var b *bench
		b = newBench(t, c, p, func(n int, r *client.Request) reply { return crowded(&b)(n, r) })
		b.Judge = byMean(1950 * ms)
		drain, interrupt := context.WithCancel(t.Context())
		b.Drain = drain
		time.AfterFunc(time.Minute, interrupt)
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		if run.Stopped != "interrupted" || run.End > time.Minute+5*s || b.closed != 1 || len(run.Capacities) != 2 {
			t.Fatalf("stopped %q at %v, closed %d times, %d capacities", run.Stopped, run.End, b.closed, len(run.Capacities))
		}
		first := run.Capacities[0]
		if first.Reason != "interrupted" || first.Pass == 0 || first.Kind == metric.CapacityExact || first.Confirmed {
			t.Errorf("the search under way: %+v", first)
		}
		if got := run.Capacities[1]; got.Workload != "second" || got.Kind != metric.CapacityUnknown || got.Reason != "interrupted" || got.Line != "unknown: interrupted" {
			t.Errorf("the search to come: %+v", got)
		}
	})
}

func TestCapacityServerDies(t *testing.T) {
	p, _ := searching(64)
	b := newBench(t, clock.NewVirtual(), p, func(n int, _ *client.Request) reply {
		if n < 100 {
			return reply{ttft: s}
		}
		return reply{refuse: errRefused}
	})
	b.Judge = byMean(1950 * ms)
	run := must.Get(exec.Run(t.Context(), b.Config))(t)
	got := run.Capacities[0]
	if run.Servers[0].Error == "" || got.Kind != metric.CapacityAtLeast || got.Pass != 8 || !strings.Contains(got.Reason, "connection refused") {
		t.Errorf("server %+v, capacity %+v", run.Servers[0], got)
	}
}

func TestCapacityIsLeftOut(t *testing.T) {
	p, _ := searching(64)
	for _, tt := range []struct {
		name   string
		change func(*bench)
		reason string
		ready  bool
	}{
		{"not selected", func(b *bench) { b.Only = func(exec.Case) bool { return false } }, metric.SkippedOnly, false},
		{"nobody judges", func(b *bench) {}, "nobody judges", true},
		{"no server", func(b *bench) {
			b.Judge = byMean(s)
			b.Launch = func(context.Context, *plan.Server, func(string)) (*exec.Target, error) {
				return nil, errors.New("no GPU")
			}
		}, "the server could not be measured: no GPU", false},
		{"no prompts", func(b *bench) {
			b.Judge = byMean(s)
			b.target.Prompts = func(context.Context, *plan.Workload, uint64) (exec.Prompts, error) {
				return nil, errors.New("too long")
			}
		}, "no prompts could be made: too long", true},
	} {
		b := newBench(t, clock.NewVirtual(), p, steady(s, 0))
		tt.change(b)
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		if len(run.Capacities) != 1 {
			t.Fatalf("%s: %d capacities, want one that says why", tt.name, len(run.Capacities))
		}
		got := run.Capacities[0]
		if got.Kind != metric.CapacityUnknown || !strings.Contains(got.Reason, tt.reason) || got.Line == "" {
			t.Errorf("%s: %+v", tt.name, got)
		}
		if ready := slices.Contains(b.calls, "ready fake"); ready != tt.ready {
			t.Errorf("%s: the server was launched: %v", tt.name, ready)
		}
	}
	if got := exec.Searches(p); len(got) != 1 || got[0].Level.Name != exec.CapacityLevel || got[0].Workload != p.Workloads[0] {
		t.Errorf("Searches gave %+v", got)
	}
}

// byMeanWithin returns a judge of the mean time to first token. The judge is inconclusive if the
// limit is within the mean's confidence bounds. With n requests, the bounds of its logarithm are at
// ±1/√n.
func byMeanWithin(limit time.Duration) exec.Judge {
	return func(w *plan.Workload, l *metric.Level, look exec.Look) exec.Judgement {
		j := byMean(limit)(w, l, look)
		m, half := &j.Margins[0], 1/math.Sqrt(float64(look.Requests))
		m.Low, m.High = m.Log-half, m.Log+half
		if m.Low <= 0 && m.High >= 0 {
			j.Outcome, j.Needs = metric.Inconclusive, int(1/(m.Log*m.Log))-look.Requests
		}
		return j
	}
}

// All levels near the limit have about the same latency. The search then certifies a level clearly
// below the estimated limit, with fresh requests and as many as max_requests allows.
func TestLongCapacityCertifies(t *testing.T) {
	// With 8 to 20 requests in flight, the TTFT is 0.97 s, close to the limit of 1 s. The margin is
	// ln 0.97 = −0.03046, so it takes 1/0.03046² = 1,078 requests to certify such a level. Ordinary
	// probes have at most 200.
	onBoth(t, func(t *testing.T, c clock.Clock) {
		p, capacity := searching(32)
		capacity.MaxRequests = 1600
		var b *bench
		b = newBench(t, c, p, func(int, *client.Request) reply {
			switch {
			case b.inFlight < 8:
				return reply{ttft: 300 * ms}
			case b.inFlight > 20:
				return reply{ttft: 2 * time.Second}
			}
			return reply{ttft: 970 * ms}
		})
		b.Judge = byMeanWithin(time.Second)
		run, err := exec.Run(t.Context(), b.Config)
		if err != nil {
			t.Fatal(err)
		}
		got := run.Capacities[0]
		want := []string{
			"ladder 8 inconclusive", "ladder 4 pass", "ladder 16 inconclusive", "ladder 32 fail", "bisect 6 pass", "bisect 7 pass",
			"bisect 24 fail", "bisect 20 inconclusive", "bisect 22 fail", "bisect 21 fail",
			"certify 16 pass set 1", "check 12 inconclusive", "confirm 16 pass set 2",
		}
		if diff := cmp.Diff(want, outcomes(got)); diff != "" {
			t.Errorf("visits (-want +got):\n%s", diff)
		}
		if got.Pass != 16 || got.Fail != 21 || !got.Confirmed {
			t.Errorf("[%d, %d], confirmed %v", got.Pass, got.Fail, got.Confirmed)
		}
		for _, x := range got.Probes {
			if x.Purpose != "certify" && x.Purpose != "confirm" {
				continue
			}
			l := run.Levels[slices.IndexFunc(run.Levels, func(l *metric.Level) bool { return l.Name == x.Level })]
			last := l.Looks[len(l.Looks)-1]
			if last.Requests != 1600 || last.Spent != 1 || last.Outcome != metric.Pass || l.Judged().Due() != 1600 || l.Probe.Purpose != x.Purpose {
				t.Errorf("%+v of %+v, %d requests, last look %+v", x, l.Probe, l.Judged().Due(), last)
			}
		}
	})
}
