package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tokgate/tokgate/answers"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/shape"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// flight is one request in flight.
type flight struct {
	number int // in order of start
	turn   shape.Due
	lot    *lot           // the requests of the same workload in this round
	nth    int            // number of the request in the lot
	before int            // tokens of the prompt that earlier requests sent too; 0: not known
	sample *metric.Sample // owned by the transport until the request has ended
	stream client.Answer  // fills in the sample
	answer *client.Answer // keeps the answer's text; nil if it is not kept
	asked  *answers.Ask   // requirements on the answer; nil if the answer's text is not kept
	prompt *client.Prompt // nil if the answer's text is not kept
	spoken *client.Answer // the answer that the next turn repeats; nil in the last turn
	cancel context.CancelFunc
	stays  func() bool // stops the timer after which the client leaves; nil if it does not leave by a timer
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

// signs of a server that is gone.
type signs struct {
	proven  bool // whether a request of this level has completed
	wasted  int  // failed measured requests at this level while none has completed
	refused int  // consecutive refused connections
}

// Talker makes the prompts of conversations. Next returns the prompt of the next turn. It consists
// of the last prompt (sent), an answer to it, and a new message of the user.
type Talker interface {
	Next(id PromptID, sent client.Prompt, said Reply) (client.Prompt, error)
}

// Recorded conversations have the turns that they had, instead of drawn ones.
type recorded interface{ Turns(PromptID) int }

// repeated prompts may be of a row that another request has too.
type repeated interface{ Again(client.Prompt) bool }

// Reply is the server's answer to a turn. Its tokens are by the server's usage, or else those that were
// asked for. Input is 0 if neither is known.
type Reply struct {
	Text          string
	Input, Output int
	Reasoned      bool // the server thought first, and the text leaves that out
}

// grows is by how much an answer may have more tokens as a part of a prompt than it had before.
const grows = 1.05

// repeats sets which share of a prompt earlier requests sent too, once the server has counted the prompt.
func (f *flight) repeats(s *metric.Sample) {
	if f.before > 0 && s.Usage != nil && s.Usage.Input > 0 {
		s.Shared = min(1, float64(f.before)/float64(s.Usage.Input))
		s.Bound = max(s.Bound, min(1, grows*s.Shared))
	}
}

// replyBytes is the largest size of an answer, in bytes, that is kept for later turns.
const replyBytes = 1 << 20

func (rd *round) send(step shape.Step) {
	t := step.Due
	request := rd.chats[t.Chat]
	if delete(rd.chats, t.Chat); request == nil {
		request = rd.request(t)
	}
	if rd.halted() {
		return
	}
	prompt, sample := &request.Prompt, rd.sample(t, step.At)
	f := &flight{number: rd.launched, turn: t, before: prompt.Before, sample: sample}
	f.lot, f.nth = rd.lotOf(t)
	rd.launched++
	if t.Phase == metric.Measured {
		rd.judged++
		if t.Nth <= 1 {
			rd.taken++
		}
		if rd.began == 0 {
			rd.began = rd.Clock.Now()
			rd.limit(rd.most)
		}
	}
	if rows, ok := f.lot.prompts.(repeated); ok && rows.Again(*prompt) {
		prompt.Bound = 1 // the other request may have been sent since this prompt was made
	}
	if t.Chat != nil {
		request.Output = cmp.Or(prompt.Output, f.lot.output(t, f.nth))
	}
	rd.inSession(request, t)
	request.Patient = rd.level.Kind == metric.OpenLoop && rd.replay == nil && t.Chat == nil
	sample.InputAsked, sample.OutputAsked, sample.Row = request.Input, request.Output, prompt.Row
	sample.Shared, sample.Bound, request.Front = prompt.Shared, prompt.Bound, &sample.Front
	var ctx context.Context
	ctx, f.cancel = context.WithCancel(rd.flying)
	rd.flights[f] = struct{}{}
	rd.observe(metric.RequestStarted{Level: rd.level, Phase: t.Phase})
	answer := &f.stream
	answer.Reset(sample, func(*metric.Sample) {
		rd.Clock.Post(func() { rd.finish(f) })
	})
	if most := rd.keepsOf(f); most > 0 {
		f.answer, f.asked = answer, f.lot.askedBy(request)
		made, _ := prompt.Made() // it could be made, or its request has failed
		f.prompt = &made
		answer.Keep(most)
	}
	if t.Chat != nil && t.Nth < t.Chat.Turns {
		f.spoken, f.prompt = answer, prompt
		answer.KeepReply(replyBytes)
	}
	stream := listening(answer, t.Ear)
	if c := f.lot.workload.Cancel; t.Phase == metric.Left && c != nil {
		stream, f.stays = leaves(c, rd.Clock, stream, f.cancel)
	}
	rd.target.Transport.Send(ctx, request, stream)
	rd.makeAhead(step.Ahead)
}

// listening returns a stream of the answer in which the ear hears every token. ear may be nil.
func listening(a *client.Answer, ear *shape.Ear) client.Elsewhere {
	if ear == nil {
		return a
	}
	return heard{a, ear}
}

type heard struct {
	*client.Answer
	ear *shape.Ear
}

// Event implements client.Stream.
func (h heard) Event(at time.Duration, e *client.Event) {
	if e.Content || e.Reasoning || e.ToolCall {
		h.ear.Hear(at, 1)
	}
	h.Answer.Event(at, e)
}

// Heard implements client.Heard.
func (h heard) Heard(at time.Duration, n int) { h.ear.Hear(at, n) }

// begun returns a new sample with what was known of the request when it was sent. The transport may still
// write the other fields of the request's own.
func (f *flight) begun() metric.Sample {
	s := f.sample
	return metric.Sample{
		Server: s.Server, Workload: s.Workload, Part: s.Part, Level: s.Level, Round: s.Round, Slot: s.Slot, Order: s.Order, Phase: s.Phase,
		Turn: s.Turn, Scheduled: s.Scheduled, FromDue: s.FromDue, InputAsked: s.InputAsked, OutputAsked: s.OutputAsked, Row: s.Row,
		Shared: s.Shared, Bound: s.Bound,
	}
}

// sample returns a sample with what is known of a request, except its lengths, when it is due.
func (rd *round) sample(t shape.Due, at time.Duration) *metric.Sample {
	unit, order := rd.shapes.Place(t, at)
	out := &metric.Sample{
		Server: rd.level.Server, Workload: rd.level.Workload, Level: rd.level.Name, Round: rd.out.Index,
		Slot: t.Slot, Order: order, Phase: t.Phase, Turn: t.Nth, Scheduled: at, FromDue: shape.Of(rd.Case).Windowed,
	}
	if rd.stages != nil {
		out.Level = rd.stages[unit].Name
	} else {
		out.Round += unit
	}
	l, _ := rd.lotOf(t)
	l.own(out)
	return out
}

func (rd *round) finish(f *flight) {
	s := f.sample
	if f.over {
		return // given up on
	}
	f.over = true
	if rd.level.Cut != "" && s.Canceled() && s.Phase == metric.Measured {
		s.Failure = &metric.Failure{Kind: metric.FailUnfinished, Message: "it had not ended when its level was given up"}
	}
	if s.Failure != nil {
		s.Failure.Message = rd.secrets.Text(s.Failure.Message)
	}
	s.Finish = rd.secrets.Text(s.Finish)
	f.repeats(s)
	if f.cancel(); f.stays != nil {
		f.stays()
	}
	delete(rd.flights, f)
	if f.turn.Phase == metric.Measured {
		rd.judged--
		rd.first.add(f.turn.Order)
	}
	rd.out.Samples = append(rd.out.Samples, s)
	if s.Failure != nil {
		rd.failed(s)
	} else {
		rd.signs.refused, rd.signs.proven = 0, true
	}
	if f.answer != nil {
		rd.heard(f)
	}
	if !rd.over {
		rd.talk(f)
		rd.shapes.Ended(rd.Clock.Now(), f.turn, s)
		rd.advance()
	}
	// Call the observer last. The slot sends its next request while the observer writes the sample.
	rd.observe(metric.SampleDone{Sample: s})
}

// talk makes the prompt of the next turn of a conversation. If the conversation ended too early, it
// records the turns that are missing.
func (rd *round) talk(f *flight) {
	switch t := f.turn; {
	case t.Chat == nil:
	case !t.GoesOn(f.sample) || rd.halted():
		rd.misses(f)
	default:
		if err := rd.says(f); err != nil {
			rd.cut(rd.secrets.Text(err.Error()))
		}
	}
}

func (rd *round) says(f *flight) error {
	text, whole := f.spoken.Reply()
	talker, ok := f.lot.prompts.(Talker)
	if !whole || !ok {
		return errors.New("an answer is too long to continue from")
	}
	said := Reply{Text: text, Input: f.sample.InputAsked, Output: f.sample.OutputAsked, Reasoned: f.sample.FirstAnswer > f.sample.First}
	if u := f.sample.Usage; u != nil {
		said.Input, said.Output, said.Reasoned = u.Input, u.Output, said.Reasoned || u.Hidden > 0
	}
	c := f.turn.Chat
	next, err := talker.Next(PromptID{
		Level: rd.level.Name, Seed: rd.out.Seed, Round: rd.out.Index, Order: c.Number, Turn: f.turn.Nth + 1,
		Phase: metric.Phase(fmt.Sprintf("%s turn %d", c.Phase, f.turn.Nth+1)),
	}, *f.prompt, said)
	if err != nil {
		return fmt.Errorf("no prompt could be made: %v", err)
	}
	rd.chats[c] = f.lot.newRequest(next, 0)
	return nil
}

// misses records the turns that a conversation does not reach because a measured turn failed. These
// turns count as failed.
func (rd *round) misses(f *flight) {
	t := f.turn
	if f.sample.Completed() || f.sample.Canceled() || t.Phase != metric.Measured {
		return
	}
	for failed := t.Nth; t.Nth < t.Chat.Turns; {
		t.Nth++
		s := rd.sample(t, f.sample.End)
		s.End = f.sample.End
		s.Failure = &metric.Failure{Kind: metric.FailMissing, Message: fmt.Sprintf("its conversation ended with turn %d, which failed", failed)}
		rd.out.Samples = append(rd.out.Samples, s)
		rd.observe(metric.RequestStarted{Level: rd.level, Phase: metric.Measured})
		rd.observe(metric.SampleDone{Sample: s})
	}
}

func (rd *round) failed(s *metric.Sample) {
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
	x := &rd.signs
	if s.Phase == metric.Measured && !x.proven {
		if x.wasted++; x.wasted >= plan.Hopeless(rd.level.N) {
			// Give up. The server completes nothing, so more requests would only wait for their
			// time-outs.
			rd.cut(fmt.Sprintf("%d requests failed and none completed: %s", x.wasted, s.Failure.Message))
			return
		}
	}
	if s.Failure.Kind != metric.FailConnect {
		x.refused = 0
		return
	}
	x.refused++
	if x.refused >= max(10, 2*rd.level.N) {
		rd.lost = fmt.Errorf("%d connections in a row failed: %s", x.refused, s.Failure.Message)
		rd.cut(rd.lost.Error())
	}
}

func signsOf(l *metric.Level) (x signs) {
	for _, r := range l.Rounds {
		x.proven = x.proven || slices.ContainsFunc(r.Samples, (*metric.Sample).Completed)
		x.wasted += len(r.MeasuredSamples())
	}
	return x
}
