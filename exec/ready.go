package exec

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
)

// maxReady is the largest total size, in bytes, of prompts that are made in advance. Other prompts
// are made when they are due.
const maxReady = 64 << 20

// prepare makes n prompts of a phase in advance, so that no request has to wait for its prompt.
func (rd *round) prepare(phase metric.Phase, from, n int) {
	if rd.ready == nil {
		rd.ready = map[turnID]client.Prompt{}
	}
	for order := from; order < from+n && rd.readyBytes < maxReady && rd.check() && !rd.halted(); order++ {
		if !rd.wants(phase, order) {
			continue
		}
		p := rd.written(phase, order, rd.prompt(phase, order))
		rd.ready[turnID{phase, order}] = p
		rd.readyBytes += p.Bytes()
	}
}

// wants reports whether a prompt must still be made: its request exists, but the prompt is not
// ready.
func (rd *round) wants(phase metric.Phase, order int) bool {
	_, ok := rd.ready[turnID{phase, order}]
	if rd.replay != nil && rd.replay.Index(phase, order) < 0 {
		return false
	}
	return !ok && (phase != metric.Measured || order < rd.out.Due || rd.out.Time != 0)
}

// written returns the prompt p with its encoded request, if the transport can encode requests in
// advance. It leaves out conversations, because their prompts contain earlier answers.
func (rd *round) written(phase metric.Phase, order int, p client.Prompt) client.Prompt {
	transport, ok := rd.target.Transport.(client.Prepared)
	l, nth := rd.lotOf(phase, order)
	if !ok || l.workload.Prompt.Turns.Several() {
		return p
	}
	request := l.newRequest(p, l.output(phase, nth))
	return transport.Prepare(&request)
}

// output returns the number of output tokens for request nth of a phase, counted within its
// workload.
func (l *lot) output(phase metric.Phase, nth int) int {
	if phase == metric.Measured && nth < len(l.measured) {
		return l.measured[nth]
	}
	return l.lengths.At(phase, nth)
}

// newRequest returns a request of this workload with the prompt p. The number of answer tokens is
// p.Output, or the parameter output if p.Output is 0.
func (a *asking) newRequest(p client.Prompt, output int) client.Request {
	r := a.request
	r.Prompt, r.Input, r.Output = p, cmp.Or(p.Tokens, r.Input), cmp.Or(p.Output, output)
	return r
}

// connecting is the time limit for opening connections in advance.
const connecting = 5 * time.Second

// connect opens n connections for requests that will all be sent at once.
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

// mostExpected is the largest number of connections that are opened in advance for a rate.
const mostExpected = 256

// expected returns how many connections the requests of a rate need at once. By Little's law
// (Operations Research 9, 1961), that is the rate times the duration of a request.
//
// The parameter each is the duration of a request. It counts as client.IdleTimeout if it is 0,
// which means unknown, or longer: a connection that waits longer is closed. The result is at most
// mostExpected.
func expected(rate float64, each time.Duration) int {
	if each == 0 || each > client.IdleTimeout {
		each = client.IdleTimeout
	}
	return int(min(math.Ceil(rate*each.Seconds()), mostExpected))
}

// makeAhead makes one prompt in advance, when the loop has nothing urgent to do. With N slots, it
// is the prompt of the Nth request after the request of the given turn.
func (rd *round) makeAhead(turn load.Turn) {
	rd.Clock.Post(func() {
		if rd.loop != nil && !rd.halted() && !rd.loop.Over() {
			rd.prepare(turn.Phase, turn.Order+rd.level.N, 1)
		}
	})
}

// prompt returns one prompt. If the prompt cannot be made, it cuts the round short.
func (rd *round) prompt(phase metric.Phase, order int) client.Prompt {
	id := turnID{phase, order}
	if p, ok := rd.ready[id]; ok {
		delete(rd.ready, id)
		rd.readyBytes -= p.Bytes()
		return p
	}
	l, nth := rd.lotOf(phase, order)
	made := PromptID{Level: rd.level.Name, Seed: rd.out.Seed, Round: rd.out.Index, Phase: phase, Order: nth, First: l.first, Longer: rd.before[id]}
	if rd.replay != nil {
		made.Recorded = rd.replay.recorded(phase, order)
	}
	p, err := l.prompts.Prompt(made)
	if err != nil {
		rd.cut(rd.secrets.Text(fmt.Sprintf("no prompt could be made: %v", err)))
	}
	if made.Recorded != nil && err == nil {
		p = rd.replay.fitted(p, made.Recorded)
	}
	if before := rd.before[id]; before > 0 && p.Output == 0 {
		p.Output = l.lengths.At(phase, nth) - before
	}
	return p
}
