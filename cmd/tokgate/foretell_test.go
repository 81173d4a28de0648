package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/report"
)

func TestCost(t *testing.T) {
	a, b := &plan.Server{Name: "a"}, &plan.Server{Name: "b"}
	w := &plan.Workload{Name: "chat", Servers: []*plan.Server{a, b},
		Loads: []*plan.Load{{Kind: metric.ClosedLoop, Levels: []plan.Level{{Name: "8", N: 8, Requests: 100}}}}}
	p := &plan.Plan{Servers: []*plan.Server{a, b}, Workloads: []*plan.Workload{w}}
	// In the last run, each request of a case took 18 s, so 100 requests take half an hour.
	// Everything else took an hour.
	last := &lastRun{path: "results/x/results.json", kind: "run", rest: 3600, cases: map[string]float64{
		caseKey("a", "chat", "8"): 18, caseKey("b", "chat", "8"): 18,
	}}
	for _, tt := range []struct {
		name          string
		prices        *plan.Prices
		budget        time.Duration
		last          *lastRun
		price, tariff string
	}{
		{"no prices", nil, 0, last, "2h expected", ""},
		{"electricity alone", &plan.Prices{Currency: "EUR", Electricity: 0.3}, 0, last, "2h expected", ""},
		{"before the first run", &plan.Prices{Currency: "USD", PerHour: map[string]float64{"a": 2, "b": 2}}, 30 * time.Minute, nil,
			"", "2 USD an hour · at most 1 USD by the budget"},
		// The cases of a and b take half an hour each, and everything else one hour: 2 hours at 2
		// USD are 4 USD.
		{"one price", &plan.Prices{Currency: "USD", PerHour: map[string]float64{"a": 2, "b": 2}}, 0, last,
			"2h, 4 USD, expected", "2 USD an hour"},
		// The case of a takes half an hour at 2 USD an hour, and that of b half an hour at 6 USD.
		// The hour for everything else costs the mean, 4 USD: 1 + 3 + 4 = 8 USD.
		{"two prices", &plan.Prices{Currency: "USD", PerHour: map[string]float64{"a": 2, "b": 6}, Electricity: 0.3}, 2 * time.Hour, last,
			"2h, 8 USD, expected", "a 2 USD, b 6 USD an hour · at most 12 USD by the budget · electricity on top, by the power that is measured"},
		// The case of a takes half an hour at 2 USD an hour, and that of b half an hour at 6 USD.
		// Starting b takes half an hour more: 1 + 3 + 3 = 7 USD.
		{"a start", &plan.Prices{Currency: "USD", PerHour: map[string]float64{"a": 2, "b": 6}}, 0,
			&lastRun{path: "r", kind: "run", cases: last.cases, loads: map[string]load{"b": {30 * time.Minute, 30 * time.Minute}}}, "1h30m, 7 USD, expected with 1 start", "a 2 USD, b 6 USD an hour"},
		{"a case that the last run had not", &plan.Prices{Currency: "USD", PerHour: map[string]float64{"a": 2, "b": 2}}, 0,
			&lastRun{path: "r", kind: "run", cases: map[string]float64{caseKey("a", "chat", "8"): 18}}, "more than 30m, 1 USD, expected", "2 USD an hour"},
	} {
		p.Prices, p.Gate.Budget = tt.prices, tt.budget
		must.Same(t, fmt.Sprintf("%s: price", tt.name), tt.price, tt.last.takes(p, startTimes(p, tt.last)).price(p))
		must.Same(t, fmt.Sprintf("%s: tariff", tt.name), tt.tariff, tariff(p))
	}
}

// A level costs the least at its first look, the most when it is extended, and is expected to end where
// it ended last time. A part that never ran has a warm-up and fillers.
func TestForetellRequests(t *testing.T) {
	s := &plan.Server{Name: "a"}
	p95 := &plan.Threshold{Metric: metric.MustLookup("ttft"), Stat: metric.Stat{Kind: metric.Percentile, P: 95}, Op: plan.Less, Limit: 1}
	w := &plan.Workload{Name: "chat", Servers: []*plan.Server{s}, Policy: plan.Policy{Confidence: 0.95, Decide: plan.Certified, OnInconclusive: plan.Extend},
		Loads: []*plan.Load{{Kind: metric.ClosedLoop, Warmup: 8, Seeds: []int64{1}, Levels: []plan.Level{{Name: "8", N: 8, Requests: 200, Rounds: 10}}}},
		SLAs:  []*plan.SLA{{At: []string{"8"}, Severity: plan.SeverityError, Thresholds: []*plan.Threshold{p95}}}}
	p := &plan.Plan{Servers: []*plan.Server{s}, Workloads: []*plan.Workload{w}}
	got := (*lastRun)(nil).takes(p, nil)
	// Looks after 140 of 200 requests (100 cannot certify a p95 with their error) and extensions to 400 and 800. Ten
	// rounds warm up with 8 requests each, and send 8 more until the last measured one has ended.
	want := "about 360 sent, 200 of them measured (at least 140 to pass, at most 800)"
	must.Hold(t, got.requests() == want, "%q, want %q", got.requests(), want)
	key := caseKey("a", "chat", "8")
	last := &lastRun{cases: map[string]float64{key: 0.5}, costs: map[string]report.Spent{key: {Sent: 280, Measured: 140}}}
	if got, want := last.takes(p, nil).requests(), "about 280 sent, 140 of them measured (at least 140 to pass, at most 800) · 1m10s of load"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A simulated start says nothing about the start of a process.
func TestSimulatedStarts(t *testing.T) {
	t.Chdir(t.TempDir())
	path := writePlan(t, `
server "s" {
  process {
    command = ["serve", "Qwen3-8B", "--port", "{port}"]
  }
  model = "Qwen3-8B"
  simulator {}
}
workload "w" {
  input_tokens  = 100
  output_tokens = 10
  load {
    concurrency = 1
    requests    = 20
  }
  sla { success = "every" }
}
`)
	tokgate(t, "run", "--simulate", path).check(t, verdict.ExitPass)
	tokgate(t, "plan", path).check(t, verdict.ExitPass, "1 start, each assumed: a minute, and 16 GB of weights")
}

// Conversations that begin at a rate are foretold by their thinking times: of four turns with 10 s
// between them, 720 begin in three minutes. They fill the server for three times 30 s before, and go
// on for 30 s. A simulated run sends 4,584 requests, measures 2,888, and takes 5m13s.
func TestForetellConversations(t *testing.T) {
	a := &app{color: "auto", Streams: Streams{Out: t.Output(), Err: t.Output()}}
	p, diags := a.load("../../plans/conversations.hcl", inputs{}, false)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	var first *lastRun
	if got, want := first.takes(p, nil).requests(), "about 4,320 sent, 2,880 of them measured · 5m of load"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := first.total(p, nil), "about 5m, by the durations that the plan sets"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A rate of a minute comes after a saturation of a minute with 15 s of warm-up, and before one of at most
// a minute with as much time to warm up. Without saturations it takes its minute.
func TestForetellSaturations(t *testing.T) {
	for _, tt := range []struct{ load, want string }{
		{`rate = "4 req/s"`, "Price: 2m15s expected (at least 2m15s to pass, at most 4m15s)"},
		{"rate = \"4 req/s\"\n    saturate = false", "Time: about 1m, by the durations that the plan sets"},
	} {
		tokgate(t, "plan", writePlan(t, fmt.Sprintf(`
server "s" {
  simulator {}
}
workload "w" {
  input_tokens  = 256
  output_tokens = 32
  load {
    %s
    duration = "1m"
  }
  sla { e2e = "p95 < 1m" }
}
`, tt.load))).check(t, verdict.ExitPass, tt.want)
	}
}
