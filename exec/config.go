package exec

import (
	"context"
	"errors"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/shape"
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
	// Drain ends the run gently: when this context ends, the run sends no new requests, waits for
	// those in flight, and reports. nil means never. The end of the run's own context stops
	// everything at once.
	Drain context.Context
	// DrainTimeout bounds how long the run waits after Drain ends; 0 means 30 s.
	DrainTimeout time.Duration
	// Budget bounds the duration of the run. 0 means the plan's budget; a negative value means no
	// bound. Teardown is the time kept at the end of the budget for ending a server, at most a
	// tenth of it.
	Budget, Teardown time.Duration
	// Only selects the cases to run; nil selects all. It receives a capacity search as a Case too,
	// see CapacityLevel.
	Only func(Case) bool
	// Judge judges a level at every planned look. Without it, levels keep their planned length and
	// no capacity is searched.
	Judge Judge
	// JudgeComparison judges a comparison after its planned number of rounds. Without it, no
	// comparison is extended.
	JudgeComparison JudgeComparison
	// Continue is a run whose undecided comparisons this run continues; nil if it begins anew. The plan
	// must be Continuable and the same, and the clock must be past the end of that run.
	Continue *metric.Run
	// LastLimit returns the last known capacity of w on s, at which a search starts; 0 if none is
	// known. It may be nil.
	LastLimit func(s *plan.Server, w *plan.Workload) int
	// Workers are the processes that send the load; nil if this one does.
	Workers Workers
	// Run holds what is known of the run before it starts: ID, Tool, Plan, PlanHash, Started, Salt
	// and Simulated. The other fields are set during the run.
	Run metric.Run
}

// Workers are several processes that send the load of a run.
type Workers interface {
	// Gone returns which of them was lost; nil if none was. The run then ends with this error.
	Gone() error
	// Sent returns what is known of each of them.
	Sent() []metric.Worker
}

// Case is one level of one workload on one server. For a capacity search it has only a server, a
// workload and the level name CapacityLevel.
type Case = shape.Case

// Cases lists the cases of a plan in the order of the run. They are ordered by server, then by
// workload, load and level.
func Cases(p *plan.Plan) []Case {
	var cases []Case
	for _, s := range p.Servers {
		for _, w := range p.Loaded() {
			for _, on := range w.Servers {
				if on != s || p.Idle(s, w) {
					continue
				}
				for l, level := range w.Levels() {
					cases = append(cases, Case{Server: s, Workload: w, Load: l, Level: level})
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

// wanted is a capacity search of the plan that has not run yet.
type wanted struct {
	server   *plan.Server
	workload *plan.Workload
}

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
// calls the function state with what it waits for. It waits on the run's clock. Its error may be a
// *ServerError.
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

// Target is a server that is ready for requests. The loop that owns the run's clock calls its
// functions, and they may wait on that clock. Every function except Prompts may be nil; the run
// then does without it.
type Target struct {
	Transport   client.Transport
	Model       string // model id for requests of a workload that sets none
	Context     int    // limit on the tokens of a request, prompt and answer together; 0 if unknown
	Fingerprint metric.Fingerprint
	// Prompts returns the maker of w's prompts. It may send requests to the server, to calibrate
	// the maker. salt is the run's salt. Prompts is required.
	Prompts func(ctx context.Context, w *plan.Workload, salt uint64) (Prompts, error)
	// Err returns the reason why the server is gone; nil if it may still run. It is called when
	// requests fail, and must not block.
	Err func() error
	// Same returns an error if another server answers now. It is called after each round, and is nil
	// if only one server can answer.
	Same func(context.Context) error
	// Check returns an error if this is no longer the server that was launched, or
	// ErrIdentityUnknown if that is not known. It is called once, at the end.
	Check func(context.Context) error
	// Tokens asks the server's tokenizer how many tokens a text has, without a chat template. It
	// returns client.ErrNoTokenizer if the server has no such endpoint. It is called only while no
	// request is in flight. If Tokens is nil, token counts are not checked.
	Tokens func(ctx context.Context, model, text string) (int, error)
	// Scorer reports how likely this server finds an answer of another server; nil if it cannot. It
	// may be called concurrently.
	Scorer client.Scorer
	// Detour explains why the server's streams take net/http instead of the faster direct path. It
	// returns "" if they do not. Detour is nil if that is unknown.
	Detour func() string
	// Reset clears the caches of the server between two probes of a capacity search. It first waits
	// until the server has dropped the requests of the earlier probe.
	Reset func(context.Context) error
	// SessionHeader is the header that tells a gateway which requests belong together; "" sends none.
	SessionHeader string
	// Start is what is known of the server's start but its times and GPUs.
	Start metric.Start
	// Inside reads the server's own metrics and GPUs under load; nil if they are not read.
	Inside *telemetry.Watch
	// Log returns the last part of the server's log.
	Log func() string
	// Barrier returns when all workers that send the load are ready for it. It is nil if one process
	// sends the load.
	Barrier func(context.Context) error
	// Lead is how long before its time the transport wants a request that is due at a time of its own.
	// It then keeps the request until that time. Lead is nil if the transport sends at once.
	Lead func() time.Duration
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
	Turn  int // of a conversation, from 2; 0 in the first turn
	// First counts the measured requests of this workload on the server before the round, or its
	// conversations. The rows of a data set continue from there.
	First int
	// Recorded describes the request in a trace; nil if there is no trace.
	Recorded *Recorded
	// Longer is by how many tokens the prompt exceeds the workload's prompt length, if there is
	// one.
	Longer int
}

// Meter begins to observe the load generator. done ends the observation and returns the generator's
// health.
type Meter func() (done func() metric.Health)

// defaultDrain is DrainTimeout's default.
const defaultDrain = 30 * time.Second

// ErrIdentityUnknown means that a server could be identified at the beginning, but not at the end.
var ErrIdentityUnknown = errors.New("it is not known whether the server was the same at the end")
