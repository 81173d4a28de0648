package shape

import (
	"math"
	"time"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Of returns the kind of shape of a case.
func Of(c Case) *Kind {
	switch {
	case c.Level.Speedup > 0:
		return traces
	case c.Level.Stage != nil:
		return stages
	}
	return kinds[c.Load.Kind]
}

// Expected estimates how long units with the given numbers of measured requests take, and how many
// measured requests they have. each is the duration of a request; 0 if not known.
func Expected(c Case, due []int, each time.Duration) (requests int, takes time.Duration) {
	kind := Of(c)
	if kind.Around != nil {
		takes = kind.Around(c, each)
	}
	if c.Level.Batches { // they have one ramp
		sum := 0
		for _, n := range due {
			sum += n
		}
		due = []int{sum}
		c.Level.Rounds = 1
	}
	for _, n := range due {
		requests, takes = requests+cycleOf(c, n, each).requests(each), takes+kind.Takes(c, n, each)
	}
	return requests, takes
}

var kinds = map[metric.LoadKind]*Kind{
	metric.ClosedLoop: closedLoops, metric.Burst: bursts, metric.Users: people, metric.OpenLoop: rates,
}

// Search says how a capacity search counts loads of a kind. The searched load is a whole number, or
// a number of steps.
type Search struct {
	First int // the load that is measured first without prior knowledge
	// Load returns the load of a level.
	Load  func(*metric.Level) int
	Whole bool // the requests of a load are judged only together
	// ByUnits means that what was measured is counted in units, because the number of requests is
	// not known beforehand.
	ByUnits bool
	// Rates means that the search is over rates. It decides how many requests each probe has, and how
	// often it is judged.
	Rates bool
}

// ladder is the first load that a search measures without prior knowledge. It is not 1, because
// single requests one after another take longest, and capacities below 8 are rare.
const ladder = 8

func inFlight(l *metric.Level) int { return l.N }

var searches = map[metric.LoadKind]Search{
	metric.ClosedLoop: {First: ladder, Load: inFlight},
	metric.Burst:      {First: ladder, Load: inFlight, Whole: true},
	metric.Users:      {First: ladder, Load: inFlight, ByUnits: true},
	metric.OpenLoop: {First: ladder, Rates: true, Load: func(l *metric.Level) int {
		return int(math.Round(l.Rate / plan.RateStep))
	}},
	// The search begins at the recorded speed.
	metric.Speedup: {First: int(math.Round(1 / plan.SpeedupStep)), Load: func(l *metric.Level) int {
		return int(math.Round(l.Speedup / plan.SpeedupStep))
	}},
}

// SearchOver returns how a search over this kind of load counts.
func SearchOver(k metric.LoadKind) Search { return searches[k] }

// Searched returns the kind of search to which the level belongs.
func Searched(l *metric.Level) metric.LoadKind {
	if l.Speedup > 0 {
		return metric.Speedup
	}
	return l.Kind
}
