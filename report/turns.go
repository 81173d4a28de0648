package report

import (
	"github.com/tokgate/tokgate/metric"
)

// toldTurns is how many turns of conversations have an entry of their own. All later turns share
// one entry.
const toldTurns = 9

// turnsOf computes the figures of each turn of a level's conversations. It returns nil if the level
// has no conversations.
func turnsOf(samples []*metric.Sample) []Turn {
	turns := make([][]*metric.Sample, toldTurns+1)
	most := 0
	for _, s := range samples {
		if s.Turn > 0 {
			i := min(s.Turn-1, toldTurns)
			turns[i], most = append(turns[i], s), max(most, s.Turn)
		}
	}
	var out []Turn
	for i, of := range turns {
		if len(of) == 0 {
			continue
		}
		t := Turn{From: i + 1, To: i + 1, Requests: len(of), Cached: metric.CacheHitRate(of)}
		if i == toldTurns {
			t.To = most
		}
		d := metric.Of(metric.MustLookup("ttft"), of)
		if mean, ok := d.Mean(); ok {
			p95, _ := d.Percentile(95)
			t.Mean, t.P95 = metric.Some(mean), metric.Some(p95)
		}
		out = append(out, t)
	}
	return out
}
