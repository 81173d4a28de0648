package engine

// Dialect is what an engine understands beyond the common OpenAI API: which
// body fields make an answer exactly as long as asked, how its tokenizer is
// asked, and what is known of its connections. Each was checked against the
// engine's own request schema: what it would reject is not sent.
//
// There is no field against prompt caches, deliberately: prompts are unique
// from the first token, so nothing can be found in a cache, and switching the
// cache off (cache_prompt on llama.cpp, cache_salt on vLLM) would measure
// another server than the one that runs in production. A plan may still say so
// in its request.
type Dialect struct {
	// IgnoreEOS: "ignore_eos": true makes an answer go on to its token limit.
	IgnoreEOS bool
	// MinTokens: "min_tokens" is understood beside "ignore_eos". Stop strings
	// and stop token ids of the model's generation config would otherwise end
	// an answer.
	MinTokens bool
	// BothLimits: a chat request carries max_tokens beside
	// max_completion_tokens. Some servers know only the older name and would
	// never stop; the rest prefers one of two equal values.
	BothLimits bool
	// ContinuousUsage: "continuous_usage_stats" puts usage into each chunk, which shows how many
	// tokens the first chunk held. Token ids (return_token_ids on vLLM) would show it too, but send
	// the ids of the whole prompt back before the first token.
	ContinuousUsage bool
	// Timings: "timings_per_token" puts the number of tokens made so far into
	// each chunk. It is llama.cpp's form of ContinuousUsage.
	Timings bool
	// PromptIDs: completions take a prompt of token ids.
	PromptIDs bool
	// Tokenizer is how Pages.Tokenize is asked.
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
	// LlamaTokenizer takes {"content"}; Pages.Template turns messages into
	// text first.
	LlamaTokenizer
	// AnyTokenizer tries the forms in turn and keeps the first that answers.
	AnyTokenizer
)

// Kind is what a page's series is to us.
type Kind string

const (
	GaugeSum  Kind = "gauge"           // summed over label sets
	GaugeMost Kind = "gauge, the most" // the largest of the label sets
	Counter   Kind = "counter"         // summed over label sets
	Buckets   Kind = "histogram"       // added up over label sets
	Sum       Kind = "histogram's sum" // as a counter
)

// Series maps one series of an engine's page of metrics to one of our names.
type Series struct {
	Name string // without _bucket, _sum, _count
	Kind Kind
	Ours string // a metric.Def's name, or a counter of metric.Telemetry
	// Label and Value select series: "" takes all.
	Label, Value string
	// Old says what is to be known of a name that another one has replaced.
	Old string
}
