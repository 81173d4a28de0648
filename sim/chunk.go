package sim

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tokgate/tokgate/engine"
)

// chunker writes an answer in vLLM's wire format. In a chat, the first chunk has only the role. A
// chunk for each emission of the engine follows, then a finish chunk, a usage chunk without choices
// if requested, and [DONE].
type chunker struct {
	server  *Server
	w       http.ResponseWriter
	fx      effect
	order   *order
	id      string
	created int64
	served  Served
	parts   parts // of the answer, from the core
	blocks

	flush  func() error
	head   []byte // the beginning of every chunk: id, object, created and model
	buf    []byte
	usage  Usage
	events int
	chunks int // chunks with tokens
	err    error
}

func (c *chunker) begin() {
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	c.flush = http.NewResponseController(c.w).Flush
	object := "text_completion"
	if c.order.api == engine.Chat {
		object = "chat.completion.chunk"
	}
	c.head = c.identity(nil, object)
	c.w.WriteHeader(http.StatusOK)
	if !c.fx.is("late-headers") {
		c.err = c.flush()
	}
}

func (c *chunker) identity(b []byte, object string) []byte {
	b = append(b, `{"id":`...)
	b = appendQuoted(b, c.id)
	b = append(b, `,"object":"`...)
	b = append(b, object...)
	b = append(b, `","created":`...)
	b = strconv.AppendInt(b, c.created, 10)
	b = append(b, `,"model":`...)
	return appendQuoted(b, c.named())
}

// named returns the name of the model in answers.
func (c *chunker) named() string { return cmp.Or(c.fx.of("hostile-model").Text, c.server.model) }

func (c *chunker) chunk(p *part) {
	c.usage = p.used
	switch c.order.api {
	case engine.Responses:
		c.responses(p)
		return
	case engine.Messages:
		c.messages(p)
		return
	}
	switch p.kind {
	case chunkRole:
		c.start()
		c.buf = append(c.buf, `,"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`...)
		c.running()
		c.send()
	case chunkTokens:
		c.tokens(p.from, p.to)
	case chunkEmpty:
		c.start()
		c.last("null")
		c.running()
		c.send()
	case chunkFinish:
		c.start()
		c.last(`"` + p.words + `"`)
		if c.fx.is("usage-in-finish") && !c.fx.is("no-usage") {
			c.buf = append(c.buf, `,"usage":`...)
			c.buf = c.usage.append(c.buf)
		} else {
			c.running()
		}
		c.send()
	case chunkUsage:
		if o := c.order.StreamOptions; o != nil && o.IncludeUsage {
			c.start()
			c.buf = append(c.buf, `,"choices":[],"usage":`...)
			c.buf = c.usage.append(c.buf)
			c.send()
		}
	case chunkError:
		c.failure()
	case chunkDone:
		c.open()
		c.buf = append(c.buf, "[DONE]"...)
		c.close()
	}
}

func (c *chunker) tokens(from, to int) {
	c.start()
	if c.chunks == 0 && c.fx.is("big-event") {
		c.buf = append(c.buf, `,"padding":"`...)
		c.buf = append(append(c.buf, strings.Repeat("x", 2<<20)...), '"')
	}
	c.buf = append(c.buf, `,"choices":[{"index":0,`...)
	switch {
	case c.order.api == engine.Completions:
		c.buf = append(c.buf, `"text":`...)
		c.text(from, to)
		c.buf = append(c.buf, `,"logprobs":null,"finish_reason":null,"stop_reason":null}]`...)
	case c.order.reply.calls(c.fx) != "":
		c.buf = append(c.buf, `"delta":{"tool_calls":[{"index":0,`...)
		if from == 0 {
			c.buf = append(c.buf, `"id":"call_0","type":"function","function":{"name":`...)
			c.buf = appendQuoted(c.buf, c.order.reply.calls(c.fx))
			c.buf = append(c.buf, `,"arguments":`...)
		} else {
			c.buf = append(c.buf, `"function":{"arguments":`...)
		}
		c.text(from, to)
		c.buf = append(c.buf, `}}]},"logprobs":null,"finish_reason":null}]`...)
	default:
		c.buf = append(c.buf, `"delta":{"`...)
		key := "content"
		if reasons := c.fx.reasons(); from < reasons.Tokens {
			key = strings.ReplaceAll(reasons.Fault, "-", "_")
		}
		c.buf = append(append(c.buf, key...), `":`...)
		c.text(from, to)
		c.buf = append(c.buf, `},"logprobs":null,"finish_reason":null}]`...)
	}
	c.running()
	c.sending(to)
}

// sending sends a chunk with tokens, of which the answer then has a number.
func (c *chunker) sending(to int) {
	now := time.Now()
	if c.server.options.OnEmit != nil {
		c.server.options.OnEmit(c.id, c.chunks, now)
	}
	if c.chunks == 0 {
		c.served.First = now
	}
	c.served.Last, c.served.Tokens = now, to
	c.chunks++
	c.send()
}

func (c *chunker) text(from, to int) {
	c.buf = append(c.buf, '"')
	c.buf = c.order.reply.appendText(c.buf, from, to, c.fx)
	c.buf = append(c.buf, '"')
}

func (c *chunker) last(finish string) {
	if c.order.api == engine.Chat {
		c.buf = append(c.buf, `,"choices":[{"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":`...)
	} else {
		c.buf = append(c.buf, `,"choices":[{"index":0,"text":"","logprobs":null,"finish_reason":`...)
	}
	c.buf = append(c.buf, finish...)
	c.buf = append(c.buf, `,"stop_reason":null}]`...)
}

func (c *chunker) failure() {
	c.open()
	if c.fx.is("error-event-legacy") {
		c.buf = append(c.buf, `{"object":"error","message":`...)
		c.buf = appendQuoted(c.buf, c.fx.failure().Text)
		c.buf = append(c.buf, `,"type":"InternalServerError","param":null,"code":500}`...)
	} else {
		c.buf = appendError(c.buf, http.StatusInternalServerError, "", c.fx.failure().Text)
	}
	c.close()
}

func (c *chunker) running() {
	o := c.order.StreamOptions
	switch {
	case c.fx.is("usage-null"):
		c.buf = append(c.buf, `,"usage":null`...)
	case c.fx.is("usage-zero"):
		c.buf = append(c.buf, `,"usage":`...)
		c.buf = Usage{}.append(c.buf)
	case o != nil && o.ContinuousUsageStats && o.IncludeUsage && !c.fx.is("no-usage"):
		c.buf = append(c.buf, `,"usage":`...)
		c.buf = c.usage.append(c.buf)
	}
}

// start begins a chunk of the answer. The method send ends and writes the chunk.
func (c *chunker) start() {
	c.open()
	c.buf = append(c.buf, c.head...)
}

func (c *chunker) send() {
	c.buf = append(c.buf, '}')
	c.close()
}

// open begins an event of the stream. The method close ends and sends it.
func (c *chunker) open() {
	c.buf = c.buf[:0]
	if c.events == 0 && c.fx.is("bom") {
		c.buf = append(c.buf, "\ufeff"...)
	}
	if c.fx.is("comments") {
		c.buf = append(c.buf, ": keep-alive"...)
		c.newlines(2)
	}
	if c.kind != "" {
		c.buf = append(append(c.buf, "event: "...), c.kind...)
		c.newlines(1)
	}
	c.buf = append(c.buf, "data:"...)
	if !c.fx.is("no-space") {
		c.buf = append(c.buf, ' ')
	}
}

func (c *chunker) close() {
	c.newlines(2)
	c.events++
	c.write(c.buf)
}

func (c *chunker) newlines(n int) {
	ends := "\n\n"
	if c.fx.is("crlf") {
		ends = "\r\n\r\n"
	}
	c.buf = append(c.buf, ends[:n*len(ends)/2]...)
}

func (c *chunker) write(b []byte) {
	if c.err != nil {
		return
	}
	if _, c.err = c.w.Write(b); c.err == nil {
		c.err = c.flush()
	}
}

func (c *chunker) object() {
	c.usage.Output = c.order.reply.reportedTokens(c.order.reply.output)
	if c.order.api == engine.Chat {
		c.buf = c.identity(c.buf[:0], "chat.completion")
		c.buf = append(c.buf, `,"choices":[{"index":0,"message":{"role":"assistant","content":`...)
		c.text(0, c.order.reply.output)
		c.buf = append(c.buf, '}')
	} else {
		c.buf = c.identity(c.buf[:0], "text_completion")
		c.buf = append(c.buf, `,"choices":[{"index":0,"text":`...)
		c.text(0, c.order.reply.output)
	}
	c.buf = append(c.buf, `,"logprobs":null,"finish_reason":`...)
	if c.fx.is("no-finish") {
		c.buf = append(c.buf, "null"...)
	} else {
		c.buf = appendQuoted(c.buf, c.order.reply.finish)
	}
	c.buf = append(c.buf, `,"stop_reason":null`...)
	c.buf = appendLogprobs(c.buf, c.server.model, c.order.scored)
	c.buf = append(c.buf, `}]`...)
	if !c.fx.is("no-usage") {
		c.buf = append(c.buf, `,"usage":`...)
		c.buf = c.usage.append(c.buf)
	}
	c.buf = append(c.buf, '}')
	c.w.Header().Set("Content-Type", "application/json")
	c.w.Write(c.buf)
}

func (u Usage) append(b []byte) []byte {
	b = append(b, `{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(u.Input), 10)
	b = append(b, `,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(u.Input+u.Output), 10)
	b = append(b, `,"completion_tokens":`...)
	b = strconv.AppendInt(b, int64(u.Output), 10)
	b = append(b, `,"prompt_tokens_details":{"cached_tokens":`...)
	b = strconv.AppendInt(b, int64(u.Cached), 10)
	return append(b, "}}"...)
}

// embeddings writes the answer to a request for embeddings.
func (c *chunker) embeddings(call *Call) {
	c.server.mu.Lock()
	vectors := c.server.core.vectors(call)
	c.server.mu.Unlock()
	c.buf = append(c.buf[:0], `{"object":"list","model":`...)
	c.buf = append(appendQuoted(c.buf, c.named()), `,"data":[`...)
	for i, v := range vectors {
		if i > 0 {
			c.buf = append(c.buf, ',')
		}
		c.buf = append(c.buf, `{"object":"embedding","index":`...)
		c.buf = append(strconv.AppendInt(c.buf, int64(i), 10), `,"embedding":`...)
		c.buf = append(c.vector(v), '}')
	}
	c.buf = append(c.buf, ']')
	if !c.fx.is("no-usage") {
		c.usage = Usage{Input: call.input, Cached: call.cached}
		c.buf = append(c.buf, `,"usage":`...)
		c.buf = c.usage.append(c.buf)
	}
	c.buf = append(c.buf, '}')
	c.w.Header().Set("Content-Type", "application/json")
	c.w.Write(c.buf)
}

// vector appends an embedding in the form that the request asks for.
func (c *chunker) vector(v []float32) []byte {
	if c.order.EncodingFormat == "base64" {
		raw := make([]byte, 0, 4*len(v))
		for _, x := range v {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
		}
		return append(base64.StdEncoding.AppendEncode(append(c.buf, '"'), raw), '"')
	}
	text, _ := json.Marshal(v) // finite numbers
	return append(c.buf, text...)
}
