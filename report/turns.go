package report

import (
	"fmt"

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
		t := Turn{From: i + 1, To: i + 1, Requests: len(of), Cached: number(metric.CacheHitRate(of))}
		if i == toldTurns {
			t.To = most
		}
		d := metric.Of(metric.MustLookup("ttft"), of)
		if mean, ok := d.Mean(); ok {
			p95, _ := d.Percentile(95)
			t.Mean, t.P95 = numberOf(mean), numberOf(p95)
		}
		out = append(out, t)
	}
	return out
}

// TurnHead is the heading of the table whose rows TurnRows returns.
var TurnHead = []string{"Level", "Turn", "Requests", "TTFT mean", "TTFT p95", "Cached"}

// TurnRows returns table rows for the turns of conversations: at each level one row for each turn
// or range of turns. It returns nil if no level has conversations.
func TurnRows(cases []*Case) [][]string {
	var rows [][]string
	for _, c := range cases {
		for _, t := range c.Turns {
			name := fmt.Sprint(t.From)
			if t.To > t.From {
				name += fmt.Sprintf(" to %d", t.To)
			}
			seconds := string(metric.Seconds)
			rows = append(rows, []string{c.Level, name, fmt.Sprint(t.Requests), t.Mean.Format(seconds), t.P95.Format(seconds), t.Cached.Format(string(metric.Ratio))})
		}
	}
	return rows
}
