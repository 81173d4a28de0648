package exec

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"github.com/tokgate/tokgate/answers"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/exec/shape"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

// asking describes the requests of a level, or of one part of a mix.
type asking struct {
	workload *plan.Workload
	level    *metric.Level // level of the requests; a part of a mix has its own level
	planned  int           // requests of the level
	prompts  Prompts
	request  client.Request // the fields common to all requests
	asked    *answers.Ask   // the requirements on the answers
	kept     *kept
}

// lot is the requests of one workload in one round.
type lot struct {
	*asking
	lengths  load.Lengths
	due      int   // measured requests
	measured []int // requested answer lengths of the measured requests, in order of start
	// first is the number of measured requests that the workload sent to the server before this
	// round.
	first int
}

// own makes the sample one of a request of the lot.
func (l *lot) own(s *metric.Sample) { s.Part = l.workload.PartName() }

// drawn is what was drawn for the requests of a round.
type drawn struct {
	mix   []*mixed         // of the window, or of each batch
	dealt map[string][]int // by level: requests of each part of a mix that were drawn so far
}

// mixed is the requests of a round, divided among the parts of a mix.
//
// The requests of a batch are drawn for the batch: with its seed, and its index among the rounds.
type mixed struct {
	index int
	seed  int64
	lots  []*lot // one for each part of a mix; a single lot without a mix
	// For each phase, picks holds the requests in the order in which their parts were drawn, and
	// given holds the number of requests of each part. Both are nil without a mix.
	picks map[metric.Phase][]pick
	given map[metric.Phase][]int
}

// pick assigns a request of a mix to a part of the mix. lot is the index of the part, and nth is
// the number of the request in the part.
type pick struct{ lot, nth int }

// pick adds a block of requests to a phase of a mix, and draws the order of their parts. The block
// has counts[i] requests of part i.
func (rd *round) pick(m *mixed, phase metric.Phase, counts []int, block int) {
	if m.picks == nil {
		m.picks, m.given = map[metric.Phase][]pick{}, map[metric.Phase][]int{}
	}
	if m.given[phase] == nil {
		m.given[phase] = make([]int, len(counts))
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %s %d %s mix %d", rd.level.Workload, rd.level.Name, m.index, phase, block)
	for _, part := range traffic.Order(counts, rand.New(rand.NewPCG(uint64(m.seed), h.Sum64()))) {
		m.picks[phase] = append(m.picks[phase], pick{part, m.given[phase][part]})
		m.given[phase][part]++
	}
}

// typed assigns each request of a replay to the part of the mix with the type of its row. It
// returns the number of measured requests of each part.
func (rd *round) typed(m *mixed) []int {
	m.picks, m.given = map[metric.Phase][]pick{}, map[metric.Phase][]int{}
	for _, phase := range []metric.Phase{metric.Warmup, metric.Measured, metric.Filler} {
		m.given[phase] = make([]int, len(rd.Workload.Mix))
	}
	r := rd.replay
	for i := range r.At {
		phase, part := r.Turn(i).Phase, rd.Workload.PartOf(&r.Rows.Rows[r.First+i])
		m.picks[phase] = append(m.picks[phase], pick{part, m.given[phase][part]})
		m.given[phase][part]++
	}
	return m.given[metric.Measured]
}

// lotOf returns the lot of a request, which is the requests of its part of the mix. nth is the
// number of the request in that lot and phase. The number of warm-up and filler requests is not
// known in advance, so the order of their parts is drawn block by block.
func (rd *round) lotOf(t shape.Due) (l *lot, nth int) {
	m, phase, order := rd.mix[t.Batch], t.Phase, t.Order
	if rd.Workload.Mix == nil {
		return m.lots[0], order
	}
	shares, block := rd.Workload.Shares(), mostStratum
	if phase == metric.Left {
		shares = rd.Workload.LeavingShares()
	} else {
		block = min(shares.Stratum(), mostStratum)
	}
	for len(m.picks[phase]) <= order {
		given := m.given[phase]
		if given == nil {
			given = make([]int, len(shares))
		}
		rd.pick(m, phase, shares.Counts(given, block), len(m.picks[phase]))
	}
	p := m.picks[phase][order]
	return m.lots[p.lot], p.nth
}

// mostStratum is the largest block of a mix, in requests. The order of the parts is drawn block by
// block.
const mostStratum = 100
