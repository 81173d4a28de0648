package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// Check finds nothing in consistent documents. It finds the error in each document that is changed
// to contain one.
func TestCheck(t *testing.T) {
	found := Check(passing())
	must.Hold(t, len(found) <= 0, "a document in which everything is fine: %q", found)
	if found := Check(emptyDocument()); len(found) > 0 {
		t.Errorf("an empty document: %q", found)
	}
	tests := []struct {
		name  string
		spoil func(d *Document)
		want  string
	}{
		{"a sum", func(d *Document) { d.Cases[0].Completed = 70 }, "70 requests completed, 0 failed and 0 were given up, but only 60 were due"},
		{"failures by kind", func(d *Document) { d.Cases[0].Failures = []Failure{{Kind: "timeout", Count: 2}} }, "0 requests failed, but the list by kind has 2"},
		{"success", func(d *Document) { d.Cases[0].Summary("success").Value = metric.Some(0.5) }, "success is 50%, but 60 of 60"},
		{"percentiles", func(d *Document) { d.Cases[0].Summary("ttft").Percentiles.P95 = metric.Some(0.1) }, "ttft p95 is 100 ms, which is below p90"},
		{"a mean beyond the highest", func(d *Document) { d.Cases[0].Summary("ttft").Mean = metric.Some(9) }, "the mean of ttft is 9 s, which is outside the range 200 ms to 380 ms"},
		{"another unit", func(d *Document) { d.Cases[0].Summary("throughput").Unit = "req/s" }, `the unit of throughput is "req/s", but must be "tok/s"`},
		{"no unit", func(d *Document) {
			d.Cases[0].Metrics = append(d.Cases[0].Metrics, Summary{Metric: "accept_rate[0]"})
		}, "accept_rate[0] has no unit"},
		// The case runs one request at a time, with 21 tokens in 800 ms: 26 tok/s.
		{"an impossible throughput", func(d *Document) { d.Cases[0].Summary("throughput").Value = metric.Some(100) }, "but 1 requests in flight that take"},
		{"a stream that is held back", func(d *Document) { d.Cases[0].Summary("itl").Mean = metric.Some(0.0021) }, "tokens, but a chunk holds 7 tokens"},
		{"the same load twice", func(d *Document) {
			again := d.Cases[0]
			again.Level, again.Metrics = renamed(again, "1 again"), slices.Clone(again.Metrics)
			again.Summary("ttft").Mean = metric.Some(0.2 * 2)
			d.Cases = append(d.Cases, again)
		}, "are the same load, but their mean ttft differs: 290 ms and 400 ms"},
		// The case sends 60 requests in two windows, one request every 100 ms: 10 req/s.
		{"more than the largest rate", func(d *Document) { reaches(&d.Cases[0], 0.1) }, ", but the largest rate that the server can sustain is 0.1 req/s"},
		{"two largest rates", func(d *Document) {
			again := d.Cases[0]
			again.Level = renamed(again, again.Name)
			reaches(&d.Cases[0], 8)
			reaches(&again, 9)
			d.Cases = append(d.Cases, again)
		}, "the largest rate that the server can sustain is 9 req/s, but at 1 it is 8 req/s"},
		{"a limit between the wrong loads", func(d *Document) { d.Run.Capacities[0].Fail = 30 }, "the load 39 is said to pass, but the load 30, which is not larger, is said to fail"},
		{"a limit that no probe passed", func(d *Document) { d.Run.Capacities[0].Pass = 38 }, "no probe at the reported limit of 38 passed"},
		{"a limit that breaks its own threshold", func(d *Document) {
			d.Run.Capacities[0].Probes[3].Values = []metric.ProbeValue{{Threshold: "ttft p95", Outcome: metric.Pass, Value: metric.Some(8.1)}}
		}, "at the limit of 39, the value of ttft p95 is 8.1 s, which breaks the threshold p95 < 8s"},
		{"a crossing elsewhere", func(d *Document) { d.Run.Capacities[0].CrossingLow = 60 }, "does not lie between 39, which passed, and 40, which failed"},
		{"a pass with a failure", func(d *Document) { d.Verdicts[0].Outcome = verdict.Fail }, "the outcome is pass, but 1 verdicts failed"},
		{"a pass beyond the limit", func(d *Document) { d.Verdicts[2].Value = metric.Some(8) }, "passed, but the value 8 s does not meet p95 < 8s"},
		{"a loss that is called better", func(d *Document) {
			d.Comparisons = rows(compare.Change{Metric: metric.Def{Better: metric.LowerIsBetter}, Shift: compare.Shift{Change: metric.Some(0.1)}, Direction: "better"})
		}, "compare x: ttft p95 for chat at 8 is called better, but the change +10% is for the worse"},
		{"a gain that is called worse", func(d *Document) {
			d.Comparisons = rows(compare.Change{Metric: metric.Def{Better: metric.HigherIsBetter}, Shift: compare.Shift{Change: metric.Some(0.1)}, Direction: "worse"})
		}, "is called worse, but the change +10% is for the better"},
		{"bounds", func(d *Document) {
			d.Comparisons = rows(compare.Change{Shift: compare.Shift{Interval: verdict.Interval{Low: metric.Some(0.2), High: metric.Some(0.1)}}})
		}, "the lower bound is above the upper bound"},
		{"a row that was measured", func(d *Document) {
			d.Comparisons = rows(compare.Change{Metric: metric.Def{Better: metric.LowerIsBetter}, Shift: compare.Shift{Change: metric.Some(0.1)}, Limit: metric.Some(0.05), Outcome: verdict.Skipped})
		}, "was measured and has a limit, but the report calls it skipped"},
		{"no difference above a row that is worse", func(d *Document) {
			d.Comparisons = rows(compare.Change{Metric: metric.Def{Better: metric.LowerIsBetter}, Shift: compare.Shift{Change: metric.Some(0.1)}, Direction: "worse"})
			d.Comparisons[0].Decisions = []compare.Decision{{Workload: "chat", Level: "8", Answer: "no difference"}}
		}, `the answer is "no difference" for chat at 8, but ttft p95 is worse`},
		{"the answer yes beside a requirement that failed", func(d *Document) {
			d.Comparisons = rows(compare.Change{Metric: metric.Def{Better: metric.HigherIsBetter}, Shift: compare.Shift{Change: metric.Some(0.001)}, Direction: "better", Limit: metric.Some(0.02), Improve: true, Outcome: verdict.Fail, Severity: "error"})
			d.Comparisons[0].Decisions = []compare.Decision{{Workload: "chat", Level: "8", Answer: "yes"}}
		}, `the answer is "yes" for chat at 8, but the requirement of ttft p95 failed`},
		{"a verdict that was measured", func(d *Document) { d.Verdicts[2].Outcome = verdict.Skipped }, "was measured, but the report calls it skipped"},
		{"more that wait than are in flight", func(d *Document) { d.Passages = onlyPassage(Passage{InFlight: []int{3, 1}, Waiting: []int{3, 2}}) }, "2 requests wait, but only 1 are in flight"},
		{"more arrivals than were due", func(d *Document) { d.Passages = onlyPassage(Passage{Arrivals: []int{40, 21}}) }, "61 requests arrived, but only 60 were due"},
		{"a mean above the most", func(d *Document) {
			d.Passages = onlyPassage(Passage{Windows: 1, InFlight: []int{3, 4}})
			d.Cases[0].Metrics = append(d.Cases[0].Metrics, Summary{Metric: "in_flight", Unit: "requests", Value: metric.Some(5)})
		}, "at most 4 requests are in flight, but the mean is 5 requests"},
	}
	for _, tt := range tests {
		d := passing()
		tt.spoil(d)
		found := strings.Join(Check(d), "\n")
		must.Hold(t, strings.Contains(found, tt.want), "%s: found %q, want %q", tt.name, found, tt.want)
	}
}

// renamed returns a copy of a case's level with another name.
func renamed(c Case, name string) *metric.Level {
	l := *c.Level
	l.Name = name
	return &l
}

// reaches makes the case one of an open loop whose server reaches the given rate at saturation.
func reaches(c *Case, rate float64) {
	c.Level = renamed(*c, c.Name)
	c.Kind, c.Rate, c.Saturation = metric.OpenLoop, 1, []float64{rate}
}

// onlyPassage returns p as the only passage of a document. It fills in the fields that name a
// level.
func onlyPassage(p Passage) []Passage {
	p.Server, p.Workload, p.Levels = `vllm["on"]`, "general_chatbot", []string{"1"}
	return []Passage{p}
}

// rows returns a comparison with x as its only change. It fills in the fields of x that every
// change has.
func rows(x compare.Change) []*compare.Comparison {
	x.Workload, x.Level, x.Stat = "chat", "8", metric.Stat{Kind: metric.Percentile, P: 95}
	x.Metric.Name, x.Metric.Unit = "ttft", metric.Seconds
	return []*compare.Comparison{{Name: "x", Changes: []compare.Change{x}}}
}

// The number of requests in flight in a stage does not depend only on the stage's rate. Requests of
// earlier stages may still be in flight.
func TestCheckOfStages(t *testing.T) {
	d := passing()
	again := d.Cases[0]
	again.Level, again.Metrics = renamed(again, "after"), slices.Clone(again.Metrics)
	again.Stage = &metric.Stage{From: 2, To: 2}
	again.Summary("ttft").Mean = metric.Some(9)
	again.Summary("ttft").Max = metric.Some(10)
	d.Cases = append(d.Cases, again)
	found := Check(d)
	must.Hold(t, len(found) <= 0, "said %q", found)
}

// A level was cut short, so some requests were never sent and have no record. Its success counts
// only the requests that were sent. Check must not report this as a contradiction.
func TestCheckOfWhatWasCutShort(t *testing.T) {
	d := passing()
	d.Cases[0].Completed, d.Cases[0].OutputTokens = 40, 40*21
	found := Check(d)
	must.Hold(t, len(found) <= 0, "said %q", found)
}
