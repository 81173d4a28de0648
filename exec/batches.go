package exec

import (
	"slices"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
)

// window is the open window of a closed loop whose rounds are batches. The load goes on while the
// level is judged, and ends when the level is decided.
type window struct {
	*round
	planned int              // batches that were planned to count
	counted int              // batches that count so far
	taken   int              // batches that ended so far, counted or voided
	newest  *metric.Round    // the last of these
	before  []metric.Replica // what the replicas did in windows before
}

// fills adds to the newest batch the fillers that ended after it. They keep up the load until the
// level is decided.
func (w *window) fills() {
	r := w.newest
	if r == nil {
		return
	}
	r.Samples = nil
	for _, s := range w.out.Samples {
		if s.Round == r.Index {
			r.Samples = append(r.Samples, s)
		}
	}
}

// batches measures until further batches of the level's window have ended that count. due holds the
// number of measured requests of each of them. A batch that the generator's machine disturbed does
// not count; another one is measured at the end in its place.
func (s *levelRun) batches(due []int) (ended bool, lost error) {
	l := s.level
	if s.sheds && s.tight(l) {
		l.Shed += len(due)
		return true, nil
	}
	if s.win == nil && !s.opens(slices.Concat(due, s.ahead)) {
		return false, nil
	}
	w := s.win
	all := slices.Concat(due, s.ahead)
	if more := w.counted + len(all) - w.planned; more > 0 {
		s.plans(all[len(all)-more:])
		w.planned += more
	}
	for until := w.counted + len(due); w.counted < until && !s.failed(); {
		w.walk(func() bool { return w.closed > w.taken })
		if w.closed == w.taken {
			s.closes()
			return false, w.lost
		}
		s.takes()
		if w.counted < until && s.sheds && s.tight(l) {
			l.Shed += until - w.counted
			break
		}
	}
	return true, nil
}

// opens begins the window. due holds the numbers of measured requests of the batches planned so far.
func (s *levelRun) opens(due []int) bool {
	if !s.check() {
		if len(s.level.Rounds) == 0 {
			s.level.Skipped = s.why()
		}
		return false
	}
	s.warm()
	s.win = &window{round: s.newRound(due), planned: len(due), before: s.level.Replicas}
	s.now, s.last = s.win.round, s.win.round
	return true
}

func (s *levelRun) plans(sizes []int) {
	for _, n := range sizes {
		s.draws(s.win.round, []int{n})
	}
	s.win.batches.Plan(sizes)
}

func (s *levelRun) takes() {
	w := s.win
	w.fills()
	now := s.Clock.Now()
	u := w.batches.Unit(w.taken, now, w.out.Samples)
	whole := load.Window{Start: w.batches.Unit(0, now, nil).Start, End: u.End}
	r := w.unit(w.taken, w.closed+1, u, whole)
	w.taken++
	if s.voids(w.round, r, w.planned) {
		r.Void = s.level.Disturbed(r).String()
		s.plans([]int{r.Due})
	} else {
		w.counted++
	}
	w.newest = r
	s.level.Replicas = w.byReplica(w.before)
	s.keep(r)
	if s.level.Probe == nil {
		s.rounds++
	}
}

// closes ends the window, if one is open. Requests that are in flight although the level is decided
// are cancelled, and their batches are kept beside those that were judged.
func (s *levelRun) closes() {
	w := s.win
	if w == nil {
		return
	}
	s.win = nil
	if !w.halted() {
		w.cut(endedEarly)
	}
	w.end()
	w.fills()
	s.now = nil
	s.level.Replicas = w.byReplica(w.before)
	rounds := w.units()
	for _, r := range rounds[w.taken:] {
		s.keep(r)
	}
	for _, m := range w.mix[len(rounds):] { // these batches did not begin
		for _, l := range m.lots {
			s.sent[[2]string{l.level.Server, l.level.Workload}] -= l.due
		}
	}
	if d, ok := load.Duration(w.out.Samples, metric.Measured); ok {
		s.durations[s.Workload] = d
	}
}
