package sim

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/tokgate/tokgate/answers"
	"github.com/tokgate/tokgate/metric"
)

// Virtual is the built-in server without HTTP: its caller passes requests and the time to it. Server
// is a Virtual with the real clock; it adds connections, redirects, compression and line endings.
//
// Virtual has no clock and no goroutine. Call Send when a request arrives. Advance returns the time
// by which it must be called again. Times are offsets on the caller's clock and never decrease.
// Virtual is not safe for concurrent use.
type Virtual struct {
	profile *Profile
	seed    int64
	model   string
	like    string // name of the engine that the server imitates in its metrics and pages
	engine  *Engine
	faults  *director
	ready   time.Duration
	dead    bool
	metrics *metrics // nil: not kept

	drawn rng          // number of requests at temperature 0 so far; it seeds their random numbers
	known map[rng]bool // seeds of the prompts that were received, for the fault replay
	calls []*Call      // calls in flight; the index is the id of the call's job
	free  []uint64
	left  []uint64 // ids that may be used again after the next Advance
	late  []*Call  // calls that the engine gets later, in the order of time
	chunk Chunk
	usage Usage
	text  []byte
}

// Ask is a request for a completion. The answer is streamed, with usage in every chunk.
type Ask struct {
	Model   string // "" means any model
	API     API
	Input   int // prompt tokens, at least 1
	Output  int // tokens of the answer; if Natural is set, the maximum; 0: as many as fit
	Natural bool
	Greedy  bool // at temperature 0
	Stop    []string
	// Key stands for the text of the prompt. Key and the server's seed determine a natural answer:
	// its text and its length.
	Key uint64
	// Keys are the keys of all inputs of a request for embeddings. Together they have Input tokens.
	Keys []uint64
	// Parts are the consecutive sections of the prompt, if it may begin like other prompts.
	// Together they have Input tokens. If Parts is nil, the beginning is unique, and the prefix
	// cache does not store the prompt.
	Parts []metric.Piece
	// Spoken asks for the text of the answer in every chunk, or for the embeddings. Fields holds the other fields of the
	// request's body. A natural answer obeys the fields response_format and tools.
	Spoken bool
	Fields map[string]any
	// Text is the text of the prompt, for a server that may answer it as a question; else "".
	Text string
}

// Chunk is one event in the stream of an answer.
type Chunk struct {
	Content   bool
	Reasoning bool
	ToolCall  bool
	Text      []byte // text as JSON, if requested; valid only during the call
	Tool      string // name of the tool, in the first chunk of a tool call
	Finish    string
	Usage     *Usage // token counts; nil if the chunk has none
	Err       string // message of an error event
	Done      bool   // the [DONE] mark
	Inputs    int    // number of embeddings
	Vectors   [][]float32

	kind     chunkKind
	from, to int // tokens of the answer in this chunk
}

type chunkKind int8

const (
	chunkTokens chunkKind = iota
	chunkRole             // the first chunk of a chat
	chunkCall             // the name of a tool that is called
	chunkEmpty            // a delta without content before the finish
	chunkFinish
	chunkUsage
	chunkError
	chunkDone
)

// Usage is the usage object of an answer, in tokens.
type Usage struct{ Input, Output, Cached int }

// Ending is the way in which an answer ended.
type Ending int8

const (
	Ended     Ending = iota // the stream ended as it should; the answer may still be incomplete
	Refused                 // the connection failed, or broke before the answer began
	Rejected                // the server answered with an error status
	Broken                  // the connection broke while the stream was sent
	NotStream               // the answer is no event stream
)

// Listener receives the parts of one answer, in order. It must not call the Virtual.
type Listener interface {
	Headers(at time.Duration, status int)
	// Chunk receives the next chunk of the answer. The chunk is valid only during the call.
	Chunk(at time.Duration, c *Chunk)
	// End is called last. The text words describes the error, if there is one.
	End(at time.Duration, how Ending, words string)
}

// Call is a request in flight.
type Call struct {
	api    API
	keys   []uint64        // of the inputs of a request for embeddings; nil for any other
	left   int             // jobs of the engine that have not finished, if there are several
	more   []uint64        // ids of the jobs besides id
	spoken bool            // the chunks carry text
	whole  bool            // the answer is one object, not a stream
	prefix func() []uint64 // hashes of the prompt with its answer, for the prefix cache; nil if it is not cached
	fx     effect
	to     Listener
	id     uint64
	reply  reply
	input  int
	cached int
	due    time.Duration // time at which the engine gets the request
	sent   int           // tokens shown
	begun  bool          // whether the head of the answer was sent
	roled  bool
	silent bool // the server sends nothing more of the answer, and never ends it
	over   bool
	stored metricsState
}

// NewVirtual returns a server that begins to load its model at the given time. It ignores the
// options OnEmit, OnServed, and APIKey.
func NewVirtual(o Options, at time.Duration) (*Virtual, error) {
	if o.Profile == nil {
		o.Profile = DefaultProfile()
	}
	if err := errors.Join(o.Profile.Validate(), o.Faults.validate()); err != nil {
		return nil, err
	}
	v := &Virtual{
		profile: o.Profile,
		seed:    o.Seed,
		model:   cmp.Or(o.Model, o.Profile.Model),
		like:    o.Engine,
		engine:  NewEngine(o.Profile, o.Seed),
		faults:  newDirector(slices.Concat(o.Profile.Faults, o.Faults), o.Seed),
		known:   map[rng]bool{},
	}
	v.engine.began = at
	v.ready = at + max(ms(o.Profile.LoadMS), v.faults.loading())
	return v, nil
}

// Model returns the id of the model that the server serves.
func (v *Virtual) Model() string { return v.model }

// Alive reports whether the server still runs. A fault may have ended it.
func (v *Virtual) Alive() bool { return !v.dead }

// KeepMetrics makes the server collect metrics, so that the method Metrics can show them. Call it
// before the first request.
func (v *Virtual) KeepMetrics() { v.metrics = newMetrics(v.like) }

// Metrics returns the page that Server serves at /metrics. The page is valid until the next call. It
// returns an error if there is none. Call KeepMetrics before the first request.
func (v *Virtual) Metrics(now time.Duration) ([]byte, error) {
	if v.dead {
		return nil, errors.New("connection refused")
	}
	fx := v.faults.next("/metrics")
	switch status, message := fx.status(); {
	case fx.is("die"):
		v.die(now)
		return nil, errors.New("EOF")
	case fx.is("hang"):
		return nil, errors.New("no answer")
	case status != 0:
		return nil, fmt.Errorf("HTTP %d: %s", status, message)
	}
	return v.metrics.page(v.model, v.engine.State(now)), nil
}

// State returns the engine's state at the time now.
func (v *Virtual) State(now time.Duration) State { return v.engine.State(now) }

// resetPrefixCache forgets all cached prompts.
func (v *Virtual) ResetPrefixCache() { v.engine.resetPrefixCache() }

// Logprobs returns the model's log-probabilities of the tokens in the answer said. Server reports
// them as prompt_logprobs.
func (v *Virtual) Logprobs(a Ask, said string) []float64 {
	if len(said) == 0 {
		return nil
	}
	out := newLanguage(v.model, a.Key, a.Text, 1).costs(spoken(said))
	for i := range out {
		out[i] = -out[i]
	}
	return out
}

// Send delivers a request to the server. An immediate answer, such as an error, reaches the
// listener before Send returns.
func (v *Virtual) Send(at time.Duration, a Ask, to Listener) *Call {
	c := &Call{api: a.API, spoken: a.Spoken, to: to, input: a.Input}
	if v.dead {
		v.end(c, at, Refused, "connection refused")
		return c
	}
	c.fx = v.faults.next(root + a.API.Path())
	switch status, message := c.fx.status(); {
	case c.fx.is("die"):
		v.die(at)
		v.end(c, at, Refused, "EOF")
	case c.fx.is("hang"):
		c.silent = true
		v.enlist(c)
	case status != 0:
		v.reject(c, at, status, message)
	case at < v.ready:
		v.reject(c, at, http.StatusServiceUnavailable, "The model is loading.")
	default:
		if err := v.read(c, &a); err != nil {
			status := http.StatusBadRequest
			if bad, ok := errors.AsType[*badRequest](err); ok {
				status = bad.status
			}
			v.reject(c, at, status, err.Error())
			break
		}
		v.begin(c, at)
	}
	return c
}

func (v *Virtual) read(c *Call, a *Ask) error {
	fx := c.fx
	forced := !a.Natural && a.API != messagesAPI && !a.API.Embeds() // as on vLLM
	if fx.is("reject-unknown") && forced {
		return &badRequest{http.StatusUnprocessableEntity, "ignore_eos", `Extra inputs are not permitted: "ignore_eos"`}
	}
	if a.Model != "" && a.Model != v.model {
		return &badRequest{http.StatusNotFound, "model", "The model `" + a.Model + "` does not exist."}
	}
	if n := fx.of("truncate-prompt").Tokens; n > 0 {
		c.input = min(c.input, n)
	}
	want := wanted{api: a.API, input: c.input, ignoreEOS: forced, stop: a.Stop}
	want.text, want.greedy, want.model, want.key = a.Text, a.Greedy, v.model, a.Key
	if a.Greedy {
		v.drawn++
		want.draw = rng(v.seed)<<20 ^ v.drawn
	}
	if a.Natural && len(a.Fields) > 0 {
		want.ask, _ = answers.Read(a.Fields)
	}
	if a.Output > 0 {
		want.max, want.param = a.Output, "max_tokens"
		if a.API == chatAPI {
			want.param = "max_completion_tokens"
		}
	}
	if forced {
		want.min = a.Output
	}
	if a.API.Embeds() {
		c.whole, c.keys = true, a.Keys
		return v.profile.embeddable(c)
	}
	hash := rng(v.seed)
	hash = rng(hash.next() ^ a.Key)
	if cache := v.profile.PrefixCache; cache != nil && len(a.Parts) > 0 {
		c.prefix = func() []uint64 {
			return partHashes(append(slices.Clone(a.Parts), AnswerPiece(a.Parts, c.reply.output)), cache.BlockTokens)
		}
	}
	var err error
	c.reply, err = v.profile.reply(want, hash, fx)
	return err
}

func (v *Virtual) begin(c *Call, at time.Duration) {
	fx := c.fx
	c.due, c.whole = at, c.whole || fx.is("not-sse")
	if c.whole {
		v.submit(c)
		return
	}
	if !fx.is("late-headers") || fx.is("empty-stream") {
		v.head(c, at)
	}
	if fx.is("empty-stream") {
		v.end(c, at, Ended, "")
		return
	}
	if fx.is("early-role") {
		v.role(c, at)
	}
	if late := ms(fx.of("early-role", "late").DelayMS); late > 0 {
		c.due += late
		i, _ := slices.BinarySearchFunc(v.late, c.due, func(other *Call, due time.Duration) int {
			if other.due <= due {
				return -1
			}
			return 1
		})
		v.late = slices.Insert(v.late, i, c)
		return
	}
	v.pass(c, at)
}

// pass submits a request to the engine. With the fault replay, a prompt that came before gets its whole
// answer at once instead.
func (v *Virtual) pass(c *Call, at time.Duration) {
	seed := c.reply.text.seed
	if !c.fx.is("replay") || !v.known[seed] {
		if c.fx.is("replay") {
			v.known[seed] = true
		}
		v.submit(c)
		return
	}
	v.role(c, at)
	for c.sent < c.reply.output {
		v.tokens(c, at, c.sent+1)
	}
	v.finish(c, at)
}

func (v *Virtual) enlist(c *Call) {
	if n := len(v.free); n > 0 {
		c.id, v.free = v.free[n-1], v.free[:n-1]
	} else {
		c.id = uint64(len(v.calls))
		v.calls = append(v.calls, nil)
	}
	v.calls[c.id] = c
}

func (v *Virtual) submit(c *Call) {
	v.enlist(c)
	if c.stored.finish = c.reply.finish; c.stored.finish == "tool_calls" {
		c.stored.finish = "stop" // the engine knows no tool calls, and reports "stop" in its metrics
	}
	job := Job{ID: c.id, Input: c.input, Output: c.reply.output}
	if c.keys != nil {
		v.submitInputs(c)
		return
	}
	if c.prefix != nil {
		job.Prefix = c.prefix()
	}
	if err := v.engine.Submit(c.due, job); err != nil {
		panic(err) // cannot happen: reply has checked the lengths
	}
}

// Cancel disconnects the client of a call. The client receives nothing more.
func (v *Virtual) Cancel(now time.Duration, c *Call) {
	if c.over {
		return
	}
	if v.Advance(now); !c.over {
		v.leaves(now, c)
	}
}

// leaves removes the call of a client that left, with the faults that this has.
func (v *Virtual) leaves(now time.Duration, c *Call) {
	fx := c.fx
	if working := int(c.id) < len(v.calls) && v.calls[c.id] == c; !working || c.silent {
		v.drop(c)
		return
	}
	if fx.is("ignore-abort") {
		c.over, c.silent = true, true // released with the last token
		return
	}
	v.drop(c)
	v.engine.Leak(fx.is("leak-slot"), fx.of("leak-blocks").Tokens)
	if fx.is("die-on-abort") {
		v.die(now)
	}
}

// drop removes a call, and cancels it in the engine if it is not finished.
func (v *Virtual) drop(c *Call) {
	c.over = true
	if i := slices.Index(v.late, c); i >= 0 {
		v.late = slices.Delete(v.late, i, i+1)
	}
	v.release(c)
}

func (v *Virtual) release(c *Call) {
	v.releaseJob(c, c.id)
	for _, id := range c.more {
		v.releaseJob(c, id)
	}
}

func (v *Virtual) releaseJob(c *Call, id uint64) {
	if int(id) < len(v.calls) && v.calls[id] == c {
		v.calls[id] = nil
		v.left = append(v.left, id)
		if v.engine.Cancel(id) && v.metrics != nil {
			v.metrics.finished["abort"]++
		}
	}
}

// Advance lets the server work until the time now. next is the next time at which the server has
// work. If it has none before the next Send, busy is false.
func (v *Virtual) Advance(now time.Duration) (next time.Duration, busy bool) {
	v.free = append(v.free, v.left...)
	v.left = v.left[:0]
	for len(v.late) > 0 && v.late[0].due <= now {
		c := v.late[0]
		v.late = v.late[1:]
		v.pass(c, c.due)
	}
	emitted, next, busy := v.engine.Advance(now)
	for i := range emitted {
		e := &emitted[i]
		c := v.calls[e.ID]
		if c == nil {
			continue
		}
		if v.metrics != nil {
			v.metrics.emission(e, &c.stored)
		}
		if !c.silent {
			v.emission(c, e)
		} else if c.over && e.Last {
			v.release(c)
		}
	}
	if len(v.late) > 0 && (!busy || v.late[0].due < next) {
		next, busy = v.late[0].due, true
	}
	return next, busy
}
