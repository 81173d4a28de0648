// Package exec runs a plan: for every server it starts what the plan
// declares, runs every level of every workload, and hands what it observed to
// its caller as it happens. It never judges, prints or reads the time: clock,
// transport and observer come from outside.
package exec

import (
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Observer hears of a run while it happens: the recorder writes it to disk,
// the progress display draws it. All calls come from one goroutine. An error
// ends the run: what cannot be recorded is not measured.
type Observer interface {
	// RunStarted carries the run without servers and levels.
	RunStarted(*metric.Run) error
	// ServerStarting says what is awaited, again and again until the server
	// is ready: "waiting for http://127.0.0.1:8000: 503 Service Unavailable".
	ServerStarting(server, state string)
	// ServerReady and ServerDone carry what is known of the server by then.
	ServerReady(*metric.ServerRun) error
	ServerDone(*metric.ServerRun) error
	// LevelStarted carries the level without rounds; expected is a guess of
	// its duration, 0 when there is none.
	LevelStarted(l *metric.Level, due int, expected time.Duration) error
	// Side by side two levels are under way at once.
	//
	// RequestStarted and SampleDone bracket each request.
	RequestStarted(of *metric.Level, phase metric.Phase)
	SampleDone(*metric.Sample) error
	// RoundDone is called once it is known whether the round is judged. For a
	// leg that is when its pair is over too, after the leg's LevelDone.
	RoundDone(*metric.Level, *metric.Round) error
	// LevelDone is also called, alone, for a level that was skipped.
	LevelDone(*metric.Level) error
	// RunDone is the last call on every path.
	RunDone(*metric.Run) error
}

// CapacityObserver is an Observer that is also called with the result of a search. Levels of a
// search are reported like all others and have a Probe; one to which samples are added starts and
// ends once more.
type CapacityObserver interface {
	Observer
	CapacityDone(*metric.Capacity) error
}

// AnswersObserver is an Observer that also hears how far a server of a comparison is
// with the answers beside its measured requests: that it gives, or reads where reading
// is set. It hears of 0 at first, and of due unless the run is stopped.
type AnswersObserver interface {
	Observer
	AnswersDone(server string, reading bool, done, due int)
}

// ComparisonObserver is an Observer that also hears how a comparison was run.
// Its levels are heard of like all others: they start and are done once for each
// leg.
type ComparisonObserver interface {
	Observer
	ComparisonDone(*metric.Comparison) error
}
