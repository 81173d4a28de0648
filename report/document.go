// Package report writes the result of a run. It has one versioned Document, and one file for each
// output that is made from the Document.
//
//  1. New makes a Document from the observations (metric.Run), the plan (plan.Plan) and the
//     verdicts (assert.Verdicts). It holds the types that measuring and judging make, and what is
//     derived from the samples.
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
	"slices"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// Schema is the version of the document's format. A new field keeps the version. A field with a new
// meaning, or a removed field, needs a new version.
const Schema = "tokgate.results/2"

// Document is the result of one run. It is self-contained, in base units (seconds, tokens, and
// nanoseconds where a name ends in _ns), in the order of the plan.
type Document struct {
	Schema string `json:"schema"` // always Schema
	// Run is what was observed, without the requests and without the readings of telemetry. Its
	// capacities are those that the verdicts found.
	Run  *metric.Run `json:"run"`
	Plan Plan        `json:"plan"`
	Host string      `json:"host,omitempty"` // machine that generated the load; "" if not recorded
	// Folder is the folder of the run's reports, as given on the command line; "" if none were written.
	Folder string `json:"folder,omitempty"`
	// Recording is the SHA-256 sum of the judged recording, in hexadecimal; "" without a checksum.
	Recording string `json:"recording,omitempty"`
	Partial   bool   `json:"partial"` // whether the user left out cases

	// Spent is what the run cost. Reports that tokgate wrote before it counted this have zeros.
	Spent Spent `json:"spent,omitzero"`

	Outcome  verdict.Outcome `json:"outcome"`
	Why      string          `json:"why,omitempty"` // explains the outcome if nothing was judged; else ""
	ExitCode int             `json:"exit_code"`

	Workloads []Workload `json:"workloads,omitempty"` // empty without the plan
	// Cases holds what is derived from the requests of each level of Run, in the same order.
	Cases       []Case                `json:"cases"`
	Verdicts    []verdict.Verdict     `json:"verdicts"`
	Comparisons []*compare.Comparison `json:"comparisons"`
	// Answers holds the worst answers of each workload on each server, and of each comparison.
	// Absent if no answer counts as bad, or if the text of the answers was not recorded.
	Answers []Answer `json:"answers,omitempty"`
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

// Plan holds what the plan requires, and how it names the servers.
type Plan struct {
	Name       string  `json:"name"` // name of the file, without folder and extension
	Path       string  `json:"path"` // path as given on the command line
	Hash       string  `json:"hash"` // SHA-256 of the sources and variables, in hex
	Confidence float64 `json:"confidence,omitempty"`
	Decide     string  `json:"decide"`
	Warn       bool    `json:"warn"` // inconclusive verdicts only warn
	Budget     float64 `json:"budget_s,omitempty"`
	// MeasureOnly means that the plan deliberately requires nothing.
	MeasureOnly bool   `json:"measure_only,omitempty"`
	Currency    string `json:"currency,omitempty"` // currency of the prices; "" if the plan has none
	// Cover is the text at the top of the report; nil if the plan has no report block.
	Cover   *Cover   `json:"cover,omitempty"`
	Servers []Server `json:"servers"` // all servers in the plan
	// Sources holds the plan's files, the plan itself first. It is empty if the plan is not
	// available or too long.
	Sources []Source `json:"sources,omitempty"`
}

// Server is what the plan says about a server.
type Server struct {
	Address     string `json:"address"`
	Title       string `json:"title,omitempty"` // title for readers; "" means the address
	Description string `json:"description,omitempty"`
	// ElectricityOnly means that the plan prices electricity, but not the hours of this server.
	ElectricityOnly bool `json:"electricity_only,omitempty"`
}

// Cover is the text for the top of the report, as written in the plan.
type Cover struct {
	Title        string   `json:"title,omitempty"`
	Subtitle     string   `json:"subtitle,omitempty"`
	Organization string   `json:"organization,omitempty"`
	Logo         []byte   `json:"logo,omitempty"` // a PNG or JPEG picture
	Notes        []string `json:"notes,omitempty"`
}

// Case is what is derived from the requests of one level of one workload on one server.
type Case struct {
	// Level is the level of the run, without its requests. In JSON it stands at the same place of
	// Run.Levels.
	*metric.Level `json:"-"`
	Title         string `json:"title,omitempty"` // name of the level for readers
	// Description says what the level stands for; "" if the plan does not say.
	Description string `json:"description,omitempty"`
	// Digest identifies the workload's requests as the plan describes them. Two runs with different
	// digests sent different workloads. "" if not recorded.
	Digest string `json:"digest,omitempty"`
	// RatesOver is the period over which throughput and other rates are computed. Window is the
	// total length of the period over all rounds, in seconds.
	RatesOver metric.Window `json:"window,omitempty"`
	Window    float64       `json:"window_s"`
	Spent     Spent         `json:"spent,omitzero"`
	Completed int           `json:"completed"` // measured requests that ended correctly
	Failed    int           `json:"failed"`    // measured requests that ended with an error
	// Canceled is the number of requests that the run cancelled because it was stopped. No other
	// figure counts them, not even Completed or Failed.
	Canceled int `json:"canceled,omitempty"`
	// Departures counts the clients that left; nil if none does. No other figure of requests counts them.
	Departures *metric.Departures `json:"departures,omitempty"`
	// Failures counts the failed requests by kind, most frequent first.
	Failures   []Failure `json:"failures,omitempty"`
	Reconnects int       `json:"reconnects"` // requests resent because a reused connection had died
	// InputTokens and OutputTokens are sums over all measured requests that completed. The server
	// counted the tokens.
	InputTokens  int       `json:"input_tokens"`
	OutputTokens int       `json:"output_tokens"`
	Metrics      []Summary `json:"metrics"` // one summary for each metric, in the order of metric.Defs
	// VLLMBench has the figures by the definitions of vLLM's client; nil if no request completed.
	VLLMBench *VLLMBench `json:"vllm_bench,omitempty"`
	Breakdown
	// Series holds the server and GPU metrics over time, all rounds together; empty
	// if none were reported.
	Series []Series `json:"series,omitempty"`
}

// Breakdown divides a case by turn, and by rows of a data set.
type Breakdown struct {
	// Implied is the share of the prompt tokens that earlier requests had sent too: the cache hit rate of a
	// cache that forgets nothing. Absent if prompts begin differently.
	Implied metric.Value `json:"implied_hit_rate,omitzero"`
	// Turns holds the results of conversations by turn, at most ten entries. Absent if there are no
	// conversations.
	Turns []Turn `json:"turns,omitempty"`
	// Rows describes the rows of a data set that were sent. Absent if the workload has no data set.
	Rows *Rows `json:"rows,omitempty"`
}

// Series is the values of one metric over time. Points are readings in the order of time. There are
// no points for the time between rounds.
type Series struct {
	Metric string      `json:"metric"` // name of a metric.Def
	Unit   metric.Unit `json:"unit"`
	At     []float64   `json:"at_s"` // times of the readings, in seconds from the run's start
	Values []float64   `json:"values"`
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
	From     int          `json:"from"` // 1-based
	To       int          `json:"to"`   // last turn; equals From, except in the last entry
	Requests int          `json:"requests"`
	Mean     metric.Value `json:"ttft_mean_s"`      // mean over the requests that have a TTFT
	P95      metric.Value `json:"ttft_p95_s"`       // p95 over all requests; failed requests rank as worst
	Cached   metric.Value `json:"cached"`           // share of the prompt tokens that came from a cache
	Implied  metric.Value `json:"implied,omitzero"` // share of the prompt tokens that earlier requests had sent too; absent if none
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

// Summary is one metric of one case. A level-wide metric has only the field Value. A metric of
// requests has the statistics.
type Summary struct {
	Metric string      `json:"metric"`
	Unit   metric.Unit `json:"unit"`
	Better string      `json:"better"`        // "lower", "higher" or "neutral"
	Of     string      `json:"of"`            // what is observed: "request", "gap", "level", "histogram" (of the server) or "reading"
	Why    string      `json:"why,omitempty"` // why there is no value; "" if there is one
	N      int         `json:"n"`             // number of observations, including those counted as worst
	Worst  int         `json:"worst"`         // observations without a value, such as failures; part of N
	// LeftOut is the number of answers that came in a single chunk. A metric of streaming has no
	// value for these answers, so N does not count them.
	LeftOut int `json:"left_out,omitempty"`

	Value       metric.Value `json:"value"` // of a level
	Mean        metric.Value `json:"mean"`  // mean of the observations that have a value
	Min         metric.Value `json:"min"`
	Max         metric.Value `json:"max"`
	Percentiles *Percentiles `json:"percentiles,omitempty"` // nil for level-wide metrics and readings
	// Curve is the distribution of the metric at 41 points: the nearest-rank values at 0, 2.5, 5 …
	// 100 % of all N observations. Only some metrics have it; empty if there is none.
	Curve []metric.Value `json:"curve,omitempty"`
	// Estimated means that Percentiles are estimated from the buckets of a histogram.
	Estimated bool `json:"estimated,omitempty"`
}

// Percentiles holds nearest-rank percentiles of all N observations. An observation without a value
// ranks last, as +Inf, or as 0 if higher is better.
type Percentiles struct {
	P1   metric.Value `json:"p1"`
	P5   metric.Value `json:"p5"`
	P10  metric.Value `json:"p10"`
	P25  metric.Value `json:"p25"`
	P50  metric.Value `json:"p50"`
	P75  metric.Value `json:"p75"`
	P90  metric.Value `json:"p90"`
	P95  metric.Value `json:"p95"`
	P99  metric.Value `json:"p99"`
	P999 metric.Value `json:"p99.9"`
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
	Slot    int          `json:"slot"`    // 0-based
	Phase   string       `json:"phase"`   // "measured" or "filler"
	Sent    float64      `json:"sent_s"`  // its first byte written
	First   metric.Value `json:"first_s"` // time of the first token; null if there was none
	End     float64      `json:"end_s"`   // it ended or failed
	Failure string       `json:"failure,omitempty"`
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

// ReadDocument reads a document that Write wrote, of this schema or of an earlier one. It returns an
// error if the document was changed since, or if its schema is not known. Unknown fields are
// ignored, because later versions may add some.
func ReadDocument(r io.Reader) (*Document, error) {
	src, err := io.ReadAll(io.LimitReader(r, maxDocument))
	if err != nil {
		return nil, err
	}
	var d Document
	var head struct{ Schema string }
	if err := json.Unmarshal(src, &head); err != nil {
		return nil, fmt.Errorf("not a results document: %w", err)
	}
	text := src
	switch head.Schema {
	case Schema:
	case schema1:
		if text, err = fromSchema1(src); err != nil {
			return nil, fmt.Errorf("not a results document: %w", err)
		}
	default:
		return nil, fmt.Errorf("the results document has schema %q; this version reads %q and %q", head.Schema, Schema, schema1)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("not a results document: %w", err)
	}
	at := max(len(src)-len(fmt.Sprintf(sumLine, [sha256.Size]byte{})), 0)
	if string(src[at:]) != fmt.Sprintf(sumLine, sha256.Sum256(src[:at])) {
		return nil, errors.New("the results document was changed after it was written; `tokgate judge` makes it again from the samples")
	}
	d.Sum = ""
	return &d, d.link()
}

func (d *Document) link() error {
	if d.Run == nil || len(d.Run.Levels) != len(d.Cases) || slices.Contains(d.Run.Levels, nil) || slices.Contains(d.Run.Servers, nil) ||
		slices.Contains(d.Run.Capacities, nil) || slices.Contains(d.Comparisons, nil) {
		return errors.New("not a results document: its parts do not fit together")
	}
	for i := range d.Cases {
		d.Cases[i].Level = d.Run.Levels[i]
	}
	return nil
}
