// Package report writes the result of a run: one versioned Document, and one
// file here for each output made from it.
//
//  1. New joins what was observed (metric.Run) with what was promised
//     (plan.Plan) and what was judged (assert.Verdicts) into a Document;
//  2. Document.Write and ReadDocument keep it as results.json, which stands
//     alone: every other report can be made again from it;
//  3. JUnit, Markdown, Terminal and LevelsCSV show it to CI systems and
//     people.
//
// The package judges nothing and does not decide the exit code; it shows the
// one it is given. Foreign text (server logs, errors, names) is kept as it
// was in the Document and made safe by each output for its own readers.
package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Schema names the version of the document. A field may be added under the
// same name; a changed meaning or a removed field makes a new one.
const Schema = "tokgate.results/1"

// Document is the result of one run: self-contained, in base units (seconds,
// tokens), in the order of the plan. Lists are never null in JSON.
type Document struct {
	Schema string `json:"schema"` // always Schema
	Tool   string `json:"tool"`   // tokgate's version
	Run    string `json:"run"`    // unique, sortable by start time; of a simulated run, from its plan
	Plan   Plan   `json:"plan"`
	Host   string `json:"host,omitempty"` // machine that generated the load; "": not recorded
	// Folder is where the reports of the run are, as the user named it; "":
	// none was written.
	Folder string `json:"folder,omitempty"`
	// Recording is the SHA-256 sum of the recording that was judged, in
	// hexadecimal; "": nothing protects it.
	Recording string    `json:"recording,omitempty"`
	Started   time.Time `json:"started,omitzero"` // wall clock, for people; zero: simulated
	Duration  float64   `json:"duration_s"`       // of the run; virtual time when it was simulated
	Salt      string    `json:"salt"`             // of the prompts, decimal (an unsigned 64-bit number)
	Simulated bool      `json:"simulated"`        // servers were the built-in simulator in virtual time
	Partial   bool      `json:"partial"`          // cases were left out by request
	// Stopped says why the run ended before the plan did; "" when it did not.
	Stopped string `json:"stopped,omitempty"`

	Outcome Outcome `json:"outcome"`
	// Why explains an outcome that no verdict explains: nothing was judged.
	Why      string `json:"why,omitempty"`
	ExitCode int    `json:"exit_code"`

	Calibration *Calibration `json:"calibration,omitempty"` // nil: none was made
	Servers     []Server     `json:"servers"`
	Workloads   []Workload   `json:"workloads,omitempty"` // none where the plan was not at hand
	Cases       []Case       `json:"cases"`
	Capacities  []Capacity   `json:"capacities"`
	Comparisons []Comparison `json:"comparisons"`
	// Answers are the worst of each workload on each server. Absent: none counts as bad,
	// or their text was not kept.
	Answers  []Answer  `json:"answers,omitempty"`
	Verdicts []Verdict `json:"verdicts"`
	// Strength is what the gate would notice; nil where that is not known.
	Strength *Strength `json:"strength,omitempty"`
	// Timelines show only a few levels, enough to see causes.
	Timelines []Timeline `json:"timelines,omitempty"`
	// Passages are the windows of open loops over time, at most 24.
	Passages []Passage `json:"passages,omitempty"`
	// Sum is the SHA-256 sum of the JSON before it, in hexadecimal; set only in
	// what was written.
	Sum string `json:"sum,omitempty"`
}

// Outcome is assert.Outcome as text: pass, inconclusive, fail, error, skipped
// or pending.
type Outcome string

// The outcomes.
const (
	Pass         Outcome = "pass"
	Inconclusive Outcome = "inconclusive"
	Fail         Outcome = "fail"
	Error        Outcome = "error"
	Skipped      Outcome = "skipped"
	Pending      Outcome = "pending"
)

// Plan says what was promised.
type Plan struct {
	Name       string  `json:"name"` // of the file, without folder and extension
	Path       string  `json:"path"` // as the user named it
	Hash       string  `json:"hash"` // SHA-256 of sources and variables, hex
	Confidence Number  `json:"confidence"`
	Decide     string  `json:"decide"`
	Warn       bool    `json:"warn"` // inconclusive verdicts only warn
	Budget     float64 `json:"budget_s,omitempty"`
	// MeasureOnly is set when the plan requires nothing on purpose.
	MeasureOnly bool   `json:"measure_only,omitempty"`
	Currency    string `json:"currency,omitempty"` // of the prices; "": the plan has none
	// Cover heads the report; nil: the plan has no report block.
	Cover   *Cover   `json:"cover,omitempty"`
	Servers []string `json:"servers"` // every address that the plan declares
	// Sources are the plan's files, the plan itself first; none where the plan
	// was not at hand or is too long to keep.
	Sources []Source `json:"sources,omitempty"`
}

// Cover is what the plan puts at the head of the report.
type Cover struct {
	Title        string   `json:"title,omitempty"`
	Subtitle     string   `json:"subtitle,omitempty"`
	Organization string   `json:"organization,omitempty"`
	Logo         string   `json:"logo,omitempty"` // a PNG or JPEG picture, base64
	Notes        []string `json:"notes,omitempty"`
}

// Server is one server under test as it was found and left.
type Server struct {
	Address     string     `json:"address"`
	Title       string     `json:"title,omitempty"` // for people; "": the address
	Description string     `json:"description,omitempty"`
	Fingerprint []Property `json:"fingerprint"` // in order of metric.Facts
	// Program is the image or command by which it was started; "": it was not.
	Program string `json:"program,omitempty"`
	Model   string `json:"model,omitempty"` // as the plan names it; "": it does not
	// Starts are how long each start took until the server was ready, in seconds.
	Starts []float64 `json:"starts_s,omitempty"`
	// Path is how its streams were read: "own transport", or "net/http: " and why; "": not known.
	Path  string `json:"path,omitempty"`
	Error string `json:"error,omitempty"` // why it could not be measured. Foreign text
	Log   string `json:"log,omitempty"`   // tail of its log when Error is set. Foreign text
}

// Property is one observed fact: "engine.version", "0.19.1".
type Property struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Calibration is what the generator measured of itself before the run.
type Calibration struct {
	Streams  int     `json:"streams"`
	Rate     Number  `json:"chunks_per_s"`
	Delay50  float64 `json:"delay_p50_s"` // from the built-in server's write to our stamp
	Delay99  float64 `json:"delay_p99_s"`
	CPU      Number  `json:"cpu"` // share of the cores it may use, in [0, 1]; null: unknown
	Duration float64 `json:"duration_s"`
}

// Case is one level of one workload on one server.
type Case struct {
	Server   string `json:"server"`
	Workload string `json:"workload"`
	// Of is the mix that a part belongs to, and Share its share of the requests, which are
	// counted as those of the mix too; absent: the workload stands alone.
	Of    string  `json:"of,omitempty"`
	Share float64 `json:"share,omitempty"`
	Level string  `json:"level"`           // "30", "burst 8"
	Title string  `json:"title,omitempty"` // of the level, for people
	// Description is what the level stands for; "": the plan does not say.
	Description string `json:"description,omitempty"`
	Kind        string `json:"kind"` // "closed": n in flight; "burst": n at once; "rate": requests per second
	N           int    `json:"n"`    // 0 of a rate
	// Rate is that of an open loop, in requests per second; Cut says why it was ended
	// before its schedule was: "stalled" or "full".
	Rate float64 `json:"rate,omitempty"`
	// Largest is how many requests a second the server answers when its queue is never
	// empty; 0: not measured, or not a rate.
	Largest float64 `json:"largest_rate,omitempty"`
	// Stage is the rate of a stage, or its rates at the beginning and the end; "" if the level is
	// not a stage.
	Stage string `json:"stage,omitempty"`
	// Speedup is by how much faster than it was recorded traffic was replayed; 0: it was
	// not recorded. Rate is then the mean one.
	Speedup float64 `json:"speedup,omitempty"`
	Cut     string  `json:"cut,omitempty"`
	Natural bool    `json:"natural,omitempty"` // the model ended its answers by itself
	// Exact is set when prompts were sized by the server's own tokenizer.
	Exact bool `json:"exact"`
	// Asked is a digest of what the requests were to be like: two runs whose
	// digests differ sent other workloads. "": not recorded.
	Asked string `json:"asked,omitempty"`
	// Probe is set for a level that a capacity search chose, nil for one of
	// the plan.
	Probe   *CaseProbe `json:"probe,omitempty"`
	Skipped string     `json:"skipped,omitempty"` // why it was not run; "": it was
	// At is the offset of the first measured request from the run's start,
	// Duration the time from there to the end of the last one, both in
	// seconds; of a case that took turns with another server that of its rounds.
	At       float64 `json:"at_s"`
	Duration float64 `json:"duration_s"`
	// RatesOver is the window of throughput and other rates: "steady", every
	// slot busy, ramp and drain left out; "all", from the first measured request
	// to the end of the last. "" in documents from before there was a choice:
	// steady. Window is how long that was, in seconds, all rounds together.
	RatesOver string  `json:"window,omitempty"`
	Window    float64 `json:"window_s"`
	Due       int     `json:"due"`       // measured requests that the plan wanted
	Completed int     `json:"completed"` // of them, those that ended correctly
	Failed    int     `json:"failed"`    // of them, those that did not
	// Canceled are those that the run gave up itself when it was stopped: they
	// neither completed nor failed, and no number speaks of them.
	Canceled int `json:"canceled,omitempty"`
	// Failures counts the failed ones by kind, most frequent first.
	Failures   []Failure `json:"failures"`
	Reconnects int       `json:"reconnects"` // reused connections that died before any byte and were retried
	// InputTokens and OutputTokens are of completed measured requests, by
	// the server's usage.
	InputTokens  int     `json:"input_tokens"`
	OutputTokens int     `json:"output_tokens"`
	Rounds       []Round `json:"rounds"`
	// Voided are the rounds that the generator's machine disturbed and that were
	// measured again: part of no value. Absent: none.
	Voided []Round `json:"voided,omitempty"`
	// Shed is how many rounds were left out because the budget was short.
	Shed int `json:"shed,omitempty"`
	// Looks are the planned moments at which it was judged while it ran.
	Looks []Look `json:"looks"`
	// Notes say what a person should know of how it was run.
	Notes   []string  `json:"notes"`
	Metrics []Summary `json:"metrics"` // in the order of metric.Defs
	// Turns are the figures of conversations turn by turn, at most ten. Absent: there
	// are none.
	Turns []Turn `json:"turns,omitempty"`
	// Rows is what was sent of a data set. Absent: there is none.
	Rows *Rows `json:"rows,omitempty"`
	// Series are what the server and its GPUs reported while the level ran, all
	// rounds together; empty if they reported nothing.
	Series []Series `json:"series"`
}

// Sent is how many measured requests the case adds to those of the others. A part of a
// mix adds none, because the mix counts them.
func (c *Case) Sent() int {
	if c.Of != "" {
		return 0
	}
	return c.Due
}

// Load is what was in flight or sent at once, or the rate.
func (c *Case) Load() float64 {
	if c.Rate > 0 {
		return c.Rate
	}
	return float64(c.N)
}

// Series is one quantity over time. Points are readings, in order of time;
// between two rounds there are none.
type Series struct {
	Metric string    `json:"metric"` // name of a metric.Def
	Unit   string    `json:"unit"`
	At     []float64 `json:"at_s"` // offsets from the run's start
	Values []float64 `json:"values"`
}

// Rows is what was sent of a data set at a level.
type Rows struct {
	Sent int `json:"sent"` // different rows
	// Again is how many requests had prompts that were sent before, at this level or another
	// one, or that another row has too.
	Again  int     `json:"again"`
	Prompt Lengths `json:"prompt"` // of completed requests, in tokens as the server counted
	Answer Lengths `json:"answer"`
}

// Lengths are how requests are distributed by a number of tokens.
type Lengths struct {
	P5  int `json:"p5"`
	P50 int `json:"p50"`
	P95 int `json:"p95"`
}

// Turn is what was measured of the same turns of all conversations of a level.
type Turn struct {
	From     int    `json:"from"` // 1-based
	To       int    `json:"to"`   // From but for the last entry, which may be of several
	Requests int    `json:"requests"`
	Mean     Number `json:"ttft_mean_s"` // of those that have one
	P95      Number `json:"ttft_p95_s"`  // of all of them
	Cached   Number `json:"cached"`      // share of their prompt tokens that came from a cache
}

// CaseProbe says why a capacity search measured a level.
type CaseProbe struct {
	Purpose string `json:"purpose"` // of the first visit: "ladder", "bisect", "confirm", …
	Set     int    `json:"set"`     // a higher set shares no request with a lower one of the same n
}

// Look is a planned moment at which a level was judged while it ran.
type Look struct {
	Requests int `json:"requests"` // judged: the first ones by start
	Planned  int `json:"planned"`  // looks over which the error probability is split
	// Spent is the share of the error that may be spent up to this look; absent: at
	// this one a part of as many as are planned.
	Spent   float64 `json:"spent,omitempty"`
	Outcome string  `json:"outcome,omitempty"` // "" for one that is left to the end of the run
}

// Failure is one kind of failed request.
type Failure struct {
	Kind  string `json:"kind"` // metric.FailureKind
	Count int    `json:"count"`
	// Messages are the most frequent ones of the kind, at most five. Foreign
	// text.
	Messages []Message `json:"messages"`
}

// Message is one failure message and how often it came.
type Message struct {
	Text  string `json:"text"`
	Count int    `json:"count"`
}

// Round is one pass of a level with one seed.
type Round struct {
	Index    int     `json:"index"` // 0-based
	Seed     int64   `json:"seed"`
	Due      int     `json:"due"`
	At       float64 `json:"at_s"`
	Duration float64 `json:"duration_s"`
	Window   float64 `json:"window_s"`
	Busy     Number  `json:"busy"`              // share of slot-time in flight or in the declared pause
	CPU      Number  `json:"cpu"`               // share of the cores that the generator may use; null: unknown
	GCPause  float64 `json:"gc_pause_s"`        // the longest
	Delay    float64 `json:"delay_s"`           // p99 of how late a ready goroutine ran
	Stall    float64 `json:"stall_s"`           // the most that the generator was held up as a whole
	Complete bool    `json:"complete"`          // false: cut short
	Stopped  string  `json:"stopped,omitempty"` // why it was
	Void     string  `json:"void,omitempty"`    // why it was measured again
}

// Summary is one metric of one case. A metric of a level has Value alone, the
// others the statistics.
type Summary struct {
	Metric string `json:"metric"`
	Unit   string `json:"unit"`
	Better string `json:"better"`        // "lower", "higher" or "neutral"
	Of     string `json:"of"`            // what one observation is: "request", "gap", "level", "histogram" (a request in a server's bucket) or "reading"
	Why    string `json:"why,omitempty"` // why there is no value; "" when there is one
	N      int    `json:"n"`             // observations, those counted as worst included
	Worst  int    `json:"worst"`         // of them, without a value: failed, or completed without the metric
	// LeftOut are answers of one chunk, of a metric of the stream: not in N.
	LeftOut int `json:"left_out,omitempty"`

	Value       Number       `json:"value"` // of a level
	Mean        Number       `json:"mean"`  // of the observations alone, the worst left out
	Min         Number       `json:"min"`
	Max         Number       `json:"max"`
	Percentiles *Percentiles `json:"percentiles,omitempty"` // nil for a level and for readings
	// Curve is the distribution of some metrics at 41 points: the nearest-rank
	// values at 0, 2.5, 5 … 100% of all N, as the percentiles are. Empty where
	// it was not kept.
	Curve []Number `json:"curve,omitempty"`
	// Estimated is set where Percentiles are estimates from buckets.
	Estimated bool `json:"estimated,omitempty"`
}

// Percentiles are nearest-rank over all N, the worst ranked last (+Inf, or 0
// where higher is better).
type Percentiles struct {
	P1   Number `json:"p1"`
	P5   Number `json:"p5"`
	P10  Number `json:"p10"`
	P25  Number `json:"p25"`
	P50  Number `json:"p50"`
	P75  Number `json:"p75"`
	P90  Number `json:"p90"`
	P95  Number `json:"p95"`
	P99  Number `json:"p99"`
	P999 Number `json:"p99.9"`
}

// Timeline is a stretch of one round, request by request, to see why a level
// came out as it did.
type Timeline struct {
	Server   string `json:"server"`
	Workload string `json:"workload"`
	Level    string `json:"level"`
	Why      string `json:"why"`   // why this level is shown
	Round    int    `json:"round"` // 0-based
	Slots    int    `json:"slots"` // of the level; those from the first on are shown
	// From is where the stretch begins and To where the last request shown
	// ends, in seconds from the start of the run.
	From     float64 `json:"from_s"`
	To       float64 `json:"to_s"`
	Requests []Bar   `json:"requests"` // in order of sending
	Left     int     `json:"left"`     // requests of the round that are not shown
}

// Bar is one request. Times are seconds from the start of the stretch.
type Bar struct {
	Slot    int     `json:"slot"`    // 0-based
	Phase   string  `json:"phase"`   // "measured" or "filler"
	Sent    float64 `json:"sent_s"`  // its first byte written
	First   Number  `json:"first_s"` // its first token came; null: none did
	End     float64 `json:"end_s"`   // it ended or failed
	Failure string  `json:"failure,omitempty"`
}

// Verdict is one check and its result.
type Verdict struct {
	Kind     string  `json:"kind"` // "server", "load", "sla", "capacity", "compare" or "assert"
	Server   string  `json:"server,omitempty"`
	Workload string  `json:"workload,omitempty"`
	Level    string  `json:"level,omitempty"`
	Name     string  `json:"name"` // stable across runs
	Outcome  Outcome `json:"outcome"`
	Severity string  `json:"severity"` // "error" or "warn"
	Warn     bool    `json:"warn"`     // the policy: inconclusive only warns
	// Cause of an error: "server", "generator" or "invalid"; else "".
	Cause   string   `json:"cause,omitempty"`
	Message string   `json:"message"` // one line. May quote foreign text
	Needs   string   `json:"needs,omitempty"`
	Notes   []string `json:"notes"`

	Threshold  *Threshold `json:"threshold,omitempty"` // nil unless kind is "sla"
	Decide     string     `json:"decide,omitempty"`    // "certified" or "estimate"
	Value      Number     `json:"value"`               // the point estimate
	Why        string     `json:"why,omitempty"`       // why there is none
	Low        Number     `json:"low"`                 // one-sided lower bound at Confidence
	High       Number     `json:"high"`                // one-sided upper bound at Confidence
	Confidence Number     `json:"confidence"`
	N          int        `json:"n"`         // observations behind the value
	Effective  Number     `json:"effective"` // effective number of requests
	Over       Number     `json:"over"`      // requests, or share of gaps, beyond the limit

	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"` // 1-based; 0: unknown
}

// Threshold is the bound that a verdict is about.
type Threshold struct {
	Metric string `json:"metric"`
	Stat   string `json:"stat"` // "" for a metric of a level
	Op     string `json:"op"`   // "" where there is no limit
	Limit  Number `json:"limit"`
	Unit   string `json:"unit"`
	Text   string `json:"text"` // as the author wrote it
}

// Write writes the document as indented JSON with a final line break. Its last
// field is Sum.
func (d *Document) Write(w io.Writer) error {
	c := *d
	c.Sum = ""
	b, err := json.MarshalIndent(&c, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(Seal(b))
	return err
}

// Seal adds a checksum to an indented JSON object, or replaces the one that it has.
func Seal(object []byte) []byte {
	b := object[:max(len(object)-len("\n}"), 0)]
	if at := bytes.LastIndex(object, []byte(sumHead)); at >= 0 {
		b = object[:at]
	}
	return fmt.Appendf(bytes.Clone(b), sumLine, sha256.Sum256(b))
}

// sumLine ends a document: the sum of all that stands before it.
const (
	sumHead = ",\n  \"sum\": \""
	sumLine = sumHead + "%x\"\n}\n"
)

// maxDocument bounds a document; one of 10,000 levels has 60 MB.
const maxDocument = 512 << 20

// ReadDocument reads what Write wrote. A document that was changed since is an
// error, and so is one of another schema, which it names; unknown fields are not,
// a later minor version may add some.
func ReadDocument(r io.Reader) (*Document, error) {
	src, err := io.ReadAll(io.LimitReader(r, maxDocument))
	if err != nil {
		return nil, err
	}
	var d Document
	if err := json.Unmarshal(src, &d); err != nil {
		return nil, fmt.Errorf("not a results document: %w", err)
	}
	if d.Schema != Schema {
		return nil, fmt.Errorf("the results document has schema %q; this version reads %q", d.Schema, Schema)
	}
	at := max(len(src)-len(fmt.Sprintf(sumLine, [sha256.Size]byte{})), 0)
	if string(src[at:]) != fmt.Sprintf(sumLine, sha256.Sum256(src[:at])) {
		return nil, errors.New("the results document was changed after it was written; `tokgate judge` makes it anew from the samples")
	}
	d.Sum = ""
	return &d, nil
}
