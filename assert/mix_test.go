package assert

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// mixGate returns a plan and a run of a mix with 20 requests in flight. The mix has three parts of
// 70, 25 and 5 %. In every 20 consecutive requests of a round, each part has exactly its share.
func mixGate(s shape, thresholds map[string][]*plan.Threshold) (*plan.Plan, *metric.Run) {
	l := s.level()
	l.Workload = "production"
	p, run := gate(l)
	mix := p.Workloads[0]
	mix.Name = "production"
	for i, share := range []int{700_000, 250_000, 50_000} {
		base := &plan.Workload{Name: partOf20(14 * i), Policy: mix.Policy}
		part := mix.Part(base, share)
		if t := thresholds[base.Name]; t != nil {
			part.SLAs = []*plan.SLA{{At: []string{l.Name}, AtCapacity: true, Severity: plan.SeverityError, Thresholds: t}}
		}
		mix.Mix = append(mix.Mix, part)
		l.Parts = append(l.Parts, &metric.Level{Server: l.Server, Workload: part.Address(), Name: l.Name, Of: "production", Share: float64(share) / 1e6, Exact: true})
	}
	if t := thresholds["production"]; t != nil {
		mix.SLAs = []*plan.SLA{{At: []string{l.Name}, Severity: plan.SeverityError, Thresholds: t}}
	}
	for _, r := range l.Rounds {
		for _, x := range r.Samples {
			x.Workload, x.Part = "production", partOf20(x.Order%20)
		}
	}
	mix.ShareOut()
	p.Workloads = mix.Whole()
	return p, run
}

// partOf20 returns the part of the mix for a request. Of 20 consecutive requests, 14 are chat, 5
// are rag and 1 is long.
func partOf20(order int) string {
	switch {
	case order < 14:
		return "chat"
	case order < 19:
		return "rag"
	}
	return "long"
}

// longs returns a function that gives TTFTs, the times to the first token. Requests of the part
// "long" of a mix take the given seconds.
func longs(seconds float64) func(round, i int) float64 {
	base := slow(0)
	return func(round, i int) float64 {
		if ttft := base(round, i); i%20 < 19 {
			return ttft
		}
		return seconds
	}
}

// A part of a mix gets the same verdicts as a separate workload with the same requests.
func TestPartsAreJudgedAsIfAlone(t *testing.T) {
	all := func() []*plan.Threshold {
		return []*plan.Threshold{threshold("ttft", "p95 < 2s"), threshold("ttft", "mean < 2s"), threshold("speed", "mean > 40 tok/s"),
			threshold("throughput", "> 10 tok/s"), threshold("success", "rate >= 75%"), threshold("itl", "p95 < 30ms")}
	}
	for _, s := range []shape{
		{n: 20, rounds: 10, perRound: 120, ttft: longs(1.9)},
		{n: 20, rounds: 10, perRound: 120, ttft: longs(5)},
		{n: 20, rounds: 10, perRound: 120, ttft: slow(40), failed: func(_, i int) bool { return i%20 == 19 && i < 60 }},
		{n: 20, rounds: 3, perRound: 100, ttft: slow(3)},
	} {
		p, run := mixGate(s, map[string][]*plan.Threshold{"chat": all(), "rag": all(), "long": all()})
		judged := Judge(p, run, Options{})
		for i, part := range p.Workloads[1:] {
			alone := *run.All()[i+1]
			alone.Of, alone.Share, alone.N = "", 0, alone.AtOnce()
			w := *part
			w.Of, w.Share = nil, 0
			w.Loads = []*plan.Load{{Kind: alone.Kind, Levels: []plan.Level{{Name: alone.Name, N: alone.N, Requests: alone.Due(), Rounds: len(alone.Rounds)}}}}
			q, only := *p, *run
			q.Workloads, only.Levels = []*plan.Workload{&w}, []*metric.Level{&alone}
			must.Same(t, part.Address()+" (-alone +in the mix)", partVerdicts(Judge(&q, &only, Options{}), part.Address()), partVerdicts(judged, part.Address()))
			n := len(partVerdicts(judged, part.Address()))
			must.Hold(t, n == 7, "%s has %d verdicts", part.Address(), n)
		}
	}
}

// partVerdicts returns the verdicts on one workload of a mix. It removes their notes on lock-step,
// because all parts have the same notes.
func partVerdicts(v Verdicts, workload string) []verdict.Verdict {
	var out []verdict.Verdict
	for _, x := range v.List {
		if x.Workload == workload {
			var notes []verdict.Note
			for _, note := range x.Notes {
				if !strings.HasPrefix(note.Text, "lock-step") {
					notes = append(notes, note)
				}
			}
			x.Notes = notes
			out = append(out, x)
		}
	}
	return out
}

// The slow part of the mix fails, and the other two parts pass.
func TestAPartThatFails(t *testing.T) {
	bound := func() []*plan.Threshold { return []*plan.Threshold{threshold("ttft", "p95 < 2s")} }
	p, run := mixGate(shape{n: 20, rounds: 10, perRound: 120, ttft: longs(5)}, map[string][]*plan.Threshold{"chat": bound(), "rag": bound(), "long": bound(), "production": bound()})
	v := Judge(p, run, Options{})
	got := map[string]string{}
	for _, x := range v.List {
		if x.Kind == verdict.KindSLA {
			got[x.Workload+" "+x.Name] = fmt.Sprintf("%v of %d", x.Outcome, x.N)
		}
	}
	want := map[string]string{
		"production sla.ttft.p95 at 4":      "inconclusive of 1200", // 60, or 5 %, may be too slow
		"production/chat sla.ttft.p95 at 4": "pass of 840",
		"production/rag sla.ttft.p95 at 4":  "pass of 300",
		"production/long sla.ttft.p95 at 4": "fail of 60",
		// Each threshold implies that at most 2 % of the requests failed. None did.
		"production sla.success.implied at 4":      "pass of 1200",
		"production/chat sla.success.implied at 4": "pass of 840",
		"production/rag sla.success.implied at 4":  "pass of 300",
		"production/long sla.success.implied at 4": "pass of 60",
	}
	diff := cmp.Diff(want, got)
	must.Hold(t, diff == "" && v.Outcome == verdict.Fail, "%v: %s", v.Outcome, diff)
	look := JudgeLook(p, p.Workloads[0], run.Levels[0], metric.Look{Planned: 1, Spent: 1})
	must.Hold(t, look.Outcome == verdict.Fail && look.Binding == "long: ttft p95", "at a look: %v, %q binds: %s", look.Outcome, look.Binding, look.Invalid)
}

// At a look, each part of a mix is judged on its requests up to that look.
func TestPartsUpToALook(t *testing.T) {
	bound := map[string][]*plan.Threshold{"chat": {threshold("ttft", "p95 < 2s")}, "long": {threshold("ttft", "p95 < 2s")}}
	p, run := mixGate(shape{n: 20, rounds: 10, perRound: 120, ttft: longs(1.5)}, bound)
	mix := run.Levels[0]
	mix.Looks = []metric.Look{{Requests: 600, Planned: 2, Spent: 0.25, Outcome: metric.Pass}}
	v := Judge(p, run, Options{})
	for name, want := range map[string]int{"chat": 420, "long": 30} { // 70 %, 5 % of 600 requests
		for _, x := range partVerdicts(v, "production/"+name) {
			must.Hold(t, x.N == want, "%s of %s is judged on %d requests, want %d: %s", x.Name, x.Workload, x.N, want, x.Message)
		}
	}
	// The part "long" has 30 requests so far, but its p95 needs 59. It is 5% of the mix, so the mix
	// must send 20 requests for each further request of this part.
	look := JudgeLook(p, p.Workloads[0], mix, metric.Look{Requests: 600, Planned: 1, Spent: 1})
	if look.Outcome != verdict.Inconclusive || look.Needs%20 != 0 || look.Needs < 29*20 {
		t.Errorf("%v, %d more requests of the mix are needed; %s binds", look.Outcome, look.Needs, look.Binding)
	}
}

// A run without the level of one part of the mix does not pass.
func TestPartThatIsNotThere(t *testing.T) {
	p, run := mixGate(shape{n: 20, rounds: 10, perRound: 120}, map[string][]*plan.Threshold{"long": {threshold("ttft", "p95 < 2s")}})
	run.Levels[0].Parts = run.Levels[0].Parts[:2]
	v := Judge(p, run, Options{})
	must.Hold(t, v.Outcome == verdict.Error, "%v: %v", v.Outcome, names(v))
	if look := JudgeLook(p, p.Workloads[0], run.Levels[0], metric.Look{Planned: 1}); look.Invalid == "" {
		t.Error("a look at it is valid")
	}
}

// A p95 needs 59 good requests, and a p99 needs 299. If a part has 5 % of the requests of a mix,
// the mix needs 20 times as many: 1,180 and 5,980.
func TestCertifyCountsByPart(t *testing.T) {
	for _, tt := range []struct {
		text       string
		requests   int
		needed     string
		impossible bool
	}{
		{"p95 < 2s", 1180, "59 effective requests (1180 requests of its mix)", false},
		{"p95 < 2s", 1160, "59 effective requests (1180 requests of its mix)", true},
		{"p99 < 2s", 5980, "299 effective requests (5980 requests of its mix)", false},
		{"p99 < 2s", 5960, "299 effective requests (5980 requests of its mix)", true},
	} {
		p, _ := mixGate(shape{n: 20, rounds: 1, perRound: 20}, map[string][]*plan.Threshold{"long": {threshold("ttft", tt.text)}})
		mix := p.Workloads[0]
		level := &mix.Loads[0].Levels[0]
		level.Requests, level.Rounds = tt.requests, 10
		mix.ShareOut()
		found := false
		for _, f := range Certify(p) {
			if f.Workload != "production/long" || f.Threshold.Metric.Name == "success" {
				continue
			}
			found = true
			if f.Needed != tt.needed || f.Impossible != tt.impossible {
				t.Errorf("%s of %d: %q, impossible %v: %s", tt.text, tt.requests, f.Needed, f.Impossible, f.Remark)
			}
			must.Hold(t, !f.Impossible || strings.Contains(f.Remark, "of its mix"), "%q does not say how many of the mix", f.Remark)
		}
		must.Hold(t, found, "nothing is said of the part")
	}
}

// Near the largest rate of a server, consecutive requests depend on each other. The requests of one
// part of a mix are further apart, so they depend less on each other.
func TestSpaced(t *testing.T) {
	for _, tt := range []struct{ worth, share, want float64 }{
		{1, 0.05, 1},
		{0.5, 1, 0.5},
		{0.1, 0.05, 1 / (1 + 0.1*9)}, // 10 requests of the mix count as 1, 10 of a part as 5.3
		{0, 0.05, 0},
	} {
		must.Same(t, fmt.Sprintf("%v of %v", tt.share, tt.worth), tt.want, spaced(tt.worth, tt.share))
	}
}

// A comparison that ends after three of twelve rounds of 25 requests has 75 of the mix. Three twelfths of
// the parts' 210 and 90 would be rounded to 54 and 24.
func TestMixOfAComparisonThatEndsEarly(t *testing.T) {
	mix := &plan.Workload{Name: "all", Loads: []*plan.Load{{Kind: metric.ClosedLoop, Levels: []plan.Level{{Name: "4", N: 4, Requests: 300, Rounds: 12}}}}}
	mix.Mix = []*plan.Workload{mix.Part(&plan.Workload{Name: "chat"}, 700_000), mix.Part(&plan.Workload{Name: "rag"}, 300_000)}
	mix.ShareOut()
	sum := 0
	for _, part := range mix.Mix {
		level := shed(part, []seenAt{{rounds: 3}}, part.Loads[0].Levels[0])
		must.Hold(t, level.Rounds == 3, "%d rounds", level.Rounds)
		sum += level.Requests
	}
	must.Same(t, "of both parts", 75, sum)
}
