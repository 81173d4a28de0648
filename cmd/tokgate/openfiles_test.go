package main

import (
	"strings"
	"testing"

	"github.com/tokgate/tokgate/plan"
)

// A run that needs more connections than the machine allows does not start.
func TestOpenFiles(t *testing.T) {
	endpoint, own := &plan.Server{Name: "e", Endpoint: &plan.Endpoint{}}, &plan.Server{Name: "s", Simulator: &plan.Simulator{}}
	of := func(s *plan.Server, n, upTo int) *plan.Plan {
		w := &plan.Workload{Name: "w", Servers: []*plan.Server{s}, Loads: []*plan.Load{{Levels: []plan.Level{{Name: "n", N: n}, {Name: "1", N: 1}}}}}
		if upTo > 0 {
			w.Capacity = &plan.Capacity{UpTo: upTo, Load: &plan.Load{}}
		}
		return &plan.Plan{Path: "p.hcl", Servers: []*plan.Server{s}, Workloads: []*plan.Workload{w}}
	}
	beside := of(endpoint, 300, 0)
	beside.Compares = []*plan.Compare{{SideBySide: true}}
	for _, tt := range []struct {
		name string
		plan *plan.Plan
		need int
	}{
		{"an endpoint", of(endpoint, 800, 0), 1000},
		{"the built-in server", of(own, 800, 0), 1800},
		{"a search", of(endpoint, 800, 3000), 3200},
		{"side by side", beside, 800},
	} {
		need, _ := needOpenFiles(tt.plan)
		if need != tt.need {
			t.Errorf("%s: %d, want %d", tt.name, need, tt.need)
		}
		if err := checkOpenFiles(tt.plan, uint64(need)); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		err := checkOpenFiles(tt.plan, uint64(need-1))
		if e, ok := err.(*exitError); !ok || e.code != 4 || !strings.Contains(err.Error(), "open files") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
