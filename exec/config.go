package exec

import (
	"context"
	"errors"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/telemetry"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Config holds what a run needs. Plan, Clock, Launch and Observer are required.
type Config struct {
	Plan     *plan.Plan
	Clock    clock.Clock
	Launch   Launch
	Observer Observer
	// Meter observes the load generator. If it is nil, the generator's health is unknown.
	Meter Meter
	// Calibrate measures the load generator. It is called once, while a server starts or after the
	// load. If it is nil, nothing is measured. The run continues after an error.
	Calibrate func(context.Context) (*metric.Calibration, error)
	// Drain asks the run to end when this context ends: the run sends no new requests, waits for
	// those in flight, and reports. nil means never. If the run's own context ends, everything
	// stops at once.
	Drain context.Context
	// DrainTimeout bounds how long the run waits after Drain ends; 0 means 30 s.
	DrainTimeout time.Duration
	// Budget bounds the duration of the run. 0 means the plan's budget, a negative value no bound.
	// Teardown is the time that the budget reserves for ending a server that Launch started. It is
	// at most a tenth of the budget.
	Budget, Teardown time.Duration
	// Only selects the cases to run; nil selects all. It gets a search as a Case too, see
	// CapacityLevel.
	Only func(Case) bool
	// Judge judges a level at every planned look. If it is nil, no level is extended or ended
	// early, and no capacity is searched.
	Judge Judge
	// JudgeComparison is called when a comparison has its planned number of rounds. If it is nil,
	// no comparison is extended.
	JudgeComparison JudgeComparison
	// LastLimit returns the last known capacity of w on s, at which a search starts; 0 if none is
	// known. It may be nil.
	LastLimit func(s *plan.Server, w *plan.Workload) int
	// Run holds what is known about the run before it starts: ID, Tool, Plan, PlanHash, Started,
	// Salt and Simulated. The run sets the other fields.
	Run metric.Run
}

// Case is one level of one workload on one server. For a capacity search it has only a server, a
// workload and the level name CapacityLevel.
type Case struct {
	Server   *plan.Server
	Workload *plan.Workload
	Load     *plan.Load
	Level    plan.Level
}

// Cases lists the cases of a plan in the order of the run. They are ordered by server, then by
// workload, load and level.
func Cases(p *plan.Plan) []Case {
	var cases []Case
	for _, s := range p.Servers {
		for _, w := range p.Workloads {
			for _, on := range w.Servers {
				if on != s || p.Idle(s, w) || w.Of != nil { // a part of a mix has no case of its own
					continue
				}
				for _, l := range w.Loads {
					for _, level := range l.Levels {
						cases = append(cases, Case{s, w, l, level})
					}
				}
			}
		}
	}
	return cases
}

// CapacityLevel is the level name of a capacity search. Config.Only gets a search as a Case with
// this level name and without a Load.
const CapacityLevel = "capacity"

// Searches lists the capacity searches of a plan in the order of the run. A search runs after the
// cases of the same server and workload.
func Searches(p *plan.Plan) []Case {
	var out []Case
	for _, x := range searchesOf(p) {
		out = append(out, x.named())
	}
	return out
}

// wanted is a capacity search that is still to run.
type wanted struct {
	server   *plan.Server
	workload *plan.Workload
}

// named returns the search as a Case, for which Config.Only can decide.
func (x wanted) named() Case {
	return Case{Server: x.server, Workload: x.workload, Level: plan.Level{Name: CapacityLevel}}
}

func searchesOf(p *plan.Plan) []wanted {
	var out []wanted
	for _, s := range p.Servers {
		for _, w := range p.Workloads {
			if p.Searches(s, w) {
				out = append(out, wanted{s, w})
			}
		}
	}
	return out
}

// Launch starts a server or finds a running one, and returns when it is ready. While it waits, it
// calls state with what it waits for. It is called from the loop, and waits on the run's clock. Its
// error may be a *ServerError.
type Launch func(ctx context.Context, s *plan.Server, state func(string)) (*Target, error)

// ServerError is the reason why a server cannot be measured.
type ServerError struct {
	Err error
	Log string // end of the server's log, as the server wrote it; "" if there is none
}

// Error returns the reason without the server's log.
func (e *ServerError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *ServerError) Unwrap() error { return e.Err }

// Target is a server that is ready. Its functions are called from the loop and may run the clock. A
// function that is nil has nothing to do or to report.
type Target struct {
	Transport   client.Transport
	Model       string // model id for requests of a workload that sets none
	Context     int    // largest number of tokens of a request, prompt and answer together; 0 if not known
	Fingerprint metric.Fingerprint
	// Prompts returns the maker of w's prompts. It may send requests to the server, to calibrate
	// the maker. salt is the run's salt. Prompts is required.
	Prompts func(ctx context.Context, w *plan.Workload, salt uint64) (Prompts, error)
	// Err returns the reason why the server is gone; nil if it may still run. It is called when
	// requests fail, and must not block.
	Err func() error
	// Check returns an error if this is no longer the server that was launched, or
	// ErrIdentityUnknown if that is not known. It is called once, at the end.
	Check func(context.Context) error
	// Tokens returns the number of tokens of a text, counted by the server's tokenizer for a model
	// without a chat template. It returns client.ErrNoTokenizer if the server has no such endpoint.
	// It is called only while no request is in flight. If Tokens is nil, token counts are not
	// checked.
	Tokens func(ctx context.Context, model, text string) (int, error)
	// Scorer reports how likely this server finds an answer of another server; nil if it cannot. It
	// may be called concurrently.
	Scorer client.Scorer
	// Detour returns the reason why streams of the server go through net/http; "" if they do not.
	// If Detour itself is nil, it is not known.
	Detour func() string
	// Reset waits until the server has dropped earlier requests, and then clears the server's
	// caches. It is called between two probes of a capacity search.
	Reset func(context.Context) error
	// Cold is the TTFT of the first request that the server completed. ColdEnd is the time from the
	// start of that request to its end. Both are 0 if not known.
	Cold, ColdEnd time.Duration
	// Inside reads the server's own metrics and GPUs under load; nil if they are not read.
	Inside *telemetry.Watch
	// Log returns the last part of the server's log.
	Log func() string
	// Close releases the server, and ends it if Launch started it. It also works after the run was
	// stopped. It returns within a limited time.
	Close func() error
}

// Prompts makes the prompts of one workload on one server. Equal PromptIDs give equal prompts.
// Generated prompts have the same first two words, and differ after them.
type Prompts interface {
	// Exact reports whether the server's own tokenizer counted the lengths of prompts.
	Exact() bool
	Prompt(PromptID) (client.Prompt, error)
}

// PromptID identifies one prompt of a workload.
type PromptID struct {
	Level string
	Seed  int64
	Round int
	Phase metric.Phase
	Order int
	// First is the number of measured requests that this workload has sent to the server before the
	// round, at all levels. The rows of a data set continue from there.
	First int
	// Recorded describes the request in a trace; nil if there is no trace.
	Recorded *Recorded
	// Longer is the number of tokens by which the prompt exceeds the prompt length that the
	// workload sets, if it sets one.
	Longer int
}

// Meter begins to observe the load generator. done ends the observation and returns the generator's
// health.
type Meter func() (done func() metric.Health)

// defaultDrain is DrainTimeout's default.
const defaultDrain = 30 * time.Second

// ErrIdentityUnknown means that a server could be identified at the beginning, but not at the end.
var ErrIdentityUnknown = errors.New("it is not known whether the server was the same at the end")
