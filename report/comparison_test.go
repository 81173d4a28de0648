package report

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/report/text"
)

// compared returns the report of a comparison. The servers' fingerprints contain hostile text, such
// as markup.
func compared() *Document {
	ttft, _ := metric.Lookup("ttft")
	success, _ := metric.Lookup("success")
	some := metric.Some
	c := &compare.Comparison{
		Name: "mtp", Control: `vllm["off"]`, Candidate: `vllm["on"]`, Paired: true, Restart: plan.RestartLeg, Rounds: 8, Units: 8, Outcome: assert.Fail,
		Line:        "mtp: yes for chat; no for prefill",
		Differences: []plan.Difference{{Key: "flags.x", Candidate: "--x <b>@someone\n::error::", Allowed: true}, {Key: "version", Control: "1", Candidate: "2"}},
		Decisions:   []compare.Decision{{Workload: "chat", Level: "4", Answer: compare.AnswerYes, Why: "throughput +24%"}, {Workload: "prefill", Level: "4", Answer: compare.AnswerNo, Why: "throughput -7.0%"}},
		Changes: []compare.Change{
			{Workload: "chat", Level: "4", Metric: ttft, Stat: metric.Stat{Kind: metric.Percentile, P: 95}, Control: some(1), Candidate: some(1.2), Change: some(0.2), Low: some(0.15), High: some(math.Inf(1)),
				Confidence: 0.95, Limit: some(0.1), Certifiable: some(0.25), Outcome: assert.Fail, Severity: verdict.SeverityError, Direction: compare.Worse, Message: "ttft p95 +20%",
				Pairs: []compare.Pair{{Round: 0, Seed: 42, Control: some(1), Candidate: some(1.2), Change: some(0.2)}, {Round: 1, Seed: 7, Control: some(1), Candidate: some(3), Change: some(2), Note: "stands out: the first request was cold"}}},
			{Workload: "chat", Level: "4", Metric: success, Stat: metric.Stat{Kind: metric.Rate}, Points: true, Confidence: 0.95, Outcome: assert.Skipped, Why: "not applicable"},
		},
		Notes: []string{"lock-step: the slots start in phase"},
	}
	run := &metric.Run{ID: "r", Servers: []*metric.ServerRun{{Address: `vllm["off"]`}, {Address: `vllm["on"]`}}}
	v := assert.Verdicts{Outcome: assert.Fail, Comparisons: []*compare.Comparison{c}, List: []assert.Verdict{
		{Kind: assert.KindCompare, Server: `vllm["on"]`, Name: "compare.mtp", Outcome: assert.Pass, Message: c.Line, Notes: c.Notes},
		{Kind: assert.KindCompare, Server: `vllm["on"]`, Workload: "chat", Level: "4", Name: "compare.mtp.tolerate.ttft.p95 at 4", Outcome: assert.Fail, Severity: verdict.SeverityError, Message: "ttft p95 +20%", File: "p.hcl", Line: 9},
	}}
	return New(run, nil, v, Meta{ExitCode: 1})
}

// Every output shows the differences first, then the workloads with the answer yes, then the
// numbers.
func TestComparisons(t *testing.T) {
	d := compared()
	conforms(t, d)
	for _, row := range []struct {
		name  string
		write func(*bytes.Buffer) error
		words []string // in order
		not   []string
	}{
		{"terminal", func(b *bytes.Buffer) error { return Terminal(b, d, 160, false) },
			[]string{`compare mtp: vllm["on"] against vllm["off"] · 8 rounds in turns, restart leg`, "mtp: yes for chat; no for prefill", "Better?", "throughput +24%", "+15% to +", "+10%", "fail", "not applicable",
				"round 2 of chat at 4, ttft p95: stands out", "FAIL    compare.mtp.tolerate.ttft.p95 at 4"}, []string{"\n::error::"}},
		{"markdown", func(b *bytes.Buffer) error { return Markdown(b, d) },
			[]string{"### compare mtp", "**mtp: yes for chat; no for prefill**", "flags.x: not set → --x &lt;b&gt;&#64;someone", "version: 1 → 2 (not in changed)", "| chat | 4 | yes |", "| +20% |", "lock-step", "stands out"}, []string{"<b>", "@someone"}},
		{"junit", func(b *bytes.Buffer) error { return JUnit(b, d) },
			[]string{`<testsuite name="vllm[&#34;on&#34;]/chat"`, `<failure message="ttft p95 +20%" type="compare">`, `<testsuite name="comparisons"`, `name="compare.mtp"`}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := row.write(&b); err != nil {
				t.Fatal(err)
			}
			at := 0
			for _, w := range row.words {
				i := strings.Index(b.String()[at:], w)
				if i < 0 {
					t.Fatalf("%q is missing, or not in order:\n%s", w, b.String())
				}
				at += i
			}
			for _, w := range row.not {
				if strings.Contains(b.String(), w) {
					t.Errorf("%q is there:\n%s", w, b.String())
				}
			}
		})
	}
	if got := d.Tally(); got.Required != 1 || got.Failed != 1 {
		t.Errorf("%+v: a required change is a requirement", got)
	}
}

// The tables of a comparison fit an 80-column terminal. If they are too wide, workload and level
// stand above the changes. No reason is cut.
func TestComparisonFitsTheTerminal(t *testing.T) {
	d := compared()
	c := &d.Comparisons[0]
	for i := range c.Changes {
		c.Changes[i].Workload = `use_case["general_chatbot"]`
	}
	for i := range c.Decisions {
		c.Decisions[i].Workload = `use_case["general_chatbot"]`
		c.Decisions[i].Why = "throughput +7.3%, e2e mean -6.6%, speed mean +8.9%; but ttft p95 +7.9%"
	}
	for _, width := range []int{80, 160} {
		var b bytes.Buffer
		if err := Terminal(&b, d, width, false); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := text.Width(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("%d of %d columns: %s", n, width, line)
			}
		}
		if beside := strings.Contains(b.String(), "Level  Metric"); beside != (width == 160) {
			t.Errorf("at %d columns, the workload beside its changes: %v\n%s", width, beside, b.String())
		}
		if all := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(all, "p95 +7.9%") {
			t.Errorf("at %d columns a reason is cut:\n%s", width, b.String())
		}
	}
}
