// Package client sends one streaming request and turns the answer into a metric.Sample. It has
// three separate layers:
//
//  1. A Transport carries a Request to a server, and reports in order what arrived and when.
//     It uses HTTP, or in virtual time the simulator's engine.
//  2. An Answer, the state machine of tokens, turns these reports into a Sample.
//  3. The SSE reader and the JSON walker read the bytes of the answer for layer 2, without an
//     allocation per chunk.
package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/metric"
)

// Request is one request, ready to be sent.
type Request struct {
	API         engine.API
	Model       string // id sent
	Prompt      Prompt
	Input       int // tokens asked for
	Output      int // requested tokens of the answer; for a natural answer, the maximum
	Context     int // limit of the server on prompt and answer together, in tokens; 0 if unknown
	Temperature *float64
	Stop        []string
	Extra       map[string]any    // further body fields
	Headers     map[string]string // of this request; they replace the server's of the same name
	Timeout     time.Duration     // 0: none
	Natural     bool
	// Patient says that nothing but a record waits for the answer, so news of it need not be quick.
	Patient bool
	// Front is where Send writes the URL of the front end to which the request goes, if the server
	// has several; nil if nobody asks.
	Front *string
}

// mostUnlimited stands in for the tokens that a request asks for, if neither the request nor the
// server limits them.
const mostUnlimited = 1_000_000

// mostTexts returns how many events with text the answer may have. A gateway that streams characters
// sends four or five a token.
func (r *Request) mostTexts() int {
	asked := cmp.Or(r.Output, r.Context, mostUnlimited)
	return max(8*asked, asked+1000)
}

// Prompt is the content of a request: text, token ids (for completions), or the messages of a chat.
type Prompt struct {
	Text     string
	More     []string        // further texts of a request for embeddings
	IDs      []int           // token ids; if not empty, sent instead of Text
	Messages json.RawMessage // messages of a chat; nil if Text is the user's only message
	// Fields are added to the body of the request with this prompt. They replace other fields of
	// the same name.
	Fields map[string]json.RawMessage
	// Parts describe a prompt that begins like other prompts; nil if it does not. In virtual time
	// they take the place of the text.
	Parts  []metric.Piece
	Tokens int // tokens by the server's count; 0 if unknown, or if equal to the request's Input
	Output int // tokens of the answer to this prompt; 0 means the Output of the request
	Row    int // row of the data set, from 1; 0 without a row
	// Shared is the share of the prompt, from its beginning, that earlier requests sent too. A cache may
	// hold it. If Shared is an estimate, a cache may hold up to the share Bound; otherwise Bound is 0.
	Shared, Bound float64
	Before        int // tokens that earlier requests sent too, instead of Shared; 0 if only the share is known

	Ready *Ready // bytes of the request, built ahead of time; nil if not built
	// Recipe makes the content in the process that sends the request; nil if the content is here.
	Recipe Recipe
}

// Recipe makes a prompt.
type Recipe interface{ Make() (Prompt, error) }

// Made returns the prompt with its content.
func (p Prompt) Made() (Prompt, error) {
	if p.Recipe == nil {
		return p, nil
	}
	made, err := p.Recipe.Make()
	p.Text, p.IDs, p.Recipe = made.Text, made.IDs, nil
	return p, err
}

// Ready is the bytes of a request as they go over the connection.
type Ready struct {
	wire, body []byte // wire ends with body
	api        engine.API
	model      string
	output     int
	natural    bool
	headers    map[string]string
	by         Transport // whose request the bytes are
}

// builtFor reports whether p was built for a request with the fields of r.
func (p *Ready) builtFor(r *Request) bool {
	return p != nil && p.api == r.API && p.model == r.Model && p.output == r.Output && p.natural == r.Natural &&
		maps.Equal(p.headers, r.Headers)
}

// Bytes returns roughly how many bytes of memory the prompt takes.
func (p *Prompt) Bytes() int {
	n := len(p.Text) + 8*len(p.IDs) + len(p.Messages)
	for _, text := range p.More {
		n += len(text)
	}
	if p.Ready != nil {
		n += len(p.Ready.wire)
	}
	return n
}

// Further returns further fields of the request's body: fields that OpenAI's API lacks and no
// attribute of the plan sets. A value for this request replaces a value for all requests.
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

// Event is one event of a stream. Its byte slices are valid only during the call of Stream.Event.
type Event struct {
	// The order is not that of sim.Chunk: flags side by side in both would be copied by one load, which has
	// to wait for the stores before it.
	Content   bool // non-empty content
	ToolCall  bool // the event has a tool-call delta with a name or arguments
	Reasoning bool // non-empty reasoning
	Several   bool // the event is of a second choice, which the request did not ask for
	Done      bool // the [DONE] sentinel, or the last event of an API without it
	Text      int  // bytes of all text in this event, as JSON
	// Raw is the text of the event, content and reasoning. Visible is the content alone.
	Raw, Visible []byte
	Calls        []CallPart
	Tokens       int // tokens in this event; 0 if not reported
	Made         int // tokens in this event and all events before it; 0 if not reported
	Finish       string
	Usage        *Usage // nil if the event had no usage, or only zeros
	Err          string // message of an error event; "" if there is none

	// Vectors is the number of embeddings in the answer. Embedded reads them, only during the call; nil if
	// there are none.
	Vectors  int
	Embedded func() ([][]float32, error)
}

// CallPart is the part of a tool call in one event. Its strings are still encoded as JSON.
type CallPart struct {
	Index           int // number of the call within the answer
	Name, Arguments []byte
}

// Usage is the usage object of a response. Cached is -1 if it was not reported. Reasoning is the
// number of reasoning tokens in Output, even if their text was not sent.
type Usage struct{ Input, Output, Cached, Reasoning int }

// Stream receives the events of one request, in order, from one goroutine at a time. The times say
// when the bytes arrived, by the transport's Now.
type Stream interface {
	Sent(at time.Duration)                // the first byte of the request was written
	Headers(at time.Duration, status int) // the status and the headers of the answer were read
	Event(at time.Duration, e *Event)
	// End is the last call. err is nil if the stream ended by itself, even before the end of the
	// answer. Answer decides whether the answer is complete.
	End(at time.Duration, err error)
}

// Retried is a Stream that also receives reconnects. A kept-alive connection may turn out to be
// dead before it brings a byte. The transport then calls Reconnect and sends the request again on a
// new connection. Reconnect comes before Headers or End. Sent is not called again, so every latency
// includes the time that the dead connection took.
type Retried interface {
	Reconnect()
}

// Elsewhere is a Stream whose answer another process may receive. Sample is what is known of the
// request before, Keeps what to record of its text, and Fill takes the answer.
type Elsewhere interface {
	Stream
	Sample() *metric.Sample
	Keeps() (text, reply int)
	Fill(*Received)
}

// Heard is an Elsewhere that listens for tokens while they come: n more chunks with tokens came, the
// last of them at the given time.
type Heard interface{ Heard(at time.Duration, n int) }

// Leaving is an Elsewhere whose client leaves after a number of chunks with tokens.
type Leaving interface{ Leaves() (chunks int) }

// Transport sends requests to one server.
type Transport interface {
	// Send starts the request r and returns at once. The answer goes to the stream s. If ctx is
	// cancelled, the stream ends with the error of ctx.
	Send(ctx context.Context, r *Request, s Stream)
}

// Prepared is a Transport that can do some of its work before a request is due. This work then does
// not delay the request.
type Prepared interface {
	Transport
	// Prepare returns the prompt of r with the bytes of the whole request. The bytes fit only
	// requests whose other fields equal those of r.
	Prepare(r *Request) Prompt
	// Warm opens connections until n requests can be sent at once, and returns when they are open.
	// It reports no failures, because the requests will show them. Connections that were idle for
	// IdleTimeout are closed.
	Warm(ctx context.Context, n int)
}

// Error explains why a transport could not finish a stream. An error of another type in Stream.End
// counts as a broken connection.
type Error struct {
	Kind    metric.FailureKind
	Status  int    // HTTP status; 0 if the status is not the reason
	Message string // message in the server's own words if it sent one; at most maxMessage bytes

	RetryAfter time.Duration // wait that the server asked for, at most metric.MaxRetryAfter; 0: none

	Err error // error of the network or of the decoder; nil if there was none
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

// Final reports whether the server would refuse the same request again: a client error other than a
// time-out or too many requests, what it does not implement, or a redirect that is not followed.
func (e *Error) Final() bool {
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return e.Status >= 300 && e.Status < 500 || e.Status == http.StatusNotImplemented
}

// maxMessage is the largest number of bytes that is kept of a foreign error message.
const maxMessage = 2000
