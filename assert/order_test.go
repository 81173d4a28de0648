package assert_test

import (
	"bytes"
	"testing"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/internal/must"
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
		must.Do(t, report.New(r.Run, r.Plan, verdicts, report.Meta{Each: each}).Write(&out))
		return out.String()
	}
	for _, r := range assert.Corpus() {
		must.Same(t, r.Name+" (-in order +backwards)", written(r, nil), written(r, backwards))
	}
}
