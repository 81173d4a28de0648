package telemetry

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/metric"
)

// Watch holds the sources of readings of one server.
type Watch struct {
	Clock    clock.Clock
	Interval time.Duration // time between two readings; 0 means 1 s
	// Server reads the server's metrics page, and GPU reads the GPUs. NoServer or NoGPU is the
	// reason why one of them is nil.
	Server, GPU     Source
	NoServer, NoGPU string
	// Replicas read the metrics pages of several servers behind a gateway, in place of Server.
	Replicas []Replica
	// Queries reads the figures that the plan names itself, and Queried are their names.
	Queries Source
	Queried []string
}

// Replica is the source of readings of one of several servers.
type Replica struct {
	URL  string
	Read Source
}

const patience = 5 * time.Second

// mostReadings is the largest number of readings of one source that a round keeps. When there are
// more, every second reading is dropped, and the interval is doubled.
const mostReadings = 4096

// Begin starts regular readings. Call it and every method of the Session only from the loop, and
// call End when the run ends.
func (w *Watch) Begin(ctx context.Context) *Session {
	ctx, cancel := context.WithCancel(ctx)
	s := &Session{watch: w, ctx: ctx, cancel: cancel}
	begin := func(source Source) *feed {
		f := &feed{session: s, source: source, kept: history{every: w.Interval}}
		if f.kept.every <= 0 {
			f.kept.every = time.Second
		}
		s.feeds = append(s.feeds, f)
		if source != nil {
			f.tick()
		}
		return f
	}
	s.server, s.gpu, s.queries = begin(w.Server), begin(w.GPU), begin(w.Queries)
	for _, r := range w.Replicas {
		s.replicas = append(s.replicas, begin(r.Read))
	}
	return s
}

// Session is an observation of a server that is running.
type Session struct {
	watch       *Watch
	ctx         context.Context
	cancel      context.CancelFunc
	server, gpu *feed
	queries     *feed
	replicas    []*feed
	feeds       []*feed // all of them
	loaded      bool    // the load has begun
	ended       bool
}

// Read takes an extra reading at once. One at each end of the measured window makes counters cover
// exactly that window.
func (s *Session) Read() {
	for _, f := range s.feeds {
		f.read()
	}
}

// Busy reports whether a reading of a server's metrics page is in progress.
func (s *Session) Busy() bool {
	return s.server.busy || slices.ContainsFunc(s.replicas, func(f *feed) bool { return f.busy })
}

// Several reports whether the server is several replicas, whose counters add up only at rest.
func (s *Session) Several() bool { return len(s.replicas) > 0 }

// Settle reads the replicas until each is at rest; Settled reports when they all are. Call it
// before the load and after it.
func (s *Session) Settle() {
	for _, f := range s.replicas {
		f.settling, f.before = true, nil
		f.read()
	}
}

// Settled reports whether every replica is at rest since Settle was called. A replica is at rest if
// it has no request in progress, and its counters are those of the reading before.
func (s *Session) Settled() bool {
	return !slices.ContainsFunc(s.replicas, func(f *feed) bool { return f.settling })
}

// Load ends the wait for rest: the load begins.
func (s *Session) Load() {
	s.loaded = true
	for _, f := range s.replicas {
		f.settling = false
	}
}

// End stops reading. Readings that have begun are dropped.
func (s *Session) End() {
	if s.ended {
		return
	}
	s.ended = true
	s.cancel()
	for _, f := range s.feeds {
		for _, stop := range []func() bool{f.stop, f.late, f.soon} {
			if stop != nil {
				stop()
			}
		}
	}
}

// Over summarises the readings of the measured window, given by its beginning and its end. It also
// uses the nearest readings outside the window.
func (s *Session) Over(from, to time.Duration) *metric.Telemetry {
	return s.Part(from, to, from, to)
}

// Part summarises the readings of a part of the measured window, which lasts from begin to end. At
// an edge between two parts, both use the same reading, however far from the edge it is. So the
// parts add up to the whole window.
func (s *Session) Part(from, to, begin, end time.Duration) *metric.Telemetry {
	of := span{from, to, begin, end}
	gpu := s.gpu.history(s.watch.NoGPU)
	var t *metric.Telemetry
	if t = summarize(of, s.server.history(s.watch.NoServer), gpu); s.Several() {
		t = summarizeAll(of, s.behind(), gpu)
	}
	asked := s.queries.history("the run is simulated, and asks no Prometheus")
	for _, name := range s.watch.Queried {
		asked.gauge(t, name, from, to)
	}
	return t
}

func (s *Session) behind() (out []behind) {
	for i, f := range s.replicas {
		out = append(out, behind{s.watch.Replicas[i].URL, f.rested, f.history("")})
	}
	return out
}

// ByReplica returns what each replica did from rest before the load to its last reading, and its gauges
// in the measured window.
func (s *Session) ByReplica(from, to time.Duration) (out []metric.Replica) {
	for _, r := range s.behind() {
		out = append(out, r.whole(r.told(span{from, to, from, to}).Gauges))
	}
	return out
}

type feed struct {
	session  *Session
	source   Source
	kept     history
	busy     bool
	reread   bool // the source is read again as soon as possible
	turn     int  // number of the current reading; an answer with a lower number came too late
	stop     func() bool
	late     func() bool
	soon     func() bool
	settling bool     // the source is read until it is at rest; see Session.Settle
	before   *Reading // last reading since then
	rested   *Reading // last reading before the load
}

type stamped struct {
	at time.Duration
	*Reading
}

type failure struct {
	at  time.Duration
	why string
}

// tick takes a reading and sets the timer for the next one. While a slow source is still read, it
// takes no second reading.
func (f *feed) tick() {
	f.read()
	f.reread = false
	c := f.session.watch.Clock
	f.stop = c.Timer(c.Now()+f.kept.every, f.tick)
}

func (f *feed) read() {
	if f.source == nil || f.session.ended {
		return
	}
	if f.busy {
		f.reread = true
		return
	}
	c := f.session.watch.Clock
	asked := c.Now()
	f.busy = true
	f.turn++
	turn := f.turn
	ctx, cancel := context.WithCancel(f.session.ctx)
	f.late = c.Timer(asked+patience, func() {
		cancel()
		f.take(turn, asked, nil, errSlow)
	})
	f.source(ctx, func(r *Reading, err error) {
		cancel()
		f.take(turn, asked, r, err)
	})
}

var errSlow = context.DeadlineExceeded

// take stores the result of a reading, unless the reading was given up.
func (f *feed) take(turn int, asked time.Duration, r *Reading, err error) {
	if turn != f.turn || !f.busy || f.session.ended {
		return // given up on
	}
	f.busy = false
	f.late()
	now := f.session.watch.Clock.Now()
	// The server wrote the values at an unknown moment between the request and the response, so
	// assume the middle.
	at := asked + (now-asked)/2
	switch {
	case err == errSlow:
		f.kept.failed = append(f.kept.failed, failure{at, "it took longer than " + patience.String()})
	case err != nil:
		f.kept.failed = append(f.kept.failed, failure{at, err.Error()})
	case r != nil:
		f.kept.add(stamped{at, r})
		f.settle(r)
	}
	if f.settling {
		f.soon = f.session.watch.Clock.Timer(now+settling, f.read)
	}
	if h := &f.kept; len(h.readings)+len(h.failed) > mostReadings {
		h.readings, h.failed = halved(h.readings), halved(h.failed)
		h.every *= 2
	}
	if f.reread {
		f.reread = false
		f.read()
	}
}

const settling = 100 * time.Millisecond

// settle looks at a reading while the source shall come to rest.
func (f *feed) settle(r *Reading) {
	if !f.settling {
		return
	}
	if !f.session.loaded {
		f.rested = r
	}
	f.settling = f.before == nil || r.Gauges["running"]+r.Gauges["waiting"] > 0 || !maps.Equal(f.before.Counters, r.Counters)
	f.before = r
}

func halved[T any](s []T) []T {
	n := 0
	for i := 0; i < len(s); i += 2 {
		s[n] = s[i]
		n++
	}
	clear(s[n:])
	return s[:n]
}

func (f *feed) history(none string) history {
	h := f.kept
	h.reason, h.absent = none, f.source == nil
	return h
}
