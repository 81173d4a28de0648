package github

import (
	"bytes"
	"io"

	"github.com/tokgate/tokgate/report"
)

// SummaryBytes bounds the file of a step's summary: the runner drops the whole
// of one that has more than 1,048,576 bytes, and says so in an annotation.
const SummaryBytes = report.MarkdownBytes

// Summary writes what belongs at the end of a summary file that holds used
// bytes: the report of each run, cut so that the file stays below SummaryBytes
// and each run has a fair share of what is left.
func Summary(w io.Writer, docs []*report.Document, used int64) error {
	left := SummaryBytes - int(min(used, SummaryBytes))
	for i, d := range docs {
		var b bytes.Buffer
		if err := report.MarkdownWithin(&b, d, left/(len(docs)-i)-1); err != nil {
			return err
		}
		if b.Len() == 0 {
			continue
		}
		// The step may have written half a line before.
		if _, err := io.WriteString(w, "\n"+b.String()); err != nil {
			return err
		}
		left -= b.Len() + 1
	}
	return nil
}
