package assert

import (
	"fmt"
	"strings"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// thisRunOf returns a threshold as text, in a form that judges only the requests of this run.
func thisRunOf(t *plan.Threshold) string {
	_, limit, _ := strings.Cut(t.Text, string(t.Op))
	observed := fmt.Sprintf(`"observed %s %s"`, t.Op, strings.TrimSpace(limit))
	if t.Metric.Name == "success" {
		return observed + ` or "every"`
	}
	return observed
}

// moreRounds returns the text with which a plan asks for the given number of rounds.
func moreRounds(kind metric.LoadKind, rounds int) string {
	switch kind {
	case metric.Burst:
		return fmt.Sprintf("bursts = %d", rounds)
	case metric.ClosedLoop:
		return fmt.Sprintf("rounds = %d in the compare block", rounds)
	}
	return seeds(rounds)
}

// seeds returns the text with which a plan asks for n seeds. The function range of the language
// returns at most 1024 numbers, so more seeds take several calls.
func seeds(n int) string {
	const most = 1024
	if n > 4*most {
		return fmt.Sprintf("%d seeds", n)
	}
	var parts []string
	for from := 1; from <= n; from += most {
		parts = append(parts, fmt.Sprintf("range(%d, %d)", from, min(from+most, n+1)))
	}
	if len(parts) == 1 {
		return "seeds = " + parts[0]
	}
	return "seeds = concat(" + strings.Join(parts, ", ") + ")"
}
