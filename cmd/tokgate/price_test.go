package main

import (
	"testing"
	"time"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
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
		name   string
		prices *plan.Prices
		budget time.Duration
		last   *lastRun
		want   string
	}{
		{"no prices", nil, 0, last, ""},
		{"electricity alone", &plan.Prices{Currency: "EUR", Electricity: 0.3}, 0, last, ""},
		{"before the first run", &plan.Prices{Currency: "USD", PerHour: map[string]float64{"a": 2, "b": 2}}, 30 * time.Minute, nil,
			"2 USD an hour, for a time that is not known before the first run · at most 1 USD by the budget"},
		// The cases of a and b take half an hour each, and everything else one hour: 2 hours at 2
		// USD are 4 USD.
		{"one price", &plan.Prices{Currency: "USD", PerHour: map[string]float64{"a": 2, "b": 2}}, 0, last,
			"about 4 USD, by the run in results/x/results.json, at 2 USD an hour"},
		// The case of a takes half an hour at 2 USD an hour, and that of b half an hour at 6 USD.
		// The hour for everything else costs the mean, 4 USD: 1 + 3 + 4 = 8 USD.
		{"two prices", &plan.Prices{Currency: "USD", PerHour: map[string]float64{"a": 2, "b": 6}, Electricity: 0.3}, 2 * time.Hour, last,
			"about 8 USD, by the run in results/x/results.json, at a 2 USD, b 6 USD an hour · at most 12 USD by the budget · electricity on top, by the power that is measured"},
		// The case of a takes half an hour at 2 USD an hour, and that of b half an hour at 6 USD.
		// Starting b takes half an hour more: 1 + 3 + 3 = 7 USD.
		{"a start", &plan.Prices{Currency: "USD", PerHour: map[string]float64{"a": 2, "b": 6}}, 0,
			&lastRun{path: "r", kind: "run", cases: last.cases, loads: map[string]float64{"b": 1800}}, "about 7 USD, by the run in r, at a 2 USD, b 6 USD an hour"},
		{"a case that the last run had not", &plan.Prices{Currency: "USD", PerHour: map[string]float64{"a": 2, "b": 2}}, 0,
			&lastRun{path: "r", kind: "run", cases: map[string]float64{caseKey("a", "chat", "8"): 18}}, "more than 1 USD, by the run in r, at 2 USD an hour"},
	} {
		p.Prices, p.Gate.Budget = tt.prices, tt.budget
		if got := tt.last.cost(p, startTimes(p, tt.last)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
