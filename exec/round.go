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

// round is the state of a round while it runs.
type round struct {
	*runner
	Case
	target *Target
	level  *metric.Level
	out    *metric.Round
	lots   []*lot // one lot of requests for each part of a mix; a single lot without a mix
	// In a mix, each request belongs to a part. For each phase, picks holds the requests in the
	// order in which their parts were drawn, and given holds the number of requests of each part.
	picks map[metric.Phase][]pick
	given map[metric.Phase][]int
	// durations has the duration of earlier requests of each workload. The rounds of a series share
	// it.
	durations map[*plan.Workload]time.Duration

	ready map[turnID]client.Prompt // prompts made beforehand
	// readyBytes is the total size of the ready prompts.
	readyBytes int
	flights    map[*flight]struct{} // requests in flight
	judged     int                  // measured requests in flight
	launched   int                  // flights so far

	loop   *load.Loop // state of a closed loop while it runs
	window listening  // handles the requests of an open loop
	replay *replay    // recorded traffic; nil if requests are generated
	picked *picked    // the answers that a control scores; nil: none
	// listen wraps the stream of an answer; nil means no wrapping.
	listen func(*flight, *client.Answer) client.Stream
	// A saturation is a round without measured requests, which finds the largest rate. The field
	// saturated is its window.
	saturates int     // largest number of requests in flight; 0 if the round is no saturation
	excludes  float64 // see saturating.exclude
	saturated load.Window
	// before has the number of answer tokens that a request's prompt already contains. These tokens
	// count as generated earlier.
	before map[turnID]int
	held   []int // slots that wait before their next request
	// timer is the function that stops the running timer of a round with a duration; else nil.
	timer func() bool
	ended func(*flight) // called after each request; may be nil

	// inside reads the server's own metrics while the round runs; nil if they are not
	// read.
	inside *telemetry.Session
	slots  map[int]bool // slots that have sent a request
	begun  bool         // whether a measured request was sent
	opened bool         // the window has begun

	proven     bool   // whether a request of this level has completed
	wasted     int    // failed measured requests at this level while none has completed
	refused    int    // consecutive refused connections
	lastWarmup string // why the last warm-up request failed
	lost       error  // the server is gone
}

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

// pick assigns a request of a mix to a part of the mix. lot is the index of the part, and nth is
// the number of the request in the part.
type pick struct{ lot, nth int }

type turnID struct {
	phase metric.Phase
	order int
}

// listening handles the requests of an open loop.
type listening interface {
	place(*metric.Sample)      // called before a request is sent
	span() load.Window         // window of the round; called once it is over
	rounds() []*metric.Round   // likewise
	unfinished(*metric.Sample) // called after a request that did not complete
}

// flight is one request in flight.
type flight struct {
	number int // in order of start
	turn   load.Turn
	lot    *lot           // the requests of the same workload in this round
	nth    int            // number of the request in the lot
	sample *metric.Sample // owned by the transport until the request has ended
	answer *client.Answer // keeps the answer's text; nil if it is not kept
	asked  *answers.Ask   // requirements on the answer; nil if the answer's text is not kept
	prompt client.Prompt  // zero if the answer's text is not kept
	spoken *client.Answer // the answer that the next turn repeats; nil in the last turn
	at     time.Duration  // scheduled
	talk   *talk          // the conversation of the turn; nil if there is none
	input  int            // requested tokens of the prompt; 0 if any length is allowed
	output int            // tokens asked for
	row    int            // row of a data set
	shared float64        // see client.Prompt
	cancel context.CancelFunc
	over   bool
}

// picked says which measured requests of a round have their answers scored, and keeps the answers.
// A nil picked means none.
type picked struct {
	step, first, n int // every step-th request from number first on, n of them
	heard          func(f *flight, said client.Said)
}

func (p *picked) has(f *flight) bool {
	order := f.turn.Order
	return p != nil && f.turn.Phase == metric.Measured && order%p.step == p.first && order/p.step < p.n
}

// talk is a running conversation. Its number of turns and its thinking times depend only on seed,
// workload, level and the conversation's number.
type talk struct {
	phase  metric.Phase // phase of the first turn
	number int          // number of the conversation within its phase
	slot   int
	turn   int // under way, from 1
	turns  int
	prompt client.Prompt // prompt of the turn
}

// mostTurns is larger than the number of turns of any conversation.
const mostTurns = 1 << 12

// replyBytes is the largest size of an answer, in bytes, that is kept for later turns.
const replyBytes = 1 << 20

// watch starts to measure the generator's own health, after the prompts are made. A heartbeat of
// the loop shows when the operating system took the CPU away. After such a pause, tokgate reads all
// bytes that arrived in it at once. Answers then look late, and the next chunks look fast.
func (rd *round) watch(health *func() metric.Health) {
	if rd.Meter == nil {
		return
	}
	meter, stop := rd.Meter(), watchBeats(rd.Clock)
	*health = func() metric.Health {
		seen, h := stop(), meter()
		h.Stall, h.Standstills, h.Late = seen.health.Stall, seen.health.Standstills, seen.health.Late
		h.Delay = max(h.Delay, seen.delay())
		return h
	}
}

// cut ends the round and its level. If it is called again, the first reason is kept.
func (rd *round) cut(why string) {
	if rd.out.Stopped == "" {
		rd.out.Stopped = why
	}
}

// nothingCompletes begins the text in the field Stopped of a round whose warm-up requests all
// failed.
const nothingCompletes = "every warm-up request failed: "

// halted reports whether the round must start no more requests.
func (rd *round) halted() bool {
	return rd.out.Stopped != "" || rd.lost != nil || rd.stopped != "" || rd.err != nil
}

// send sends one request.
func (rd *round) send(turn load.Turn, at time.Duration) {
	rd.fly(turn, at, rd.prompt(turn.Phase, turn.Order), nil)
}

// fly sends a request with its prompt. If t is not nil, the prompt is a turn of this conversation.
func (rd *round) fly(turn load.Turn, at time.Duration, prompt client.Prompt, t *talk) {
	if rd.halted() {
		return
	}
	f := &flight{number: rd.launched, turn: turn, at: at, talk: t}
	f.lot, f.nth = rd.lotOf(turn.Phase, turn.Order)
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
	request := f.lot.newRequest(prompt, f.output)
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
		f.answer, f.asked, f.prompt = answer, f.lot.askedBy(&request), prompt
		answer.Keep(most)
	}
	if t != nil && t.turn < t.turns {
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
		rd.makeAhead(turn)
	}
}

// sample returns a sample with what is known of a request before it is sent.
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

// finish handles the end of a request.
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
	// Call the observer last. The slot sends its next request while the observer writes the sample.
	rd.observe(rd.Observer.SampleDone(s))
}

// failed checks a failed request for signs that the server is gone.
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
		// This machine could not send the request, so the server gets no verdict. End the round.
		rd.lost = errors.New(s.Failure.Message)
		rd.cut(s.Failure.Message)
		return
	}
	if s.Phase == metric.Measured && !rd.proven {
		if rd.wasted++; rd.wasted >= plan.Hopeless(rd.level.N) {
			// Give up. The server completes nothing, so more requests would only wait for their
			// time-outs.
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

// pick adds a block of requests to a phase of a mix, and draws the order of their parts. The block
// has counts[i] requests of part i.
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

// typed assigns each request of a replay to the part of the mix with the type of its row. It
// returns the number of measured requests of each part.
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

// lotOf returns the lot of a request, which is the requests of its part of the mix. nth is the
// number of the request in that lot and phase. The number of warm-up and filler requests is not
// known in advance, so the order of their parts is drawn block by block.
func (rd *round) lotOf(phase metric.Phase, order int) (l *lot, nth int) {
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

// mostStratum is the largest block of a mix, in requests. The order of the parts is drawn block by
// block.
const mostStratum = 100

// inFlight lists the flights in order of start.
func (rd *round) inFlight() []*flight {
	return slices.SortedFunc(maps.Keys(rd.flights), func(a, b *flight) int { return cmp.Compare(a.number, b.number) })
}
