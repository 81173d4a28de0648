package compare

import (
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// Rounds with a pause between them and the batches of one window measure different states of a
// server, so they are not compared.
func TestRoundsAndWindowsAreNotCompared(t *testing.T) {
	level := func(batches bool) *metric.Level {
		return &metric.Level{Kind: metric.ClosedLoop, N: 8, Batches: batches}
	}
	for _, c := range []struct {
		control, candidate bool
		want               string
	}{
		{false, false, ""},
		{true, true, ""},
		{false, true, "the control was measured in rounds with a pause between them, but the candidate in one window"},
		{true, false, "the control was measured in one window, but the candidate in rounds with a pause between them"},
	} {
		got := workDifference(level(c.control), level(c.candidate))
		must.Hold(t, strings.HasPrefix(got, c.want) && (got == "") == (c.want == ""), "%v: %q", c, got)
	}
}
