package client

// Dialect is what an engine understands beyond the common OpenAI API: which
// body fields make an answer exactly as long as asked, how its tokenizer is
// asked, and what is known of its connections.
//
// There is no field against prompt caches, deliberately: prompts are unique
// from the first token, so nothing can be found in a cache, and switching the
// cache off (cache_prompt on llama.cpp, cache_salt on vLLM) would measure
// another server than the one that runs in production. A plan may still say so
// in its request.
type Dialect struct {
	// Name is the engine's name in a plan.
	Name string
	// IgnoreEOS: "ignore_eos": true makes an answer go on to its token limit.
	IgnoreEOS bool
	// MinTokens: "min_tokens" is understood beside it. Stop strings and stop
	// token ids of the model's generation config would else end an answer.
	MinTokens bool
	// BothLimits: a chat request carries max_tokens beside
	// max_completion_tokens. Some servers know only the older name and would
	// never stop; the rest prefers one of two equal values.
	BothLimits bool
	// ContinuousUsage: "continuous_usage_stats" puts usage into each chunk,
	// which tells how many tokens the first chunk held. Token ids would tell
	// too (return_token_ids on vLLM), but bring the whole prompt's ids back
	// before the first token.
	ContinuousUsage bool
	// Timings: "timings_per_token" puts the tokens made so far into each
	// chunk: the same, in llama.cpp's way.
	Timings bool
	// PromptIDs: completions take a prompt of token ids.
	PromptIDs bool
	// Tokenizer is how the server's tokenizer is asked.
	Tokenizer Tokenizer
	// FreshConns: the server closes the connection after a streamed answer
	// although it announces keep-alive, so each request gets its own.
	FreshConns bool
}

// Tokenizer is the form of a server's tokenizer endpoint.
type Tokenizer int

const (
	// NoTokenizer: prompts are sized by the usage of small requests.
	NoTokenizer Tokenizer = iota
	// VLLMTokenizer takes {"prompt"} or {"messages"}, the latter with the chat
	// template applied.
	VLLMTokenizer
	// SGLangTokenizer takes {"prompt"} only: the chat template's part has to
	// be learnt from usage.
	SGLangTokenizer
	// LlamaTokenizer takes {"content"}; /apply-template turns messages into
	// text first.
	LlamaTokenizer
	// AnyTokenizer tries the forms in turn and keeps the first that answers.
	AnyTokenizer
)

// dialects is the table. Each row was checked against the engine's own
// request schema; what an engine would reject is not sent.
var dialects = []Dialect{
	{Name: "vllm", IgnoreEOS: true, MinTokens: true, BothLimits: true, ContinuousUsage: true, PromptIDs: true, Tokenizer: VLLMTokenizer},
	{Name: "sglang", IgnoreEOS: true, MinTokens: true, BothLimits: true, ContinuousUsage: true, PromptIDs: true, Tokenizer: SGLangTokenizer},
	{Name: "llama.cpp", IgnoreEOS: true, BothLimits: true, Timings: true, PromptIDs: true, Tokenizer: LlamaTokenizer, FreshConns: true},
	{Name: "openai", BothLimits: true, Tokenizer: AnyTokenizer},
}

// DialectOf returns the dialect of an engine as a plan names it; any engine
// that it does not know is taken for a plain OpenAI-compatible server, which
// is sent no field of another engine's.
func DialectOf(engine string) Dialect {
	for _, d := range dialects {
		if d.Name == engine {
			return d
		}
	}
	return dialects[len(dialects)-1]
}

// Body is the JSON that the engine is sent for r, its members in a fixed order.
// It fails for what the engine cannot be sent.
func (d Dialect) Body(r *Request) ([]byte, error) { return d.body(r) }

// String says how the tokenizer is asked.
func (t Tokenizer) String() string {
	switch t {
	case VLLMTokenizer:
		return "`/tokenize`, chat template included"
	case SGLangTokenizer:
		return "`/tokenize`; the chat template's part is learnt from usage"
	case LlamaTokenizer:
		return "`/tokenize` after `/apply-template`"
	case AnyTokenizer:
		return "vLLM's form, then llama.cpp's; where neither answers, the usage of small requests"
	}
	return "the usage of small requests"
}

// Exact says whether the dialect can make an answer end at its limit and not
// before.
func (d Dialect) Exact() bool { return d.IgnoreEOS }
