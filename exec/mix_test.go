package exec_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

// mixOf is a plan of a mix of three workloads. They have 70, 25 and 5 % of the requests, and differ
// in lengths and model.
func mixOf(loads ...*plan.Load) *plan.Plan {
	p := planOf(0, loads...)
	mix := p.Workloads[0]
	mix.Name, mix.Input = "production", 0
	for i, share := range []int{700_000, 250_000, 50_000} {
		name := []string{"chat", "rag", "long"}[i]
		base := &plan.Workload{Name: name, API: plan.Chat, Input: 100 * (i + 1), Output: plan.Output{Mean: 2 + i}, Request: plan.Request{Model: name + "-model"}}
		mix.Mix = append(mix.Mix, mix.Part(base, share))
	}
	mix.ShareOut()
	p.Workloads = mix.Whole()
	return p
}

// shared returns the number of measured requests of each part, for each round.
func shared(l *metric.Level) map[string][]int {
	out := map[string][]int{}
	for _, r := range l.Rounds {
		counts := map[string]int{}
		for _, s := range r.MeasuredSamples() {
			counts[s.Part]++
		}
		for _, name := range []string{"chat", "rag", "long"} {
			out[name] = append(out[name], counts[name])
		}
	}
	return out
}

// Of 30 requests in a round, the three parts get 21, 7.5 and 1.5 on average. So four rounds have
// exactly 84, 30 and 6 of them. The rounds of a rate share one window, and each round of a stage is
// a window.
func TestMix(t *testing.T) {
	want := map[string][]int{"chat": {21, 21, 21, 21}, "rag": {8, 7, 8, 7}, "long": {1, 2, 1, 2}}
	stage := plan.Level{Name: "spike", Rate: 4, Requests: 120, Rounds: 4, Stage: &metric.Stage{From: 4, To: 4}}
	stages := rateLoad(4, 120, 4)
	stages.Seeds, stages.Levels = []int64{1, 2, 3, 4}, []plan.Level{stage}
	for name, load := range map[string]*plan.Load{"closed": closedLoad(4, 120, 1, 2, 3, 4), "burst": {Kind: metric.Burst, Seeds: []int64{1}, Warmup: plan.WarmupAuto, Levels: []plan.Level{{Name: "burst 30", N: 30, Requests: 120, Rounds: 4}}}, "rate": rateLoad(4, 120, 4), "stages": stages} {
		t.Run(name, func(t *testing.T) {
			p := mixOf(load)
			b := newBench(t, clock.NewVirtual(), p, steady(200*time.Millisecond, 10*time.Millisecond))
			run := must.Get(exec.Run(t.Context(), b.Config))(t)
			levels := run.All()
			i := slices.IndexFunc(levels, func(l *metric.Level) bool { return l.Name == load.Levels[0].Name })
			l := levels[i]
			must.Same(t, "", want, shared(l))
			for k, part := range levels[i+1 : i+4] {
				name := p.Workloads[k+1].PartName()
				due, sent := 0, 0
				for _, r := range part.Rounds {
					due += r.Due
					sent += len(r.MeasuredSamples())
				}
				if planned := p.Workloads[k+1].Loads[0].Levels[0].Requests; part.Workload != "production/"+name || due != planned || sent != planned {
					t.Errorf("%s: %d of %d requests, planned %d", part.Workload, sent, due, planned)
				}
			}
			asked(t, b, p)
		})
	}
}

// In a mix over a trace, a request has the length of its row and the model of its part. If rows
// have types, the type of a row decides the part. Without types, the parts get exactly their
// shares: 70, 25 and 5 %.
func TestMixOverATrace(t *testing.T) {
	for _, typed := range []bool{true, false} {
		t.Run(map[bool]string{true: "by type", false: "drawn"}[typed], func(t *testing.T) {
			var rows []traffic.Recorded
			for i := range 160 {
				row := traffic.Recorded{Line: i + 1, At: time.Duration(i) * time.Second, Input: 10 + i, Output: 1 + i%3, Parent: -1, Wait: -1}
				if typed {
					row.Type = []string{"/v1/chat", "/v1/long", "/v1/chat"}[i*7%3]
				}
				rows = append(rows, row)
			}
			load := replaying(t, rows, traffic.Stretch{From: 20 * time.Second, To: 140 * time.Second})
			p := mixOf(load)
			mix := p.Workloads[0]
			for _, part := range mix.Mix {
				part.Input = 0
				if typed {
					part.Type = "/v1/" + part.PartName()
				}
			}
			// The mean number per round is 8.4 requests for chat, 3 for rag and 0.6 for long.
			want := map[string][]int{"chat": {8, 9, 8, 9, 8, 8, 9, 8, 9, 8}, "rag": {3, 3, 3, 3, 3, 3, 3, 3, 3, 3}, "long": {1, 0, 1, 0, 1, 1, 0, 1, 0, 1}}
			if typed { // no row has the type of the part rag, so leave the part out
				mix.Mix = []*plan.Workload{mix.Mix[0], mix.Mix[2]}
				want = map[string][]int{"chat": {8, 8, 8, 8, 8, 8, 8, 8, 8, 8}, "rag": make([]int, 10), "long": {4, 4, 4, 4, 4, 4, 4, 4, 4, 4}}
			}
			mix.ShareOut()
			p.Workloads = mix.Whole()
			b := newBench(t, clock.NewVirtual(), p, steady(20*time.Millisecond, time.Millisecond))
			run := must.Get(exec.Run(t.Context(), b.Config))(t)
			must.Same(t, "", want, shared(run.Levels[0]))
			for k, part := range run.Levels[1:] {
				if planned := p.Workloads[k+1].Loads[0].Levels[0]; part.Due() != planned.Requests || part.Share != planned.Share {
					t.Errorf("%s: %d requests, %v of all; planned %d, %v", part.Workload, part.Due(), part.Share, planned.Requests, planned.Share)
				}
			}
			for _, request := range b.requests {
				row := rows[request.Input-10]
				name := strings.TrimPrefix(row.Type, "/v1/")
				if request.Output != row.Output || typed && request.Model != name+"-model" || request.Model == "" {
					t.Errorf("row %+v was sent to %s, for %d tokens", row, request.Model, request.Output)
				}
			}
			if len(b.requests) < 140 || b.requests[0].Input != 10 {
				t.Errorf("%d requests, from row %d on", len(b.requests), b.requests[0].Input-9)
			}
		})
	}
}

// asked checks that each request has the prompt, the length and the model of its part of the
// mix. It also checks that the prompts of a part are numbered within the part.
func asked(t *testing.T, b *bench, p *plan.Plan) {
	t.Helper()
	for _, r := range b.requests {
		of, rest, _ := strings.Cut(r.Prompt.Text, " ")
		i := slices.IndexFunc(p.Workloads, func(w *plan.Workload) bool { return w.Address() == of })
		must.Need(t, i >= 1, "a request of %s: %s", of, rest)
		w, output := p.Workloads[i], p.Workloads[i].Output.Mean
		if strings.Contains(rest, "Phase:"+string(exec.Alone)) {
			output = 1
		}
		if r.Input != w.Input || r.Output != output || r.Model != w.Request.Model {
			t.Errorf("%s is sent %d tokens, asked for %d of %s", of, r.Input, r.Output, r.Model)
		}
		must.Hold(t, b.prompts[r.Prompt.Text] == 1, "%d times the prompt %s", b.prompts[r.Prompt.Text], r.Prompt.Text)
	}
	for _, id := range []string{"production/chat", "production/rag", "production/long"} {
		first := exec.PromptID{Level: p.Workloads[0].Loads[0].Levels[0].Name, Seed: 1, Phase: metric.Measured}
		must.Hold(t, b.prompts[fmt.Sprintf("%s %+v", id, first)] == 1, "the first prompt of %s was not sent: %+v", id, first)
	}
}

// All servers get the same parts of a mix in the same order, also both servers of a comparison.
func TestMixIsTheSameOnEveryServer(t *testing.T) {
	p := mixOf(closedLoad(1, 120, 1, 2, 3, 4))
	other := &plan.Server{Name: "other"}
	p.Servers = append(p.Servers, other)
	for _, w := range p.Workloads {
		w.Servers = append(w.Servers, other)
	}
	sent := map[string][]string{}
	b := newBench(t, clock.NewVirtual(), p, func(n int, r *client.Request) reply {
		return reply{ttft: time.Duration(10+n%7) * time.Millisecond, itl: time.Millisecond}
	})
	b.onDone = func(s *metric.Sample) {
		sent[s.Server] = append(sent[s.Server], fmt.Sprint(s.Level, s.Round, s.Phase, s.Order, s.Part, s.OutputAsked))
	}
	must.Get(exec.Run(t.Context(), b.Config))(t)
	if diff := cmp.Diff(sent["fake"], sent["other"]); diff != "" || len(sent["fake"]) < 120 {
		t.Errorf("%d requests: %s", len(sent["fake"]), diff)
	}
}

// The report lists the parts of a mix even if the user did not select the mix to run.
func TestMixThatIsNotSelected(t *testing.T) {
	p := mixOf(closedLoad(1, 120, 1, 2, 3, 4))
	b := newBench(t, clock.NewVirtual(), p, steady(1, 1))
	b.Only = func(exec.Case) bool { return false }
	run := must.Get(exec.Run(t.Context(), b.Config))(t)
	var got []string
	for _, l := range run.All() {
		got = append(got, l.Workload+" "+l.Skipped)
	}
	want := []string{"production not selected", "production/chat not selected", "production/rag not selected", "production/long not selected"}
	must.Same(t, "", want, got)
}

// The capacity of a mix is the capacity of its weakest part. Here this is the part with long
// prompts, whose requests take 100 ms for each request in flight. Requests of the other parts
// always take 20 ms.
func TestMixCapacity(t *testing.T) {
	for _, tt := range []struct {
		limit   float64 // limit on the TTFT of the long requests, in seconds
		pass    int
		kind    metric.CapacityKind
		binding string
	}{
		{0.75, 7, metric.CapacityExact, "long: ttft p95"},
		{5, 12, metric.CapacityAtLeast, ""},
	} {
		p := mixOf()
		mix := p.Workloads[0]
		mix.Mix, p.Workloads = nil, nil
		policy := plan.Policy{Confidence: 0.95, Decide: plan.Certified}
		for name, limit := range map[string]float64{"chat": 0.75, "long": tt.limit} {
			base := &plan.Workload{Name: name, API: plan.Chat, Input: 100, Output: plan.Output{Mean: 2}, Policy: policy}
			part := mix.Part(base, 500_000)
			p95, _ := metric.ParseStat("p95")
			part.SLAs = []*plan.SLA{{AtCapacity: true, Severity: plan.SeverityError, Thresholds: []*plan.Threshold{{
				Metric: metric.MustLookup("ttft"), Stat: p95, Op: plan.Less, Limit: limit,
			}}}}
			mix.Mix = append(mix.Mix, part)
		}
		slices.SortFunc(mix.Mix, func(a, b *plan.Workload) int { return strings.Compare(a.Name, b.Name) })
		mix.Policy = policy
		mix.Capacity = &plan.Capacity{Over: metric.ClosedLoop, From: 1, UpTo: 12, Resolution: 1, Requests: 200, Confirm: true, Load: closedLoad(1, 1, 1, 2, 3, 4, 5)}
		p.Workloads = mix.Whole()
		var b *bench
		b = newBench(t, clock.NewVirtual(), p, func(_ int, r *client.Request) reply {
			if strings.HasPrefix(r.Prompt.Text, "production/long") {
				return reply{ttft: time.Duration(b.inFlight) * 100 * time.Millisecond, itl: time.Millisecond}
			}
			return reply{ttft: 20 * time.Millisecond, itl: time.Millisecond}
		})
		b.Judge = judge(p)
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		c := run.Capacities[0]
		must.Hold(t, c.Pass == tt.pass && c.Kind == tt.kind && (tt.binding == "" || c.Binding == tt.binding), "with %v s: %s (%v)", tt.limit, c.Line, outcomes(c))
		var judged []string
		for _, v := range assert.Judge(p, run, assert.Options{}).List {
			if v.Kind == verdict.KindSLA && v.Threshold.Metric.Name == "ttft" {
				judged = append(judged, v.Workload+" "+v.Name+" "+v.Outcome.String())
			}
		}
		want := []string{"production/chat sla.ttft.p95 at capacity pass", "production/long sla.ttft.p95 at capacity pass"}
		must.Same(t, "", want, judged)
	}
}

// The capacity of a mix over a trace is the largest speed of the replay at which every part passes.
// Here the long requests decide. They take 0.2 s times the speed, and so reach their limit of 0.75
// s at 3.75 times the recorded speed.
func TestMixCapacityOverATrace(t *testing.T) {
	var rows []traffic.Recorded
	for i := range 600 {
		rows = append(rows, traffic.Recorded{
			Line: i + 1, At: time.Duration(i) * time.Second, Input: 10 + i, Output: 2, Parent: -1, Wait: -1, Type: []string{"chat", "long", "chat"}[i*7%3],
		})
	}
	load := replaying(t, rows, traffic.Stretch{})
	p := mixOf(load)
	mix := p.Workloads[0]
	mix.Mix = []*plan.Workload{mix.Mix[0], mix.Mix[2]} // chat and long
	mix.Policy = plan.Policy{Confidence: 0.95, Decide: plan.Certified}
	p95, _ := metric.ParseStat("p95")
	for _, part := range mix.Mix {
		part.Input, part.Type, part.Policy = 0, part.PartName(), mix.Policy
		part.SLAs = []*plan.SLA{{AtCapacity: true, Severity: plan.SeverityError, Thresholds: []*plan.Threshold{{
			Metric: metric.MustLookup("ttft"), Stat: p95, Op: plan.Less, Limit: 0.75,
		}}}}
	}
	probes := *load
	probes.Levels = nil
	mix.Capacity = &plan.Capacity{Over: metric.Speedup, From: 10, UpTo: 800, Relative: 0.05, Confirm: true, Load: &probes}
	mix.ShareOut()
	p.Workloads = mix.Whole()
	b := newBench(t, clock.NewVirtual(), p, func(_ int, r *client.Request) reply {
		speed := 1.0
		if _, after, faster := strings.Cut(r.Prompt.Text, "trace x"); faster {
			fmt.Sscan(strings.Fields(after)[0], &speed)
		}
		if strings.HasPrefix(r.Prompt.Text, "production/long") {
			return reply{ttft: time.Duration(speed * float64(200*time.Millisecond)), itl: time.Millisecond}
		}
		return reply{ttft: 20 * time.Millisecond, itl: time.Millisecond}
	})
	b.Judge = judge(p)
	run := must.Get(exec.Run(t.Context(), b.Config))(t)
	c := run.Capacities[0]
	must.Hold(t, c.Load(c.Pass) <= 3.75 && c.Load(c.Pass) >= 3.5 && c.Binding == "long: ttft p95", "%s, bound by %q (%v)", c.Line, c.Binding, outcomes(c))
	for _, l := range run.Levels {
		want := map[string]int{"production": 600, "production/chat": 400, "production/long": 200}[l.Workload]
		must.Hold(t, l.Due()%want == 0, "%s at %s has %d requests, want whole replays of %d", l.Workload, l.Name, l.Due(), want)
	}
}

// judge returns the judge of a run, as the command tokgate builds it.
func judge(p *plan.Plan) exec.Judge {
	return func(w *plan.Workload, l *metric.Level, at exec.Look) exec.Judgement {
		return assert.JudgeLook(p, w, l, at)
	}
}

// replaying returns a load that replays a stretch of rows at their recorded speed.
func replaying(t *testing.T, rows []traffic.Recorded, stretch traffic.Stretch) *plan.Load {
	t.Helper()
	r := must.Get((&traffic.Trace{Path: "a.jsonl", Format: "columns", Rows: rows}).Replay(stretch))(t)
	load := rateLoad(r.Rate(), r.Due, 10)
	load.Open.MaxInFlight, load.Open.Trace = 4096, r
	load.Levels[0].Name, load.Levels[0].Speedup = plan.TraceName(1), 1
	return load
}
