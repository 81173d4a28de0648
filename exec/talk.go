package exec

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
)

// Talker makes the prompts of conversations. Next returns the prompt of the next turn. It consists
// of the last prompt (sent), its answer (said), and a new message of the user.
type Talker interface {
	Next(id PromptID, sent client.Prompt, said string, tokens int) (client.Prompt, error)
}

// meets starts a new conversation.
func (rd *round) meets(phase metric.Phase, number, slot int) *talk {
	t := &talk{phase: phase, number: number, slot: slot, turn: 1}
	t.turns = rd.Workload.Prompt.Turns.Draw(rd.chance(t, 0).Float64())
	return t
}

// chance returns the source of random numbers for a turn of a conversation.
func (rd *round) chance(t *talk, turn int) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %s %d %s %d %d", rd.level.Workload, rd.level.Name, rd.out.Index, t.phase, t.number, turn)
	return rand.New(rand.NewPCG(uint64(rd.out.Seed), h.Sum64()))
}

// thinks is how long the user thinks after the current turn.
func (rd *round) thinks(t *talk) time.Duration { return rd.Load.Think.Draw(rd.chance(t, t.turn)) }

// say sends the current turn of a conversation as a request of the given phase.
func (rd *round) say(t *talk, phase metric.Phase, at time.Duration) {
	if t.turn == 1 {
		t.prompt = rd.prompt(t.phase, t.number)
	}
	rd.fly(load.Turn{Slot: t.slot, Phase: phase, Order: t.number}, at, t.prompt, t)
}

// goesOn makes the prompt of a conversation's next turn, and reports whether there is one. A
// conversation ends with its last turn, or with a failed turn.
func (rd *round) goesOn(f *flight) bool {
	t := f.talk
	if t.turn >= t.turns || !f.sample.Completed() {
		return false
	}
	said, whole := f.spoken.Reply()
	talker, ok := f.lot.prompts.(Talker)
	if !whole || !ok {
		rd.cut("an answer is too long to continue from")
		return false
	}
	tokens := f.output
	if u := f.sample.Usage; u != nil {
		tokens = u.Output
	}
	t.turn++
	next, err := talker.Next(PromptID{
		Level: rd.level.Name, Seed: rd.out.Seed, Round: rd.out.Index, Order: t.number,
		Phase: metric.Phase(fmt.Sprintf("%s turn %d", t.phase, t.turn)),
	}, t.prompt, said, tokens)
	if err != nil {
		rd.cut(rd.secrets.Text(fmt.Sprintf("no prompt could be made: %v", err)))
		return false
	}
	t.prompt = next
	return true
}

// misses records the turns that a conversation does not reach because a measured turn failed. These
// turns count as failed. misses returns how many there are.
func (rd *round) misses(f *flight) int {
	t := f.talk
	if f.sample.Completed() || f.sample.Canceled() || f.turn.Phase != metric.Measured {
		return 0
	}
	failed := t.turn
	for t.turn < t.turns {
		t.turn++
		g := &flight{turn: f.turn, lot: f.lot, at: f.sample.End, talk: t}
		s := rd.sample(g)
		s.End = f.sample.End
		s.Failure = &metric.Failure{Kind: metric.FailMissing, Message: fmt.Sprintf("its conversation ended with turn %d, which failed", failed)}
		rd.out.Samples = append(rd.out.Samples, s)
		rd.Observer.RequestStarted(rd.level, metric.Measured)
		rd.observe(rd.Observer.SampleDone(s))
	}
	return t.turns - failed
}
