package engine

// Dialect is what an engine accepts beyond the common OpenAI API. It names the body fields that
// make an answer exactly as long as requested, and the form of the tokenizer endpoint. It also
// names properties of the connections. Every field was checked against the engine's own request
// schema. A field that the engine would reject is not sent.
//
// No field switches a prompt cache off, because the server would then not be the server in
// production. A cache can hold only the first two words of a prompt, because prompts differ after
// these. A plan may still switch the cache off in its request block (cache_prompt on llama.cpp,
// cache_salt on vLLM).
type Dialect struct {
	// IgnoreEOS means that "ignore_eos": true makes an answer continue until its token limit.
	IgnoreEOS bool
	// MinTokens means that the engine accepts "min_tokens" in addition to "ignore_eos". Without
	// min_tokens an answer could end early: at a stop string or a stop token id of the model's
	// generation config.
	MinTokens bool
	// BothLimits means that a chat request has max_tokens in addition to max_completion_tokens.
	// Some servers know only max_tokens, and without it their answers would not end. Servers that
	// know both limits accept two equal values.
	BothLimits bool
	// ContinuousUsage means that "continuous_usage_stats" puts usage into each chunk. The usage
	// shows how many tokens the first chunk has. Token ids (return_token_ids on vLLM) would show
	// that too. But then the server would send the ids of the whole prompt before the first token.
	ContinuousUsage bool
	// Timings means that "timings_per_token" puts into each chunk the number of tokens so far. It
	// is for llama.cpp what ContinuousUsage is for other engines.
	Timings bool
	// PromptIDs means that the completions API accepts token ids as a prompt.
	PromptIDs bool
	// Tokenizer is the form of requests to Pages.Tokenize.
	Tokenizer Tokenizer
	// FreshConns means that the server closes the connection after a streamed answer, although it
	// announces keep-alive. So the client opens a connection for each request.
	FreshConns bool
}

// Tokenizer is the form of a server's tokenizer endpoint.
type Tokenizer int

const (
	// NoTokenizer means that the server has no tokenizer. The length of a prompt is found from the
	// usage of small requests.
	NoTokenizer Tokenizer = iota
	// VLLMTokenizer accepts {"prompt"} or {"messages"}. It applies the chat template to messages.
	VLLMTokenizer
	// SGLangTokenizer accepts only {"prompt"}. The number of tokens that the chat template adds is
	// found from the usage of a request.
	SGLangTokenizer
	// LlamaTokenizer accepts {"content"}. The page Pages.Template first turns messages into text.
	LlamaTokenizer
	// AnyTokenizer tries every form in turn, and keeps the first form that the server answers.
	AnyTokenizer
)

// Kind is the type of a series on an engine's metrics page.
type Kind string

const (
	GaugeSum  Kind = "gauge"           // summed over label sets
	GaugeMost Kind = "gauge, the most" // the largest value of the series
	Counter   Kind = "counter"         // summed over label sets
	Buckets   Kind = "histogram"       // summed over label sets
	Sum       Kind = "histogram's sum" // as a counter
)

// Series maps one series of an engine's metrics page to a name in tokgate.
type Series struct {
	Name string // without _bucket, _sum, _count
	Kind Kind
	Ours string // the name of a metric.Def, or the name of a counter in metric.Telemetry
	// Label and Value select series by a label and its value; "" selects all.
	Label, Value string
	// Old explains a name that newer versions of the engine have replaced.
	Old string
}
