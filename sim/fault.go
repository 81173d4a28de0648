package sim

import (
	"cmp"
	"net/http"
	"time"
)

// Fault is one kind of misbehaviour of a server or a network.
type Fault struct {
	Name string
	Doc  string // one line; also explains the rule's tokens, delay and text

	apply func(fx *effect, r *Rule)
}

// Faults lists all scripted faults, in the order of the documentation. A request may have several
// faults, if several rules apply to it.
func Faults() []Fault { return append([]Fault(nil), faults...) }

// effect combines the faults of a request. The zero value means an answer without faults.
type effect struct {
	// before the answer
	status   int
	message  string
	redirect bool
	hang     bool
	die      bool
	strict   bool // requests with unknown fields are refused
	truncate int  // prompts are cut to this number of tokens; 0: no limit

	// the connection
	close      bool // says Connection: close
	closeAfter bool // closes the connection after the answer without announcing it
	bytewise   bool
	gzip       bool

	// faults of the stream as a whole
	notSSE      bool
	empty       bool
	lateHeaders bool
	earlyRole   bool
	late        time.Duration // delay before the request reaches the engine
	crlf        bool
	bom         bool
	noSpace     bool
	comments    bool

	// its chunks
	perChunk   int
	key        string // instead of "content"
	keyTokens  int    // number of tokens in the field that key names
	toolCall   bool
	padding    int // bytes of padding in the first chunk with tokens
	text       string
	model      string
	emptyDelta bool

	// its end
	errorEvent  bool
	errorLegacy bool
	cut         bool // the connection breaks
	noFinish    bool // finish_reason and all later events are missing
	hold        bool // nothing more comes
	trickle     time.Duration
	after       int // number of tokens that are sent before the error
	stopAfter   int // number of tokens after which the answer ends early; 0: it does not end early
	canned      bool
	other       bool // the server sends the answer to a different prompt

	// faults when the client leaves before the answer ends
	leakSlot    bool
	leakTokens  int // tokens of the KV cache that are never freed
	dieOnAbort  bool
	ignoreAbort bool

	// faults of natural answers
	circle      bool
	garble      bool
	broken      bool // the text has an invalid character
	blank       bool
	endless     bool
	halfContext bool
	swapOne     int // one of this many tokens is replaced by another token; 0: none
	wrongWord   bool
	badSampler  bool // the answer is random words, except at temperature 0
	replay      bool
	noDone      bool

	// its usage
	noUsage       bool
	overcount     int // tokens reported for each token that was sent; 0 means one
	usageNull     bool
	usageZero     bool
	usageInFinish bool
	cachedAll     bool
}

func (fx *effect) breaks() bool {
	return fx.errorEvent || fx.errorLegacy || fx.cut || fx.noFinish || fx.hold || fx.trickle > 0
}

// visible returns how many tokens the client may have received by now. The parameter made is the
// number of tokens that the engine has made so far; sent is the number sent before. breaks reports
// whether the stream breaks after these tokens.
func (fx *effect) visible(sent, made int, last bool) (to int, breaks bool) {
	switch {
	case fx.breaks() && made >= fx.after:
		made = max(sent, min(made, fx.after))
	case made-sent < fx.perChunk && !last:
		return sent, false
	}
	return made, fx.breaks() && (made >= fx.after || last)
}

// hostile is a text that breaks careless readers. It has invalid UTF-8, a NUL, a colour code, a
// terminal title, commands for CI systems, and markup.
const hostile = "bad \xff\xfe byte, \x00 NUL, \x1b[31mred\x1b]0;title\x07\n::error file=x::injected\n::set-output name=verdict::pass\n</system-out>]]><b>|`$(x)`"

var faults = []Fault{
	{"http-500", "answers 500 with an error object, whose message is `text`", statusFault(http.StatusInternalServerError)},
	{"http-503", "answers 503 with an error object, whose message is `text`", statusFault(http.StatusServiceUnavailable)},
	{"http-429", "answers 429 with Retry-After: 1 and the message `text`", statusFault(http.StatusTooManyRequests)},
	{"http-401", "answers 401 with the message `text`", statusFault(http.StatusUnauthorized)},
	{"hostile-error", "answers 500 with invalid UTF-8, NUL, ANSI escapes and CI commands in the message", func(fx *effect, r *Rule) {
		fx.status, fx.message = http.StatusInternalServerError, cmp.Or(r.Text, hostile)
	}},
	{"loading", "answers 503 to /health and completions for `delay` (1s) after the start", func(*effect, *Rule) {}},
	{"redirect", "answers 307 to the same path with ?redirected=1, which works", func(fx *effect, _ *Rule) { fx.redirect = true }},
	{"hang", "accepts the request and never answers", func(fx *effect, _ *Rule) { fx.hang = true }},
	{"die", "ends the server at this request, with all its connections; from=N answers N requests first", func(fx *effect, _ *Rule) { fx.die = true }},
	{"reject-unknown", "answers 422 to request fields that are not OpenAI's", func(fx *effect, _ *Rule) { fx.strict = true }},
	{"truncate-prompt", "silently cuts prompts to `tokens` (64) tokens; only prompt_tokens shows it", func(fx *effect, r *Rule) { fx.truncate = cmp.Or(r.Tokens, 64) }},

	{"conn-close", "closes the connection after every answer, and announces it", func(fx *effect, _ *Rule) { fx.close = true }},
	{"close-after", "promises keep-alive, but closes the connection after a complete answer; works only in sim's own HTTP server", func(fx *effect, _ *Rule) { fx.closeAfter = true }},
	{"byte-by-byte", "writes and flushes every byte alone", func(fx *effect, _ *Rule) { fx.bytewise = true }},
	{"gzip", "compresses the answer if the client accepts it, flushing each chunk", func(fx *effect, _ *Rule) { fx.gzip = true }},

	{"not-sse", "answers a streaming request with one JSON object", func(fx *effect, _ *Rule) { fx.notSSE = true }},
	{"empty-stream", "ends the stream before its first event", func(fx *effect, _ *Rule) { fx.empty = true }},
	{"late-headers", "sends the status line only with the first token", func(fx *effect, _ *Rule) { fx.lateHeaders = true }},
	{"early-role", "sends the role-only chunk at once and holds the request for `delay` (0s) before it enters the engine", func(fx *effect, r *Rule) {
		fx.earlyRole, fx.late = true, r.delay(0)
	}},
	{"late", "holds the request for `delay` (1s) before it enters the engine", func(fx *effect, r *Rule) { fx.late = r.delay(time.Second) }},
	{"crlf", "ends lines with CR LF", func(fx *effect, _ *Rule) { fx.crlf = true }},
	{"bom", "begins the stream with a byte order mark", func(fx *effect, _ *Rule) { fx.bom = true }},
	{"no-space", "writes data: without the space after it", func(fx *effect, _ *Rule) { fx.noSpace = true }},
	{"comments", "sends a comment before every event", func(fx *effect, _ *Rule) { fx.comments = true }},

	{"multi-token", "puts at least `tokens` (4) tokens into every chunk, including the first", func(fx *effect, r *Rule) { fx.perChunk = cmp.Or(r.Tokens, 4) }},
	{"reasoning", "sends the first `tokens` (8) tokens as delta.reasoning", func(fx *effect, r *Rule) { fx.key, fx.keyTokens = "reasoning", cmp.Or(r.Tokens, 8) }},
	{"reasoning-content", "sends the first `tokens` (8) tokens as delta.reasoning_content", func(fx *effect, r *Rule) {
		fx.key, fx.keyTokens = "reasoning_content", cmp.Or(r.Tokens, 8)
	}},
	{"tool-call", "answers with a tool call and no content", func(fx *effect, _ *Rule) { fx.toolCall = true }},
	{"big-event", "pads the first token's event to 2 MB with an unknown field", func(fx *effect, _ *Rule) { fx.padding = 2 << 20 }},
	{"hostile-text", "answers with terminal escapes and CI commands in the first token", func(fx *effect, r *Rule) { fx.text = cmp.Or(r.Text, hostile) }},
	{"hostile-model", "names a model of invalid UTF-8, NUL, ANSI escapes and CI commands in every chunk", func(fx *effect, r *Rule) {
		fx.model = cmp.Or(r.Text, hostile)
	}},
	{"empty-delta", "sends a delta with empty content before the finish chunk", func(fx *effect, _ *Rule) { fx.emptyDelta = true }},

	{"error-event", `sends data: {"error":{…}} after tokens (3) tokens; text is the message`, func(fx *effect, r *Rule) {
		fx.errorEvent, fx.after, fx.message = true, cmp.Or(r.Tokens, 3), cmp.Or(r.Text, "the engine died")
	}},
	{"error-event-legacy", `sends data: {"object":"error",…} after tokens (3) tokens; text is the message`, func(fx *effect, r *Rule) {
		fx.errorLegacy, fx.after, fx.message = true, cmp.Or(r.Tokens, 3), cmp.Or(r.Text, "the engine died")
	}},
	{"cut", "breaks the connection after `tokens` (3) tokens", func(fx *effect, r *Rule) { fx.cut, fx.after = true, cmp.Or(r.Tokens, 3) }},
	{"no-finish", "ends the stream properly after `tokens` (3) tokens, but without finish_reason, usage and [DONE]", func(fx *effect, r *Rule) {
		fx.noFinish, fx.after = true, cmp.Or(r.Tokens, 3)
	}},
	{"never-ends", "sends nothing more after `tokens` (3) tokens, but keeps the connection open", func(fx *effect, r *Rule) { fx.hold, fx.after = true, cmp.Or(r.Tokens, 3) }},
	{"trickle", "after `tokens` (3) tokens, sends one byte of a comment every `delay` (1m), for ever", func(fx *effect, r *Rule) {
		fx.trickle, fx.after = r.delay(time.Minute), cmp.Or(r.Tokens, 3)
	}},
	{"early-stop", "ends the answer after `tokens` (3) tokens, although more were asked for", func(fx *effect, r *Rule) { fx.stopAfter = cmp.Or(r.Tokens, 3) }},
	{"leak-slot", "never frees the slot of a request whose client leaves before the answer ends", func(fx *effect, _ *Rule) { fx.leakSlot = true }},
	{"leak-blocks", "never frees `tokens` (16) tokens of the KV cache of such a request", func(fx *effect, r *Rule) { fx.leakTokens = cmp.Or(r.Tokens, 16) }},
	{"die-on-abort", "ends the server when such a client leaves", func(fx *effect, _ *Rule) { fx.dieOnAbort = true }},
	{"ignore-abort", "makes the whole answer, although the client has left", func(fx *effect, _ *Rule) { fx.ignoreAbort = true }},

	{"no-done", "leaves [DONE] out", func(fx *effect, _ *Rule) { fx.noDone = true }},

	{"no-usage", "reports no usage anywhere", func(fx *effect, _ *Rule) { fx.noUsage = true }},
	{"usage-null", `writes "usage":null into every chunk before the real one`, func(fx *effect, _ *Rule) { fx.usageNull = true }},
	{"usage-zero", "writes a usage of zeros into every chunk before the real one", func(fx *effect, _ *Rule) { fx.usageZero = true }},
	{"usage-in-finish", "sends the usage in the finish chunk, whether or not it was asked for", func(fx *effect, _ *Rule) { fx.usageInFinish = true }},
	{"overcount", "counts `tokens` (2) for every token that it sends, and stops that much earlier", func(fx *effect, r *Rule) { fx.overcount = cmp.Or(r.Tokens, 2) }},
	{"canned", "gives every prompt the same answer", func(fx *effect, _ *Rule) { fx.canned = true }},
	{"other-answer", "gives the answer to another prompt", func(fx *effect, _ *Rule) { fx.other = true }},
	{"circle", "repeats the first four tokens of a natural answer up to its limit", func(fx *effect, _ *Rule) { fx.circle = true }},
	{"garble", "continues with junk from the middle of a natural answer", func(fx *effect, _ *Rule) { fx.garble = true }},
	{"broken-character", "puts a replacement character (U+FFFD) into the middle of a natural answer", func(fx *effect, _ *Rule) { fx.broken = true }},
	{"blank", "answers with one space instead of a natural answer", func(fx *effect, _ *Rule) { fx.blank = true }},
	{"endless", "continues a natural answer until the context is full, and ignores the limit", func(fx *effect, _ *Rule) { fx.endless = true }},
	{"half-context", "reads only the first half of a prompt, and its question, so it misses facts that a built-in task puts later", func(fx *effect, _ *Rule) { fx.halfContext = true }},
	{"swap-tokens", "replaces one in tokens (100) tokens of a natural answer by a random one", func(fx *effect, r *Rule) { fx.swapOne = cmp.Or(r.Tokens, 100) }},
	{"wrong-word", "replaces one token of a natural answer by a random one", func(fx *effect, _ *Rule) { fx.wrongWord = true }},
	{"bad-sampler", "draws the tokens of a natural answer without regard to the prompt, except at temperature 0", func(fx *effect, _ *Rule) { fx.badSampler = true }},
	{"replay", "caches whole answers, and sends one at once when a prompt comes again", func(fx *effect, _ *Rule) { fx.replay = true }},
	{"cached", "reports that the whole prompt came from the cache", func(fx *effect, _ *Rule) { fx.cachedAll = true }},
}

func statusFault(status int) func(*effect, *Rule) {
	return func(fx *effect, r *Rule) {
		fx.status, fx.message = status, cmp.Or(r.Text, "scripted fault: "+http.StatusText(status))
	}
}
