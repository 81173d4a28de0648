package sim

import (
	"fmt"
	"strings"
)

// event begins an event of Responses or Messages, which has a type in its line "event:" and in its
// JSON.
func (c *chunker) event(kind string) {
	c.kind = kind
	c.open()
	c.buf = append(c.buf, `{"type":"`...)
	c.buf = append(c.buf, kind...)
	c.buf = append(c.buf, '"')
}

// plain sends an event with further members, which are JSON.
func (c *chunker) plain(kind, members string) {
	c.event(kind)
	c.buf = append(c.buf, members...)
	c.send()
}

// blocks says where in an answer of Responses or Messages the tokens belong.
type blocks struct {
	kind   string // of the event that is being written; "" in other APIs
	inside block  // in which tokens are now
	n      int    // blocks that have begun
	finish string // finish_reason
}

// block is a part of an answer of one kind: its reasoning, a tool call or text.
type block struct {
	response, message string // how the events of its deltas begin
	item, content     string // how the block begins; %s is the name of the tool
}

var (
	reasoningBlock = block{"response.reasoning_text.delta", `{"type":"thinking_delta","thinking":`,
		`"type":"reasoning","summary":[],"content":[]`, `"type":"thinking","thinking":"","signature":""`}
	toolBlock = block{"response.function_call_arguments.delta", `{"type":"input_json_delta","partial_json":`,
		`"type":"function_call","call_id":"call_0","arguments":"","name":%s`, `"type":"tool_use","id":"toolu_0","input":{},"name":%s`}
	textBlock = block{"response.output_text.delta", `{"type":"text_delta","text":`,
		`"type":"message","role":"assistant","content":[]`, `"type":"text","text":""`}
)

// enters reports whether the tokens from a number on begin a block, and counts it.
func (c *chunker) enters(from int) bool {
	now := textBlock
	switch {
	case c.order.reply.calls(c.fx) != "":
		now = toolBlock
	case from < c.fx.reasons().Tokens:
		now = reasoningBlock
	}
	if now == c.inside {
		return false
	}
	c.inside = now
	c.blocks.n++
	return true
}

// begins returns the members with which the block begins.
func (c *chunker) begins(text string) string {
	return strings.Replace(text, "%s", string(appendQuoted(nil, c.order.reply.calls(c.fx))), 1)
}

// responses writes a part of an answer as events of Responses, as vLLM does.
func (c *chunker) responses(p *part) {
	switch p.kind {
	case chunkRole:
		c.plain("response.created", `,"response":`+c.response("in_progress", ""))
		c.plain("response.in_progress", `,"response":`+c.response("in_progress", ""))
	case chunkTokens:
		if c.enters(p.from) {
			c.plain("response.output_item.added", fmt.Sprintf(`,"output_index":%d,"item":{"id":"item_%d","status":"in_progress",%s}`,
				c.blocks.n-1, c.blocks.n, c.begins(c.inside.item)))
		}
		c.event(c.inside.response)
		c.buf = fmt.Appendf(c.buf, `,"output_index":%d,"delta":`, c.blocks.n-1)
		c.text(p.from, p.to)
		c.sending(p.to)
	case chunkFinish:
		if c.finish = p.words; c.fx.is("no-usage", "usage-in-finish") {
			c.completed()
		}
	case chunkUsage:
		c.completed()
	case chunkError:
		c.plain("error", `,"code":"server_error","message":`+string(appendQuoted(nil, c.fx.failure().Text)))
	}
}

// completed writes the last event of Responses. vLLM calls an incomplete answer completed too.
func (c *chunker) completed() {
	more := `,"incomplete_details":null`
	if c.finish == "length" {
		more = `,"incomplete_details":{"reason":"max_output_tokens"}`
	}
	if u := c.usage; !c.fx.is("no-usage") {
		more += fmt.Sprintf(`,"usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,"total_tokens":%d}`,
			u.Input, u.Cached, u.Output, u.Input+u.Output)
	}
	output := "[]"
	if tool := c.order.reply.calls(c.fx); tool != "" {
		output = fmt.Sprintf(`[{"type":"function_call","call_id":"call_0","name":%s}]`, appendQuoted(nil, tool))
	}
	c.plain("response.completed", `,"response":`+c.response("completed", `,"output":`+output+more))
}

// response returns the object of a response.
func (c *chunker) response(status, more string) string {
	return fmt.Sprintf(`{"id":%s,"object":"response","created_at":%d,"model":%s,"status":"%s"%s}`,
		appendQuoted(nil, c.id), c.created, appendQuoted(nil, c.named()), status, more)
}

// stops are the values of stop_reason, by finish_reason.
var stops = map[string]string{"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}

// messages writes a part of an answer as events of Messages, as vLLM does. The usage comes with the
// stop_reason.
func (c *chunker) messages(p *part) {
	switch p.kind {
	case chunkRole:
		head := `,"message":{"id":%s,"type":"message","role":"assistant","content":[],"model":%s,"stop_reason":null,"usage":{"input_tokens":%d,"output_tokens":0}}`
		c.plain("message_start", fmt.Sprintf(head, appendQuoted(nil, c.id), appendQuoted(nil, c.named()), c.order.input))
	case chunkTokens:
		if c.enters(p.from) {
			if c.blocks.n > 1 {
				c.plain("content_block_stop", fmt.Sprintf(`,"index":%d`, c.blocks.n-2))
			}
			c.plain("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":{%s}`, c.blocks.n-1, c.begins(c.inside.content)))
		}
		c.event("content_block_delta")
		c.buf = fmt.Appendf(c.buf, `,"index":%d,"delta":%s`, c.blocks.n-1, c.inside.message)
		c.text(p.from, p.to)
		c.buf = append(c.buf, '}')
		c.sending(p.to)
	case chunkFinish:
		c.plain("content_block_stop", fmt.Sprintf(`,"index":%d`, c.blocks.n-1))
		if c.finish = p.words; c.fx.is("no-usage", "usage-in-finish") {
			c.stopped()
		}
	case chunkUsage:
		c.stopped()
	case chunkError:
		c.plain("error", `,"error":{"type":"api_error","message":`+string(appendQuoted(nil, c.fx.failure().Text))+`}`)
	case chunkDone:
		c.plain("message_stop", "")
	}
}

func (c *chunker) stopped() {
	usage := ""
	if u := c.usage; !c.fx.is("no-usage") {
		usage = fmt.Sprintf(`,"usage":{"input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":%d}`, u.Input-u.Cached, u.Cached, u.Output)
	}
	c.plain("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":"%s","stop_sequence":null}%s`, stops[c.finish], usage))
}
