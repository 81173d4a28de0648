// Package exec runs a plan. It starts every server that the plan declares, and runs every level of
// every workload on it. It passes its observations on as they happen, and never judges them.
package exec

import (
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Observer receives the events of a run: the recorder writes them to disk, the
// progress display draws them. All calls come from one goroutine. An error ends the
// run, because an observation that cannot be recorded does not count.
type Observer interface {
	// RunStarted receives the run, which does not have servers and levels yet.
	RunStarted(*metric.Run) error
	// ServerStarting says what the run is waiting for, repeatedly until the server is
	// ready: "waiting for http://127.0.0.1:8000: 503 Service Unavailable".
	ServerStarting(server, state string)
	// ServerReady and ServerDone receive what is known about the server at that time.
	ServerReady(*metric.ServerRun) error
	ServerDone(*metric.ServerRun) error
	// LevelStarted receives the level, which has no rounds yet. due is its number of requests.
	// expected is an estimate of its duration; 0 without an estimate.
	LevelStarted(l *metric.Level, due int, expected time.Duration) error
	// RequestStarted is called before each request, and SampleDone after it. With side_by_side in
	// the plan, the calls of two levels alternate in any order.
	RequestStarted(of *metric.Level, phase metric.Phase)
	SampleDone(*metric.Sample) error
	// RoundDone is called when it is certain whether the round counts. In a comparison, both
	// servers must have finished the round. So the call may come after LevelDone of the server that
	// finished first.
	RoundDone(*metric.Level, *metric.Round) error
	// LevelDone is called for every level. A skipped level has no LevelStarted before it.
	LevelDone(*metric.Level) error
	// RunDone is the last call, also after errors.
	RunDone(*metric.Run) error
}

// CapacityObserver is an Observer that also receives the results of capacity searches. The levels
// of a search are reported like all levels, with the field Probe set. A level that gets more
// samples is reported as started and done again.
type CapacityObserver interface {
	Observer
	CapacityDone(*metric.Capacity) error
}

// AnswersObserver is an Observer that also follows how two servers answer the same prompts. If
// reading is true, the server scores answers; otherwise it generates them. done is 0 at the first
// call, and equals due at the last call unless the run was stopped.
type AnswersObserver interface {
	Observer
	AnswersDone(server string, reading bool, done, due int)
}

// ComparisonObserver is an Observer that also receives each finished comparison. A level of it is
// reported as started and done once for each leg.
type ComparisonObserver interface {
	Observer
	ComparisonDone(*metric.Comparison) error
}
