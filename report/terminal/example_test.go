package terminal_test

import (
	"os"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/terminal"
)

// Write prints a report for a terminal. It needs nothing but the document.
func ExampleWrite() {
	d := &report.Document{Run: &metric.Run{Tool: "1.0"}, Plan: report.Plan{Path: "chat.hcl"}, Outcome: verdict.Fail, ExitCode: 1, Verdicts: []verdict.Verdict{
		{Kind: "sla", Name: "ttft p95 at 8", Outcome: verdict.Fail, Severity: "error", Message: "9.1 s > 8 s", Place: verdict.Place{File: "chat.hcl", Line: 12}},
		{Kind: "sla", Name: "success at 8", Outcome: verdict.Pass, Severity: "error", Message: "100%"},
	}}
	if err := terminal.Write(os.Stdout, d, 80, false); err != nil {
		panic(err)
	}
	// Output:
	// tokgate 1.0 · chat.hcl · took 0s
	//
	//   FAIL    ttft p95 at 8
	//           9.1 s > 8 s
	//           chat.hcl:12
	//   pass    success at 8  100%
	//
	// FAIL  1 of 2 requirements failed · exit 1
}
