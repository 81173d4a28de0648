package exec

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/exec/shape"
	"github.com/tokgate/tokgate/metric"
)

// maxReady is the largest total size, in bytes, of prompts that are made in advance. Other prompts
// are made when they are due.
const maxReady = 64 << 20

// ready holds requests whose prompts were made in advance, and the total size of the prompts.
type ready struct {
	requests map[turnID]*client.Request
	bytes    int
}

type turnID struct {
	phase        metric.Phase
	order, batch int
}

func idOf(t shape.Due) turnID { return turnID{t.Phase, t.Order, t.Batch} }

// prepare makes prompts in advance, so that no request has to wait for its prompt.
func (rd *round) prepare(of shape.Prompts) {
	for i := 0; i < of.N && rd.ready.bytes < maxReady && rd.check() && !rd.halted(); i++ {
		t := shape.Due{Ticket: load.Ticket{Phase: of.Phase, Order: of.From + i}, Batch: of.Batch}
		if rd.ready.requests[idOf(t)] != nil {
			continue
		}
		r := rd.request(t)
		rd.write(t, r)
		rd.ready.requests[idOf(t)] = r
		rd.ready.bytes += r.Prompt.Bytes()
	}
}

// write encodes a request, if the transport can encode requests in advance. It leaves out conversations,
// because their prompts contain earlier answers.
func (rd *round) write(t shape.Due, r *client.Request) {
	transport, ok := rd.target.Transport.(client.Prepared)
	if l, _ := rd.lotOf(t); ok && !l.workload.Prompt.Turns.Several() {
		rd.inSession(r, t)
		r.Prompt = transport.Prepare(r)
	}
}

// output returns the number of output tokens for a request, the nth of its phase within its
// workload.
func (l *lot) output(t shape.Due, nth int) int {
	switch {
	case t.Chat != nil:
		return l.lengths.At(t.Length())
	case t.Phase == metric.Measured && nth < len(l.measured):
		return l.measured[nth]
	}
	return l.lengths.At(t.Phase, nth)
}

// newRequest returns a request of this workload with the prompt p. The number of answer tokens is
// p.Output, or the parameter output if p.Output is 0.
func (a *asking) newRequest(p client.Prompt, output int) *client.Request {
	r := a.request
	r.Prompt, r.Input, r.Output = p, cmp.Or(p.Tokens, r.Input), cmp.Or(p.Output, output)
	return &r
}

// connecting is the time limit for opening connections in advance.
const connecting = 5 * time.Second

func (rd *round) connect(n int) {
	transport, ok := rd.target.Transport.(client.Prepared)
	if !ok || n == 0 || !rd.check() || rd.halted() {
		return
	}
	ctx, cancel := clock.WithTimeout(rd.flying, rd.Clock, connecting)
	defer cancel()
	_, _ = clock.Await(ctx, rd.Clock, func(ctx context.Context) (struct{}, error) {
		transport.Warm(ctx, n)
		return struct{}{}, nil
	})
}

// makeAhead makes the prompt of a later request, when the loop has nothing urgent to do. There may be none,
// or it was made before.
func (rd *round) makeAhead(later shape.Prompts) {
	if later.N == 0 || rd.ready.requests[turnID{later.Phase, later.From, later.Batch}] != nil {
		return
	}
	rd.Clock.Post(func() {
		if !rd.over && !rd.halted() {
			rd.prepare(later)
		}
	})
}

// request returns one request. If its prompt cannot be made, it cuts the round short.
func (rd *round) request(t shape.Due) *client.Request {
	id := idOf(t)
	if r := rd.ready.requests[id]; r != nil {
		delete(rd.ready.requests, id)
		rd.ready.bytes -= r.Prompt.Bytes()
		if t.Said == 0 {
			return r
		}
	}
	l, nth := rd.lotOf(t)
	m := rd.mix[t.Batch]
	made := PromptID{Level: rd.level.Name, Seed: m.seed, Round: m.index, Phase: t.Phase, Order: nth, First: l.first, Longer: t.Said}
	if rd.replay != nil {
		made.Recorded = rd.replay.recorded(t.Phase, t.Order)
	}
	p, err := l.prompts.Prompt(made)
	if err != nil {
		rd.cut(rd.secrets.Text(fmt.Sprintf("no prompt could be made: %v", err)))
	}
	if made.Recorded != nil && err == nil {
		p = rd.replay.fitted(p, made.Recorded, t.Phase, t.Order)
	}
	if t.Said > 0 && p.Output == 0 {
		p.Output = l.lengths.At(t.Phase, nth) - t.Said
	}
	return l.newRequest(p, l.output(t, nth))
}
