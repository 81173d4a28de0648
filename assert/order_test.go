package assert_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
)

// Verdicts and report do not depend on the order in which the cases are judged.
func TestCasesInAnyOrder(t *testing.T) {
	backwards := func(n int, do func(i int)) {
		for i := n - 1; i >= 0; i-- {
			do(i)
		}
	}
	written := func(r assert.Recorded, each metric.Each) string {
		var out bytes.Buffer
		verdicts := assert.Judge(r.Plan, r.Run, assert.Options{Each: each})
		if err := report.New(r.Run, r.Plan, verdicts, report.Meta{Each: each}).Write(&out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for _, r := range assert.Corpus() {
		if diff := cmp.Diff(written(r, nil), written(r, backwards)); diff != "" {
			t.Errorf("%s (-in order +backwards):\n%s", r.Name, diff)
		}
	}
}
