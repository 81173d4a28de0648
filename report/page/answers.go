package page

import (
	"cmp"
	"slices"

	"github.com/tokgate/tokgate/report"
)

// badAnswers returns the section with the worst answers of each server, beside the right answers.
func badAnswers(runs []Run) Section {
	s := Section{ID: "answers", Title: "Answers that count as bad", Lead: "Up to five answers for each workload on a server. The answers with the most faults come first. Long texts are shown without their middle."}
	for _, r := range runs {
		s.Blocks = append(s.Blocks, Block{Table: answersBeside(r, "Answers that count as bad", r.Answers)})
	}
	return s
}

// answersBeside returns a table of answers. Next to each answer is the expected answer, or the answer
// of the control.
func answersBeside(r Run, caption string, list []report.Answer) *Table {
	has := func(f func(report.Answer) bool) bool { return slices.ContainsFunc(list, f) }
	expected := has(func(a report.Answer) bool { return a.Expected != "" })
	pairs := has(func(a report.Answer) bool { return a.Control != nil })
	t := &Table{Words: true, Caption: caption, Columns: Heads("Request", "What is bad")}
	if expected {
		t.Columns = append(t.Columns, Heads("Expected")...)
	}
	if pairs {
		t.Columns = append(t.Columns, Heads("Control", "Candidate")...)
	} else {
		t.Columns = append(t.Columns, Heads("Answer")...)
	}
	for _, a := range list {
		at := r.title(a.Workload) + " at " + Line(a.Level) + r.serverSuffix(a.Server) + ", " + a.Where()
		row := []Cell{text(at), text(a.Bad())}
		if expected {
			row = append(row, text(a.Expected))
		}
		if pairs {
			control := "not kept"
			if a.Control != nil {
				control = cmp.Or(Line(*a.Control), nothingSaid)
			}
			row = append(row, text(control))
		}
		t.Rows = append(t.Rows, append(row, text(cmp.Or(Line(a.Said), nothingSaid))))
	}
	return t
}

// nothingSaid is shown in place of an empty answer.
const nothingSaid = "(nothing)"
