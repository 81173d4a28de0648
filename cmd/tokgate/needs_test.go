package main

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
)

// A plan's largest load takes cores, ports and files. A machine with too few gets a warning that says
// what happens and what to do.
func TestNeeds(t *testing.T) {
	endpoint := &plan.Server{Name: "e", Endpoint: &plan.Endpoint{}}
	of := func(level plan.Level, open *plan.Open) *plan.Plan {
		w := &plan.Workload{Name: "w", Servers: []*plan.Server{endpoint}, Loads: []*plan.Load{{Levels: []plan.Level{level}, Open: open}}}
		return &plan.Plan{Path: "p.hcl", Servers: []*plan.Server{endpoint}, Workloads: []*plan.Workload{w}}
	}
	took := &lastRun{requests: map[string]float64{caseKey("e", "w", "r"): 10}}
	rate := of(plan.Level{Name: "r", Rate: 60}, &plan.Open{MaxInFlight: 4096})
	large := machine{64, 64000, 1 << 20}
	for _, tt := range []struct {
		name    string
		plan    *plan.Plan
		last    *lastRun
		machine machine
		want    needs  // without its text
		lacks   string // in the warning; "" if there is none
	}{
		{"one core", of(plan.Level{Name: "8", N: 2600}, nil), nil, machine{1, 28000, 4096}, needs{streams: 2600, cores: 1, ports: 2600, files: 2800}, ""},
		{"a second core, and one to send", of(plan.Level{Name: "8", N: 2601}, nil), nil, large, needs{streams: 2601, cores: 3, ports: 2601, files: 2801}, ""},
		{"20,000 streams", of(plan.Level{Name: "8", N: 20000}, nil), nil, machine{2, 28232, 4096}, needs{streams: 20000, cores: 9, ports: 20000, files: 20200}, "take about 9 cores to read, but tokgate may use 2"},
		{"files", of(plan.Level{Name: "8", N: 1000}, nil), nil, machine{2, 28232, 1024}, needs{streams: 1000, cores: 1, ports: 1000, files: 1200}, "ulimit -Hn 1200"},
		{"ports", of(plan.Level{Name: "8", N: 30000}, nil), nil, machine{16, 28232, 1 << 20}, needs{streams: 30000, cores: 13, ports: 30000, files: 30200}, "this machine has 28232"},
		{"nothing is known of the machine", of(plan.Level{Name: "8", N: 30000}, nil), nil, machine{}, needs{streams: 30000, cores: 13, ports: 30000, files: 30200}, ""},
		{"a rate by the last run: 60 times 10", rate, took, large, needs{streams: 600, cores: 1, ports: 600, files: 800}, ""},
		{"a rate of unknown requests", rate, nil, large, needs{cores: 1, files: 200}, ""},
	} {
		got := needsOf(tt.plan, tt.last)
		text := ""
		if d := got.beyond(tt.machine); len(d) > 0 {
			text = d[0].Detail
		}
		got.of, got.subject = "", hcl.Range{}
		must.Hold(t, got == tt.want, "%s: %+v, want %+v", tt.name, got, tt.want)
		must.Hold(t, strings.Contains(text, tt.lacks) && (text == "") == (tt.lacks == ""), "%s: %q, want %q", tt.name, text, tt.lacks)
	}
}

// The table in docs/scale.md is what needsOf computes.
func TestScaleTable(t *testing.T) {
	page := read(t, filepath.Join("..", "..", "docs", "scale.md"))
	for _, streams := range []int{1000, 20_000, 200_000} {
		s := &plan.Server{Name: "e", Endpoint: &plan.Endpoint{}}
		w := &plan.Workload{Name: "w", Servers: []*plan.Server{s}, Loads: []*plan.Load{{Levels: []plan.Level{{N: streams}}}}}
		n := needsOf(&plan.Plan{Servers: []*plan.Server{s}, Workloads: []*plan.Workload{w}}, nil)
		row := "|"
		for _, v := range []int{streams, streams * chunksOfStream, n.cores, int(math.Ceil(float64(streams) * 6.6 / 1024)), n.ports, n.files} {
			row += " " + thousands(v) + " |"
		}
		must.Hold(t, strings.Contains(strings.ReplaceAll(page, " MiB", ""), row), "docs/scale.md lacks the row %s", row)
	}
}

// thousands writes a number with a comma before every three digits.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

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
		need := needsOf(tt.plan, nil).files
		must.Hold(t, need == tt.need, "%s: %d, want %d", tt.name, need, tt.need)
		if err := checkOpenFiles(tt.plan, uint64(need)); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		err := checkOpenFiles(tt.plan, uint64(need-1))
		e, ok := err.(*exitError)
		must.Hold(t, ok && e.code == 4 && strings.Contains(err.Error(), "open files"), "%s: %v", tt.name, err)
	}
}
