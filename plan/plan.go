// Package plan holds a checked plan with every default filled in, and what can be
// computed from the plan alone. Package decode reads plans from files.
package plan

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/answers"
	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/traffic"
)

// Plan is a checked plan, with every default filled in, every reference resolved and every
// threshold in base units. The field Range of an element says where in the plan it was written. The
// tag plan of a field names the attribute that sets it; the schema is in package decode.
type Plan struct {
	Path      string               // path, as given on the command line
	Files     map[string]*hcl.File // sources without Secrets, for diagnostics; the key is the file name
	Hash      string               // SHA-256 of the sources and the values of variables, hexadecimal
	Gate      Gate
	Servers   []*Server   // in the order of the plan; instances of a for_each sorted by key
	Workloads []*Workload // likewise
	Asserts   []*Assert
	Compares  []*Compare
	Accepts   []*Accept
	Prices    *Prices   // nil if the plan has no prices block
	Cover     Cover     // title and texts at the head of the report
	History   *History  // nil if the plan has no history block
	Defaults  []Default // every default that the plan uses, in order of the source
	Reads     []Read    // environment variables that the plan reads, in the order of its text
	Opened    []Read    // secrets that the plan opens with nonsensitive: NAME, or var.NAME
	// Secrets lists the values that must never be printed, in ascending order:
	//
	//  - sensitive variables, api_key, and headers that authenticate;
	//  - the values of env.NAME, and what is made from them;
	//  - values that a server gets under a name such as HF_TOKEN or --api-key.
	Secrets []string
}

// Default is a setting that the plan does not set, with its default value.
type Default struct {
	Path  string // "workload.general_chatbot.load.stagger"
	Value string // the value, written as in a plan
	Why   string // where the value comes from, if it is not a constant; else ""
}

// OnInconclusive says how an inconclusive verdict affects the run.
type OnInconclusive string

const (
	Stop   OnInconclusive = "stop"   // exit 3
	Extend OnInconclusive = "extend" // measure more, within budget and max_requests; then stop
	Warn   OnInconclusive = "warn"   // exit 0, with a warning
)

// Decide is the way in which a threshold is decided.
type Decide string

const (
	// Certified uses exact tests with the plan's confidence.
	Certified Decide = "certified"
	// Estimate compares the point estimate with the limit, without a test.
	Estimate Decide = "estimate"
)

// Gate holds the settings of the gate block. A workload may override those in Policy.
type Gate struct {
	Policy
	Budget      time.Duration `plan:"budget"`       // time limit of the whole run; 0: none
	MeasureOnly bool          `plan:"measure_only"` // the plan may have no requirements
	MustDetect  []Detect      // regressions that the gate must notice, by kind
	Range       hcl.Range     // zero if the plan has no gate block
}

// Slower lists the regressions in which one kind of work takes longer by a factor.
var Slower = []string{"overhead", "prefill", "decode"}

// Detect is a regression that the gate must notice. Kind is one of Slower; Factor, above 1, says
// how much longer that work takes.
type Detect struct {
	Kind   string
	Factor float64
	Range  hcl.Range // of must_detect
}

// Policy holds the settings of the gate that a workload may override.
type Policy struct {
	Confidence     float64        `plan:"confidence"` // in (0.5, 1); default 0.95
	Decide         Decide         `plan:"decide"`
	OnInconclusive OnInconclusive `plan:"on_inconclusive"`
	MaxRequests    int            `plan:"max_requests"` // limit on an extended level's requests; 0: four times as many
	Window         metric.Window  `plan:"window"`
	Clusters       Clusters       `plan:"clusters"` // "": ClustersWave
}

// Server is one server under test, or one instance of a for_each.
type Server struct {
	Name   string // the label
	Key    string // of for_each; ""
	Base   bool   // declared in the plan of the base branch
	Engine string `plan:"engine"` // "vllm", "sglang", "llama.cpp" or "openai"
	Model  string `plan:"model"`  // the real name; ""
	// Title and Description are texts for reports. Without a Title, reports show the address.
	Title       string            `plan:"title"`
	Description string            `plan:"description"`
	Flags       []Flag            // flags of the engine's command line, in order of the plan
	Args        []string          `plan:"args"`
	Expect      map[string]string // required fingerprint values, by key
	Endpoint    *Endpoint         `plan:"endpoint"` // at most one of Endpoint, Process, Container, Pod and Stack is set
	Process     *Process          `plan:"process"`
	Container   *Container        `plan:"container"`
	Pod         *Pod              `plan:"pod"`
	Stack       *Stack            `plan:"stack"`
	Ready       Ready             `plan:"ready"`
	Simulator   *Simulator        `plan:"simulator"` // measured with --simulate, or if the plan sets none of them
	Telemetry   Telemetry         `plan:"telemetry"`
	Range       hcl.Range
}

// Address returns the server's name in expressions and reports: vllm, vllm["on"], base.vllm.
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

// Ready sets how long a started server may take until it completes a real request.
type Ready struct {
	Timeout time.Duration `plan:"timeout"`
	Range   hcl.Range
}

// Process is a server that tokgate starts as a child process.
type Process struct {
	Command []string          `plan:"command"` // nil means the engine's own command; see Server.Launch
	Env     map[string]string `plan:"env"`
	Dir     string            `plan:"dir"`  // working directory, resolved against the plan's folder
	Port    int               `plan:"port"` // 0 chooses a free port; the port replaces {port} in Command
	GPUs    *GPUs             `plan:"gpus"` // nil: all GPUs that tokgate sees
	// ServedAs is the model id in requests; "" takes the id that /v1/models lists.
	ServedAs string `plan:"served_as"`
	Range    hcl.Range
}

// Container is a server that tokgate starts in a container.
type Container struct {
	Runtime    string            `plan:"runtime"` // "docker", "podman", or "" for the one on the PATH
	Image      string            `plan:"image"`
	Pull       Pull              `plan:"pull"`
	Entrypoint string            `plan:"entrypoint"` // "": see Server.Entrypoint
	Command    []string          `plan:"command"`    // nil: the engine's own command; see Server.Launch
	Env        map[string]string `plan:"env"`
	GPUs       *GPUs             `plan:"gpus"` // nil: none
	Volumes    []string          // host:container[:options]; a host path that begins with a dot is relative to the plan's folder
	SharedMem  string            `plan:"shm_size"` // size of /dev/shm, such as "16g"; "": the runtime's default
	Network    string            `plan:"network"`  // "" for the runtime's with the port published, or "host"
	User       string            `plan:"user"`
	Options    []string          `plan:"options"`        // further options of docker or podman run
	Port       int               `plan:"port"`           // port on 127.0.0.1; 0 chooses a free one
	Inside     int               `plan:"container_port"` // port inside the container; if Network is "host", the same as Port
	ServedAs   string            `plan:"served_as"`      // model id in requests; "" takes the id that /v1/models lists
	Range      hcl.Range
}

// Pull says when to pull an image.
type Pull string

const (
	PullMissing Pull = "missing" // pull the image if it is not on this machine
	PullAlways  Pull = "always"
	PullNever   Pull = "never"
)

// GPUs says which GPUs a server gets. Count asks for a number of free GPUs, IDs names GPUs, and All
// means all GPUs that tokgate may use. At most one of the fields is set. If none is set, the server
// gets no GPU.
type GPUs struct {
	Count int
	IDs   []string // index or UUID of each GPU, as nvidia-smi prints them
	All   bool
	Range hcl.Range
}

// String returns g as a plan writes it; "" for nil.
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

// Started reports whether tokgate starts the server, here or elsewhere.
func (s *Server) Started() bool { return s.Local() || s.Pod != nil || s.Stack != nil }

// Unseen reports whether tokgate knows nothing of the server but what answers at its URL: neither its
// processes nor its machine.
func (s *Server) Unseen() bool { return s.Endpoint != nil || s.Stack != nil }

// BuiltIn reports whether the server under test is the built-in one.
func (s *Server) BuiltIn() bool { return s.Simulator != nil && s.Endpoint == nil && !s.Started() }

// GPUs returns which GPUs the plan gives to the server; nil if the plan does not say.
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

// ServedAs is the model id that requests send; "" takes the id that /v1/models lists.
func (s *Server) ServedAs() string {
	switch {
	case s.Endpoint != nil:
		return s.Endpoint.ServedAs
	case s.Process != nil:
		return s.Process.ServedAs
	case s.Container != nil:
		return s.Container.ServedAs
	case s.Pod != nil:
		return s.Pod.ServedAs
	case s.Stack != nil:
		return s.Stack.ServedAs
	}
	return ""
}

// APIKey is the key that requests send; "" sends none.
func (s *Server) APIKey() string {
	switch {
	case s.Endpoint != nil:
		return s.Endpoint.APIKey
	case s.Stack != nil:
		return s.Stack.APIKey
	}
	return ""
}

// Simulator configures the built-in server, if a plan tests this server.
type Simulator struct {
	Profile string `plan:"profile"` // name of a shipped profile, or a path relative to the plan
	Seed    int64  `plan:"seed"`
	Range   hcl.Range
}

// Cover is the report block of a plan: title, notes and logo for the head of a report.
type Cover struct {
	Title        string   `plan:"title"`        // title of the report; "" means the plan's name
	Subtitle     string   `plan:"subtitle"`     // "": none
	Organization string   `plan:"organization"` // "": none
	Logo         []byte   // picture as PNG or JPEG; nil: none
	Notes        []string `plan:"notes"` // a paragraph each
}

// API is the API of the server that a workload uses.
type API = engine.API

const (
	Chat        = engine.Chat
	Completions = engine.Completions
	Embeddings  = engine.Embeddings
)

// Workload is one kind of load: what is sent, how it arrives, and which thresholds it must meet.
type Workload struct {
	Name  string
	Key   string // of for_each; ""
	Words `plan:"."`
	// Mix holds the parts of a mix; nil if the workload is not a mix. A part is a workload with the
	// name "mix/part", and follows the mix in the plan. The mix itself has no API, Input, Output,
	// Request and Prompt.
	Mix []*Workload
	OfMixture
	Servers []*Server // servers on which the workload runs; each level on a server is a case
	API     API       `plan:"api"`
	// Input is the length of each prompt in tokens, including the chat template. It is 0 if each
	// row of a data set keeps its own length.
	Input    int
	Output   Output
	Request  Request `plan:"request"`
	Prompt   Prompt
	Loads    []*Load
	SLAs     []*SLA
	Good     []*Threshold  // thresholds of a good request; their statistic is "every"
	Score    *answers.Rule // rule for right answers; nil if answers are not scored
	Answers  Answers       `plan:"answers"`
	Leave    `plan:"."`
	Capacity *Capacity // nil if no capacity is searched
	Policy   Policy    `plan:"gate"` // policy of the gate block, changed by settings of the workload
	Range    hcl.Range
}

// Words are texts about a workload for reports.
type Words struct {
	Title       string `plan:"title"` // by default the address
	Description string `plan:"description"`
	// Users is the range of the number of people that one request in flight stands for; 0: unknown.
	Users [2]float64
}

// OfMixture says which part of a mix a workload is. It is zero for a workload that is no part.
type OfMixture struct {
	// Of is the mix to which a part belongs; nil if the workload is not a part. Share is the part's
	// share of the mix's requests in millionths (traffic.Whole); 0 if it is not a part. A part has
	// the Loads of its mix, with its own number of requests.
	Of    *Workload
	Share int
	// Type is the type of the trace's rows that belong to this part of a mix. If it is "", rows are
	// assigned at random.
	Type string
}

// Address returns the workload's name in expressions and reports.
func (w *Workload) Address() string { return Address(w.Name, w.Key) }

// Output sets the length of the answers.
type Output struct {
	Mean    int     // mean number of tokens; if Natural is set, the maximum number
	Jitter  float64 // lengths are uniform from Mean·(1−Jitter) to Mean·(1+Jitter); in [0, 1)
	Natural bool    // the model ends the answer itself; the length is not checked
}

// Request holds the settings of a request that do not concern its lengths.
type Request struct {
	Model       string            `plan:"model"` // model id in requests; "" means the server's own
	Temperature *float64          `plan:"temperature"`
	Stop        []string          `plan:"stop"`
	Headers     map[string]string // of HTTP; they replace the server's of the same name
	// Extra holds further fields of the request body, as the plan declares them. Examples are
	// arguments of the chat template and options of the engine.
	Extra map[string]cty.Value
}

// Load is one load block: a shape and its levels.
type Load struct {
	Kind   metric.LoadKind
	Levels []Level
	Seeds  []int64 // one seed for each round; a level with more rounds starts again at the first
	Seeded bool    // the plan sets the seeds; stages have a round for each
	Warmup int     // requests before each window or burst; WarmupAuto: as many as the level's concurrency
	// Stagger is the time between the starts of two slots; StaggerAuto spreads the
	// starts over the expected duration of one request.
	Stagger time.Duration
	Pause   time.Duration `plan:"pause"`      // time between an answer and the next request of the same slot
	Timeout time.Duration `plan:"timeout"`    // of one request
	Think   traffic.Think `plan:"think_time"` // time that a user thinks after an answer
	People  *People       // nil unless the load is one of users
	Open    *Open         // nil unless the load has a rate or a trace
	// Titles and Descriptions are texts for reports, by the number or the name of a level.
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
	Name string // unique within the workload, such as "30", "burst 8" or "4 req/s"
	N    int    // requests in flight, or requests of a burst; 0 for a rate
	// Rate is the number of requests per second; 0 if the load has no rate.
	Rate float64
	// Share is the share of a mix's requests that a part has; 0 if the workload is not a part. The
	// fields N and Rate of a part are those of its whole mix.
	Share float64
	// Requests is the number of measured requests in all rounds together. If the level has a
	// Duration, it is only the smallest possible number.
	Requests int
	// Duration is the time in which measured requests start, in equal parts for all rounds. It is 0
	// if the level ends after a number of requests.
	Duration time.Duration
	Rounds   int // at least 1; a rate's window has this many parts, a stage this many passes
	// Batches is set if the rounds are batches of one window; see metric.Level.Batches.
	Batches bool
	Stage   *metric.Stage // stage of an open loop; nil for any other level
	// Speedup is the speed of a replay as a multiple of the recorded speed; 0 if the level is not a
	// replay. In a replay the field Rate is the mean rate.
	Speedup float64
	Range   hcl.Range
}

// Capacity is the search for the largest level that meets the thresholds for the capacity. Those
// are in the sla blocks with AtCapacity.
type Capacity struct {
	Over metric.LoadKind
	From int // smallest level, at least 1; for a rate, as a multiple of RateStep
	UpTo int // largest level, at least From
	// Resolution is the largest distance between the largest passing and the smallest failing level
	// at which the search ends; at least 1. Relative may raise this distance to a share of the
	// capacity, in [0, 1).
	Resolution int
	Relative   float64
	Require    int // required capacity, from From to UpTo; 0: none required
	// Largest is the largest rate that the server is said to sustain, as a multiple of RateStep. It plans
	// the probes, and certifies nothing. 0: it is measured.
	Largest  int
	Budget   time.Duration `plan:"budget"`   // time limit on one server; 0: only the run's budget
	Requests int           `plan:"requests"` // requests at the first look at a level; 0: DefaultRequests
	Least    int           // smallest number of requests that the preset needs
	// MaxRequests is the largest number of requests of one level. 0: see Workload.MostRequests.
	MaxRequests int  `plan:"max_requests"`
	Confirm     bool // the search confirms its answer with fresh requests
	// Load sets how probes send requests: seeds, warm-up, stagger, pause and timeout. It has no
	// levels.
	Load  *Load
	Range hcl.Range
}

// SLA is one sla block.
type SLA struct {
	At         []string // names of levels; empty only if the thresholds bound just the capacity
	AtCapacity bool     // whether the thresholds limit the capacity of the workload too
	Severity   Severity `plan:"severity"`
	Thresholds []*Threshold
	Range      hcl.Range
}

// Assert is an assert block: a condition of the plan's author on the point estimates.
type Assert struct {
	Name         string
	Condition    hcl.Expression
	ErrorMessage hcl.Expression
	// Context holds variables, locals, the environment and functions. Evaluate the assert in a
	// child context with the variable result, of type ResultType. Remove marks from the condition's
	// value.
	Context *hcl.EvalContext
	Range   hcl.Range
}

func Address(name, key string) string {
	if key == "" {
		return name
	}
	return name + `["` + key + `"]`
}

// Estimates reports whether point estimates decide, without a test.
func (p Policy) Estimates() bool { return p.Decide == Estimate }

// Alpha returns the one-sided significance level, 1 − Confidence. A Confidence outside (0.5, 1)
// counts as 0.95; a checked plan has no such Confidence.
func (p Policy) Alpha() float64 {
	if p.Confidence > 0.5 && p.Confidence < 1 {
		return 1 - p.Confidence
	}
	return 0.05
}

// Root returns the mix of a part, or w itself if it is no part.
func (w *Workload) Root() *Workload { return cmp.Or(w.Of, w) }

// Whole returns the workload itself, followed by the workloads of its mix.
func (w *Workload) Whole() []*Workload { return append([]*Workload{w}, w.Mix...) }
