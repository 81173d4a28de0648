package github

import (
	"bytes"
	"io"

	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/markdown"
)

// SummaryBytes is the largest size of a step's summary file, in bytes. GitHub drops a whole summary
// if it has more than 1,048,576 bytes.
const SummaryBytes = markdown.Bytes

// Part writes one part of a summary. It writes at most limit bytes.
type Part func(w io.Writer, limit int) error

// Run returns the part of a summary that reports a run.
func Run(d *report.Document) Part {
	return func(w io.Writer, limit int) error { return markdown.Within(w, d, limit) }
}

// Whole returns a Part that writes all of its Markdown, or nothing if the Markdown does not fit.
func Whole(write func(io.Writer) error) Part {
	return func(w io.Writer, limit int) error {
		var b bytes.Buffer
		if err := write(&b); err != nil || b.Len() > limit {
			return err
		}
		_, err := w.Write(b.Bytes())
		return err
	}
}

// Summary appends parts to a summary file, in order. used is the number of bytes in the file.
// Together the file and the parts have at most SummaryBytes. The parts share the remaining space
// fairly.
func Summary(w io.Writer, parts []Part, used int64) error {
	left := SummaryBytes - int(min(used, SummaryBytes))
	for i, part := range parts {
		var b bytes.Buffer
		if err := part(&b, left/(len(parts)-i)-1); err != nil {
			return err
		}
		if b.Len() == 0 {
			continue
		}
		// Begin on a new line. An earlier command of the step may have left an incomplete line.
		if _, err := io.WriteString(w, "\n"+b.String()); err != nil {
			return err
		}
		left -= b.Len() + 1
	}
	return nil
}
