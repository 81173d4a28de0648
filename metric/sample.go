package metric

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Phase is what a request is for, such as the warm-up.
type Phase string

const (
	// Warmup requests prepare the server. They are never judged.
	Warmup Phase = "warmup"
	// Measured requests are the requests that the plan asks for. Only they are judged.
	Measured Phase = "measured"
	// Filler requests keep up the load until the last measured requests have ended. They are never
	// judged.
	Filler Phase = "filler"
	// Left requests are of clients that leave: tokgate closes the connection, as the plan says. They
	// are never judged, and no failures. One that ended before its client left has no Failure.
	Left Phase = "left"
)

// Sample is one request as the client saw it. Times are offsets from the start of the run, on the
// monotonic clock. They are taken when bytes arrive, before the bytes are parsed. A zero offset
// means that the event did not happen. Scheduled may be zero; Sent is zero only if the request
// could not be sent at all.
type Sample struct {
	Server   string `json:"server"`         // server address: vllm or vllm["on"]
	Workload string `json:"workload"`       // workload address
	Part     string `json:"part,omitempty"` // part of the mix; "" without a mix
	Level    string `json:"level"`          // level name as `tokgate plan` prints it: "30", "burst 8"
	Round    int    `json:"round"`          // 0-based
	Slot     int    `json:"slot"`           // slot of a closed loop, 0-based; position in a burst
	Order    int    `json:"order"`          // 0-based order of start within the round and phase
	Phase    Phase  `json:"phase"`
	Front    string `json:"url,omitempty"` // front end that it went to; "" if the server has only one

	Scheduled   time.Duration `json:"scheduled_ns"`              // time when the request was due
	FromDue     bool          `json:"from_due,omitempty"`        // latencies count from Scheduled
	Sent        time.Duration `json:"sent_ns"`                   // its first byte written
	Headers     time.Duration `json:"headers_ns,omitempty"`      // status line read
	First       time.Duration `json:"first_ns,omitempty"`        // first token-bearing chunk
	FirstAnswer time.Duration `json:"first_answer_ns,omitempty"` // first chunk of content or tool call
	Last        time.Duration `json:"last_ns,omitempty"`         // last token-bearing chunk
	End         time.Duration `json:"end_ns"`                    // end of the stream, or failure

	Gaps        Gaps `json:"gaps_us,omitempty"`      // between token-bearing chunks
	Chunks      int  `json:"chunks,omitempty"`       // token-bearing chunks
	FirstTokens int  `json:"first_tokens,omitempty"` // tokens in the first chunk; 0 if unknown

	// Vectors is the number of embeddings in the answer, which came whole: First, FirstAnswer and Last
	// are the time at which they were there. It is 0 for an answer of text.
	Vectors int `json:"embeddings,omitempty"`

	Text int `json:"text_bytes,omitempty"` // bytes of the answer as JSON; 0 if not recorded

	InputAsked  int      `json:"input_asked"`          // prompt tokens asked for; 0 if the prompt decides
	OutputAsked int      `json:"output_asked"`         // tokens asked for, or the limit of a natural answer
	Usage       *Usage   `json:"usage,omitempty"`      // the server's counts; nil if it sent none
	Finish      string   `json:"finish,omitempty"`     // finish_reason
	Status      int      `json:"status,omitempty"`     // HTTP status; 0 if no response was read
	Reconnects  int      `json:"reconnects,omitempty"` // times sent again after a dead connection
	Failure     *Failure `json:"failure,omitempty"`    // nil if the request did not fail

	// Answer holds what was found in the text of a natural answer; nil if the text was not
	// examined.
	Answer *Answer `json:"answer,omitempty"`
	// Said is the answer itself; nil if it is not kept. It is recorded in a separate file.
	Said *Said `json:"-"`

	Turn int `json:"turn,omitempty"` // turn of a conversation, from 1; 0 outside of conversations
	Row  int `json:"row,omitempty"`  // row of the data set, from 1; 0 without a data set
	// Shared is the share of the prompt, from its beginning, that earlier requests sent too. A cache can
	// hold it. Where Shared is an estimate, a cache can hold up to the share Bound; otherwise Bound is 0.
	Shared float64 `json:"shared,omitempty"`
	Bound  float64 `json:"bound,omitempty"`

	// RetryAfter is how long the client waited because the server asked for it when it refused the
	// request. It is at most MaxRetryAfter, and 0 if the server did not ask.
	RetryAfter time.Duration `json:"retry_after_ns,omitempty"`
}

// Shift moves all times of the request by d, to the clock of another machine.
func (s *Sample) Shift(d time.Duration) {
	for _, t := range []*time.Duration{&s.Scheduled, &s.Sent, &s.Headers, &s.First, &s.FirstAnswer, &s.Last, &s.End} {
		if *t != 0 {
			*t += d
		}
	}
}

// MostCached returns the largest share of the prompt that a cache can hold from earlier requests.
func (s *Sample) MostCached() float64 { return max(s.Shared, s.Bound) }

// MaxRetryAfter is the longest time for which a server may make a slot wait.
const MaxRetryAfter = 30 * time.Second

// Usage holds the server's token counts for one request.
type Usage struct {
	Input  int `json:"input"`
	Output int `json:"output"`
	Cached int `json:"cached"` // prompt tokens from a cache; -1 if the server does not report them
	// Hidden counts the reasoning tokens in Output that the server did not send. The server made
	// them before the first chunk, so FirstTokens includes them.
	Hidden int `json:"hidden,omitempty"`
}

// FailureKind says what went wrong in a failed request.
type FailureKind string

const (
	FailConnect   FailureKind = "connect"   // no connection, or the connection broke before the answer began
	FailLocal     FailureKind = "local"     // this machine lacked ports, file descriptors or memory; no evidence about the server
	FailStatus    FailureKind = "status"    // an HTTP status other than 2xx
	FailStream    FailureKind = "stream"    // an error event in the stream
	FailTruncated FailureKind = "truncated" // the stream ended without a finish_reason
	FailEmpty     FailureKind = "empty"     // the stream ended without a token
	FailProtocol  FailureKind = "protocol"  // not an event stream, or not JSON
	FailTimeout   FailureKind = "timeout"   // the request's own time-out
	// FailMissing is the failure of a request that was never sent, because an earlier turn of its
	// conversation had failed.
	FailMissing FailureKind = "missing"
	// FailUnfinished is the failure of a request that was in flight when its level was ended early;
	// see Cut.
	FailUnfinished FailureKind = "unfinished"
	FailCanceled   FailureKind = "canceled" // cancelled by tokgate, not by the server
)

// Failure is the reason why a request did not complete. Message has the server's own words if it
// gave a reason. They are foreign text: sanitise Message before you show it.
type Failure struct {
	Kind    FailureKind `json:"kind"`
	Message string      `json:"message"`
}

// Completed reports whether the request ended as it should.
func (s *Sample) Completed() bool { return s.Failure == nil }

// Canceled reports whether the run itself cancelled the request. Such a request is neither
// completed nor failed.
func (s *Sample) Canceled() bool { return s.Failure != nil && s.Failure.Kind == FailCanceled }

// Gaps are the times between consecutive chunks with tokens, in whole microseconds, in order of
// arrival. Each gap is rounded up, so rounding never makes a gap meet a bound. Gaps above 71
// minutes are cut to 71 minutes.
type Gaps []uint32

// Add appends one gap.
func (g *Gaps) Add(d time.Duration) {
	us := (d + time.Microsecond - 1) / time.Microsecond
	*g = append(*g, uint32(min(max(us, 0), 1<<32-1)))
}

// UnmarshalJSON reads a list of whole numbers, faster than encoding/json. Most of a recording is
// gaps. With encoding/json, judging a recording would spend three quarters of its time on them.
func (g *Gaps) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	if len(raw) < 2 || raw[0] != '[' {
		return errors.New("gaps must be a list of microseconds")
	}
	out := make(Gaps, 0, bytes.Count(raw, []byte{','})+1)
	for text := range bytes.SplitSeq(raw[1:len(raw)-1], []byte{','}) {
		text = bytes.TrimSpace(text)
		if len(text) == 0 && len(out) == 0 {
			break // an empty list; the JSON syntax was checked before
		}
		us, err := strconv.ParseUint(string(text), 10, 32)
		if err != nil {
			return fmt.Errorf("a gap of %.20q microseconds", text)
		}
		out = append(out, uint32(us))
	}
	*g = out
	return nil
}

// Value returns the request's observation of a metric of scope PerRequest, in base units. ok is
// false if the request has none (see Def.NoValue).
//
// A failed request keeps values from before its failure, such as ttft. It has no e2e, and no value
// that is computed from e2e.
func (s *Sample) Value(name string) (v float64, ok bool) {
	if s.Vectors > 0 {
		if def, _ := Lookup(name); !def.OfEmbeddings() {
			return 0, false
		}
	}
	switch name {
	case "ttft", "ttft_turn_1", "ttft_later":
		return secondsBetween(s.begin(), s.First)
	case "ttfa":
		return secondsBetween(s.begin(), s.FirstAnswer)
	case "e2e":
		if s.Failure != nil {
			return 0, false
		}
		return secondsBetween(s.begin(), s.Last)
	case "e2e_speed":
		e2e, ok := s.Value("e2e")
		if !ok || e2e <= 0 || s.Usage == nil {
			return 0, false
		}
		return float64(s.Usage.Output) / e2e, true
	case "tpot":
		return s.tpot()
	case "speed", "request_speed":
		tpot, ok := s.tpot()
		if !ok {
			return 0, false
		}
		return 1 / tpot, true
	case "tokens_per_chunk":
		if s.Usage == nil || s.Chunks == 0 {
			return 0, false
		}
		return float64(s.Usage.Output-s.Usage.Hidden) / float64(s.Chunks), true
	case "lag":
		if s.Sent == 0 {
			return 0, false
		}
		return (s.Sent - s.Scheduled).Seconds(), true
	}
	return s.answerValue(name)
}

func (s *Sample) tpot() (float64, bool) {
	tokens, took := s.Streamed()
	if tokens <= 0 || took <= 0 {
		return 0, false
	}
	return took.Seconds() / float64(tokens), true
}

// Streamed returns the number of tokens after the first chunk, and the time in which they came.
// Both are 0 if the request failed or has no usage. If the answer came in one chunk, one or both
// are 0.
func (s *Sample) Streamed() (tokens int, took time.Duration) {
	if s.Failure != nil || s.Usage == nil || s.First == 0 {
		return 0, 0
	}
	return max(s.Usage.Output-max(s.FirstTokens, 1), 0), max(s.Last-s.First, 0)
}

// OneChunk reports whether a completed answer has no time between two chunks, usually because it
// came in one chunk. Metrics of streaming leave such an answer out, as neither good nor bad.
func (s *Sample) OneChunk() bool {
	tokens, took := s.Streamed()
	return s.Completed() && s.Usage != nil && s.First != 0 && (tokens == 0 || took == 0)
}

func (s *Sample) begin() time.Duration {
	if s.FromDue {
		return s.Scheduled
	}
	return s.Sent
}

func secondsBetween(from, to time.Duration) (float64, bool) {
	if to == 0 {
		return 0, false
	}
	return (to - from).Seconds(), true
}

// String names the sample for messages.
func (s *Sample) String() string {
	return fmt.Sprintf("%s/%s at %s, round %d, request %d", s.Server, s.Workload, s.Level, s.Round+1, s.Order+1)
}

// SameRequest reports whether two samples are of the same request.
func SameRequest(a, b *Sample) bool {
	return a.Server == b.Server && a.Workload == b.Workload && a.Part == b.Part && a.Level == b.Level && a.Round == b.Round &&
		a.Phase == b.Phase && a.Slot == b.Slot && a.Order == b.Order && a.Turn == b.Turn && a.FromDue == b.FromDue &&
		a.InputAsked == b.InputAsked && a.OutputAsked == b.OutputAsked
}
