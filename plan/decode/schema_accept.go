package decode

import "github.com/tokgate/tokgate/metric"

var acceptBlock = &Block{
	Name: "accept", Labels: []string{"name"}, Repeat: true,
	Doc: "Accepts a change for a while: one bound that holds in place of a stricter one, with a reason and an end. Without `compare` and `history` it is a threshold, written as in an sla block. Reports show it while it lasts, and warn if it is no longer needed, too wide or expired. Errors and bounds on answers cannot be accepted.",
	Attrs: append([]*Attr{
		{Name: "compare", Type: "comparison", Computed: "none", Doc: "The comparison whose tolerance this is: compare.name. Write the bound as in a tolerate block, such as ttft = \"p95 +12%\"."},
		{Name: "history", Type: "bool", Default: "false", Doc: "Whether the bound is one on nights. Write it as in a tolerate block: how much worse than the reference the nights may be."},
		{Name: "workload", Type: "workload or list of workloads", Computed: "every workload", Doc: "The workloads that this block applies to: workload.name. Reports warn if it names none."},
		{Name: "at", Type: "level or list of levels", Computed: "every level", Doc: "The levels that this block applies to, by number or name.", Example: `[8]`},
		{Name: "until", Type: "string", Required: true, Doc: "The day from which the plan's own bound holds again (UTC), such as \"2027-01-31\". It may be at most 90 days after the run."},
		{Name: "why", Type: "string", Required: true, Doc: "The reason, for those who review the plan and read the report."},
		{Name: "capacity", Type: "change", Doc: "How much the capacity may fall, such as \"-15%\". Only with `compare` or `history`."},
	}, metricAttrs(acceptable)...),
}

// A wrong answer is never accepted.
func acceptable(d metric.Def) bool { return !d.OfAnswers && !d.Paired && d.Better != metric.Neutral }
