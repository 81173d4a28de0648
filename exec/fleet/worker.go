package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/prompt"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record"
)

// worker sends the requests of its orders and puts what came back into put. All its methods are called
// from the loop of its clock.
type worker struct {
	loop    clock.Clock
	put     func(line []byte, patient bool)
	post    func(func())         // calls a function in the loop
	offset  func() time.Duration // to add to a time of the clock for the controller's
	servers map[int]client.Transport
	makers  map[int]*prompt.Maker
	flights map[int64]*sending
	strand  *record.Strand
	hears   func(tokens) // hears every chunk with tokens at once; nil if report tells them
}

// sending is an order that is kept until it is due, or a request in flight.
type sending struct {
	*worker
	id     int64
	order  *order
	offset time.Duration // when it was ordered, so that all its times agree
	cancel context.CancelFunc
	answer *client.Answer
	wait   func() bool // stops the timer for its time; nil if it was sent
	left   int         // chunks until its client leaves; 0 if it does not

	chunks, last atomic.Int64 // chunks with tokens that were not reported, and when the last one came
}

func newWorker(c clock.Clock, put func([]byte, bool)) *worker {
	return &worker{
		loop: c, put: put, post: c.Post, offset: func() time.Duration { return 0 }, servers: map[int]client.Transport{},
		makers: map[int]*prompt.Maker{}, flights: map[int64]*sending{}, strand: record.NewStrand(),
	}
}

func (w *worker) say(m message) {
	raw, err := json.Marshal(m)
	if err != nil { // no message of this package has a value that JSON lacks
		panic(err)
	}
	w.put(raw, false)
}

// send takes an order.
func (w *worker) send(ctx context.Context, id int64, o *order) {
	x := &sending{worker: w, id: id, order: o, offset: w.offset(), left: o.Leaves}
	w.flights[id] = x
	o.Sample.Shift(-x.offset)
	x.answer = client.NewAnswer(&o.Sample, func(*metric.Sample) { w.post(x.ended) })
	ctx, x.cancel = context.WithCancel(ctx)
	to := w.servers[o.Server]
	r, err := o.made(w.makers)
	if err != nil || to == nil {
		if err == nil {
			err = fmt.Errorf("server %d is not known", o.Server)
		}
		x.answer.End(w.loop.Now(), &client.Error{Kind: metric.FailLocal, Message: fmt.Sprintf("the request could not be made: %v", err)})
		return
	}
	if o.Keep > 0 {
		x.answer.Keep(o.Keep)
	}
	x.answer.KeepReply(o.Reply)
	r.Front = &o.Sample.Front
	if o.Sample.Scheduled <= w.loop.Now() {
		to.Send(ctx, &r, x)
		return
	}
	if to, ok := to.(client.Prepared); ok {
		r.Prompt = to.Prepare(&r)
	}
	x.wait = w.loop.Timer(o.Sample.Scheduled, func() {
		x.wait = nil
		to.Send(ctx, &r, x)
	})
}

// stop cancels an order, if it has not ended.
func (w *worker) stop(id int64) {
	x := w.flights[id]
	if x == nil {
		return
	}
	x.cancel()
	if x.wait != nil && x.wait() {
		x.answer.End(max(w.loop.Now(), x.order.Sample.Scheduled), context.Canceled) // it cannot end before it is due
	}
}

func (x *sending) ended() {
	if x.cancel(); x.flights[x.id] != x {
		return
	}
	delete(x.flights, x.id)
	if x.order.Keep > 0 || x.order.Reply > 0 {
		got := &client.Received{Said: x.answer.Said()}
		got.Reply, got.Whole = x.answer.Reply()
		x.say(message{Kind: hasTexts, ID: x.id, Received: got})
	}
	s := &x.order.Sample
	s.Shift(x.offset)
	if s.Sent > 0 { // a slot's request is due at the end of the last one, by an offset of that time
		s.Scheduled = min(s.Scheduled, s.Sent)
	}
	line, err := x.strand.Seal(s)
	if err != nil {
		panic(err) // see say
	}
	raw := append(strconv.AppendInt(make([]byte, 0, len(line)+20), x.id, 10), ' ')
	x.put(append(raw, line...), x.order.Patient)
}

// news returns the chunks that were not reported yet.
func (x *sending) news() tokens {
	return tokens{ID: x.id, N: int(x.chunks.Swap(0)), At: time.Duration(x.last.Load())}
}

// report tells the controller of chunks with tokens of the requests.
func (w *worker) report(of ...*sending) {
	m := message{Kind: hasTokens}
	for _, x := range of {
		if x.chunks.Load() > 0 {
			m.Tokens = append(m.Tokens, x.news())
		}
	}
	if m.Tokens != nil {
		w.say(m)
	}
}

// The stream of a request is its answer. It also counts tokens.

func (x *sending) Sent(at time.Duration)                { x.answer.Sent(at) }
func (x *sending) Headers(at time.Duration, status int) { x.answer.Headers(at, status) }
func (x *sending) End(at time.Duration, err error)      { x.answer.End(at, err) }

// Reconnect implements client.Retried.
func (x *sending) Reconnect() { x.answer.Reconnect() }

// Event implements client.Stream.
func (x *sending) Event(at time.Duration, e *client.Event) {
	token := e.Content || e.Reasoning || e.ToolCall
	if token && x.order.Heard {
		x.last.Store(int64(at + x.offset))
		if x.chunks.Add(1); x.hears != nil {
			x.hears(x.news())
		}
	}
	x.answer.Event(at, e)
	if token && x.left > 0 {
		if x.left--; x.left == 0 {
			x.loop.Post(x.cancel)
		}
	}
}
