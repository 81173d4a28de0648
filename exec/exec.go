// Package exec runs a plan. For every server it starts what the plan declares, runs
// every level of every workload, and passes its observations to the caller as they
// happen. It never judges, prints or reads the time: clock, transport and observer
// come from outside.
package exec

import (
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Observer receives the events of a run: the recorder writes them to disk, the
// progress display draws them. All calls come from one goroutine. An error ends the
// run, because an observation that cannot be recorded does not count.
type Observer interface {
	// RunStarted gets the run, still without servers and levels.
	RunStarted(*metric.Run) error
	// ServerStarting says what the run is waiting for, repeatedly until the server is
	// ready: "waiting for http://127.0.0.1:8000: 503 Service Unavailable".
	ServerStarting(server, state string)
	// ServerReady and ServerDone get what is known of the server by then.
	ServerReady(*metric.ServerRun) error
	ServerDone(*metric.ServerRun) error
	// LevelStarted gets the level, still without rounds. due is the number of requests of the
	// level. expected is an estimate of its duration; 0 without an estimate.
	LevelStarted(l *metric.Level, due int, expected time.Duration) error
	// RequestStarted is called before each request, and SampleDone after it. If the plan sets
	// side_by_side, the calls of two levels mix.
	RequestStarted(of *metric.Level, phase metric.Phase)
	SampleDone(*metric.Sample) error
	// RoundDone is called once it is known whether the round counts. In a comparison this is known
	// when both legs of the pair have ended. So RoundDone may follow the LevelDone of the first
	// leg.
	RoundDone(*metric.Level, *metric.Round) error
	// LevelDone is also called for a skipped level, which has no LevelStarted.
	LevelDone(*metric.Level) error
	// RunDone is the last call, also after errors.
	RunDone(*metric.Run) error
}

// CapacityObserver is an Observer that also receives the result of a capacity search. The levels of
// a search are reported like all levels, with the field Probe set. If a search adds samples to a
// level, the level is reported as started and done once more.
type CapacityObserver interface {
	Observer
	CapacityDone(*metric.Capacity) error
}

// AnswersObserver is an Observer that also receives how far a server is with the answers of a
// comparison. If reading is true, the server scores answers; otherwise it generates them. At the
// first call done is 0. At the last call done equals due, unless the run was stopped.
type AnswersObserver interface {
	Observer
	AnswersDone(server string, reading bool, done, due int)
}

// ComparisonObserver is an Observer that also receives each comparison when it is done. A
// compared level is reported as started and done once for each leg.
type ComparisonObserver interface {
	Observer
	ComparisonDone(*metric.Comparison) error
}
