package assert

import (
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// refusing returns a level of 200 requests of which k fail, spread evenly. k must divide 200.
func refusing(k int) *metric.Level {
	s := shape{rounds: 5, perRound: 40}
	if k > 0 {
		s.failed = func(round, i int) bool { return (40*round+i)%(200/k) == 0 }
	}
	return s.level()
}

// A threshold that a server could meet by refusing requests implies that at most 2 % of them
// failed. 4 of 200 are 2 %. 5 are more, but may be chance: a server that fails 2 % fails at least 5
// of 200 requests in 37 % of such runs. 40 are certainly more.
func TestRefusing(t *testing.T) {
	for _, c := range []struct {
		name, text string
		failed     int
		want       verdict.Outcome
		says       string
	}{
		{"ttft", "p50 < 2s", 0, verdict.Pass, "success 100% > 98%: 0 of 200 requests failed (0%, allowed 2%)"},
		{"ttft", "p50 < 2s", 4, verdict.Pass, "success 98% = 98%: 4 of 200 requests failed (2%, allowed 2%)"},
		{"ttft", "p50 < 2s", 5, verdict.Inconclusive, "success 97.5% < 98%: 5 of 200 requests failed (2.5%, allowed 2%)"},
		{"ttft", "p50 < 2s", 40, verdict.Fail, "success 80% < 98%: 40 of 200 requests failed (20%, allowed 2%)"},
		{"throughput", "> 10 tok/s", 4, verdict.Pass, "4 of 200"},
		{"throughput", "> 10 tok/s", 40, verdict.Fail, "40 of 200"},
	} {
		p, run := gate(refusing(c.failed), threshold(c.name, c.text))
		v := Judge(p, run, Options{})
		own := verdictOf(t, v, required{Threshold: threshold(c.name, c.text)}.name()+" at 4")
		must.Need(t, own.Outcome == verdict.Pass, "%s %s with %d failures: %v %s", c.name, c.text, c.failed, own.Outcome, own.Message)
		implied := verdictOf(t, v, "sla.success.implied at 4")
		if !implied.Threshold.Implied || implied.Outcome != c.want || v.Outcome != c.want || !strings.Contains(implied.Message, c.says) {
			t.Errorf("%s %s with %d failures: %v %q, the run %v", c.name, c.text, c.failed, implied.Outcome, implied.Message, v.Outcome)
		}
		must.Hold(t, c.want != verdict.Inconclusive || implied.Needs != "", "%d failures: nothing says what would decide", c.failed)
		// The point estimate decides without a test.
		p.Workloads[0].Policy.Decide = plan.Estimate
		got := verdictOf(t, Judge(p, run, Options{}), "sla.success.implied at 4")
		must.Hold(t, (got.Outcome == verdict.Pass) == (c.failed <= 4) && got.Outcome != verdict.Inconclusive, "an estimate with %d failures: %v", c.failed, got.Outcome)
	}
}

// Which thresholds imply how many requests must succeed, and with which severity.
func TestImpliedSuccess(t *testing.T) {
	p95, mean, gaps, growth := threshold("ttft", "p95 < 2s"), threshold("ttft", "mean < 2s"), threshold("itl", "p95 < 30ms"), threshold("backlog_growth", "< 50%")
	half := threshold("success", "rate >= 90%")
	for _, c := range []struct {
		name        string
		fails, warn []*plan.Threshold
		want        []string
	}{
		{"nothing to check", nil, nil, nil},
		{"a percentile", []*plan.Threshold{p95}, nil, []string{"implied error"}},
		{"a percentile that warns", nil, []*plan.Threshold{p95}, []string{"implied warn"}},
		{"a mean", []*plan.Threshold{mean, p95}, nil, []string{"every error"}},
		{"gaps", []*plan.Threshold{gaps}, nil, []string{"every error"}},
		{"a mean that warns", []*plan.Threshold{p95}, []*plan.Threshold{mean}, []string{"every warn", "implied error"}},
		{"a percentile that warns beside a mean", []*plan.Threshold{mean}, []*plan.Threshold{p95}, []string{"every error"}},
		{"growth", []*plan.Threshold{growth}, nil, []string{"implied error"}},
		{"a share of good requests", []*plan.Threshold{threshold("goodput", "share >= 95%")}, nil, nil},
		{"success", []*plan.Threshold{half, p95}, nil, nil},
		{"success of every request", []*plan.Threshold{threshold("success", "every"), mean}, nil, nil},
		// A threshold that only warns demands nothing of a server.
		{"success that warns", []*plan.Threshold{p95}, []*plan.Threshold{half}, []string{"implied error"}},
		{"success that warns, as all do", nil, []*plan.Threshold{p95, half}, nil},
	} {
		w := &plan.Workload{SLAs: []*plan.SLA{{At: []string{"4"}, Severity: plan.SeverityError, Thresholds: c.fails}, {At: []string{"4"}, Severity: plan.SeverityWarn, Thresholds: c.warn}}}
		var got []string
		for _, r := range requirements(w, boundAt("4"), metric.ClosedLoop, plan.Level{Name: "4"}, verdict.SeverityError) {
			if r.impliedBy != nil {
				got = append(got, r.Stat.String()+" "+string(r.severity))
			}
		}
		must.Same(t, c.name+" (-want +got)", c.want, got)
	}
	// A rate must be sustained, and not by refusing requests. In a plan that only measures, both warn.
	for _, severity := range []verdict.Severity{verdict.SeverityError, verdict.SeverityWarn} {
		list := requirements(&plan.Workload{}, boundAt("4"), metric.OpenLoop, plan.Level{Name: "4"}, severity)
		if len(list) != 2 || list[0].Stat.Kind != metric.Implied || list[0].severity != severity || list[1].Metric.Name != growing {
			t.Errorf("a rate without thresholds: %+v", list)
		}
	}
}

// Each part of a mix is bounded by itself: a small part may refuse many of its requests although less
// than 2 % of all fail.
func TestRefusingAPart(t *testing.T) {
	// 2 of the 6 long requests of each round fail: 20 of 60 long ones, and 20 of 1200 in all (1.7 %).
	s := shape{n: 20, rounds: 10, perRound: 120, failed: func(_, i int) bool { return i%60 == 19 }}
	bound := []*plan.Threshold{threshold("ttft", "p50 < 2s")}
	p, run := mixGate(s, map[string][]*plan.Threshold{"production": bound})
	got := map[string]verdict.Outcome{}
	for _, x := range Judge(p, run, Options{}).List {
		if x.Name == "sla.success.implied at 4" {
			got[x.Workload] = x.Outcome
		}
	}
	want := map[string]verdict.Outcome{"production": verdict.Pass, "production/chat": verdict.Pass, "production/rag": verdict.Pass, "production/long": verdict.Fail}
	must.Same(t, "", want, got)
	// Whoever overloads on purpose says how many may fail, for the mix or for one part.
	p.Workloads[0].SLAs[0].Thresholds = append(p.Workloads[0].SLAs[0].Thresholds, threshold("success", "rate >= 90%"))
	for _, x := range Judge(p, run, Options{}).List {
		must.Hold(t, x.Name != "sla.success.implied at 4", "with success written for the mix: %s %v", x.Workload, x.Outcome)
	}
}

// At a look a server that certainly refuses too many fails early. One that may refuse too many goes
// on being measured, whatever its percentiles.
func TestRefusingAtALook(t *testing.T) {
	for failed, want := range map[int]verdict.Outcome{0: verdict.Pass, 5: verdict.Inconclusive, 40: verdict.Fail} {
		l := refusing(failed)
		p, _ := gate(l, threshold("ttft", "p50 < 2s"))
		p.Workloads[0].Loads[0].Levels[0].Requests = 400 // as many again are planned
		v := JudgeLook(p, p.Workloads[0], l, metric.Look{Requests: 200, Planned: 2})
		must.Hold(t, v.Outcome == want && (want == verdict.Pass || v.Binding == "success"), "%d of 200 failed: %v, %q binds", failed, v.Outcome, v.Binding)
		l.Probe = &metric.Probe{}
		p.Workloads[0].SLAs[0].AtCapacity = true
		p.Workloads[0].Capacity = &plan.Capacity{Over: metric.ClosedLoop, From: 1, UpTo: 8}
		if v := JudgeLook(p, p.Workloads[0], l, metric.Look{Requests: 200, Planned: 2}); v.Outcome != want {
			t.Errorf("%d of 200 failed in a probe: %v", failed, v.Outcome)
		}
	}
}
