package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert"
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
		{"", 0, 0, "unknown"}, // the zero value claims nothing
		{"later", 7, 8, "unknown"},
	}
	for _, tt := range tests {
		if got := (&Capacity{Kind: string(tt.kind), Pass: tt.pass, Fail: tt.fail}).Limit(); got != tt.want {
			t.Errorf("limit of %q, %d, %d = %q, want %q", tt.kind, tt.pass, tt.fail, got, tt.want)
		}
	}
}

func TestCapacityLine(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"39 requests in flight (exact)", "chat: 39 requests in flight (exact)"},
		{"chat: 39 requests in flight (exact)", "chat: 39 requests in flight (exact)"},
		{"", "chat: unknown"},
	} {
		if got := (&Capacity{Workload: "chat", Kind: "unknown", Line: tt.line}).Answer(); got != tt.want {
			t.Errorf("line of %q = %q, want %q", tt.line, got, tt.want)
		}
	}
}

// A probe is in the table of its capacity and nowhere among the levels.
func TestProbesAreNoLevels(t *testing.T) {
	for _, g := range groups(document()) {
		for _, c := range g.cases {
			if c.Probe != nil {
				t.Errorf("the probe %s is among the levels", c.Level)
			}
		}
	}
	root, _ := junitOf(t, document())
	for _, c := range cases(root) {
		if name, _ := c.attr("name"); strings.Contains(name, "probe") {
			t.Errorf("the testcase %q is of a probe, which another run does not have", name)
		}
	}
}

// A capacity that nobody judged is an error where the plan requires one, and
// shown where it does not.
func TestJUnitCapacity(t *testing.T) {
	tests := []struct {
		name    string
		require int
		kind    metric.CapacityKind
		outcome assert.Outcome // Pending: no verdict
		want    string
	}{
		{"passes", 30, metric.CapacityExact, assert.Pass, "system-out"},
		{"fails", 50, metric.CapacityExact, assert.Fail, "failure"},
		{"undecided", 50, metric.CapacityInterpolated, assert.Inconclusive, "failure"},
		{"unknown", 50, metric.CapacityUnknown, assert.Error, "error"},
		{"required and not judged", 30, metric.CapacityExact, assert.Pending, "error"},
		{"measured", 0, metric.CapacityExact, assert.Pending, "system-out"},
		{"measured in vain", 0, metric.CapacityUnknown, assert.Pending, "skipped"},
	}
	for _, tt := range tests {
		run, p, v, m := fixture()
		run.Capacities[0].Require, run.Capacities[0].Kind = tt.require, tt.kind
		i := slices.IndexFunc(v.List, func(v assert.Verdict) bool { return v.Kind == "capacity" })
		if v.List[i].Outcome = tt.outcome; tt.outcome == assert.Pending {
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
			if got := c.Nodes[0].XMLName.Local; got != tt.want {
				t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
			}
			// 7m12s of probes.
			if got, _ := c.attr("time"); got != "432.000" {
				t.Errorf("%s: time = %s, want 432.000", tt.name, got)
			}
			said, _ := c.Nodes[0].attr("message")
			if said += c.Nodes[0].Text; tt.want != "error" && !strings.Contains(said, run.Capacities[0].Line) {
				t.Errorf("%s: %q does not hold the answer", tt.name, said)
			}
		}
		if !found {
			t.Errorf("%s: no testcase", tt.name)
		}
		if want := `<property name="capacity.kind" value="` + string(tt.kind) + `">`; !bytes.Contains(b, []byte(want)) {
			t.Errorf("%s: no property %s", tt.name, want)
		}
	}
}

// What passed is told in brief, without losing value, limit and count.
func TestTerminalPassed(t *testing.T) {
	long := "ttft p95 77.6 ms < 500 ms: 0 of 150 requests over (0%, allowed 5%), 95% bounds 73.7 ms to 87.9 ms"
	th := &Threshold{Metric: "ttft", Stat: "p95", Op: "<", Limit: some(0.5), Unit: "s"}
	v := Verdict{Kind: "sla", Name: "sla.ttft.p95 at 8", Outcome: Pass, Message: long, Threshold: th, Value: some(0.0776), N: 150,
		Notes: []string{"this run: exact", "lock-step: in phase", "certified by its margin: 9 of 10"}}
	tests := []struct {
		name  string
		width int
		v     Verdict
		want  []string
	}{
		{"room for all", 140, v, []string{"  pass    sla.ttft.p95 at 8  77.6 ms < 500 ms: 0 of 150 requests over (0%, allowed 5%), 95% bounds 73.7 ms to 87.9 ms"}},
		{"without bounds", 60, v, []string{"  pass    sla.ttft.p95 at 8  77.6 ms < 500 ms, n = 150"}},
		{"on a line of its own", 40, v, []string{"  pass    sla.ttft.p95 at 8", "          77.6 ms < 500 ms, n = 150"}},
	}
	noLimit := v
	noLimit.Threshold = &Threshold{Metric: "success", Stat: "every"}
	noLimit.Message, noLimit.Name = "success every 100%: 0 of 150 requests failed", "sla.success.every at 8"
	tests = append(tests, struct {
		name  string
		width int
		v     Verdict
		want  []string
	}{"no limit", 50, noLimit, []string{"  pass    sla.success.every at 8", "          100%: 0 of 150 requests failed"}})
	for _, tt := range tests {
		var b bytes.Buffer
		if err := Terminal(&b, &Document{Verdicts: []Verdict{tt.v}}, tt.width, false); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(b.String(), "\n")
		i := slices.Index(lines, tt.want[0])
		if i < 0 || len(tt.want) > 1 && lines[i+1] != tt.want[1] {
			t.Errorf("%s: no %q in:\n%s", tt.name, tt.want, b.String())
		}
		if strings.Contains(b.String(), "this run") || !strings.Contains(b.String(), "lock-step") || !strings.Contains(b.String(), "its margin") {
			t.Errorf("%s: the wrong notes are left out:\n%s", tt.name, b.String())
		}
	}
}

// What is shown is what was judged from the samples, which need not be what the
// search concluded while it ran.
func TestJudgedCapacityIsShown(t *testing.T) {
	run, p, v, m := fixture()
	anew := *run.Capacities[0]
	anew.Kind, anew.Pass, anew.Line = metric.CapacityBelow, 0, "<30 requests in flight"
	i := slices.IndexFunc(v.List, func(v assert.Verdict) bool { return v.Kind == "capacity" })
	v.List[i].Capacity = &anew
	d := New(run, p, v, m)
	if len(d.Capacities) != 1 || d.Capacities[0].Line != anew.Line || d.Capacities[0].Pass != 0 {
		t.Errorf("capacities = %+v, want the one that was judged", d.Capacities)
	}
	run.Capacities = nil
	if d := New(run, p, v, m); len(d.Capacities) != 1 {
		t.Errorf("%d capacities, want the one that was judged", len(d.Capacities))
	}
}
