package record

import (
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// The fillers of a window go on after its last batch ended. Any other request belongs before the
// end of its round.
func TestRequestsAfterTheirRound(t *testing.T) {
	for _, c := range []struct {
		batches bool
		phase   metric.Phase
		twice   bool
		want    string // problem; "" if it is read
	}{
		{true, metric.Filler, false, ""},
		{true, metric.Filler, true, "is there twice"},
		{true, metric.Measured, false, "after the end of its round"},
		{false, metric.Filler, false, "after the end of its round"},
	} {
		l := &metric.Level{Server: "s", Workload: "w", Name: "1", Kind: metric.ClosedLoop, N: 1, Batches: c.batches}
		rd := &reader{run: &metric.Run{}, levels: map[levelKey]*metric.Level{}, rounds: map[*metric.Level]map[int]*openRound{}}
		rd.level(l)
		must.Do(t, rd.roundDone(keyOf(l), &metric.Round{Health: metric.Health{CPU: -1}}))
		sample := func() error {
			return rd.sample(&decoded{line: line{Sample: &metric.Sample{Server: "s", Workload: "w", Level: "1", Phase: c.phase, Scheduled: 1, Sent: 1, End: 2,
				Failure: &metric.Failure{Kind: metric.FailCanceled}}}})
		}
		err := sample()
		if c.twice && err == nil {
			err = sample()
		}
		must.Hold(t, (err == nil) == (c.want == "") && (err == nil || strings.Contains(err.Error(), c.want)), "%+v: %v", c, err)
		got := len(rd.run.Levels[0].Rounds[0].Samples)
		must.Hold(t, err != nil || got == 1, "%+v: %d requests", c, got)
	}
}
