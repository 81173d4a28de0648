package sim

import (
	"net/http"
	"slices"
	"time"
)

func (v *Virtual) emission(c *Call, e *Emission) {
	at, fx := e.At, c.fx
	if c.cached = e.Times.Cached; fx.is("cached") {
		c.cached = c.input
	}
	if c.whole {
		if e.Last {
			if c.left--; c.left <= 0 {
				v.object(c, at)
			}
		}
		return
	}
	to, breaks := fx.visible(c.sent, e.Total, e.Last)
	if to > c.sent {
		if c.sent == 0 {
			v.head(c, at)
			v.role(c, at)
		}
		v.tokens(c, at, to)
	}
	switch {
	case breaks:
		v.breakOff(c, at)
	case e.Last:
		v.finish(c, at)
	}
}

// head reports the HTTP status of the stream to the client. Later calls report nothing.
func (v *Virtual) head(c *Call, at time.Duration) {
	if !c.begun {
		c.begun = true
		c.to.Headers(at, http.StatusOK)
	}
}

// role sends the first chunk of a chat. Later calls send nothing.
func (v *Virtual) role(c *Call, at time.Duration) {
	if !c.roled && c.api.Chats() {
		c.roled = true
		v.head(c, at)
		begin := Chunk{kind: chunkRole, Usage: v.running(c)}
		if c.api == messagesAPI { // its answers begin with the number of input tokens
			v.usage = Usage{Input: c.input, Cached: -1}
			begin.Usage = &v.usage
		}
		v.send(c, at, begin)
	}
}

// tokens sends further tokens of the answer, up to the given total. They are one chunk, or two if
// the reasoning ends among them.
func (v *Virtual) tokens(c *Call, at time.Duration, to int) {
	reasoning, tool := 0, ""
	if c.api.Chats() {
		reasoning, tool = c.fx.reasons().Tokens, c.reply.calls(c.fx)
	}
	calls := tool != ""
	if c.sent < reasoning && reasoning < to {
		v.tokens(c, at, reasoning)
	}
	from := c.sent
	c.sent = to
	if calls && from == 0 && (c.api == responsesAPI || c.api == messagesAPI) {
		v.send(c, at, Chunk{kind: chunkCall, ToolCall: true, Tool: tool}) // the name has an event of its own
		tool = ""
	}
	chunk := &v.chunk // reuse the chunk, because a simulation makes very many
	*chunk = Chunk{}
	chunk.Content = !calls && from >= reasoning
	chunk.Reasoning = !calls && from < reasoning
	chunk.ToolCall = calls
	chunk.Usage, chunk.from, chunk.to = v.running(c), from, to
	if c.spoken {
		v.text = c.reply.appendText(v.text[:0], from, to, c.fx)
		if chunk.Text = v.text; from == 0 {
			chunk.Tool = tool
		}
	}
	c.to.Chunk(at, chunk)
}

// running returns the usage so far, for a chunk before the last one. It returns nil if a fault
// hides the usage, or the API has none before the end.
func (v *Virtual) running(c *Call) *Usage {
	if c.api == responsesAPI || c.api == messagesAPI || c.fx.is("usage-null", "usage-zero", "no-usage") {
		return nil
	}
	return v.used(c)
}

func (v *Virtual) used(c *Call) *Usage {
	v.usage = Usage{Input: c.input, Output: c.reply.reportedTokens(c.sent), Cached: c.cached}
	return &v.usage
}

func (v *Virtual) finish(c *Call, at time.Duration) {
	fx := c.fx
	if fx.is("empty-delta") {
		v.send(c, at, Chunk{kind: chunkEmpty, Usage: v.running(c)})
	}
	last := Chunk{kind: chunkFinish, Finish: c.reply.finish, Usage: v.running(c)}
	if fx.is("usage-in-finish") && !fx.is("no-usage") {
		last.Usage = v.used(c)
	}
	v.send(c, at, last)
	if !fx.is("usage-in-finish") && !fx.is("no-usage") {
		v.send(c, at, Chunk{kind: chunkUsage, Usage: v.used(c)})
	}
	if !fx.is("no-done") {
		v.send(c, at, Chunk{kind: chunkDone, Done: true})
	}
	v.end(c, at, Ended, "")
}

func (v *Virtual) breakOff(c *Call, at time.Duration) {
	fx := c.fx
	switch {
	case fx.is("error-event", "error-event-legacy"):
		v.send(c, at, Chunk{kind: chunkError, Err: fx.failure().Text})
		if !fx.is("no-done") {
			v.send(c, at, Chunk{kind: chunkDone, Done: true})
		}
		v.end(c, at, Ended, "")
	case fx.is("cut"):
		v.end(c, at, Broken, "unexpected EOF")
	case fx.is("never-ends", "trickle"):
		c.silent = true
	default:
		v.end(c, at, Ended, "")
	}
}

func (v *Virtual) object(c *Call, at time.Duration) {
	fx := c.fx
	switch {
	case fx.is("error-event", "error-event-legacy"):
		v.reject(c, at, http.StatusInternalServerError, fx.failure().Text)
	case fx.is("never-ends", "trickle"):
		c.silent = true
	case fx.is("cut"):
		v.end(c, at, Refused, "EOF")
	case c.keys != nil:
		v.embed(c, at)
	default:
		v.head(c, at)
		v.end(c, at, NotStream, "one JSON object")
	}
}

func (v *Virtual) send(c *Call, at time.Duration, chunk Chunk) {
	v.chunk = chunk // reuse the field, so that no chunk is allocated
	c.to.Chunk(at, &v.chunk)
}

func (v *Virtual) reject(c *Call, at time.Duration, status int, words string) {
	c.begun = true
	c.to.Headers(at, status)
	v.end(c, at, Rejected, words)
}

func (v *Virtual) end(c *Call, at time.Duration, how Ending, words string) {
	c.over = true
	v.release(c)
	c.to.End(at, how, words)
}

func (v *Virtual) die(at time.Duration) {
	v.dead = true
	for _, c := range slices.Concat(v.calls, v.late) {
		switch {
		case c == nil || c.over:
		case c.begun:
			v.end(c, at, Broken, "unexpected EOF")
		default:
			v.end(c, at, Refused, "EOF")
		}
	}
	v.late = nil
}
