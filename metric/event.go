package metric

import "time"

// Event is what happens in a run: one of the types below. The recorder writes events to disk, and the progress
// display draws them.
type Event any

type (
	// RunStarted is the first event. The run does not have servers and levels yet.
	RunStarted struct{ Run *Run }
	// ServerStarting says what the run waits for, such as "waiting for http://127.0.0.1:8000: 503 Service
	// Unavailable". It comes repeatedly until the server is ready.
	ServerStarting struct{ Server, State string }
	// ServerReady and ServerDone hold what is known about the server at that time.
	ServerReady struct{ Server *ServerRun }
	ServerDone  struct{ Server *ServerRun }
	// LevelStarted holds a level without rounds. It comes again when a level gets more samples, and for
	// each leg of a comparison.
	LevelStarted struct {
		Level    *Level
		Due      int           // requests
		Expected time.Duration // estimate; 0 without one
	}
	// RequestStarted comes before each request, and SampleDone after it. With side_by_side in the plan, the
	// events of two levels alternate in any order.
	RequestStarted struct {
		Level *Level
		Phase Phase
	}
	SampleDone struct{ Sample *Sample }
	// RoundDone comes when it is certain whether the round counts. In a comparison, both servers must have
	// finished the round, so it may follow LevelDone of the server that finished first.
	RoundDone struct {
		Level *Level
		Round *Round
	}
	// LevelDone comes for every level. A skipped level has no LevelStarted before it.
	LevelDone struct{ Level *Level }
	// CapacityDone holds the result of a search. The search's levels are reported like all levels.
	CapacityDone struct{ Capacity *Capacity }
	// AnswersDone says how many of the due answers for a comparison a server has given, or has scored if
	// Reading is set. Done is 0 at first, and Due at last unless the run was stopped.
	AnswersDone struct {
		Server    string
		Reading   bool
		Done, Due int
	}
	// ComparisonDone holds a finished comparison.
	ComparisonDone struct{ Comparison *Comparison }
	// RunDone is the last event, also after errors.
	RunDone struct{ Run *Run }
)
