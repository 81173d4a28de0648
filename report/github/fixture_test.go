package github

import (
	"fmt"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
)

// hostile is text that a server may send. It contains commands of the runner, line breaks of every
// kind, characters that end a property, and half a heredoc.
const hostile = "\x1b[31mCUDA out of memory\x1b[0m\r\n::error file=x::pwned\n##[error]pwned\n  ::set-output name=verdict::pass\nEOF\nverdict=pass\n%0A::warning::pwned\u2028::stop-commands::x, a:b\x00"

// document returns a run with problems of every kind. It has more problems than a step may have
// annotations.
func document() *report.Document {
	d := &report.Document{
		Schema: report.Schema, Outcome: verdict.Error, ExitCode: 4, Folder: "results/chat",
		Plan: report.Plan{Name: "chat", Path: "plans/chat.hcl", Servers: []report.Server{{Address: "vllm"}}},
		Run: &metric.Run{Tool: "0.1.0", Servers: []*metric.ServerRun{{Address: "vllm", Error: hostile, Log: strings.Repeat(hostile, 10)}}, Capacities: []*metric.Capacity{
			{Server: "vllm", Workload: "chat", Over: "closed", Bracket: metric.Bracket{Kind: "interpolated", Pass: 24, Fail: 30}, Line: "~27 requests in flight"},
			{Server: "vllm", Workload: "code" + hostile, Over: "burst", Bracket: metric.Bracket{Kind: "unknown"}},
		}},
	}
	judged := func(o verdict.Outcome, severity verdict.Severity, name string, line int) {
		d.Verdicts = append(d.Verdicts, verdict.Verdict{Kind: "sla", Server: "vllm", Workload: "chat", Level: "30", Name: name, Outcome: o,
			Severity: severity, Message: "ttft p95 9.1 s > 8 s: " + hostile, Notes: []verdict.Note{{Text: "a note"}}, Place: verdict.Place{File: "plans/chat.hcl", Line: line}})
	}
	judged(verdict.Pass, "error", "sla.e2e.mean at 30", 40)
	judged(verdict.Skipped, "error", "sla.e2e.mean at 60", 40)
	for i := range 12 {
		judged(verdict.Fail, "error", fmt.Sprintf("sla.ttft.p%d at 30", 80+i), 42+i)
	}
	judged(verdict.Inconclusive, "error", "sla.speed.p5 at 30", 60)
	judged(verdict.Fail, "warn", "sla.success.rate at 30", 61)
	d.Verdicts = append(d.Verdicts, verdict.Verdict{Kind: "server", Server: "vllm", Name: "start", Outcome: verdict.Error, Severity: "error", Message: hostile, Place: verdict.Place{File: "plans/chat.hcl", Line: 3}})
	return d
}
