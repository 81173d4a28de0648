package shape

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
)

// leaving draws the requests of clients that leave, which come on top of those that stay. Of n
// requests that stay, n·each clients leave, up to one; each has its place in a stretch of its own.
type leaving struct {
	each   float64 // clients that leave for each request that stays; 0: none
	seed   int64
	key    string
	stayed int     // requests that stay, of the level so far
	last   int     // the number at which no more of them come in these units; 0 if that is not known
	next   int     // number of the next client that leaves
	place  float64 // that number of requests stay before it
	order  int     // clients of this unit that have left
}

// newLeaving returns the draw of the units that begin with e.Index.
func newLeaving(e *Env) leaving {
	if e.Workload == nil || e.Workload.Leaving() == 0 {
		return leaving{}
	}
	l := leaving{each: e.Workload.Leaving(), seed: e.Workload.Seed(), key: e.Workload.Address() + " " + e.Level + " leaves"}
	for i := range e.Index {
		l.stayed += e.Case.Level.RoundRequests(i % max(e.Case.Level.Rounds, 1))
	}
	l.next = int(float64(l.stayed) * l.each)
	for l.draw(); l.place < float64(l.stayed); l.draw() {
		l.next++
	}
	if e.Case.Level.RoundTime() == 0 {
		l.last = l.stayed + e.due()
	}
	return l
}

// draw places the next client.
func (l *leaving) draw() {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", l.key, l.next)
	l.place = (float64(l.next) + rand.New(rand.NewPCG(uint64(l.seed), h.Sum64())).Float64()) / l.each
}

// stays counts a request that stays.
func (l *leaving) stays() { l.stayed++ }

// due reports whether a client that leaves is next. Those behind the last request that stays come just
// before it, because the load ends with it.
func (l *leaving) due() bool {
	until := l.stayed
	if until == l.last-1 {
		until = l.last
	}
	return l.each > 0 && l.place < float64(until)
}

// turn returns the request of the next client that leaves.
func (l *leaving) turn(slot int) Due {
	t := Due{Ticket: load.Ticket{Slot: slot, Phase: metric.Left, Order: l.order}}
	l.order, l.next = l.order+1, l.next+1
	l.draw()
	return t
}

// of returns about how many clients leave while n requests stay.
func (l *leaving) of(n int) int {
	if l.each == 0 {
		return 0
	}
	return int(float64(n)*l.each) + 1
}
