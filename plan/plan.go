// Package plan is what a plan says, checked and with every default filled in,
// and what can be computed from that alone. Package decode reads it from a file.
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

// Plan is a checked plan: every default is filled in, every reference is
// resolved, every threshold is in base units. What carries a Range remembers
// where it was written. A field with a tag is read by the attribute that the tag
// names; decode has what the schema says of it.
type Plan struct {
	Path      string               // as the user named it
	Files     map[string]*hcl.File // sources without Secrets, for diagnostics; keyed by file name
	Hash      string               // SHA-256 over sources and variable values, hex
	Gate      Gate
	Servers   []*Server   // in order of the source, for_each expanded in key order
	Workloads []*Workload // likewise
	Asserts   []*Assert
	Compares  []*Compare
	Prices    *Prices   // nil: the plan has none
	Cover     Cover     // what heads the report
	History   *History  // nil: the plan keeps none
	Defaults  []Default // every default that was filled in, in order of the source
	Reads     []Read    // of the environment, in order of the source
	// Secrets are the values that must never be printed, in ascending order:
	// sensitive variables, api_key, headers that authenticate, what env.NAME
	// reads and what is made of it, and what a server is given under a name such
	// as HF_TOKEN or --api-key.
	Secrets []string
}

// Default is a setting that the plan left out, with the value that was filled in.
type Default struct {
	Path  string // "workload.general_chatbot.load.stagger"
	Value string // as it would be written
	Why   string // where the value comes from, when it is not a constant; else ""
}

// OnInconclusive says what an inconclusive verdict does to the run.
type OnInconclusive string

const (
	Stop   OnInconclusive = "stop"   // exit 3
	Extend OnInconclusive = "extend" // more samples within budget and max_requests, then stop
	Warn   OnInconclusive = "warn"   // exit 0, shown as a warning
)

// Decide says how a threshold is decided.
type Decide string

const (
	// Certified decides by exact tests at the plan's confidence.
	Certified Decide = "certified"
	// Estimate compares the point estimate, as published reports do.
	Estimate Decide = "estimate"
)

// Gate is the policy of the plan; a workload may override what Policy holds.
type Gate struct {
	Policy
	Budget      time.Duration `plan:"budget"`       // wall clock of the whole run; 0: none
	MeasureOnly bool          `plan:"measure_only"` // the plan may require nothing
	MustDetect  []Detect      // regressions that the gate must notice, by kind
	Range       hcl.Range     // zero when the plan has no gate block
}

// Slower are the kinds of regressions that have a factor.
var Slower = []string{"overhead", "prefill", "decode"}

// Detect is a regression that the gate must notice: one of Slower, and how many
// times as long it then takes, above 1.
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
	MaxRequests    int            `plan:"max_requests"` // per level under Extend; 0: four times the planned ones
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
	// Title and Description are for people. Without a Title reports show the
	// address.
	Title       string   `plan:"title"`
	Description string   `plan:"description"`
	Flags       []Flag   // the engine's own command line, in order of the source
	Args        []string `plan:"args"`
	Ready       Ready
	Expect      map[string]string // fingerprint key → what must be found
	Endpoint    *Endpoint         // exactly one of Endpoint, Process and Container,
	Process     *Process          // or Simulator alone
	Container   *Container        //
	Simulator   *Simulator        // beside one of them it is what --simulate uses instead
	Telemetry   Telemetry
	Range       hcl.Range
}

// Address is how expressions and reports name the server: vllm, vllm["on"],
// base.vllm.
func (s *Server) Address() string {
	if s.Base {
		return "base." + Address(s.Name, s.Key)
	}
	return Address(s.Name, s.Key)
}

// Flag is one flag of the engine's own command line, as declared.
type Flag struct {
	Name  string // hyphenated, without dashes
	Value cty.Value
	Range hcl.Range
}

// Ready says when a started server counts as ready: one real completion.
type Ready struct {
	Timeout time.Duration `plan:"timeout"`
	Range   hcl.Range
}

// Endpoint is a server that runs already.
type Endpoint struct {
	URL      string            // base, with or without /v1
	APIKey   string            // "" sends none
	Headers  map[string]string `plan:"headers"`   // sent with every request
	CAFile   string            `plan:"ca_file"`   // PEM file of the CA to trust; resolved against the plan's folder
	ServedAs string            `plan:"served_as"` // model id sent; "": asked from /v1/models
	H2C      bool              `plan:"h2c"`       // HTTP/2 without TLS, with prior knowledge
	// Redirects is "any" where redirects to other hosts are followed, else "same".
	Redirects string `plan:"redirects"`
	Range     hcl.Range
}

// Process is a server that tokgate starts as a child.
type Process struct {
	Command []string // nil: the engine's own, see Server.Launch
	Env     map[string]string
	Dir     string `plan:"dir"`  // resolved against the plan's folder
	Port    int    `plan:"port"` // 0: a free one is chosen; {port} in Command is replaced by it
	GPUs    *GPUs  // nil: all that tokgate sees
	// ServedAs is the model id sent; "": asked from /v1/models.
	ServedAs string `plan:"served_as"`
	Range    hcl.Range
}

// Container is a server that tokgate starts in a container.
type Container struct {
	Runtime    string   `plan:"runtime"` // docker | podman; "": the one on the PATH
	Image      string   `plan:"image"`
	Pull       Pull     `plan:"pull"`
	Entrypoint string   `plan:"entrypoint"` // "": see Server.Entrypoint
	Command    []string // nil: the engine's own, see Server.Launch
	Env        map[string]string
	GPUs       *GPUs    // nil: none
	Volumes    []string // host:container[:options]; a host path that begins with a dot is one against the plan's folder
	SharedMem  string   `plan:"shm_size"` // size of /dev/shm, "16g"; "": the runtime's own
	Network    string   `plan:"network"`  // "": the runtime's own, with a published port; "host": none is published
	User       string   `plan:"user"`
	Options    []string `plan:"options"` // further words for the runtime
	Port       int      `plan:"port"`    // on 127.0.0.1; 0: a free one is chosen
	Inside     int      // port on which it listens in the container; with Network "host" it is Port
	ServedAs   string   `plan:"served_as"` // model id sent; "": asked from /v1/models
	Range      hcl.Range
}

// Pull says when an image is pulled.
type Pull string

const (
	PullMissing Pull = "missing" // when it is not there
	PullAlways  Pull = "always"
	PullNever   Pull = "never"
)

// GPUs says which GPUs a server gets: a number of free ones, some by name, or
// all that tokgate itself may use. One of the three is set; none of them means
// no GPU.
type GPUs struct {
	Count int
	IDs   []string // an index or a UUID, as nvidia-smi prints them
	All   bool
	Range hcl.Range
}

// String is g as it would be written; "" for nil.
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

// Local reports whether tokgate starts the server on this machine, outside
// itself.
func (s *Server) Local() bool { return s.Process != nil || s.Container != nil }

// GPUs is what the plan says of the server's GPUs; nil: nothing.
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

// ServedAs is the model id that is sent; "": asked from /v1/models.
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

// Simulator is the built-in server.
type Simulator struct {
	Profile string `plan:"profile"` // name of a shipped profile, or a path relative to the plan
	Seed    int64  `plan:"seed"`
	Range   hcl.Range
}

// Prices says what servers cost.
type Prices struct {
	Currency    string             `plan:"currency"` // such as USD
	PerHour     map[string]float64 // of a server, by its address
	Electricity float64            `plan:"electricity"` // a kilowatt-hour; 0: not priced
	Range       hcl.Range
}

// Cover is the report block: what heads a report.
type Cover struct {
	Title        string   `plan:"title"`        // "": the plan's name
	Subtitle     string   `plan:"subtitle"`     // "": none
	Organization string   `plan:"organization"` // "": none
	Logo         []byte   // a PNG or JPEG picture; nil: none
	Notes        []string `plan:"notes"` // a paragraph each
}

// API is which endpoint a workload uses.
type API string

const (
	Chat        API = "chat"
	Completions API = "completions"
)

// Workload is what is sent, how it arrives, and what must hold.
type Workload struct {
	Name        string
	Key         string // of for_each; ""
	Title       string `plan:"title"` // for people; "": the address
	Description string `plan:"description"`
	// Users is how many people one request in flight stands for, the fewest and
	// the most; zero: unknown.
	Users [2]float64
	// Mix are the parts of a mix, which are workloads named "mix/part" and follow it in the plan;
	// nil if the workload is not a mix. A mix itself has no API, Input, Output, Request and Prompt.
	Mix []*Workload
	// Of is the mix that a part belongs to, and Share the part's share of the requests, in
	// millionths (traffic.Whole). The part's Loads are those of the mix, with the part's
	// requests. nil and 0: the workload belongs to no mix.
	Of    *Workload
	Share int
	// Type is the type of the rows of the mix's traces that belong to the part; "": rows are drawn
	// for it.
	Type    string
	Servers []*Server // on which it runs, one case each and level
	API     API       `plan:"api"`
	// Input is the tokens of each prompt, by the server's count, chat template
	// included; 0: rows of a data set keep their own length.
	Input    int
	Output   Output
	Request  Request
	Prompt   Prompt
	Loads    []*Load
	SLAs     []*SLA
	Good     []*Threshold  // per-request bounds of goodput: statistic "every"
	Score    *answers.Rule // when an answer is right; nil: none is scored
	Answers  Answers
	Capacity *Capacity // nil: none is searched
	Policy   Policy    // of the gate, overridden here
	Range    hcl.Range
}

// Address is how expressions and reports name the workload.
func (w *Workload) Address() string { return Address(w.Name, w.Key) }

// Output is how long the answers are.
type Output struct {
	Mean    int     // tokens; of a natural answer the most
	Jitter  float64 // lengths are uniform in Mean·(1±Jitter); in [0, 1)
	Natural bool    // the model ends by itself; no exact-length check
}

// Request is what else a request carries.
type Request struct {
	Model       string   `plan:"model"` // id sent; "": the server's
	Temperature *float64 `plan:"temperature"`
	Stop        []string `plan:"stop"`
	// Extra holds further fields of the request body, as declared: chat
	// template arguments, engine extras.
	Extra map[string]cty.Value
}

// Load is one load block: a shape and its levels.
type Load struct {
	Kind   metric.LoadKind
	Levels []Level
	Seeds  []int64 // one round each; for a burst level Bursts rounds cycle through them
	Seeded bool    // the plan names them: levels and probes use them all
	Warmup int     // requests before each round; WarmupAuto: the level's own concurrency
	// Stagger is the time between two slots' starts; StaggerAuto spreads them
	// over one request's expected duration.
	Stagger time.Duration
	Pause   time.Duration `plan:"pause"`   // between a slot's answer and its next request
	Timeout time.Duration `plan:"timeout"` // of one request
	Think   traffic.Think // of a person, after an answer
	People  *People       // of users; nil of another shape
	Open    *Open         // of a rate; nil of another shape
	// Titles and Descriptions of its levels for people, by the level's number or name.
	Titles       map[string]string `plan:"title"`
	Descriptions map[string]string `plan:"description"`
	Range        hcl.Range
}

// WarmupAuto and StaggerAuto are the "auto" of the language.
const (
	WarmupAuto  = -1
	StaggerAuto = time.Duration(-1)
)

// Level is one level of a load block.
type Level struct {
	Name string // "30", "burst 8", "4 req/s": unique within the workload
	N    int    // requests in flight, or in one burst; 0 of a rate
	// Rate is in requests per second; 0 of another shape.
	Rate float64
	// Share is the share of a part in its mix; N and Rate are then those of the whole mix.
	// 0: the workload is not a part.
	Share float64
	// Requests are the measured ones, all rounds together, split over the rounds. With
	// a Duration they are the minimum: one for each request in flight and round.
	Requests int
	// Duration is how long measured requests are started for, all rounds together,
	// split evenly over the rounds; 0: until Requests of them were.
	Duration time.Duration
	Rounds   int           // at least 1; of a rate consecutive parts of one window, of a stage passes
	Stage    *metric.Stage // of an open loop; nil: it stands alone
	// Speedup is the factor by which recorded traffic is replayed faster; 0: not a replay. Rate is
	// then the mean rate.
	Speedup float64
	Range   hcl.Range
}

// Capacity asks for the largest level at which the sla blocks that are
// AtCapacity still hold.
type Capacity struct {
	Over metric.LoadKind
	From int // smallest level, at least 1; of rates in units of RateStep, as UpTo and Require
	UpTo int // largest level, at least From
	// Resolution is how far apart the largest level that passes and the
	// smallest that fails may stay; at least 1. Relative widens it to a share
	// of the capacity, in [0, 1).
	Resolution int
	Relative   float64
	Require    int           // from From to UpTo; 0: measured only
	Budget     time.Duration `plan:"budget"`   // of the search on one server; 0: none of its own
	Requests   int           `plan:"requests"` // at the first look at a level; 0: DefaultRequests
	Least      int           // of these, for the preset
	// MaxRequests bounds the requests of one level; 0: the policy's bound, else sixteen times the
	// first look.
	MaxRequests int  `plan:"max_requests"`
	Confirm     bool // measure the answer again on fresh requests
	// Load is how the search sends: seeds, warm-up, stagger, pause and
	// time-out, without levels.
	Load  *Load
	Range hcl.Range
}

// Severity reports whether a missed threshold fails the gate.
type Severity string

const (
	SeverityError Severity = "error"
	SeverityWarn  Severity = "warn"
)

// SLA is one sla block.
type SLA struct {
	At         []string // level names; once the plan is checked empty only with AtCapacity
	AtCapacity bool     // it bounds the capacity too: at holds "capacity", or was not set
	Severity   Severity `plan:"severity"`
	Thresholds []*Threshold
	Range      hcl.Range
}

// Op is the comparison of a threshold.
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
	Op     Op      // "" for "every" of success, which needs no limit
	Limit  float64 // in the metric's base unit
	Text   string  // as the author wrote it
	Range  hcl.Range
}

// Assert is a free condition over results. It is a point estimate.
type Assert struct {
	Name         string
	Condition    hcl.Expression
	ErrorMessage hcl.Expression
	// Context holds variables, locals, the environment and functions; the
	// caller adds result, of ResultType, in a child of it. Values may carry
	// marks: unmark what comes out.
	Context *hcl.EvalContext
	Range   hcl.Range
}

func Address(name, key string) string {
	if key == "" {
		return name
	}
	return name + `["` + key + `"]`
}

// PortPlaceholder in a process's command stands for the port it shall use.
const PortPlaceholder = "{port}"

// Engines that tokgate knows; openai is anything that speaks the protocol.
var Engines = []string{"vllm", "sglang", "llama.cpp", "openai"}

// Alpha is the one-sided significance level, 1 − Confidence. A confidence
// outside (0.5, 1) cannot come from a checked plan; 0.95 takes its place.
func (p Policy) Alpha() float64 {
	if p.Confidence > 0.5 && p.Confidence < 1 {
		return 1 - p.Confidence
	}
	return 0.05
}

// Fixed is the level of that name in the load blocks; nil where they have none.
func (w *Workload) Fixed(name string) *Level {
	for _, load := range w.Loads {
		if i := slices.IndexFunc(load.Levels, func(l Level) bool { return l.Name == name }); i >= 0 {
			return &load.Levels[i]
		}
	}
	return nil
}

// Whole are the workload and, of a mix, its parts.
func (w *Workload) Whole() []*Workload { return append([]*Workload{w}, w.Mix...) }
