// Package client sends one streaming request and turns what comes back into
// a metric.Sample. Three layers, apart from each other:
//
//  1. a Transport carries a Request to a server and reports, in order, what
//     arrived and when (HTTP here; the simulator's engine in virtual time);
//  2. an Answer, the token state machine, turns those reports into a Sample;
//  3. the SSE reader and the JSON walker feed 2 from bytes, without an
//     allocation per chunk.
package client

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Request is one request, ready to be sent.
type Request struct {
	API         string // "chat" or "completions"
	Model       string // id sent
	Prompt      Prompt
	Input       int // tokens asked for
	Output      int // tokens asked for; the most of a natural answer
	Natural     bool
	Temperature *float64
	Stop        []string
	Extra       map[string]any // further body fields
	Timeout     time.Duration  // 0: none
}

// Prompt is what is sent: text, or token ids on completions, or the messages of a
// chat.
type Prompt struct {
	Text     string
	IDs      []int           // when non-empty, sent instead of Text
	Messages json.RawMessage // of a chat; nil: Text is the one message of its user
	// Fields are of this request's body alone, and win over all others.
	Fields map[string]json.RawMessage
	// Parts stand for the text in virtual time, where prompts begin alike; nil: they
	// do not.
	Parts  []Part
	Tokens int // by the server's count; 0: not known, or the request's Input
	Output int // tokens of its answer; 0: the request's
	Row    int // of the data set, from 1; 0: it is of none
	// Shared is the share of it, from its beginning, that earlier requests may have
	// begun with too, at most: so much of it may come from a cache.
	Shared float64

	Ready *Ready // what a transport made of it beforehand; nil: nothing
}

// Ready is a request as it is sent.
type Ready struct {
	wire, body []byte // the body is the end of wire
	api, model string
	output     int
	natural    bool
}

// of reports whether it is what r is sent as.
func (p *Ready) of(r *Request) bool {
	return p != nil && p.api == r.API && p.model == r.Model && p.output == r.Output && p.natural == r.Natural
}

// Bytes is how long the prompt is in memory, about.
func (p *Prompt) Bytes() int {
	n := len(p.Text) + 8*len(p.IDs) + len(p.Messages)
	if p.Ready != nil {
		n += len(p.Ready.wire)
	}
	return n
}

// Part is a stretch of a prompt: of two of the same key the shorter one is how the
// longer one begins.
type Part struct {
	Key    uint64
	Tokens int
}

// Further are the other fields of the body, neither of OpenAI's API nor from the plan's own
// attributes: those of all requests, and this one's, which win.
func (r *Request) Further() map[string]any {
	if len(r.Prompt.Fields) == 0 {
		return r.Extra
	}
	out := maps.Clone(r.Extra)
	if out == nil {
		out = map[string]any{}
	}
	for name, v := range r.Prompt.Fields {
		out[name] = v
	}
	return out
}

// Event is one event of a stream. Its byte slices are valid during the call only.
type Event struct {
	Content   bool // non-empty content
	Reasoning bool // non-empty reasoning
	ToolCall  bool // a tool-call delta with a name or arguments
	Text      int  // bytes of all these, as JSON writes them
	// These bytes, by what they are. Raw is content and reasoning; of content, Visible.
	Raw, Visible []byte
	Calls        []CallPart
	Several      bool // of another choice than the first: one was asked for
	Tokens       int  // tokens in this event; 0: not told
	Made         int  // tokens made up to and with this event; 0: not told
	Finish       string
	Usage        *Usage // nil when the event carried none that counts something
	Err          string // message of an error event; "" when none
	Done         bool   // the [DONE] sentinel
}

// CallPart is what an event brought of one call of a tool, as JSON writes it.
type CallPart struct {
	Index           int // of the call within the answer
	Name, Arguments []byte
}

// Usage is a usage object. Cached is -1 if it was not reported. Reasoning counts tokens of Output,
// whether or not their text was sent.
type Usage struct{ Input, Output, Cached, Reasoning int }

// Stream receives the events of one request, in order, from one goroutine at a time. Times are the
// transport's Now, taken when the bytes arrived.
type Stream interface {
	Sent(at time.Duration)                // the first byte was written
	Headers(at time.Duration, status int) // the answer's head was read
	Event(at time.Duration, e *Event)
	// End is the last call. err is nil when the stream ended by itself, be it
	// complete or not: that is the state machine's business.
	End(at time.Duration, err error)
}

// Retried is a Stream that counts reconnects: a kept-alive connection was
// found dead before it brought a byte, and the request was sent again on a
// fresh one. The call comes before Headers or End. Sent is not repeated: the
// time that the dead connection cost stays in every latency.
type Retried interface {
	Reconnect()
}

// Transport carries requests to one server.
type Transport interface {
	// Send starts r and returns at once; s hears the rest. Cancelling ctx ends
	// the stream with its error.
	Send(ctx context.Context, r *Request, s Stream)
}

// Prepared is a Transport that can do beforehand what would hold up a request when it
// is due.
type Prepared interface {
	Transport
	// Prepare returns r's prompt with the bytes that r is sent as. They count for a
	// request of the same API, model and Output only, and what else it has must be
	// as in r.
	Prepare(r *Request) Prompt
	// Warm opens connections until n requests can be sent at once without waiting
	// for any; it waits for them, and what fails is left to the requests. They are
	// closed when they were idle for IdleTimeout.
	Warm(ctx context.Context, n int)
}

// Error is why a transport could not bring a stream to its own end. An error
// of another type that reaches Stream.End is taken for a broken connection.
type Error struct {
	Kind    metric.FailureKind
	Status  int    // the HTTP status, when it is the reason; else 0
	Message string // in the server's own words where it had any; foreign text, at most MaxMessage bytes

	RetryAfter time.Duration // that the server asked to wait, at most metric.MaxRetryAfter; 0: it did not

	Err error // of the network or the decoder below; nil: it was neither
}

// Unwrap is the error below, if there was one.
func (e *Error) Unwrap() error { return e.Err }

// Error is the message.
func (e *Error) Error() string {
	if e.Kind == metric.FailStatus && e.Status != 0 {
		return fmt.Sprintf("HTTP %d: %s", e.Status, e.Message)
	}
	return e.Message
}

// MaxMessage bounds what is kept of a foreign error message, in bytes.
const MaxMessage = 2000
