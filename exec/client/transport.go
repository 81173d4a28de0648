// Package client sends one streaming request and turns the answer into a
// metric.Sample. It has three separate layers:
//
//  1. a Transport carries a Request to a server and reports, in order, what
//     arrived and when (HTTP here; the simulator's engine in virtual time);
//  2. an Answer, the state machine of tokens, turns those reports into a Sample;
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
	Output      int // tokens asked for; for a natural answer the maximum
	Natural     bool
	Temperature *float64
	Stop        []string
	Extra       map[string]any // further body fields
	Timeout     time.Duration  // 0: none
}

// Prompt is the content of a request: text, token ids (for completions), or the messages of a chat.
type Prompt struct {
	Text     string
	IDs      []int           // token ids; if not empty, sent instead of Text
	Messages json.RawMessage // messages of a chat; nil if Text is the user's only message
	// Fields are added to the body of the request with this prompt alone. They win over all other
	// fields of the same name.
	Fields map[string]json.RawMessage
	// Parts describe the prompt in virtual time, in place of its text, if prompts begin alike;
	// otherwise nil.
	Parts  []Part
	Tokens int // number of tokens as the server counts them; 0 if unknown, or if it is the request's Input
	Output int // tokens of the answer to this prompt; 0 means the Output of the request
	Row    int // row of the data set, from 1; 0 for none
	// Shared is an upper bound on the share of the prompt, counted from its beginning, that earlier
	// requests may have sent too. A cache may hold up to this share.
	Shared float64

	Ready *Ready // bytes that the transport built before the request was due; nil if none
}

// Ready is a request in the bytes that go over the connection.
type Ready struct {
	wire, body []byte // wire ends with body
	api, model string
	output     int
	natural    bool
}

// of reports whether p holds the bytes of the request r.
func (p *Ready) of(r *Request) bool {
	return p != nil && p.api == r.API && p.model == r.Model && p.output == r.Output && p.natural == r.Natural
}

// Bytes returns roughly how many bytes of memory the prompt takes.
func (p *Prompt) Bytes() int {
	n := len(p.Text) + 8*len(p.IDs) + len(p.Messages)
	if p.Ready != nil {
		n += len(p.Ready.wire)
	}
	return n
}

// Part is a piece of a prompt. If two pieces have the same key, the text of the longer one begins
// with the text of the shorter one.
type Part struct {
	Key    uint64
	Tokens int
}

// Further returns the members of the body that are not in OpenAI's API and that no attribute of the
// plan sets. It merges those of all requests with those of this request, which win.
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

// Event is one event of a stream. Its byte slices are only valid during the call.
type Event struct {
	Content   bool // non-empty content
	Reasoning bool // non-empty reasoning
	ToolCall  bool // a tool-call delta with a name or arguments
	Text      int  // bytes of all the text in this event, as JSON encodes it
	// Raw and Visible are the bytes of the text: Raw is content and reasoning, Visible is content
	// alone.
	Raw, Visible []byte
	Calls        []CallPart
	Several      bool // the event is of a second choice, which nobody asked for
	Tokens       int  // tokens in this event; 0 if not reported
	Made         int  // tokens made up to and including this event; 0 if not reported
	Finish       string
	Usage        *Usage // nil if the event had no usage, or only zeros
	Err          string // message of an error event; "" if there is none
	Done         bool   // the [DONE] sentinel
}

// CallPart is the part of one tool call that an event brought. The strings are still encoded as
// JSON.
type CallPart struct {
	Index           int // number of the call within the answer
	Name, Arguments []byte
}

// Usage is a usage object. Cached is -1 if it was not reported. Reasoning counts tokens of Output,
// whether or not their text was sent.
type Usage struct{ Input, Output, Cached, Reasoning int }

// Stream receives the events of one request, in order, from one goroutine at a time. Times are
// from the transport's Now, taken when the bytes arrived.
type Stream interface {
	Sent(at time.Duration)                // the first byte was written
	Headers(at time.Duration, status int) // the answer's head was read
	Event(at time.Duration, e *Event)
	// End is the last call. err is nil if the stream ended by itself, even if the answer is not
	// complete. The state machine Answer decides whether it is complete.
	End(at time.Duration, err error)
}

// Retried is a Stream that is told about reconnects. A transport calls Reconnect when a kept-alive
// connection turns out to be dead before it brought a byte, and the transport sends the request
// again on a fresh connection. Reconnect comes before Headers or End. Sent is not called a second
// time, so every latency includes the time that the dead connection cost.
type Retried interface {
	Reconnect()
}

// Transport carries requests to one server.
type Transport interface {
	// Send starts r and returns at once. s receives everything else. Cancelling ctx
	// ends the stream with its error.
	Send(ctx context.Context, r *Request, s Stream)
}

// Prepared is a Transport that can do some of the work before a request is due, so that this work
// does not delay the request.
type Prepared interface {
	Transport
	// Prepare returns the prompt of the request r with the bytes that are sent for r. These bytes
	// serve only for a request with the same API, model and Output, and with all other fields as in
	// r.
	Prepare(r *Request) Prompt
	// Warm opens connections until n requests can be sent at once without waiting,
	// and returns when they are open. Failures are left to the requests. The
	// connections are closed when they were idle for IdleTimeout.
	Warm(ctx context.Context, n int)
}

// Error explains why a transport could not bring a stream to its own end. An error of
// another type that reaches Stream.End is taken for a broken connection.
type Error struct {
	Kind    metric.FailureKind
	Status  int    // the HTTP status, if it is the reason; otherwise 0
	Message string // message in the server's own words if it sent any; foreign text, at most MaxMessage bytes

	RetryAfter time.Duration // wait that the server asked for, up to metric.MaxRetryAfter; 0: none

	Err error // the error of the network or the decoder; nil if there was none
}

// Unwrap returns the underlying error, if there is one.
func (e *Error) Unwrap() error { return e.Err }

// Error is the message.
func (e *Error) Error() string {
	if e.Kind == metric.FailStatus && e.Status != 0 {
		return fmt.Sprintf("HTTP %d: %s", e.Status, e.Message)
	}
	return e.Message
}

// MaxMessage is the largest number of bytes that is kept of a foreign error message.
const MaxMessage = 2000
