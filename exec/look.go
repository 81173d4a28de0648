package exec

import (
	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/exec/search"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// A look in the middle of a fixed level may only end it for a failure, and so
// costs a sound server nothing but the chance of a false alarm: a tenth of what
// the verdict allows itself.
const abortShare = 10

// stage is a stretch of a level up to a look.
type stage struct {
	due      []int // measured requests of its rounds
	requests int   // at its end, those of the stages before included
	planned  int
	abort    bool // only a failure counts
	extends  bool // beyond what the plan asks for
}

// stages plans the looks of a fixed level, before it is run: half-way, at its
// end, and, where the plan has an inconclusive level extended, at twice its
// requests and so on up to the most that the plan allows. One that is not judged
// has but its end.
func stages(c Case, judged bool) []stage {
	due := load.Split(c.Level.Requests, max(c.Level.Rounds, 1))
	whole := stage{due: due, requests: c.Level.Requests, planned: 1}
	if !judged {
		return []stage{whole}
	}
	looks := []int{c.Level.Requests}
	if c.Workload.Policy.OnInconclusive == plan.Extend {
		most := c.Workload.Policy.MaxRequests
		if most == 0 {
			most = 4 * c.Level.Requests
		}
		looks = lookPlan(c.Load.Kind, c.Level.N, c.Level.Requests, most)
	}
	whole.planned = len(looks)
	stages := []stage{whole}
	if half := len(due) / 2; half > 0 {
		first := stage{due: due[:half], planned: abortShare * whole.planned, abort: true}
		for _, n := range first.due {
			first.requests += n
		}
		whole.due = due[half:]
		stages = []stage{first, whole}
	}
	for i, k := range looks[1:] {
		stages = append(stages, stage{
			due: roundsOf(c, k-looks[i]), requests: k, planned: whole.planned, extends: true,
		})
	}
	return stages
}

// lookPlan doubles the requests from first up to most; of bursts whole ones.
func lookPlan(kind metric.LoadKind, n, first, most int) []int {
	if kind == metric.Burst {
		most -= most % n
	}
	return search.Doubling(first, max(first, most))(n)
}

// roundsOf shares out further requests of a level in rounds of about the size
// that the level has; never of fewer requests than are in flight.
func roundsOf(c Case, requests int) []int {
	rounds := (requests*c.Level.Rounds + c.Level.Requests - 1) / c.Level.Requests
	return load.Split(requests, max(1, min(rounds, requests/c.Level.N)))
}
