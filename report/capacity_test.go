package report

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

func TestCapacityLimit(t *testing.T) {
	tests := []struct {
		kind       metric.CapacityKind
		pass, fail int
		want       string
	}{
		{metric.CapacityExact, 39, 40, "39"},
		{metric.CapacityInterpolated, 12, 18, "12 to 17"}, // 18 fails
		{metric.CapacityInterpolated, 12, 13, "12"},
		{metric.CapacityAtLeast, 125, 0, "125+"},
		{metric.CapacityBelow, 0, 1, "<1"},
		{metric.CapacityServerCap, 64, 0, "64"},
		{metric.CapacityUnknown, 0, 0, "unknown"},
		{"", 0, 0, "unknown"}, // the zero Capacity claims nothing
		{"later", 7, 8, "unknown"},
	}
	for _, tt := range tests {
		got := (&metric.Capacity{Bracket: metric.Bracket{Kind: tt.kind, Pass: tt.pass, Fail: tt.fail}}).Limit()
		must.Hold(t, got == tt.want, "limit of %q, %d, %d = %q, want %q", tt.kind, tt.pass, tt.fail, got, tt.want)
	}
	replayed := metric.Capacity{Over: "speedup", Step: 0.01, Bracket: metric.Bracket{Kind: metric.CapacityInterpolated, Pass: 168, Fail: 206, Confirmed: true}}
	must.Same(t, "limit of times the recorded traffic", "1.68 to 2.05", replayed.Limit())
	got := (&Document{Run: &metric.Run{}}).Facts(&replayed)[0]
	must.Hold(t, got == "confirmed: 1.68 held again on fresh requests", "%v", got)
}

// A rate that stands alone is written with its unit.
func TestJoining(t *testing.T) {
	probes := func(set int) *metric.Capacity {
		return &metric.Capacity{Bracket: metric.Bracket{Kind: "exact", Pass: 39, Fail: 40}, Over: "concurrency", Probes: []metric.CapacityProbe{{N: 39, Set: set, Outcome: metric.Pass}}}
	}
	for name, c := range map[string]struct {
		level    string
		capacity *metric.Capacity
		want     string
	}{
		"below":            {"8", probes(1), "because load 39 passed in the search. The outcome at load 8 depends"},
		"with the level":   {"39", probes(0), "because load 39 passed in the search. The outcome at load 39 depends"},
		"on fresh samples": {"39", probes(1), "because load 39 passed on fresh requests. The outcome at load 39 depends"},
		"of a burst":       {"burst 39", probes(2), "because load 39 passed on fresh requests. The outcome at load 39 depends"},
	} {
		n, _ := strconv.Atoi(strings.TrimPrefix(c.level, "burst "))
		d := Document{Cases: []Case{{Level: &metric.Level{Name: c.level, N: n}}}}
		got := d.Joining(&verdict.Verdict{Level: c.level}, c.capacity)
		must.Hold(t, strings.Contains(got, c.want), "%s: %s", name, got)
	}
}

func TestCarries(t *testing.T) {
	rate := metric.Capacity{Over: "rate", Step: 0.1, Bracket: metric.Bracket{Kind: "interpolated", Pass: 81, Fail: 100, Crossing: 93}, Server: "s", Workload: "w"}
	for _, tt := range []struct {
		c    metric.Capacity
		want string
	}{
		{metric.Capacity{Over: "closed", Bracket: metric.Bracket{Kind: "exact", Pass: 39, Fail: 40}}, "39"},
		{rate, "8.1 req/s"},
		{metric.Capacity{Over: "rate", Step: 0.1, Bracket: metric.Bracket{Kind: "at_least", Pass: 81}}, "8.1+ req/s"},
		{metric.Capacity{Over: "rate", Step: 0.1, Bracket: metric.Bracket{Kind: "below", Fail: 20}}, "<2 req/s"},
		{metric.Capacity{Over: "rate", Bracket: metric.Bracket{Kind: "unknown"}}, "unknown"},
	} {
		must.Same(t, "carries", tt.want, tt.c.Carries())
	}
	got, want := (&Document{Run: &metric.Run{}}).Facts(&rate)[0], "the first threshold seems to meet its limit near 9.3 req/s: this is an estimate and certifies nothing"
	must.Hold(t, got == want, "%q, want %q", got, want)
	level := &metric.Level{Server: "s", Workload: "w", Kind: metric.OpenLoop, Saturation: []float64{11.6}}
	d := Document{Run: &metric.Run{Levels: []*metric.Level{level}, Capacities: []*metric.Capacity{&rate}}, Cases: []Case{{Level: level}}}
	if got, want := d.Facts(&rate)[1], "the largest rate that the server can sustain is 11.6 req/s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := d.Night().Figures; len(got) != 1 || got[0].Stat != "rate" || math.Abs(got[0].Value-8.1) > 1e-9 {
		t.Errorf("a night keeps %+v", got)
	}
}

func TestCapacityLine(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"39 requests in flight", "chat: 39 requests in flight"},
		{"chat: 39 requests in flight", "chat: 39 requests in flight"},
		{"", "chat: unknown"},
	} {
		got := (&metric.Capacity{Workload: "chat", Bracket: metric.Bracket{Kind: "unknown"}, Line: tt.line}).Answer()
		must.Hold(t, got == tt.want, "line of %q = %q, want %q", tt.line, got, tt.want)
	}
}

// A probe is shown in the table of its capacity, and not among the levels.
func TestProbesAreNoLevels(t *testing.T) {
	for _, g := range Groups(document()) {
		for _, c := range g.Cases {
			must.Hold(t, c.Probe == nil, "the probe %s is among the levels", c.Name)
		}
	}
	root, _ := junitOf(t, document())
	for _, c := range cases(root) {
		name, _ := c.attr("name")
		must.Hold(t, !strings.Contains(name, "probe"), "the testcase %q is of a probe, which another run does not have", name)
	}
}

// A capacity without a verdict is an error if the plan requires a capacity. If the plan requires
// none, the capacity is only shown.
func TestJUnitCapacity(t *testing.T) {
	tests := []struct {
		name    string
		require int
		kind    metric.CapacityKind
		outcome verdict.Outcome // Pending: no verdict
		want    string
	}{
		{"passes", 30, metric.CapacityExact, verdict.Pass, "system-out"},
		{"fails", 50, metric.CapacityExact, verdict.Fail, "failure"},
		{"undecided", 50, metric.CapacityInterpolated, verdict.Inconclusive, "failure"},
		{"unknown", 50, metric.CapacityUnknown, verdict.Error, "error"},
		{"required and not judged", 30, metric.CapacityExact, verdict.Pending, "error"},
		{"measured", 0, metric.CapacityExact, verdict.Pending, "system-out"},
		{"measured in vain", 0, metric.CapacityUnknown, verdict.Pending, "skipped"},
	}
	for _, tt := range tests {
		run, p, v, m := fixture()
		run.Capacities[0].Require, run.Capacities[0].Kind = tt.require, tt.kind
		i := slices.IndexFunc(v.List, func(v verdict.Verdict) bool { return v.Kind == "capacity" })
		if v.List[i].Outcome = tt.outcome; tt.outcome == verdict.Pending {
			v.List = slices.Delete(v.List, i, i+1)
		}
		d := New(run, p, v, m)
		root, b := junitOf(t, d)
		found := false
		for _, c := range cases(root) {
			if name, _ := c.attr("name"); name != "capacity" {
				continue
			}
			found = true
			must.Same(t, tt.name, tt.want, c.Nodes[0].XMLName.Local)
			// 7m12s of probes.
			got, _ := c.attr("time")
			must.Hold(t, got == "432.000", "%s: time = %s, want 432.000", tt.name, got)
			said, _ := c.Nodes[0].attr("message")
			if said += c.Nodes[0].Text; tt.want != "error" && !strings.Contains(said, run.Capacities[0].Line) {
				t.Errorf("%s: %q does not hold the answer", tt.name, said)
			}
		}
		must.Hold(t, found, "%s: no testcase", tt.name)
		want := `<property name="capacity.kind" value="` + string(tt.kind) + `">`
		must.Hold(t, bytes.Contains(b, []byte(want)), "%s: no property %s", tt.name, want)
	}
}

// The reports show the capacity that the verdict computed from the samples. It may differ from the
// result of the search.
func TestJudgedCapacityIsShown(t *testing.T) {
	run, p, v, m := fixture()
	anew := *run.Capacities[0]
	anew.Kind, anew.Pass, anew.Line = metric.CapacityBelow, 0, "<30 requests in flight"
	i := slices.IndexFunc(v.List, func(v verdict.Verdict) bool { return v.Kind == "capacity" })
	v.List[i].Capacity = &anew
	d := New(run, p, v, m)
	if len(d.Run.Capacities) != 1 || d.Run.Capacities[0].Line != anew.Line || d.Run.Capacities[0].Pass != 0 {
		t.Errorf("capacities = %+v, want the one that was judged", d.Run.Capacities)
	}
	run.Capacities = nil
	if d := New(run, p, v, m); len(d.Run.Capacities) != 1 {
		t.Errorf("%d capacities, want the one that was judged", len(d.Run.Capacities))
	}
}
