// Package report writes the result of a run. It has one versioned Document, and one file for each
// output that is made from the Document.
//
//  1. New makes a Document from the observations (metric.Run), the plan (plan.Plan) and the
//     verdicts (assert.Verdicts).
//  2. Document.Write and ReadDocument store it as results.json. Every other report can be made
//     again from this file alone.
//  3. JUnit, Markdown, Terminal and LevelsCSV show it to CI systems and people.
//
// The package judges nothing. The Document keeps foreign text (server logs, errors, names)
// unchanged, and each output makes it safe for its own readers.
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

// Schema is the version of the document's format. A new field keeps the version. A field with a new
// meaning, or a removed field, needs a new version.
const Schema = "tokgate.results/1"

// Document is the result of one run. It is self-contained, in base units (seconds,
// tokens), in the order of the plan. Lists are never null in JSON.
type Document struct {
	Schema string `json:"schema"` // always Schema
	Tool   string `json:"tool"`   // tokgate's version
	Run    string `json:"run"`    // unique id, sortable by time; if simulated, made from the plan
	Plan   Plan   `json:"plan"`
	Host   string `json:"host,omitempty"` // machine that generated the load; "" if not recorded
	// Folder is the folder of the run's reports, as given on the command line; "" if none were written.
	Folder string `json:"folder,omitempty"`
	// Recording is the SHA-256 sum of the judged recording, in hexadecimal; "" without a checksum.
	Recording string    `json:"recording,omitempty"`
	Started   time.Time `json:"started,omitzero"` // wall-clock time for readers; zero if simulated
	Duration  float64   `json:"duration_s"`       // length of the run; in virtual time if simulated
	Salt      string    `json:"salt"`             // salt of the prompts, a decimal number of 64 bits
	Simulated bool      `json:"simulated"`        // servers were the built-in simulator in virtual time
	Partial   bool      `json:"partial"`          // whether the user left out cases
	// Stopped is the reason why the run ended before the end of the plan; "" if it did not.
	Stopped string `json:"stopped,omitempty"`

	Outcome  Outcome `json:"outcome"`
	Why      string  `json:"why,omitempty"` // explains the outcome if nothing was judged; else ""
	ExitCode int     `json:"exit_code"`

	Calibration *Calibration `json:"calibration,omitempty"` // nil: none was made
	Servers     []Server     `json:"servers"`
	Workloads   []Workload   `json:"workloads,omitempty"` // empty without the plan
	Cases       []Case       `json:"cases"`
	Capacities  []Capacity   `json:"capacities"`
	Comparisons []Comparison `json:"comparisons"`
	// Answers holds the worst answers of each workload on each server. Absent if no answer counts
	// as bad, or if the text of the answers was not recorded.
	Answers  []Answer  `json:"answers,omitempty"`
	Verdicts []Verdict `json:"verdicts"`
	// Strength is what the gate would notice if a regression was planted; nil if not known.
	Strength *Strength `json:"strength,omitempty"`
	// Timelines shows the single requests of a few levels.
	Timelines []Timeline `json:"timelines,omitempty"`
	// Passages shows windows of open loops over time, at most 24 windows.
	Passages []Passage `json:"passages,omitempty"`
	// Sum is the SHA-256 sum, in hexadecimal, of the JSON text before this field. Only written
	// documents have it.
	Sum string `json:"sum,omitempty"`
}

// Outcome is an assert.Outcome as text: pass, inconclusive, fail, error, skipped or pending.
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

// Plan holds what the plan requires.
type Plan struct {
	Name       string  `json:"name"` // name of the file, without folder and extension
	Path       string  `json:"path"` // path as given on the command line
	Hash       string  `json:"hash"` // SHA-256 of the sources and variables, in hex
	Confidence Number  `json:"confidence"`
	Decide     string  `json:"decide"`
	Warn       bool    `json:"warn"` // inconclusive verdicts only warn
	Budget     float64 `json:"budget_s,omitempty"`
	// MeasureOnly means that the plan deliberately requires nothing.
	MeasureOnly bool   `json:"measure_only,omitempty"`
	Currency    string `json:"currency,omitempty"` // currency of the prices; "" if the plan has none
	// Cover is the text at the top of the report; nil if the plan has no report block.
	Cover   *Cover   `json:"cover,omitempty"`
	Servers []string `json:"servers"` // addresses of all servers in the plan
	// Sources holds the plan's files, the plan itself first. It is empty if the plan is not
	// available or too long.
	Sources []Source `json:"sources,omitempty"`
}

// Cover is the text for the top of the report, as written in the plan.
type Cover struct {
	Title        string   `json:"title,omitempty"`
	Subtitle     string   `json:"subtitle,omitempty"`
	Organization string   `json:"organization,omitempty"`
	Logo         string   `json:"logo,omitempty"` // a PNG or JPEG picture in base64
	Notes        []string `json:"notes,omitempty"`
}

// Server is one server under test. It describes what tokgate found at the start and at the end of
// the measurement.
type Server struct {
	Address     string     `json:"address"`
	Title       string     `json:"title,omitempty"` // title for readers; "" means the address
	Description string     `json:"description,omitempty"`
	Fingerprint []Property `json:"fingerprint"` // in order of metric.Facts
	// Program is the image or command that started the server; "" if there is none.
	Program string `json:"program,omitempty"`
	Model   string `json:"model,omitempty"` // as in the plan; "" if the plan names no model
	// Starts holds, for each start of the server, the time until it was ready, in seconds.
	Starts []float64 `json:"starts_s,omitempty"`
	// ElectricityOnly means that the plan prices electricity, but not the hours of this server.
	ElectricityOnly bool `json:"electricity_only,omitempty"`
	// Path is how the client read the server's streams: "own transport", or "net/http: " and the
	// reason for not using its own transport. "" if not known.
	Path string `json:"path,omitempty"`
	// Error is the reason why the server could not be measured. If it is set, Log is the end of the
	// server's log. tokgate did not write these texts, so they may contain anything.
	Error string `json:"error,omitempty"`
	Log   string `json:"log,omitempty"`
}

// Property is one observed fact: "engine.version", "0.19.1".
type Property struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Calibration is what the generator measured about itself without load.
type Calibration struct {
	Streams  int     `json:"streams"`
	Rate     Number  `json:"chunks_per_s"`
	Delay50  float64 `json:"delay_p50_s"` // median time from the server's write to the receipt
	Delay99  float64 `json:"delay_p99_s"`
	CPU      Number  `json:"cpu"` // share of the allowed cores, in [0, 1]; null if unknown
	Duration float64 `json:"duration_s"`
}

// Case is one level of one workload on one server.
type Case struct {
	Server   string `json:"server"`
	Workload string `json:"workload"`
	// Of is the mix that a part belongs to, and Share is the part's share of the mix's requests.
	// The mix counts these requests too. Absent if the workload is not a part.
	Of    string  `json:"of,omitempty"`
	Share float64 `json:"share,omitempty"`
	Level string  `json:"level"`           // "30", "burst 8"
	Title string  `json:"title,omitempty"` // name of the level for readers
	// Description says what the level stands for; "" if the plan does not say.
	Description string `json:"description,omitempty"`
	Kind        string `json:"kind"` // "closed": N in flight; "burst": N at once; "rate": by Rate
	N           int    `json:"n"`    // 0 for a rate
	// Rate is the rate of an open loop, in requests per second. Cut is set if the open loop ended
	// before its schedule: "stalled" or "full".
	Rate float64 `json:"rate,omitempty"`
	// Largest is the rate at which the server completes requests while its queue is never empty, in
	// requests per second. 0 if it was not measured, or if the load is not a rate.
	Largest float64 `json:"largest_rate,omitempty"`
	// Stage is the rate of a stage as text. If the rate changes, it is the rates at the beginning
	// and at the end. "" if the level is not a stage.
	Stage string `json:"stage,omitempty"`
	// Speedup is how many times faster than recorded the traffic was replayed. The field Rate is
	// then the mean rate of the replay. 0 if the level is not a replay.
	Speedup float64 `json:"speedup,omitempty"`
	Cut     string  `json:"cut,omitempty"`
	Natural bool    `json:"natural,omitempty"` // whether the model ended its answers by itself
	// Exact means that the length of prompts was measured with the server's own tokenizer.
	Exact bool `json:"exact"`
	// Asked is a digest of the workload's requests as the plan describes them. Two runs with
	// different digests sent different workloads. "" if not recorded.
	Asked string `json:"asked,omitempty"`
	// Probe is set for a level that a capacity search chose; nil for a level of the plan.
	Probe   *CaseProbe `json:"probe,omitempty"`
	Skipped string     `json:"skipped,omitempty"` // why the level was not run; "" if it was
	// At is when the first measured request was sent, in seconds from the start of the run.
	// Duration is the time from At to the end of the last measured request, in seconds. If the case
	// took turns with another server, Duration is the total of its rounds.
	At       float64 `json:"at_s"`
	Duration float64 `json:"duration_s"`
	// RatesOver is the period over which throughput and other rates are computed. "steady" is the
	// time in which every slot was busy. "all" is the time from the first measured request to the
	// end of the last one. "" means steady, in early documents. Window is the total length of the
	// period over all rounds, in seconds.
	RatesOver string  `json:"window,omitempty"`
	Window    float64 `json:"window_s"`
	Due       int     `json:"due"`       // measured requests that the plan asked for
	Completed int     `json:"completed"` // measured requests that ended correctly
	Failed    int     `json:"failed"`    // measured requests that ended with an error
	// Canceled is the number of requests that the run cancelled because it was stopped. No other
	// figure counts them, not even Completed or Failed.
	Canceled int `json:"canceled,omitempty"`
	// Failures counts the failed requests by kind, most frequent first.
	Failures   []Failure `json:"failures"`
	Reconnects int       `json:"reconnects"` // requests resent because a reused connection had died
	// InputTokens and OutputTokens are sums over all measured requests that completed. The server
	// counted the tokens.
	InputTokens  int     `json:"input_tokens"`
	OutputTokens int     `json:"output_tokens"`
	Rounds       []Round `json:"rounds"`
	// VLLMBench has the figures by the definitions of vLLM's client; nil if no request completed.
	VLLMBench *VLLMBench `json:"vllm_bench,omitempty"`
	// Voided holds rounds that were measured again because the generator's machine disturbed them.
	// No value includes these rounds. Absent if there are none.
	Voided []Round `json:"voided,omitempty"`
	// Shed is the number of rounds that were left out because too little of the time budget
	// remained.
	Shed int `json:"shed,omitempty"`
	// Looks lists the moments at which the case was judged while it ran, as the plan sets them.
	Looks []Look `json:"looks"`
	// Notes are remarks on how the case was run.
	Notes   []string  `json:"notes"`
	Metrics []Summary `json:"metrics"` // one summary for each metric, in the order of metric.Defs
	// Turns holds the results of conversations by turn, at most ten entries. Absent if there are no
	// conversations.
	Turns []Turn `json:"turns,omitempty"`
	// Rows describes the rows of a data set that were sent. Absent if the workload has no data set.
	Rows *Rows `json:"rows,omitempty"`
	// Series holds the server and GPU metrics over time, all rounds together; empty
	// if none were reported.
	Series []Series `json:"series"`
}

// Series is the values of one metric over time. Points are readings in the order of time. There are
// no points for the time between rounds.
type Series struct {
	Metric string    `json:"metric"` // name of a metric.Def
	Unit   string    `json:"unit"`
	At     []float64 `json:"at_s"` // times of the readings, in seconds from the run's start
	Values []float64 `json:"values"`
}

// Rows describes the rows of a data set that were sent at a level.
type Rows struct {
	Sent int `json:"sent"` // different rows
	// Again is the number of requests whose prompt was sent before in the run, for the same row or
	// for another row with the same prompt.
	Again  int     `json:"again"`
	Prompt Lengths `json:"prompt"` // prompt tokens of completed requests, by the server's count
	Answer Lengths `json:"answer"`
}

// Lengths holds the distribution of a number of tokens over requests.
type Lengths struct {
	P5  int `json:"p5"`
	P50 int `json:"p50"`
	P95 int `json:"p95"`
}

// Turn holds the results of one turn, over all conversations of a level. For example, turn 2 is the
// second request of every conversation.
type Turn struct {
	From     int    `json:"from"` // 1-based
	To       int    `json:"to"`   // last turn; equals From, except in the last entry
	Requests int    `json:"requests"`
	Mean     Number `json:"ttft_mean_s"` // mean over the requests that have a TTFT
	P95      Number `json:"ttft_p95_s"`  // p95 over all requests; failed requests rank as worst
	Cached   Number `json:"cached"`      // share of the prompt tokens that came from a cache
}

// CaseProbe explains why a capacity search measured a level.
type CaseProbe struct {
	Purpose string `json:"purpose"` // purpose of the first probe: "ladder", "bisect", "confirm", …
	// Set numbers the set of requests that the probe sent. Sets for one load share no request.
	Set int `json:"set"`
}

// Look is a planned moment at which a level was judged while it ran.
type Look struct {
	Requests int `json:"requests"` // number of requests judged, in the order of their starts
	Planned  int `json:"planned"`  // number of planned looks, which share the allowed error
	// Spent is the share of the allowed error that may be used up to and including this look. If
	// absent, the allowed error is divided equally between the planned looks.
	Spent   float64 `json:"spent,omitempty"`
	Outcome string  `json:"outcome,omitempty"` // result of the look; "" if it decided nothing
}

// Failure is one kind of failed request.
type Failure struct {
	Kind  string `json:"kind"` // metric.FailureKind
	Count int    `json:"count"`
	// Messages holds the most frequent messages of the kind, at most five. Their text is not
	// written by tokgate.
	Messages []Message `json:"messages"`
}

// Message is one failure message with its count.
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
	Busy     Number  `json:"busy"`              // share of the slots' time in requests or pauses
	CPU      Number  `json:"cpu"`               // share of the allowed cores; null if unknown
	GCPause  float64 `json:"gc_pause_s"`        // the longest
	Delay    float64 `json:"delay_s"`           // p99 of the time that a ready goroutine waited to run
	Stall    float64 `json:"stall_s"`           // longest pause of the whole generator
	Complete bool    `json:"complete"`          // false: cut short
	Stopped  string  `json:"stopped,omitempty"` // why it was
	Void     string  `json:"void,omitempty"`    // why the round was measured again; "" if it was not
}

// Summary is one metric of one case. A level-wide metric has only the field Value. A metric of
// requests has the statistics.
type Summary struct {
	Metric string `json:"metric"`
	Unit   string `json:"unit"`
	Better string `json:"better"`        // "lower", "higher" or "neutral"
	Of     string `json:"of"`            // what is observed: "request", "gap", "level", "histogram" (a request in a bucket of the server) or "reading"
	Why    string `json:"why,omitempty"` // why there is no value; "" if there is one
	N      int    `json:"n"`             // number of observations, including those counted as worst
	Worst  int    `json:"worst"`         // observations without a value, such as failures; part of N
	// LeftOut is the number of answers that came in a single chunk. A metric of streaming has no
	// value for these answers, so N does not count them.
	LeftOut int `json:"left_out,omitempty"`

	Value       Number       `json:"value"` // of a level
	Mean        Number       `json:"mean"`  // mean of the observations that have a value
	Min         Number       `json:"min"`
	Max         Number       `json:"max"`
	Percentiles *Percentiles `json:"percentiles,omitempty"` // nil for level-wide metrics and readings
	// Curve is the distribution of the metric at 41 points: the nearest-rank values at 0, 2.5, 5 …
	// 100 % of all N observations. Only some metrics have it; empty if there is none.
	Curve []Number `json:"curve,omitempty"`
	// Estimated means that Percentiles are estimated from the buckets of a histogram.
	Estimated bool `json:"estimated,omitempty"`
}

// Percentiles holds nearest-rank percentiles of all N observations. An observation without a value
// ranks last, as +Inf, or as 0 if higher is better.
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

// Timeline shows the requests of one part of a round, one by one. It shows why a level has its
// result.
type Timeline struct {
	Server   string `json:"server"`
	Workload string `json:"workload"`
	Level    string `json:"level"`
	Why      string `json:"why"`   // why this level is shown
	Round    int    `json:"round"` // 0-based
	Slots    int    `json:"slots"` // number of slots of the level; only the first few are shown
	// From is the beginning of the time shown, and To is the end of the last request shown. Both
	// are in seconds from the start of the run.
	From     float64 `json:"from_s"`
	To       float64 `json:"to_s"`
	Requests []Bar   `json:"requests"` // in order of sending
	Left     int     `json:"left"`     // requests of the round that are not shown
}

// Bar is one request of a timeline. Times are seconds from the start of the timeline (From).
type Bar struct {
	Slot    int     `json:"slot"`    // 0-based
	Phase   string  `json:"phase"`   // "measured" or "filler"
	Sent    float64 `json:"sent_s"`  // its first byte written
	First   Number  `json:"first_s"` // time of the first token; null if there was none
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
	Warn     bool    `json:"warn"`     // the plan's policy makes an inconclusive outcome a warning
	// Cause is the cause of an error: "server", "generator" or "invalid". "" if the outcome is not
	// an error.
	Cause   string   `json:"cause,omitempty"`
	Sure    bool     `json:"sure,omitempty"` // the load generator cannot have caused this failure
	Message string   `json:"message"`        // one line; may quote text that tokgate did not write
	Needs   string   `json:"needs,omitempty"`
	Notes   []string `json:"notes"`
	// Cautions are the notes that matter even if the verdict is a pass.
	Cautions []string `json:"cautions,omitempty"`
	// Quoted means that the first note quotes a bad answer.
	Quoted bool `json:"quoted,omitempty"`
	// BaseMissing means that the base branch lacks the plan or the server of a comparison, so that
	// nothing was compared. The message says which.
	BaseMissing bool `json:"base_missing,omitempty"`

	Threshold  *Threshold `json:"threshold,omitempty"` // nil unless kind is "sla"
	Decide     string     `json:"decide,omitempty"`    // "certified" or "estimate"
	Value      Number     `json:"value"`               // the point estimate
	Why        string     `json:"why,omitempty"`       // why there is no value; "" if there is one
	Low        Number     `json:"low"`                 // one-sided lower bound at Confidence
	High       Number     `json:"high"`                // one-sided upper bound at Confidence
	Confidence Number     `json:"confidence"`
	N          int        `json:"n"`         // observations behind the value
	Effective  Number     `json:"effective"` // effective number of requests
	Over       Number     `json:"over"`      // number of requests, or share of gaps, beyond the limit

	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"` // 1-based; 0: unknown
}

// Threshold is the bound on a metric that a verdict checks.
type Threshold struct {
	Metric string `json:"metric"`
	Stat   string `json:"stat"` // statistic such as "p95"; "" for a level-wide metric
	Op     string `json:"op"`   // operator of the limit; "" if there is none
	Limit  Number `json:"limit"`
	Unit   string `json:"unit"`
	Text   string `json:"text"` // the whole threshold as its author wrote it
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

// Seal sets the checksum of an indented JSON object. The checksum is the object's last field.
func Seal(object []byte) []byte {
	b := object[:max(len(object)-len("\n}"), 0)]
	if at := bytes.LastIndex(object, []byte(sumHead)); at >= 0 {
		b = object[:at]
	}
	return fmt.Appendf(bytes.Clone(b), sumLine, sha256.Sum256(b))
}

// A document ends with a field that holds the checksum of everything before it.
const (
	sumHead = ",\n  \"sum\": \""
	sumLine = sumHead + "%x\"\n}\n"
)

// maxDocument is the largest size of a document, in bytes. A document with 10,000 levels has 60 MB.
const maxDocument = 512 << 20

// ReadDocument reads a document that Write wrote. It returns an error if the document was changed
// since, or if it has another schema. Unknown fields are ignored, because later versions may add
// some.
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
		return nil, errors.New("the results document was changed after it was written; `tokgate judge` makes it again from the samples")
	}
	d.Sum = ""
	return &d, nil
}
