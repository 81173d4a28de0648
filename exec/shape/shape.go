// Package shape decides when the requests of a level are due: in a closed loop, in bursts, at a
// rate, in stages, by a trace, by users, or to saturate a server. Each shape has one file.
//
// A Shape is a state machine without a clock. The driver, package exec, asks it for the next Step,
// takes the step, and reports every request that ended. So a shape can be tested by a table of
// times, and no shape knows how a request is sent.
//
// What is judged are units: the rounds of a level. A unit may be a round of its own, or a part of a
// window in which the load goes on. So a shape can cut what it measured into units at any time,
// also while requests are in flight.
package shape

import (
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Shape decides when requests are due while the units of one window are measured.
type Shape interface {
	// Next returns what to do at the time now. The driver asks again after it has taken the step.
	// After Wait, it asks when the time At has come, and whenever a request has ended.
	Next(now time.Duration) Step
	// Ended reports the end of a request at the time now.
	Ended(now time.Duration, t Due, s *metric.Sample)
	// Place returns the unit of a request that is due at the given time, and the number of the
	// request within its unit and phase. It is called once for each request.
	Place(t Due, due time.Duration) (unit, order int)
	// Units divides what was measured up to now into its units. There is at least one. A unit may
	// still have requests in flight. samples are all requests that have ended, of every phase.
	Units(now time.Duration, samples []*metric.Sample) []Unit
}

// Action is what a Step asks the driver to do.
type Action int

const (
	// Wait until the time At, or until a request ends. If At is 0, only until a request ends.
	Wait Action = iota
	// Send the request Turn, which is due at the time At. Afterwards, when nothing is urgent, make
	// the prompts Ahead, of a later request.
	Send
	// Prepare makes prompts in advance, and opens Connections connections.
	Prepare
	// Begin observes the load generator and the server from now on. The load of the window begins.
	Begin
	// Read the server's own metrics: the measured window begins.
	Read
	// Fresh is Read, and waits for what was read.
	Fresh
	// Edge begins unit N, and ends the unit before it.
	Edge
	// Opens begins unit N, and Closes ends it: it can be judged. Unlike with Edge, units may overlap.
	Opens
	Closes
	// Grow keeps N requests in flight from now on, and cancels the requests Cancel.
	Grow
	// GiveUp ends the level, for the reason Why.
	GiveUp
	// Over ends the load: all that is measured has ended.
	Over
)

// Step is the next thing to do. Which fields are set depends on Do.
type Step struct {
	Do          Action
	At          time.Duration
	Due         Due
	Ahead       Prompts
	Prompts     []Prompts
	Connections int
	N           int
	Cancel      []Due
	Why         string
	Cut         metric.Cut // the kind of reason; "" if it is none of an open loop
}

// queue holds the steps to take before anything else.
type queue []Step

func (q *queue) next() (s Step, ok bool) {
	if len(*q) > 0 {
		s, *q, ok = (*q)[0], (*q)[1:], true
	}
	return s, ok
}

// single is a load whose requests belong to one unit.
type single struct{}

func (single) Place(t Due, _ time.Duration) (unit, order int) { return 0, t.Order }

// Prompts are N prompts of a phase, from number From on.
type Prompts struct {
	Phase   metric.Phase
	From, N int
	Batch   int // see Turn
}

// Due is one request of a slot, or one turn of a conversation.
type Due struct {
	load.Ticket
	// Batch is the batch of a measured request, if the units are batches; the Order then counts
	// within it. It is 0 for all other requests.
	Batch int
	Chat  *Chat // nil if the request belongs to no conversation
	Nth   int   // number of the turn in its conversation, from 1; 0 without a conversation
	Said  int   // answer tokens that the prompt contains already; they count as generated earlier
	Ear   *Ear  // hears the tokens of the answer; nil if the shape does not listen
}

func (t Due) later(n int) Prompts { return Prompts{Phase: t.Phase, From: t.Order + n, N: 1} }

// Unit is a part of what was measured, judged as one round.
type Unit struct {
	load.Window
	Due  int           // measured requests
	Time time.Duration // in which it started requests; 0 means as planned
	Open bool          // further measured requests are due in it
}

// Env is what a shape knows of the level before it begins.
type Env struct {
	Case
	Level string // name of the level in the recording
	Index int    // of the first unit among the rounds of the level
	Seed  int64  // of prompts and conversations
	// Arrivals is the seed of the arrivals at a rate.
	Arrivals int64
	Parts    []int         // number of measured requests, or of conversations, of each unit
	Each     time.Duration // duration of earlier requests; 0 if not known
	Proven   bool          // an earlier request of the level completed
	Stages   []metric.Stage
	Leg      bool // the units are a leg of a comparison
	Probe    bool // the units are a probe of a capacity search
	// Overloaded means that the backlog will grow for ever; see metric.Level.
	Overloaded bool
	// Turns returns how many turns a conversation has. It is nil if they are drawn as the plan says.
	Turns func(phase metric.Phase, number int) int
}

func (e *Env) due() int {
	sum := 0
	for _, n := range e.Parts {
		sum += n
	}
	return sum
}

// Case is one level of one workload on one server.
type Case struct {
	Server   *plan.Server
	Workload *plan.Workload
	Load     *plan.Load
	Level    plan.Level
}

// Kind is what is known of a shape before it runs.
type Kind struct {
	New func(Env) Shape
	// Windowed means that units follow each other in one window, and that each request is due at a
	// time of its own. Otherwise the load of each unit begins and ends with it.
	Windowed bool
	// Takes estimates how long a unit with the given number of measured requests takes. The parameter
	// each is the duration of a request; 0 if not known.
	Takes func(c Case, due int, each time.Duration) time.Duration
	// Around estimates what comes on top once for all units; nil if nothing does.
	Around func(c Case, each time.Duration) time.Duration
	// Warmups returns the number of warm-up requests of all units of a case; 0 if a duration ends the
	// warm-up.
	Warmups func(c Case) int
}
