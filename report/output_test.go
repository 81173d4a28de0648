package report

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// big returns the document of a run with n cases. Each case has a failed threshold and a failure
// with hostile text.
func big(n int) *Document {
	run, p, v, m := fixture()
	level, failed := run.Levels[1], v.List[6]
	level.Rounds[0].Samples = level.Rounds[0].Samples[:20]
	level.Rounds = level.Rounds[:1]
	small := New(&metric.Run{Levels: []*metric.Level{level}}, p, assert.Verdicts{List: []verdict.Verdict{failed}}, m)
	d := New(run, p, v, m)
	for i := range n {
		c, v := small.Cases[0], small.Verdicts[0]
		l := *c.Level
		c.Level = &l
		c.Workload = fmt.Sprintf("workload_%d_%s", i/100, strings.Repeat("|", 200))
		c.Name = fmt.Sprint(i)
		v.Workload, v.Level, v.Message = c.Workload, c.Name, strings.Repeat(hostile, 20)
		d.Cases, d.Run.Levels, d.Verdicts = append(d.Cases, c), append(d.Run.Levels, c.Level), append(d.Verdicts, v)
	}
	return d
}

func TestSamplesCSV(t *testing.T) {
	run, _, _, _ := fixture()
	run.Levels[1].Rounds[0].Samples[0].Failure.Message = "=HYPERLINK(\"x\")"
	var b bytes.Buffer
	must.Do(t, SamplesCSV(&b, run))
	rows := must.Get(csv.NewReader(&b).ReadAll())(t)
	// The table has a head and one row for each request. The run has two rounds of each level. The
	// requests of a round are 30 and 60 at the first two levels, 40 at the probe, and 40 at each of
	// two rates.
	must.Need(t, len(rows) == 1+2*30+2*60+2*40+2*2*40, "%d rows, want 421", len(rows))
	at := func(row int, column string) string {
		i := slices.Index(rows[0], column)
		must.Need(t, i >= 0, "no column %s", column)
		return rows[row][i]
	}
	tests := []struct {
		row          int
		column, want string
	}{
		{1, "sent_s", "0"}, // the first request of the run, sent at 0 s
		{2, "sent_s", "0.1"},
		{2, "ttft", "0.22"},                 // 200 ms × 1.1
		{2, "ttfa", ""},                     // no answer came
		{2, "tpot", "0.020999999999999998"}, // 0.42 s / 20 tokens as a binary floating-point number
		{2, "output", "21"},
		{2, "cached", "0"},
		{2, "failure", ""},
		{61, "failure", "timeout"},
		{61, "ttft", ""},
		{61, "e2e", ""},
		{61, "output", ""},
		{61, "message", "'=HYPERLINK(\"x\")"}, // no formula
	}
	for _, tt := range tests {
		must.Same(t, fmt.Sprintf("row %d, %s", tt.row, tt.column), tt.want, at(tt.row, tt.column))
	}
}

func TestLevelsCSV(t *testing.T) {
	var b bytes.Buffer
	must.Do(t, LevelsCSV(&b, document()))
	rows := must.Get(csv.NewReader(&b).ReadAll())(t)
	must.Need(t, len(rows) == 1+4+1+2, "%d rows, want a head, 4 cases, a probe and 2 rates", len(rows))
	for _, tt := range []struct {
		row          int
		column, want string
	}{
		{1, "ttft_p95", "0.38"}, {1, "ttfa_p95", ""}, {2, "ttft_p95", "+Inf"}, {2, "failed", "16"},
		{3, "skipped", "the budget of 12m was spent"}, {3, "ttft_mean", ""},
		{1, "probe", ""}, {5, "probe", "bisect"}, {5, "level", "probe 24"}, {5, "due", "80"},
	} {
		must.Same(t, fmt.Sprintf("row %d, %s", tt.row, tt.column), tt.want, rows[tt.row][slices.Index(rows[0], tt.column)])
	}
}

func TestOutputErrors(t *testing.T) {
	for _, f := range written {
		err := f.write(failing{}, document())
		must.Hold(t, err != nil, "%s: a full disk is no error", f.file)
	}
	run, _, _, _ := fixture()
	err := SamplesCSV(failing{}, run)
	must.Hold(t, err != nil, "SamplesCSV: a full disk is no error")
}
