package shape

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
)

// Chat is a conversation. Its number of turns and its thinking times depend only on seed, workload,
// level and the conversation's number, or on its row of a data set.
type Chat struct {
	Phase  metric.Phase // phase of the first turn
	Number int          // number of the conversation within its phase
	Turns  int
}

// mostTurns is larger than the number of turns of any conversation.
const mostTurns = 1 << 12

// Length returns the number under which the length of a turn's answer is drawn, and its phase.
func (t Due) Length() (phase metric.Phase, number int) {
	if t.Chat == nil {
		return t.Phase, t.Order
	}
	return t.Chat.Phase, t.Chat.Number*mostTurns + t.Nth
}

// GoesOn reports whether the conversation of the request goes on after its end. It ends with its
// last turn, or with a turn that failed.
func (t Due) GoesOn(s *metric.Sample) bool {
	return t.Chat != nil && t.Nth < t.Chat.Turns && s.Completed()
}

func (e *Env) meets(phase metric.Phase, number, slot int) Due {
	c := &Chat{Phase: phase, Number: number}
	if e.Turns != nil {
		c.Turns = e.Turns(phase, number)
	} else {
		c.Turns = e.Workload.Prompt.Turns.Draw(e.chance(c, 0).Float64())
	}
	return Due{Ticket: load.Ticket{Slot: slot, Phase: phase, Order: number}, Chat: c, Nth: 1}
}

func (e *Env) chance(c *Chat, turn int) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %s %d %s %d %d", e.Workload.Address(), e.Level, e.Index, c.Phase, c.Number, turn)
	return rand.New(rand.NewPCG(uint64(e.Seed), h.Sum64()))
}

func (e *Env) thinks(t Due) time.Duration { return e.Load.Think.Draw(e.chance(t.Chat, t.Nth)) }

func (e *Env) chats() bool { return e.Workload.Prompt.Turns.Several() }

// seat is a unit and a phase. Where requests are not numbered beforehand, those of one seat are
// numbered in the order in which they are sent.
type seat struct {
	unit  int
	phase metric.Phase
}

type seats map[seat]int

func (s seats) next(unit int, phase metric.Phase) int {
	at := seat{unit, phase}
	s[at]++
	return s[at] - 1
}
