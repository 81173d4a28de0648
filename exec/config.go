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

// Config is what a run needs. Plan, Clock, Launch and Observer are required.
type Config struct {
	Plan     *plan.Plan
	Clock    clock.Clock
	Launch   Launch
	Observer Observer
	// Meter watches the generator; nil: its health is unknown.
	Meter Meter
	// Calibrate measures the generator before the first server is started;
	// nil: it is not measured. An error is no reason not to run.
	Calibrate func(context.Context) (*metric.Calibration, error)
	// Drain, when it ends, has the run start no more requests, wait for those
	// in flight and report; the run's own context ends it at once. nil: never.
	Drain context.Context
	// DrainTimeout bounds that wait; 0: 30 s.
	DrainTimeout time.Duration
	// Budget bounds the run; 0: the plan's; below 0: none. Teardown of it is
	// held back for ending a server that Launch started, a tenth at most.
	Budget, Teardown time.Duration
	// Only selects cases, and searches: see CapacityLevel; nil: all.
	Only func(Case) bool
	// Judge is asked at every look. nil if there are none, no level is extended
	// or ended early, and no capacity is searched.
	Judge Judge
	// JudgeComparison is asked when a comparison has its rounds. nil: none is
	// extended.
	JudgeComparison JudgeComparison
	// LastLimit is the capacity of w on s as it was last known, from which a
	// search starts; 0: not known. nil: never.
	LastLimit func(s *plan.Server, w *plan.Workload) int
	// Run is what is known of the run beforehand: ID, Tool, Plan, PlanHash,
	// Started, Salt, Simulated. The rest is filled in.
	Run metric.Run
}

// Case is one level of one workload on one server. Of a search only server and
// workload are set, and the name of its level.
type Case struct {
	Server   *plan.Server
	Workload *plan.Workload
	Load     *plan.Load
	Level    plan.Level
}

// Cases lists the cases of a plan in the order in which they run: servers one
// after another, on each its workloads, their loads and levels.
func Cases(p *plan.Plan) []Case {
	var cases []Case
	for _, s := range p.Servers {
		for _, w := range p.Workloads {
			for _, on := range w.Servers {
				if on != s || p.Idle(s, w) || w.Of != nil { // a part is sent by its mix
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

// CapacityLevel is the name by which Config.Only knows a search: a Case with a
// Level of this name and without a Load.
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

// wanted is a search that is still to come.
type wanted struct {
	server   *plan.Server
	workload *plan.Workload
}

// named is the search as Config.Only knows it.
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

// Launch starts a server, or finds one that runs, and returns when it is
// ready. state tells the user what is awaited. It is called from the loop and
// waits on the run's clock. Its error may be a *ServerError.
type Launch func(ctx context.Context, s *plan.Server, state func(string)) (*Target, error)

// ServerError is why a server cannot be measured.
type ServerError struct {
	Err error
	Log string // the tail of its log, where there is one; foreign text
}

// Error is the reason alone.
func (e *ServerError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *ServerError) Unwrap() error { return e.Err }

// Target is a server that is ready. The functions are called from the loop
// and may run the clock; those that are nil have nothing to tell or to do.
type Target struct {
	Transport   client.Transport
	Model       string // id sent, unless a workload names one
	Context     int    // tokens of one request, prompt and answer together; 0: not known
	Fingerprint metric.Fingerprint
	// Prompts learns how prompts for w are made as long as it asks; it may
	// talk to the server. The salt is the run's. Required.
	Prompts func(ctx context.Context, w *plan.Workload, salt uint64) (Prompts, error)
	// Err is why the server is gone, nil while it may be there. It is asked
	// when requests fail, and must not wait.
	Err func() error
	// Check is why this is no longer the server that was launched, or
	// ErrIdentityUnknown. It is asked once, at the end.
	Check func(context.Context) error
	// Tokens is how many tokens the server's own tokenizer makes of a text, with
	// nothing around it, for a model; client.ErrNoTokenizer where it cannot be asked. It
	// is asked with nothing in flight. nil: answers are not looked at.
	Tokens func(ctx context.Context, model, text string) (int, error)
	// Scorer says how likely the server finds what another one answered; nil: nothing
	// does. Several may be asked of at a time.
	Scorer client.Scorer
	// Detour is why its streams go by way of net/http; "": they do not. nil: not known.
	Detour func() string
	// Reset waits until the server has let go of earlier requests and has it
	// empty its caches. It is called between the probes of a search.
	Reset func(context.Context) error
	// Cold is the time to the first token of the first request that the server
	// completed, ColdEnd that to its end; 0: not known.
	Cold, ColdEnd time.Duration
	// Inside reads the server's own metrics and GPUs while it is under load; nil: they are not
	// read.
	Inside *telemetry.Watch
	// Log is the tail of the server's log.
	Log func() string
	// Close lets go of the server and ends it if Launch started it, also when
	// the run was stopped; it bounds itself.
	Close func() error
}

// Prompts makes the prompts of one workload on one server: the same for the same
// PromptID, and unique from the first token unless the plan has them from elsewhere.
type Prompts interface {
	// Exact reports whether the lengths are those of the server's own tokenizer.
	Exact() bool
	Prompt(PromptID) (client.Prompt, error)
}

// PromptID names one prompt of a workload.
type PromptID struct {
	Level string
	Seed  int64
	Round int
	Phase metric.Phase
	Order int
	// First is how many measured requests of the workload came before those of the
	// round on the server, in all its levels: rows of a data set are counted on.
	First int
	// Recorded is what a trace says of it; nil: it is of none.
	Recorded *Recorded
	// Longer is by how many tokens the prompt is longer than those of its workload, where
	// these have a length.
	Longer int
}

// Meter begins to watch the generator; the function that it returns ends that and returns what was
// seen.
type Meter func() (done func() metric.Health)

// defaultDrain is DrainTimeout's default.
const defaultDrain = 30 * time.Second

// ErrIdentityUnknown is that nothing tells whether a server is the one that was
// launched, though something did before.
var ErrIdentityUnknown = errors.New("whether it was the same server at the end is not known")
