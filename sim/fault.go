package sim

import (
	"net/http"
	"slices"
	"time"
)

// Fault is one kind of misbehaviour of a server or a network.
type Fault struct {
	Name string
	Doc  string // one line; also explains the rule's tokens, delay and text

	// What a rule has that does not set them. A fault with a status answers with it.
	tokens, status int
	delay          time.Duration
	text           string
}

// Faults lists all scripted faults, in the order of the documentation. A request may have several
// faults, if several rules apply to it.
func Faults() []Fault { return slices.Clone(faults) }

// effect is the rules that apply to a request, in their order, with the defaults of their faults. An
// empty one means an answer without faults.
type effect []*Rule

var noRule Rule

// of returns the last rule of these faults, or noRule.
func (fx effect) of(names ...string) *Rule {
	for i := len(fx) - 1; i >= 0; i-- {
		if slices.Contains(names, fx[i].Fault) {
			return fx[i]
		}
	}
	return &noRule
}

func (fx effect) is(names ...string) bool {
	return slices.ContainsFunc(fx, func(r *Rule) bool { return slices.Contains(names, r.Fault) })
}

// status returns the status and the message with which the server refuses the request; 0 if it does not.
func (fx effect) status() (code int, message string) {
	for _, r := range fx {
		if status := findFault(r.Fault).status; status != 0 {
			code, message = status, r.Text
		}
	}
	return code, message
}

// breaks returns the rule by which the stream ends before the answer, or noRule.
func (fx effect) breaks() *Rule {
	return fx.of("error-event", "error-event-legacy", "cut", "no-finish", "never-ends", "trickle")
}

// failure returns the rule by which the stream ends in an error event, or noRule.
func (fx effect) failure() *Rule { return fx.of("error-event", "error-event-legacy") }

// reasons returns the rule by which the first tokens are reasoning, or noRule.
func (fx effect) reasons() *Rule { return fx.of("reasoning", "reasoning-content") }

// visible returns how many tokens the client may have received by now. The parameter made is the
// number of tokens that the engine has made so far; sent is the number sent before. breaks reports
// whether the stream breaks after these tokens.
func (fx effect) visible(sent, made int, last bool) (to int, breaks bool) {
	if len(fx) == 0 {
		return made, false
	}
	end := fx.breaks()
	breaks = end.Fault != ""
	switch {
	case breaks && made >= end.Tokens:
		made = max(sent, min(made, end.Tokens))
	case made-sent < fx.of("multi-token").Tokens && !last:
		return sent, false
	}
	return made, breaks && (made >= end.Tokens || last)
}

// hostile is a text that breaks careless readers. It has invalid UTF-8, a NUL, a colour code, a
// terminal title, commands for CI systems, and markup.
const hostile = "bad \xff\xfe byte, \x00 NUL, \x1b[31mred\x1b]0;title\x07\n::error file=x::injected\n::set-output name=verdict::pass\n</system-out>]]><b>|`$(x)`"

const engineDied = "the engine died"

var faults = []Fault{
	{Name: "http-500", Doc: "answers 500 with an error object, whose message is `text`", status: http.StatusInternalServerError},
	{Name: "http-503", Doc: "answers 503 with an error object, whose message is `text`", status: http.StatusServiceUnavailable},
	{Name: "http-429", Doc: "answers 429 with Retry-After: 1 and the message `text`", status: http.StatusTooManyRequests},
	{Name: "http-401", Doc: "answers 401 with the message `text`", status: http.StatusUnauthorized},
	{Name: "hostile-error", Doc: "answers 500 with invalid UTF-8, NUL, ANSI escapes and CI commands in the message", status: http.StatusInternalServerError, text: hostile},
	{Name: "loading", Doc: "answers 503 to /health and completions for `delay` (1s) after the start", delay: time.Second},
	{Name: "redirect", Doc: "answers 307 to the same path with ?redirected=1, which works"},
	{Name: "hang", Doc: "accepts the request and never answers"},
	{Name: "die", Doc: "ends the server at this request, with all its connections; from=N answers N requests first"},
	{Name: "reject-unknown", Doc: "answers 422 to request fields that are not OpenAI's"},
	{Name: "truncate-prompt", Doc: "silently cuts prompts to `tokens` (64) tokens; only prompt_tokens shows it", tokens: 64},

	{Name: "conn-close", Doc: "closes the connection after every answer, and announces it"},
	{Name: "close-after", Doc: "promises keep-alive, but closes the connection after a complete answer; works only in sim's own HTTP server"},
	{Name: "byte-by-byte", Doc: "writes and flushes every byte alone"},
	{Name: "gzip", Doc: "compresses the answer if the client accepts it, flushing each chunk"},

	{Name: "not-sse", Doc: "answers a streaming request with one JSON object"},
	{Name: "empty-stream", Doc: "ends the stream before its first event"},
	{Name: "late-headers", Doc: "sends the status line only with the first token"},
	{Name: "early-role", Doc: "sends the role-only chunk at once and holds the request for `delay` (0s) before it enters the engine"},
	{Name: "late", Doc: "holds the request for `delay` (1s) before it enters the engine", delay: time.Second},
	{Name: "crlf", Doc: "ends lines with CR LF"},
	{Name: "bom", Doc: "begins the stream with a byte order mark"},
	{Name: "no-space", Doc: "writes data: without the space after it"},
	{Name: "comments", Doc: "sends a comment before every event"},

	{Name: "multi-token", Doc: "puts at least `tokens` (4) tokens into every chunk, including the first", tokens: 4},
	{Name: "reasoning", Doc: "sends the first `tokens` (8) tokens as delta.reasoning", tokens: 8},
	{Name: "reasoning-content", Doc: "sends the first `tokens` (8) tokens as delta.reasoning_content", tokens: 8},
	{Name: "tool-call", Doc: "answers with a tool call and no content"},
	{Name: "big-event", Doc: "pads the first token's event to 2 MB with an unknown field"},
	{Name: "hostile-text", Doc: "answers with terminal escapes and CI commands in the first token", text: hostile},
	{Name: "hostile-model", Doc: "names a model of invalid UTF-8, NUL, ANSI escapes and CI commands in every chunk", text: hostile},
	{Name: "empty-delta", Doc: "sends a delta with empty content before the finish chunk"},

	{Name: "error-event", Doc: `sends data: {"error":{…}} after tokens (3) tokens; text is the message`, tokens: 3, text: engineDied},
	{Name: "error-event-legacy", Doc: `sends data: {"object":"error",…} after tokens (3) tokens; text is the message`, tokens: 3, text: engineDied},
	{Name: "cut", Doc: "breaks the connection after `tokens` (3) tokens", tokens: 3},
	{Name: "no-finish", Doc: "ends the stream properly after `tokens` (3) tokens, but without finish_reason, usage and [DONE]", tokens: 3},
	{Name: "never-ends", Doc: "sends nothing more after `tokens` (3) tokens, but keeps the connection open", tokens: 3},
	{Name: "trickle", Doc: "after `tokens` (3) tokens, sends one byte of a comment every `delay` (1m), for ever", tokens: 3, delay: time.Minute},
	{Name: "early-stop", Doc: "ends the answer after `tokens` (3) tokens, although more were asked for", tokens: 3},
	{Name: "leak-slot", Doc: "never frees the slot of a request whose client leaves before the answer ends"},
	{Name: "leak-blocks", Doc: "never frees `tokens` (16) tokens of the KV cache of such a request", tokens: 16},
	{Name: "die-on-abort", Doc: "ends the server when such a client leaves"},
	{Name: "ignore-abort", Doc: "makes the whole answer, although the client has left"},

	{Name: "no-done", Doc: "leaves [DONE] out"},

	{Name: "no-usage", Doc: "reports no usage anywhere"},
	{Name: "usage-null", Doc: `writes "usage":null into every chunk before the real one`},
	{Name: "usage-zero", Doc: "writes a usage of zeros into every chunk before the real one"},
	{Name: "usage-in-finish", Doc: "sends the usage in the finish chunk, whether or not it was asked for"},
	{Name: "overcount", Doc: "counts `tokens` (2) for every token that it sends, and stops that much earlier", tokens: 2},
	{Name: "canned", Doc: "gives every prompt the same answer"},
	{Name: "other-answer", Doc: "gives the answer to another prompt"},
	{Name: "circle", Doc: "repeats the first four tokens of a natural answer up to its limit"},
	{Name: "garble", Doc: "continues with junk from the middle of a natural answer"},
	{Name: "broken-character", Doc: "puts a replacement character (U+FFFD) into the middle of a natural answer"},
	{Name: "blank", Doc: "answers with one space instead of a natural answer"},
	{Name: "endless", Doc: "continues a natural answer until the context is full, and ignores the limit"},
	{Name: "half-context", Doc: "reads only the first half of a prompt, and its question, so it misses facts that a built-in task puts later"},
	{Name: "swap-tokens", Doc: "replaces one in tokens (100) tokens of a natural answer by a random one", tokens: 100},
	{Name: "noisy-vectors", Doc: "adds noise to each component of an embedding, of `tokens` (5) per cent of a typical component", tokens: 5},
	{Name: "wrong-word", Doc: "replaces one token of a natural answer by a random one"},
	{Name: "bad-sampler", Doc: "draws the tokens of a natural answer without regard to the prompt, except at temperature 0"},
	{Name: "replay", Doc: "caches whole answers, and sends one at once when a prompt comes again"},
	{Name: "cached", Doc: "reports that the whole prompt came from the cache"},
}
