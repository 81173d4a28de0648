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
	// Meter observes the generator; if nil, its health is unknown.
	Meter Meter
	// Calibrate measures the generator, once, while a server starts or after the load; nil
	// leaves that out. The run continues after an error.
	Calibrate func(context.Context) (*metric.Calibration, error)
	// Drain is a context. When it ends, the run starts no more requests, waits for those in
	// flight, and reports. If it is nil, this never happens. When the run's own context ends,
	// everything stops at once.
	Drain context.Context
	// DrainTimeout bounds the wait after Drain; 0 means 30 s.
	DrainTimeout time.Duration
	// Budget bounds the duration of the run. 0 means the plan's budget, and a negative value
	// means that there is no bound. Teardown is the part of the budget that is reserved for
	// ending a server that Launch started. It is at most a tenth of the budget.
	Budget, Teardown time.Duration
	// Only selects cases, and searches (see CapacityLevel); nil selects all.
	Only func(Case) bool
	// Judge is called at every look. If it is nil, there are no looks. Then no level is
	// extended or ended early, and no capacity is searched.
	Judge Judge
	// JudgeComparison is called when the planned rounds of a comparison are complete. If it is
	// nil, no comparison is extended.
	JudgeComparison JudgeComparison
	// LastLimit returns the last known capacity of w on s, at which a search starts. It returns
	// 0 if none is known. If LastLimit is nil, none is ever known.
	LastLimit func(s *plan.Server, w *plan.Workload) int
	// Run holds the facts about the run that are known before it starts: ID, Tool, Plan,
	// PlanHash, Started, Salt and Simulated. The run fills in the other fields.
	Run metric.Run
}

// Case is one level of one workload on one server. The Case of a capacity search has only a
// server, a workload and the level name CapacityLevel.
type Case struct {
	Server   *plan.Server
	Workload *plan.Workload
	Load     *plan.Load
	Level    plan.Level
}

// Cases lists the cases of a plan in the order of the run: server by server, then
// workload by workload with its loads and levels.
func Cases(p *plan.Plan) []Case {
	var cases []Case
	for _, s := range p.Servers {
		for _, w := range p.Workloads {
			for _, on := range w.Servers {
				if on != s || p.Idle(s, w) || w.Of != nil { // the mix sends the requests of its parts
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

// Searches lists the searches of a plan in the order of the run. Each follows
// the cases of its server and workload.
func Searches(p *plan.Plan) []Case {
	var out []Case
	for _, x := range searchesOf(p) {
		out = append(out, x.named())
	}
	return out
}

// wanted is a search still to come.
type wanted struct {
	server   *plan.Server
	workload *plan.Workload
}

// named is the search as a Case for Config.Only.
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

// Launch starts a server, or finds a running one, and returns when it is ready. It
// calls state with what it is waiting for. It is called from the loop and waits on
// the run's clock. Its error may be a *ServerError.
type Launch func(ctx context.Context, s *plan.Server, state func(string)) (*Target, error)

// ServerError explains why a server cannot be measured.
type ServerError struct {
	Err error
	Log string // end of the server's log; "" if there is none. The server wrote this text
}

// Error returns the reason without the log.
func (e *ServerError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *ServerError) Unwrap() error { return e.Err }

// Target is a server that is ready. Its functions are called from the loop and may
// run the clock. A nil function has nothing to report or to do.
type Target struct {
	Transport   client.Transport
	Model       string // model id of requests whose workload names none
	Context     int    // tokens of one request, prompt and answer together; 0 if not known
	Fingerprint metric.Fingerprint
	// Prompts returns the maker of w's prompts, and may ask the server to calibrate the
	// maker. salt is the run's salt. Prompts is required.
	Prompts func(ctx context.Context, w *plan.Workload, salt uint64) (Prompts, error)
	// Err is the reason why the server is gone, or nil while it may be running. It is
	// called when requests fail, and must not wait.
	Err func() error
	// Check returns an error if this is no longer the server that was launched, or
	// ErrIdentityUnknown. It is called once, at the end.
	Check func(context.Context) error
	// Tokens counts the tokens of a text with the server's own tokenizer for a model, without a
	// chat template. It returns client.ErrNoTokenizer if the server has no endpoint for that.
	// It is called only while no request is in flight. If Tokens is nil, token counts are not
	// checked.
	Tokens func(ctx context.Context, model, text string) (int, error)
	// Scorer reports how likely the server finds an answer of another server; nil if
	// it cannot. It may be called several times at once.
	Scorer client.Scorer
	// Detour returns the reason why the server's streams go through net/http; "" if they do
	// not. If Detour is nil, this is not known.
	Detour func() string
	// Reset waits until the server has dropped earlier requests, and then makes the server
	// clear its caches. It is called between the probes of a search.
	Reset func(context.Context) error
	// Cold is the TTFT of the first request that the server completed. ColdEnd is the time
	// until that request ended. Both are 0 if not known.
	Cold, ColdEnd time.Duration
	// Inside reads the server's own metrics and GPUs under load; nil if they are not read.
	Inside *telemetry.Watch
	// Log returns the end of the server's log.
	Log func() string
	// Close releases the server. It also ends the server if Launch started it. It works after
	// the run was stopped, and returns within a bounded time.
	Close func() error
}

// Prompts makes the prompts of one workload on one server. Equal PromptIDs give equal prompts.
// Prompts that the plan does not give begin with the same two words, and after these they are
// unique.
type Prompts interface {
	// Exact reports whether lengths were counted with the server's own tokenizer.
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
	// First is the number of the workload's measured requests on the server before
	// the round, over all levels: the rows of a data set continue from there.
	First int
	// Recorded describes the request in a trace; nil if there is no trace.
	Recorded *Recorded
	// Longer is the number of tokens by which the prompt is longer than the workload's,
	// if the workload sets a length.
	Longer int
}

// Meter begins to observe the generator. The function done ends the observation and returns its
// result.
type Meter func() (done func() metric.Health)

// defaultDrain is DrainTimeout's default.
const defaultDrain = 30 * time.Second

// ErrIdentityUnknown means that it is no longer possible to find out which server it is,
// although it was possible before.
var ErrIdentityUnknown = errors.New("it is not known whether the server was the same at the end")
