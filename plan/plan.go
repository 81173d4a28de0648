// Package plan holds a checked plan with every default filled in, and what can be
// computed from the plan alone. Package decode reads plans from files.
package plan

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/answers"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/traffic"
)

// Plan is a checked plan: every default is filled in, every reference is resolved, and every
// threshold is in base units. An element with the field Range knows where in the plan it was
// written. The tag of a field names the attribute that sets the field; the schema is in package
// decode.
type Plan struct {
	Path      string               // path as given on the command line
	Files     map[string]*hcl.File // sources without Secrets, for diagnostics; keyed by file name
	Hash      string               // SHA-256 over sources and variable values, hex
	Gate      Gate
	Servers   []*Server   // in order of the source; for_each instances in key order
	Workloads []*Workload // likewise
	Asserts   []*Assert
	Compares  []*Compare
	Prices    *Prices   // nil if the plan has no prices block
	Cover     Cover     // the head of the report
	History   *History  // nil if the plan keeps no nights
	Defaults  []Default // every default that was used, in order of the source
	Reads     []Read    // environment variables that were read, in order of the source
	// Secrets lists the values that must never be printed, in ascending order. These are
	// sensitive variables, api_key, headers that authenticate, and the values of env.NAME and
	// what is made from them. Values that a server gets under a name such as HF_TOKEN or
	// --api-key are secrets too.
	Secrets []string
}

// Default is a setting that the plan left out, with the value that was used.
type Default struct {
	Path  string // "workload.general_chatbot.load.stagger"
	Value string // value as a plan would write it
	Why   string // the origin of the value if it is not a constant; else ""
}

// OnInconclusive is what an inconclusive verdict does to the run.
type OnInconclusive string

const (
	Stop   OnInconclusive = "stop"   // exit 3
	Extend OnInconclusive = "extend" // measure more within budget and max_requests, then stop
	Warn   OnInconclusive = "warn"   // exit 0, and show a warning
)

// Decide is how a threshold is decided.
type Decide string

const (
	// Certified decides by exact tests at the plan's confidence.
	Certified Decide = "certified"
	// Estimate compares the point estimate with the limit, as published reports do.
	Estimate Decide = "estimate"
)

// Gate is the policy of the plan. A workload may override the fields of Policy.
type Gate struct {
	Policy
	Budget      time.Duration `plan:"budget"`       // wall clock of the whole run; 0: none
	MeasureOnly bool          `plan:"measure_only"` // the plan may require nothing
	MustDetect  []Detect      // regressions that the gate must notice, by kind
	Range       hcl.Range     // zero when the plan has no gate block
}

// Slower lists the kinds of regression that have a factor.
var Slower = []string{"overhead", "prefill", "decode"}

// Detect is a regression that the gate must notice: one of Slower, with the factor by
// which that work takes longer, above 1.
type Detect struct {
	Kind   string
	Factor float64
	Range  hcl.Range // of must_detect
}

// Policy is the part of the gate that a workload may override.
type Policy struct {
	Confidence     float64        `plan:"confidence"` // in (0.5, 1); default 0.95
	Decide         Decide         `plan:"decide"`
	OnInconclusive OnInconclusive `plan:"on_inconclusive"`
	MaxRequests    int            `plan:"max_requests"` // most requests of a level under Extend; 0 means four times the plan's number
	Window         metric.Window  `plan:"window"`
	Clusters       Clusters       `plan:"clusters"` // "": ClustersWave
}

// Server is one server under test, or one instance of a for_each.
type Server struct {
	Name   string // the label
	Key    string // of for_each; ""
	Base   bool   // declared by the plan on the base branch
	Engine string `plan:"engine"` // vllm | sglang | llama.cpp | openai
	Model  string `plan:"model"`  // the real name; ""
	// Title and Description are for people. Without a Title reports show the address.
	Title       string   `plan:"title"`
	Description string   `plan:"description"`
	Flags       []Flag   // flags of the engine's command line, in order of the source
	Args        []string `plan:"args"`
	Ready       Ready
	Expect      map[string]string // required value of each fingerprint key
	Endpoint    *Endpoint         // at most one of Endpoint, Process and Container is set
	Process     *Process
	Container   *Container
	Simulator   *Simulator // the server if none of these is set; --simulate always uses it
	Telemetry   Telemetry
	Range       hcl.Range
}

// Address is the server's name in expressions and reports: vllm, vllm["on"], base.vllm.
func (s *Server) Address() string {
	if s.Base {
		return "base." + Address(s.Name, s.Key)
	}
	return Address(s.Name, s.Key)
}

// Flag is one declared flag of the engine's command line.
type Flag struct {
	Name  string // hyphenated, without dashes
	Value cty.Value
	Range hcl.Range
}

// Ready sets when a started server counts as ready: after one real completion.
type Ready struct {
	Timeout time.Duration `plan:"timeout"`
	Range   hcl.Range
}

// Endpoint is a server that is already running.
type Endpoint struct {
	URL      string            // URL with or without /v1 at the end
	APIKey   string            // "" sends none
	Headers  map[string]string `plan:"headers"`   // sent with every request
	CAFile   string            `plan:"ca_file"`   // PEM file of the CA to trust; resolved against the plan's folder
	ServedAs string            `plan:"served_as"` // model id sent; "" takes the one that /v1/models lists
	H2C      bool              `plan:"h2c"`       // HTTP/2 without TLS, with prior knowledge
	// Redirects is "any" to follow redirects to other hosts, else "same".
	Redirects string `plan:"redirects"`
	Range     hcl.Range
}

// Process is a server that tokgate starts as a child.
type Process struct {
	Command []string // nil means the engine's own command; see Server.Launch
	Env     map[string]string
	Dir     string `plan:"dir"`  // resolved against the plan's folder
	Port    int    `plan:"port"` // 0 chooses a free port; it replaces {port} in Command
	GPUs    *GPUs  // nil for all GPUs that tokgate sees
	// ServedAs is the model id sent; "" asks /v1/models.
	ServedAs string `plan:"served_as"`
	Range    hcl.Range
}

// Container is a server that tokgate starts in a container.
type Container struct {
	Runtime    string   `plan:"runtime"` // docker | podman; "" uses the one on the PATH
	Image      string   `plan:"image"`
	Pull       Pull     `plan:"pull"`
	Entrypoint string   `plan:"entrypoint"` // "": see Server.Entrypoint
	Command    []string // nil means the engine's own command; see Server.Launch
	Env        map[string]string
	GPUs       *GPUs    // nil: none
	Volumes    []string // host:container[:options]; a host path that begins with a dot is relative to the plan's folder
	SharedMem  string   `plan:"shm_size"` // size of /dev/shm, such as "16g"; "" keeps the runtime's default
	Network    string   `plan:"network"`  // "" uses the runtime's network and publishes the port; "host" publishes none
	User       string   `plan:"user"`
	Options    []string `plan:"options"` // further options of docker or podman run
	Port       int      `plan:"port"`    // port on 127.0.0.1; 0 chooses a free one
	Inside     int      // port inside the container; equals Port if Network is "host"
	ServedAs   string   `plan:"served_as"` // model id sent; "" takes the one that /v1/models lists
	Range      hcl.Range
}

// Pull is when an image is pulled.
type Pull string

const (
	PullMissing Pull = "missing" // pull if the image is not on this machine
	PullAlways  Pull = "always"
	PullNever   Pull = "never"
)

// GPUs is the set of GPUs that a server gets. Count asks for a number of free GPUs, IDs names
// GPUs, and All means all that tokgate may use. At most one of the three is set. If none is set,
// the server gets no GPU.
type GPUs struct {
	Count int
	IDs   []string // index or UUID of each GPU, as nvidia-smi prints them
	All   bool
	Range hcl.Range
}

// String writes g as in a plan; "" for nil.
func (g *GPUs) String() string {
	switch {
	case g == nil:
		return ""
	case g.All:
		return `"all"`
	case len(g.IDs) > 0:
		return `["` + strings.Join(g.IDs, `", "`) + `"]`
	}
	return strconv.Itoa(g.Count)
}

// Local reports whether tokgate starts the server here, as a process or container.
func (s *Server) Local() bool { return s.Process != nil || s.Container != nil }

// GPUs returns the plan's setting of the server's GPUs; nil if there is none.
func (s *Server) GPUs() *GPUs {
	switch {
	case s.Process != nil:
		return s.Process.GPUs
	case s.Container != nil && s.Container.GPUs == nil:
		return &GPUs{}
	case s.Container != nil:
		return s.Container.GPUs
	}
	return nil
}

// ServedAs is the model id that requests send; "" takes the one that /v1/models lists.
func (s *Server) ServedAs() string {
	switch {
	case s.Endpoint != nil:
		return s.Endpoint.ServedAs
	case s.Process != nil:
		return s.Process.ServedAs
	case s.Container != nil:
		return s.Container.ServedAs
	}
	return ""
}

// Simulator is the built-in server as a server under test.
type Simulator struct {
	Profile string `plan:"profile"` // name of a shipped profile, or a path relative to the plan
	Seed    int64  `plan:"seed"`
	Range   hcl.Range
}

// Prices holds what servers cost.
type Prices struct {
	Currency    string             `plan:"currency"` // such as USD
	PerHour     map[string]float64 // price of an hour of a server, by the server's address
	Electricity float64            `plan:"electricity"` // price of a kilowatt-hour; 0 means that electricity is not priced
	Range       hcl.Range
}

// Cover is the report block: the head of a report.
type Cover struct {
	Title        string   `plan:"title"`        // title; "" means the plan's name
	Subtitle     string   `plan:"subtitle"`     // "": none
	Organization string   `plan:"organization"` // "": none
	Logo         []byte   // a PNG or JPEG picture; nil: none
	Notes        []string `plan:"notes"` // a paragraph each
}

// API is the endpoint that a workload uses.
type API string

const (
	Chat        API = "chat"
	Completions API = "completions"
)

// Workload is one kind of load: what is sent, how it arrives, and which thresholds
// must hold.
type Workload struct {
	Name        string
	Key         string // of for_each; ""
	Title       string `plan:"title"` // title for people; "" means the address
	Description string `plan:"description"`
	// Users bounds from below and above how many people a request in flight stands for; 0: unknown.
	Users [2]float64
	// Mix holds the parts of a mix; nil if the workload is not a mix. A part is a workload
	// named "mix/part", and the parts follow the mix in the plan. The mix itself has no API,
	// Input, Output, Request and Prompt.
	Mix []*Workload
	// Of is the mix that a part belongs to. Share is the part's share of the requests of the
	// mix in millionths (traffic.Whole). The Loads of a part are those of the mix, with the
	// part's number of requests. If the workload is not a part, Of is nil and Share is 0.
	Of    *Workload
	Share int
	// Type is the type of the trace rows that belong to the part; "" if rows are assigned at
	// random.
	Type    string
	Servers []*Server // servers on which the workload runs; each server and level is one case
	API     API       `plan:"api"`
	// Input is the number of tokens of each prompt, as the server counts them with
	// the chat template; 0 if rows of a data set keep their own length.
	Input    int
	Output   Output
	Request  Request
	Prompt   Prompt
	Loads    []*Load
	SLAs     []*SLA
	Good     []*Threshold  // bounds of a good request; their statistic is "every"
	Score    *answers.Rule // when an answer is right; nil if answers are not scored
	Answers  Answers
	Capacity *Capacity // nil if no capacity is searched
	Policy   Policy    // the gate's policy, with the workload's overrides
	Range    hcl.Range
}

// Address is the workload's name in expressions and reports.
func (w *Workload) Address() string { return Address(w.Name, w.Key) }

// Output sets the length of the answers.
type Output struct {
	Mean    int     // tokens; if Natural is set, the largest number of tokens
	Jitter  float64 // lengths are uniform in Mean·(1±Jitter); in [0, 1)
	Natural bool    // the model ends the answer itself; the length is not checked
}

// Request holds the other settings of a request.
type Request struct {
	Model       string   `plan:"model"` // model id sent; "" means the server's own
	Temperature *float64 `plan:"temperature"`
	Stop        []string `plan:"stop"`
	// Extra holds further fields of the request body as declared: arguments of the
	// chat template, options of the engine.
	Extra map[string]cty.Value
}

// Load is one load block: a shape and its levels.
type Load struct {
	Kind   metric.LoadKind
	Levels []Level
	Seeds  []int64 // one seed for each round; the rounds of a burst level cycle through them
	Seeded bool    // the plan names the seeds, and every level and probe uses all of them
	Warmup int     // requests before each round; WarmupAuto: the level's own concurrency
	// Stagger is the time between the starts of two slots; StaggerAuto spreads the
	// starts over the expected duration of one request.
	Stagger time.Duration
	Pause   time.Duration `plan:"pause"`   // time between an answer and the next request of its slot
	Timeout time.Duration `plan:"timeout"` // of one request
	Think   traffic.Think // thinking time of a user after an answer
	People  *People       // nil unless the load has users
	Open    *Open         // nil unless the load has a rate or a trace
	// Titles and Descriptions are the levels' texts for people, by the level's number
	// or name.
	Titles       map[string]string `plan:"title"`
	Descriptions map[string]string `plan:"description"`
	Range        hcl.Range
}

// WarmupAuto and StaggerAuto stand for "auto" in a plan.
const (
	WarmupAuto  = -1
	StaggerAuto = time.Duration(-1)
)

// Level is one level of a load block.
type Level struct {
	Name string // "30", "burst 8", "4 req/s": unique within the workload
	N    int    // requests in flight, or in a burst; 0 for a rate
	// Rate is in requests per second; 0 for other shapes.
	Rate float64
	// Share is the part's share of the requests of its mix; 0 if the workload is not a part. If
	// it is a part, N and Rate are those of the whole mix.
	Share float64
	// Requests is the number of measured requests, over all rounds. If the level has a
	// Duration, it is the minimum: one request for each slot and round.
	Requests int
	// Duration is the time in which measured requests are started. It is divided evenly over
	// all rounds. It is 0 if the level ends after its Requests.
	Duration time.Duration
	Rounds   int           // at least 1; for a rate the parts of one window, for a stage its passes
	Stage    *metric.Stage // the stage of an open loop; nil if the level is not one
	// Speedup is how many times faster than recorded the traffic is replayed; 0 if the level is
	// not a replay. In a replay the field Rate is the mean rate.
	Speedup float64
	Range   hcl.Range
}

// Capacity is the search for the largest level at which the sla blocks with
// AtCapacity still hold.
type Capacity struct {
	Over metric.LoadKind
	From int // smallest level, at least 1; for a rate From, UpTo and Require count RateSteps
	UpTo int // largest level, at least From
	// The search ends when the largest passing and the smallest failing level are at most
	// Resolution apart; it is at least 1. Relative may widen this distance to a share of the
	// capacity, in [0, 1).
	Resolution int
	Relative   float64
	Require    int           // required capacity, from From to UpTo; 0 only measures
	Budget     time.Duration `plan:"budget"`   // limit of the search on one server; 0 means the run's budget
	Requests   int           `plan:"requests"` // requests at the first look at a level; 0 means DefaultRequests
	Least      int           // the minimum that the preset needs
	// MaxRequests bounds the requests of one level; 0 means the policy's bound, or else sixteen
	// times the first look.
	MaxRequests int  `plan:"max_requests"`
	Confirm     bool // confirm the answer on fresh requests
	// Load sets how probes send requests: seeds, warm-up, stagger, pause and time-out. It has
	// no levels.
	Load  *Load
	Range hcl.Range
}

// Severity decides whether a missed threshold fails the gate.
type Severity string

const (
	SeverityError Severity = "error"
	SeverityWarn  Severity = "warn"
)

// SLA is one sla block.
type SLA struct {
	At         []string // level names; in a checked plan empty only with AtCapacity
	AtCapacity bool     // the block also bounds the capacity: at includes "capacity", or is not set
	Severity   Severity `plan:"severity"`
	Thresholds []*Threshold
	Range      hcl.Range
}

// Op is the comparison operator of a threshold.
type Op string

const (
	Less         Op = "<"
	LessEqual    Op = "<="
	Greater      Op = ">"
	GreaterEqual Op = ">="
)

// Threshold is one bound: "p95 < 8s".
type Threshold struct {
	Metric metric.Def
	Stat   metric.Stat
	Op     Op      // "" for "every" of success, which has no limit
	Limit  float64 // limit in the metric's base unit
	Text   string  // the threshold as the author wrote it
	Range  hcl.Range
}

// Assert is a free condition over results. It is decided by point estimates.
type Assert struct {
	Name         string
	Condition    hcl.Expression
	ErrorMessage hcl.Expression
	// Context holds variables, locals, the environment and functions. To evaluate the assert,
	// add the variable result, of type ResultType, in a child context. The value of the
	// condition may carry marks, which must be removed.
	Context *hcl.EvalContext
	Range   hcl.Range
}

func Address(name, key string) string {
	if key == "" {
		return name
	}
	return name + `["` + key + `"]`
}

// PortPlaceholder in the command of a process is replaced by the port that it must
// use.
const PortPlaceholder = "{port}"

// Engines lists the engines that tokgate knows; openai is any server with the OpenAI
// protocol.
var Engines = []string{"vllm", "sglang", "llama.cpp", "openai"}

// Alpha is the one-sided significance level, 1 − Confidence. If Confidence is outside (0.5, 1),
// which no checked plan has, 0.95 takes its place.
func (p Policy) Alpha() float64 {
	if p.Confidence > 0.5 && p.Confidence < 1 {
		return 1 - p.Confidence
	}
	return 0.05
}

// Fixed returns the level with that name in the load blocks; nil if there is none.
func (w *Workload) Fixed(name string) *Level {
	for _, load := range w.Loads {
		if i := slices.IndexFunc(load.Levels, func(l Level) bool { return l.Name == name }); i >= 0 {
			return &load.Levels[i]
		}
	}
	return nil
}

// Whole returns the workload and the parts of a mix.
func (w *Workload) Whole() []*Workload { return append([]*Workload{w}, w.Mix...) }
