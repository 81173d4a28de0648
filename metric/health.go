package metric

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"
)

// Health is what the generator measured about itself over a round.
type Health struct {
	CPU     float64       `json:"cpu"`         // share of the available cores that this process used, in [0, 1]; -1 if unknown
	GCPause time.Duration `json:"gc_pause_ns"` // longest stop-the-world pause
	// Delay is how long a read or send may have waited. It is the larger of two 99th percentiles:
	// the wait of ready goroutines for the Go scheduler, and the delay of the generator's own
	// heartbeat.
	Delay time.Duration `json:"delay_ns"`
	// Stall is the longest delay of the generator's own loop. A heartbeat measures the delay a
	// hundred times a second. The whole process may have stopped for that long. Chunks that arrive
	// during a stall are read together afterwards, so they seem to arrive at once.
	Stall time.Duration `json:"stall_ns"`
	// Standstills lists, in order, the times in which the generator did not run, at most
	// mostStandstills. It is empty if there were none, and nil if they were not recorded.
	Standstills []Standstill `json:"standstills,omitzero"`
	// Late is the total of the shorter delays of heartbeats, without the precision of their timer.
	Late time.Duration `json:"late_ns,omitempty"`
	// Offset bounds the error of the clocks of several machines against each other; 0 if one machine
	// sends the load.
	Offset time.Duration `json:"offset_ns,omitempty"`
}

// Join adds the health of another process of the load generator in the same time. Each value is the
// worse of the two; a standstill of one is a standstill of the generator.
func (h *Health) Join(o Health) {
	if min(h.CPU, o.CPU) < 0 {
		h.CPU = -1 // what is unknown of one is unknown of all
	} else {
		h.CPU = max(h.CPU, o.CPU)
	}
	h.GCPause, h.Delay = max(h.GCPause, o.GCPause), max(h.Delay, o.Delay)
	h.Stall, h.Late, h.Offset = max(h.Stall, o.Stall), max(h.Late, o.Late), max(h.Offset, o.Offset)
	if o.Standstills == nil {
		return
	}
	all := slices.Concat(h.Standstills, o.Standstills)
	slices.SortFunc(all, func(a, b Standstill) int { return cmp.Compare(a.From, b.From) })
	h.Standstills = []Standstill{}
	for _, s := range all {
		if n := len(h.Standstills); n > 0 && s.From <= h.Standstills[n-1].To {
			h.Standstills[n-1].To = max(h.Standstills[n-1].To, s.To)
			continue
		}
		h.AddStandstill(s)
	}
}

// Standstill is a time in which the load generator did not run. From is the time at which a
// heartbeat was due, and To is the time at which it came. It is at least LeastStall long.
type Standstill struct {
	From time.Duration `json:"from_ns"`
	To   time.Duration `json:"to_ns"`
}

const (
	// Heartbeat is the interval at which the load generator checks whether it is on time.
	Heartbeat = 10 * time.Millisecond
	// mostStandstills is the largest number of standstills in the record of a round. If a round has
	// more, its last standstill lasts until the end of the last one.
	mostStandstills = 1000
)

// AddStandstill adds a standstill that begins after all others.
func (h *Health) AddStandstill(s Standstill) {
	if n := len(h.Standstills); n >= mostStandstills {
		h.Standstills[n-1].To = s.To
		return
	}
	h.Standstills = append(h.Standstills, s)
}

// Drain adds the standstills and shorter delays of a round's drain, in which its last requests end.
// Stall and Delay do not cover the drain of a load whose rounds are parts of one window.
func (h *Health) Drain(drain Health) {
	for _, s := range drain.Standstills {
		h.AddStandstill(s)
	}
	h.Late += drain.Late
}

// StoodStill reports whether the generator stood still at some time between from and to. The
// heartbeats cannot tell whether it ran within a Heartbeat before or after a standstill, so this
// time counts as part of it. StoodStill returns false if the standstills are not recorded.
func (h Health) StoodStill(from, to time.Duration) bool {
	all := h.Standstills
	i := sort.Search(len(all), func(i int) bool { return all[i].To+Heartbeat >= from })
	return i < len(all) && all[i].From-Heartbeat <= to
}

// Held returns for how long the generator did not run in the round, in seconds: the standstills and
// all shorter delays together. ok is false if this is not recorded.
func (h Health) Held() (seconds float64, ok bool) {
	seconds = h.Late.Seconds()
	for _, s := range h.Standstills {
		seconds += (s.To - s.From).Seconds()
	}
	return seconds, h.Standstills != nil
}

// Possible returns an error if a recorded health is out of range. The standstills of a round are in
// order and do not overlap.
func (h Health) Possible() error {
	if h.CPU < -1 || min(h.Delay, h.GCPause, h.Stall, h.Late, h.Offset) < 0 {
		return errors.New("what the generator measured of itself is out of range")
	}
	if n := len(h.Standstills); n > mostStandstills {
		return fmt.Errorf("it has %d standstills (allowed %d)", n, mostStandstills)
	}
	last := time.Duration(-1)
	for _, s := range h.Standstills {
		if s.From <= last || s.To <= s.From {
			return errors.New("its standstills are not in order")
		}
		last = s.To
	}
	return nil
}
