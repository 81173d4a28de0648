package report_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/html"
	"github.com/tokgate/tokgate/report/markdown"
	"github.com/tokgate/tokgate/report/terminal"
)

// A document of the first schema, written by a version that had no other, is shown in every format
// as the same run is shown today.
func TestSchema1(t *testing.T) {
	formats := map[string]func(io.Writer, *report.Document) error{
		"junit": report.JUnit, "csv": report.LevelsCSV, "markdown": func(w io.Writer, d *report.Document) error { return markdown.Write(w, d) },
		"comment": markdown.Comment, "html": func(w io.Writer, d *report.Document) error { return html.Write(w, d) },
		"terminal": func(w io.Writer, d *report.Document) error { return terminal.Write(w, d, 120, false) },
	}
	for name, of := range map[string]func() *report.Document{"rich": report.Rich, "compared": report.Compared, "answered": report.Answered, "mix": report.Mixed} {
		src, err := os.ReadFile(filepath.Join("testdata", "results1", name+".json"))
		must.Do(t, err)
		old, err := report.ReadDocument(bytes.NewReader(src))
		must.Need(t, err == nil, "%s: %v", name, err)
		today := of()
		today.Spent = report.Spent{} // the version that wrote these documents had no such figures
		for i := range today.Cases {
			today.Cases[i].Spent, today.Cases[i].VLLMBench = report.Spent{}, nil
		}
		for format, write := range formats {
			var want, got strings.Builder
			must.Do(t, write(&want, today))
			must.Do(t, write(&got, old))
			must.Same(t, fmt.Sprintf("%s as %s (-now +then)", name, format), want.String(), got.String())
		}
		must.Same(t, fmt.Sprintf("the night of %s (-now +then)", name), today.Night(), old.Night())
	}
}

// Whatever stands in a document of the first schema, reading it ends with a document or an error.
func FuzzSchema1(f *testing.F) {
	for _, name := range []string{"compared", "answered"} {
		src := must.Get(os.ReadFile(filepath.Join("testdata", "results1", name+".json")))(f)
		f.Add(string(src[:bytes.LastIndexByte(src, ',')]) + "\n}\n")
	}
	f.Add(`{"schema": "tokgate.results/1", "plan": {}, "cases": [null, {"rounds": [{"at_s": 1e300}], "stage": "1 req/s to"}], "servers": [{"starts_s": ["x"]}]}`)
	f.Fuzz(func(t *testing.T, src string) {
		d, err := report.ReadDocument(bytes.NewReader(report.Seal([]byte(src))))
		if err != nil {
			return
		}
		if err := report.JUnit(io.Discard, d); err != nil {
			t.Error(err)
		}
	})
}
