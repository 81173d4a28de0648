package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tokgate/tokgate/answers"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/exec/telemetry"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

// round is one round under way.
type round struct {
	*runner
	Case
	target *Target
	level  *metric.Level
	out    *metric.Round
	lots   []*lot // of a mix one for each part, else one
	// picks holds the requests of a mix that are drawn so far, and given counts them
	// by part.
	picks map[metric.Phase][]pick
	given map[metric.Phase][]int
	// durations are those of the series.
	durations map[*plan.Workload]time.Duration

	ready map[turnID]client.Prompt // prompts made beforehand
	// readyBytes is how long they are together.
	readyBytes int
	flights    map[*flight]struct{} // what is in flight
	judged     int                  // of these, the measured ones
	launched   int                  // flights so far

	loop   *load.Loop // of a closed loop, while it runs
	window listening  // of an open loop
	replay *replay    // of recorded traffic; nil: requests are made up
	// listen is how an answer is heard while it comes; nil: as it is.
	listen func(*flight, *client.Answer) client.Stream
	// A saturation has neither rounds nor measured requests: its window is load's.
	saturates int // requests in flight at most; 0: it is none
	saturated load.Window
	// before is how many tokens of a request's answer count as generated when it is sent,
	// because its prompt holds them.
	before map[turnID]int
	held   []int         // slots to ask again
	timer  func() bool   // stops the clock of a round that goes by time, as long as it runs; else nil
	ended  func(*flight) // what follows the end of a request; nil: nothing

	// The server's own metrics are read while the round is played; nil: they
	// are not.
	inside *telemetry.Session
	slots  map[int]bool // that sent a request
	begun  bool         // a measured one was sent
	opened bool         // the window has begun

	proven     bool   // requests completed at this level before
	wasted     int    // measured requests that failed at this level, as long as none completed
	refused    int    // connections refused in a row
	lastWarmup string // why the last warm-up request failed
	lost       error  // the server is gone
}

// asking is what the requests of a level are made of: all of them, or in a mix those of
// one part.
type asking struct {
	workload *plan.Workload
	level    *metric.Level // of a part its own, not that of its mix
	planned  int           // requests of the level
	prompts  Prompts
	request  client.Request // what all of them have in common
	asked    *answers.Ask   // what they ask of their answers
	kept     *kept
}

// lot is what a round sends of an asking.
type lot struct {
	*asking
	lengths  load.Lengths
	due      int   // measured requests
	measured []int // lengths of their answers, by order of start
	// first is how many measured requests of the workload came before the round's on
	// the server.
	first int
}

// pick is which lot a request of a mix is of, and its number there.
type pick struct{ lot, nth int }

type turnID struct {
	phase metric.Phase
	order int
}

// listening is what an open loop has to do with each of its requests.
type listening interface {
	place(*metric.Sample)      // before it is sent
	span() load.Window         // once it is over
	rounds() []*metric.Round   // likewise
	unfinished(*metric.Sample) // when it has ended
}

// flight is one request in flight.
type flight struct {
	number int // in order of start
	turn   load.Turn
	lot    *lot           // of which it is
	nth    int            // and its number there
	sample *metric.Sample // the transport's until it ended
	answer *client.Answer // where its text is kept; nil: it is not
	asked  *answers.Ask   // what the request asks of it, where it is
	spoken *client.Answer // of a turn that is gone on with; nil: it is not
	at     time.Duration  // scheduled
	talk   *talk          // the conversation of which it is a turn; nil: of none
	input  int            // tokens of its prompt, as asked for; 0: as many as it has
	output int            // tokens asked for
	row    int            // of a data set
	shared float64        // see client.Prompt
	cancel context.CancelFunc
	over   bool
}

// talk is a conversation under way. How many turns it has, and how long its user
// thinks before each, depends on seed, workload, level and its number alone.
type talk struct {
	phase  metric.Phase // in which it began
	number int          // of the conversation in its phase
	slot   int
	turn   int // under way, from 1
	of     int
	prompt client.Prompt // of the turn under way
}

// mostTurns is above the number of any conversation's turns.
const mostTurns = 1 << 12

// replyBytes bounds what is kept of an answer for the turns after it.
const replyBytes = 1 << 20

// watch starts the meter, after the prompts are made. While it runs the loop
// has a heartbeat, which shows when the operating system took the CPU away.
// tokgate then reads everything that came meanwhile in one go: late answers
// look late and the chunks after them fast, and no histogram of the runtime
// shows it.
func (rd *round) watch(health *func() metric.Health) {
	if rd.Meter == nil {
		return
	}
	meter := rd.Meter()
	due, seen := rd.Clock.Now(), beats{}
	var stop func() bool
	late := func() { seen.late(rd.Clock.Now() - due) }
	var beat func()
	beat = func() {
		late()
		due = rd.Clock.Now() + heartbeat
		stop = rd.Clock.Timer(due, beat)
	}
	beat()
	*health = func() metric.Health {
		late() // the beat that is due now
		stop()
		h := meter()
		h.Stall, h.Delay = seen.stall(), max(h.Delay, seen.delay())
		return h
	}
}

// cut ends the round, and with it the level. The first reason stays.
func (rd *round) cut(why string) {
	if rd.out.Stopped == "" {
		rd.out.Stopped = why
	}
}

// nothingCompletes begins the Stopped of a round that was given up because no
// request ever completed at its level.
const nothingCompletes = "every warm-up request failed: "

// halted says that nothing more is to be started.
func (rd *round) halted() bool {
	return rd.out.Stopped != "" || rd.lost != nil || rd.stopped != "" || rd.err != nil
}

// send sends one request.
func (rd *round) send(turn load.Turn, at time.Duration) {
	rd.fly(turn, at, rd.prompt(turn.Phase, turn.Order), nil)
}

// fly sends one request with its prompt, which may be a turn of a conversation.
func (rd *round) fly(turn load.Turn, at time.Duration, prompt client.Prompt, t *talk) {
	if rd.halted() {
		return
	}
	f := &flight{number: rd.launched, turn: turn, at: at, talk: t}
	f.lot, f.nth = rd.of(turn.Phase, turn.Order)
	rd.launched++
	if turn.Phase == metric.Measured {
		rd.judged++
		if rd.loop != nil && rd.out.Time > 0 && turn.Order == 0 {
			rd.timer = rd.Clock.Timer(rd.Clock.Now()+rd.out.Time, func() {
				rd.timer = nil
				rd.close()
			})
		}
	}
	if t != nil {
		f.output = f.lot.lengths.At(t.phase, t.number*mostTurns+t.turn)
	} else {
		f.output = f.lot.output(turn.Phase, f.nth)
	}
	request := f.lot.with(prompt, f.output)
	f.input, f.output, f.row, f.shared = request.Input, request.Output, prompt.Row, prompt.Shared
	f.sample = rd.sample(f)
	var ctx context.Context
	ctx, f.cancel = context.WithCancel(rd.flying)
	rd.flights[f] = struct{}{}
	rd.Observer.RequestStarted(rd.level, turn.Phase)
	answer := client.NewAnswer(f.sample, func(s *metric.Sample) {
		rd.Clock.Post(func() { rd.finish(f, s) })
	})
	if most := rd.keepsOf(f); most > 0 {
		f.answer, f.asked = answer, f.lot.askedBy(&request)
		answer.Keep(most)
	}
	if t != nil && t.turn < t.of {
		f.spoken = answer
		answer.KeepReply(replyBytes)
	}
	var stream client.Stream = answer
	if rd.listen != nil {
		stream = rd.listen(f, answer)
	}
	rd.target.Transport.Send(ctx, &request, stream)
	rd.opens(turn.Slot, turn.Phase)
	if rd.loop != nil && turn.Phase != metric.Warmup {
		rd.ahead(turn)
	}
}

// sample is what is known of a request before it is sent.
func (rd *round) sample(f *flight) *metric.Sample {
	out := &metric.Sample{
		Server: rd.level.Server, Workload: rd.level.Workload, Level: rd.level.Name, Round: rd.out.Index,
		Slot: f.turn.Slot, Order: f.turn.Order, Phase: f.turn.Phase,
		Scheduled: f.at, InputAsked: f.input, OutputAsked: f.output, Row: f.row, Shared: f.shared,
	}
	if rd.Workload.Mix != nil {
		out.Part = f.lot.workload.PartName()
	}
	if f.talk != nil {
		out.Turn = f.talk.turn
	}
	if rd.window != nil {
		rd.window.place(out)
	}
	return out
}

// finish takes what became of a request.
func (rd *round) finish(f *flight, s *metric.Sample) {
	if f.over {
		return // given up on
	}
	f.over, f.sample = true, s
	if rd.window != nil {
		rd.window.unfinished(s)
	}
	if s.Failure != nil {
		s.Failure.Message = rd.secrets.Text(s.Failure.Message)
	}
	s.Finish = rd.secrets.Text(s.Finish)
	f.cancel()
	delete(rd.flights, f)
	if f.turn.Phase == metric.Measured {
		rd.judged--
	}
	rd.out.Samples = append(rd.out.Samples, s)
	if s.Failure != nil {
		rd.failed(s)
	} else {
		rd.refused, rd.proven = 0, true
	}
	if f.answer != nil {
		rd.heard(f)
	}
	if rd.ended != nil {
		rd.ended(f)
	}
	// Only now: the slot is at work again while the sample is written.
	rd.observe(rd.Observer.SampleDone(s))
}

// failed looks at a failed request for signs that the server is gone.
func (rd *round) failed(s *metric.Sample) {
	if s.Phase == metric.Warmup {
		rd.lastWarmup = s.Failure.Message
	}
	if s.Failure.Kind == metric.FailCanceled || rd.lost != nil {
		return
	}
	if rd.target.Err != nil {
		if err := rd.target.Err(); err != nil {
			rd.lost = err
			rd.cut(rd.secrets.Text(err.Error()))
			return
		}
	}
	if s.Failure.Kind == metric.FailLocal {
		// No verdict on a server that could not be asked.
		rd.lost = errors.New(s.Failure.Message)
		rd.cut(s.Failure.Message)
		return
	}
	if s.Phase == metric.Measured && !rd.proven {
		if rd.wasted++; rd.wasted >= plan.Hopeless(rd.level.N) {
			// More would only cost more: a server that takes requests and ends none
			// keeps each until its time-out.
			rd.cut(fmt.Sprintf("%d requests failed and none completed: %s", rd.wasted, s.Failure.Message))
			return
		}
	}
	if s.Failure.Kind != metric.FailConnect {
		rd.refused = 0
		return
	}
	rd.refused++
	if rd.refused >= max(10, 2*rd.level.N) {
		rd.lost = fmt.Errorf("%d connections in a row failed: %s", rd.refused, s.Failure.Message)
		rd.cut(rd.lost.Error())
	}
}

// pick draws the order of further requests of a phase, counts of each part.
func (rd *round) pick(phase metric.Phase, counts []int, block int) {
	if rd.picks == nil {
		rd.picks, rd.given = map[metric.Phase][]pick{}, map[metric.Phase][]int{}
	}
	if rd.given[phase] == nil {
		rd.given[phase] = make([]int, len(counts))
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %s %d %s mix %d", rd.level.Workload, rd.level.Name, rd.out.Index, phase, block)
	for _, part := range traffic.Order(counts, rand.New(rand.NewPCG(uint64(rd.out.Seed), h.Sum64()))) {
		rd.picks[phase] = append(rd.picks[phase], pick{part, rd.given[phase][part]})
		rd.given[phase][part]++
	}
}

// typed reads the part of each request from the rows of a replay, and returns the number
// of measured requests of each part.
func (rd *round) typed() []int {
	rd.picks, rd.given = map[metric.Phase][]pick{}, map[metric.Phase][]int{}
	for _, phase := range []metric.Phase{metric.Warmup, metric.Measured, metric.Filler} {
		rd.given[phase] = make([]int, len(rd.Workload.Mix))
	}
	r := rd.replay
	for i := range r.At {
		phase, part := r.Turn(i).Phase, rd.Workload.PartOf(&r.rows.Rows[r.first+i])
		rd.picks[phase] = append(rd.picks[phase], pick{part, rd.given[phase][part]})
		rd.given[phase][part]++
	}
	return rd.given[metric.Measured]
}

// of returns the lot that a request belongs to, and its number among the lot's requests
// of that phase. Requests that are not measured are drawn stratum by stratum, because
// their number is not known beforehand.
func (rd *round) of(phase metric.Phase, order int) (l *lot, nth int) {
	if rd.Workload.Mix == nil {
		return rd.lots[0], order
	}
	shares := rd.Workload.Shares()
	for len(rd.picks[phase]) <= order {
		given := rd.given[phase]
		if given == nil {
			given = make([]int, len(shares))
		}
		rd.pick(phase, shares.Counts(given, min(shares.Stratum(), mostStratum)), len(rd.picks[phase]))
	}
	p := rd.picks[phase][order]
	return rd.lots[p.lot], p.nth
}

// mostStratum bounds how many requests are drawn at a time.
const mostStratum = 100

// inFlight lists what is in flight, in order of start.
func (rd *round) inFlight() []*flight {
	return slices.SortedFunc(maps.Keys(rd.flights), func(a, b *flight) int { return cmp.Compare(a.number, b.number) })
}
