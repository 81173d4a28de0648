package compare

import (
	"math"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// A slow state of the servers in the last comparison makes the next one look at five starts first.
func TestHeed(t *testing.T) {
	// The candidate is 10 % slower in all starts, which is no group.
	recorded := func(slow ...int) *Comparison {
		row := Change{Workload: "chat", Level: "8", Metric: metric.MustLookup("e2e"), Stat: metric.Stat{Kind: metric.Mean}}
		for i := range 4 {
			noise := 1 + 0.002*float64(i%2)
			p := Pair{Round: i, Control: metric.Some(noise), Candidate: metric.Some(1.1 * noise)}
			for _, s := range slow {
				if s == i {
					p.Control = metric.Some(1.27 * noise)
				}
			}
			row.Pairs = append(row.Pairs, p)
		}
		return &Comparison{Name: "a", Paired: true, Restart: plan.RestartLeg, Changes: []Change{row}}
	}
	few := recorded(2)
	few.Changes[0].Pairs = few.Changes[0].Pairs[:3]
	never := recorded(2)
	never.Restart = plan.RestartNever
	other := recorded(2)
	other.Name = "b"
	missing := recorded(2)
	missing.Changes[0].Pairs[0].Control = metric.Value{V: math.NaN()}
	for _, row := range []struct {
		name     string
		recorded *Comparison
		sides    bool
		rounds   int
		least    int
	}{
		{"a slow start of eight", recorded(2), false, 12, 5},
		{"side by side, two rounds are a start", recorded(2), true, 24, 10},
		{"not more than all rounds", recorded(2), false, 4, 4},
		{"none is slow", recorded(), false, 12, 3},
		{"too few starts", few, false, 12, 3},
		{"each server started once", never, false, 12, 3},
		{"another comparison", other, false, 12, 3},
		{"values are missing", missing, false, 12, 3},
	} {
		c := &plan.Compare{Name: "a", Restart: plan.RestartLeg, Rounds: row.rounds, LeastRounds: 3, SideBySide: row.sides}
		Heed(&plan.Plan{Compares: []*plan.Compare{c}}, []*Comparison{row.recorded})
		if c.LeastRounds != row.least || (c.Heeded != "") != (row.least != 3) {
			t.Errorf("%s: first look after %d rounds, want %d: %q", row.name, c.LeastRounds, row.least, c.Heeded)
		}
		must.Hold(t, row.least != 5 || strings.Contains(c.Heeded, "1 of 8 recorded starts were slower by 27% (e2e mean of chat at 8)"), "%v", c.Heeded)
	}
}
