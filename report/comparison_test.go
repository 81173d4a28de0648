package report

import (
	"math"
	"testing"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// compared returns the report of a comparison. The servers' fingerprints contain hostile text, such
// as markup.
func compared() *Document {
	ttft, _ := metric.Lookup("ttft")
	success, _ := metric.Lookup("success")
	some := metric.Some
	c := &compare.Comparison{
		Name: "mtp", Control: `vllm["off"]`, Candidate: `vllm["on"]`, Paired: true, Restart: plan.RestartLeg, Rounds: 8, Units: 8, Outcome: verdict.Fail,
		Line:        "mtp: no for chat and prefill",
		Differences: []plan.Difference{{Key: "flags.x", Candidate: "--x <b>@someone\n::error::", Allowed: true}, {Key: "version", Control: "1", Candidate: "2"}},
		Decisions:   []compare.Decision{{Workload: "chat", Level: "4", Answer: compare.AnswerNo, Why: "fails its requirements: ttft p95 +20%"}, {Workload: "prefill", Level: "4", Answer: compare.AnswerNo, Why: "throughput -7.0%"}},
		Changes: []compare.Change{
			{Workload: "chat", Level: "4", Metric: ttft, Stat: metric.Stat{Kind: metric.Percentile, P: 95}, Shift: compare.Shift{Control: some(1), Candidate: some(1.2), Change: some(0.2), Interval: verdict.Interval{Low: some(0.15), High: some(math.Inf(1)), Confidence: 0.95}, Certifiable: some(0.25)}, Limit: some(0.1), Outcome: verdict.Fail, Severity: verdict.SeverityError, Direction: compare.Worse, Message: "ttft p95 +20%",
				Pairs: []compare.Pair{{Round: 0, Seed: 42, Control: some(1), Candidate: some(1.2), Change: some(0.2)}, {Round: 1, Seed: 7, Control: some(1), Candidate: some(3), Change: some(2), Note: "stands out: the first request was cold"}}},
			{Workload: "chat", Level: "4", Metric: success, Stat: metric.Stat{Kind: metric.Rate}, Shift: compare.Shift{Points: true, Interval: verdict.Interval{Confidence: 0.95}}, Outcome: verdict.Skipped, Why: "not applicable"},
		},
		Notes: []string{"lock-step: the slots start in phase"},
	}
	run := &metric.Run{ID: "r", Servers: []*metric.ServerRun{{Address: `vllm["off"]`}, {Address: `vllm["on"]`}}}
	v := assert.Verdicts{Outcome: verdict.Fail, Comparisons: []*compare.Comparison{c}, List: []verdict.Verdict{
		{Kind: verdict.KindCompare, Server: `vllm["on"]`, Name: "compare.mtp", Outcome: verdict.Pass, Message: c.Line, Notes: []verdict.Note{{Text: c.Notes[0]}}},
		{Kind: verdict.KindCompare, Server: `vllm["on"]`, Workload: "chat", Level: "4", Name: "compare.mtp.tolerate.ttft.p95 at 4", Outcome: verdict.Fail, Severity: verdict.SeverityError, Message: "ttft p95 +20%", Place: verdict.Place{File: "p.hcl", Line: 9}},
	}}
	return New(run, nil, v, Meta{ExitCode: 1})
}

func TestNews(t *testing.T) {
	green := Document{Outcome: verdict.Pass}
	changed := Document{Outcome: verdict.Pass, Comparisons: []*compare.Comparison{{Decisions: []compare.Decision{{Answer: "no difference"}, {Answer: "yes"}}}}}
	unchanged := Document{Outcome: verdict.Pass, Comparisons: []*compare.Comparison{{Decisions: []compare.Decision{{Answer: "no difference"}, {Answer: "unknown"}}}}}
	for want, d := range map[string]*Document{"same": &green, "changed": &changed, "red": {Outcome: verdict.Pass, ExitCode: 4}} {
		must.Same(t, "news", want, d.News())
	}
	must.Same(t, "news of no difference", "same", unchanged.News())
}
