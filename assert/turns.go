package assert

import (
	"fmt"
	"strings"

	"github.com/tokgate/tokgate/metric"
)

// toldTurns is how many turns are told one by one.
const toldTurns = 8

// byTurn tells turn by turn how soon answers began, and how much of the prompts came
// from a cache; "": there are no conversations.
func byTurn(samples []*metric.Sample) string {
	turns := make([][]*metric.Sample, toldTurns+1)
	most := 0
	for _, s := range samples {
		if s.Turn > 0 {
			i := min(s.Turn-1, toldTurns)
			turns[i], most = append(turns[i], s), max(most, s.Turn)
		}
	}
	if most == 0 {
		return ""
	}
	ttft := metric.MustLookup("ttft")
	var out []string
	for i, of := range turns {
		if len(of) == 0 {
			continue
		}
		name := fmt.Sprint(i + 1)
		if i == toldTurns {
			name = fmt.Sprintf("%d to %d", i+1, most)
		}
		line := fmt.Sprintf("turn %s: n = %d", name, len(of))
		d := metric.Of(ttft, of)
		if p50, ok := d.Percentile(50); ok {
			p95, _ := d.Percentile(95)
			line += fmt.Sprintf(", TTFT p50 %s, p95 %s", metric.Format(metric.Seconds, p50), metric.Format(metric.Seconds, p95))
		}
		if hits := metric.CacheHitRate(of); hits.OK {
			line += ", cached " + metric.Format(metric.Ratio, hits.V)
		}
		out = append(out, line)
	}
	return strings.Join(out, "; ")
}
