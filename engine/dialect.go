package engine

// Dialect is what an engine accepts beyond the common OpenAI API. It names the body fields that
// make an answer exactly as long as requested, and the form of the tokenizer endpoint.
//
// No field switches a prompt cache off, because production servers have it on. A plan may do so in
// its request block (cache_prompt on llama.cpp, cache_salt on vLLM).
type Dialect struct {
	// IgnoreEOS means that "ignore_eos": true makes an answer continue until its token limit.
	IgnoreEOS bool
	// MinTokens means that the engine accepts "min_tokens" in addition to "ignore_eos". Without
	// min_tokens an answer could end early: at a stop string or a stop token id of the model's
	// generation config.
	MinTokens bool
	// Natural lists the APIs whose requests accept neither of the two. The model ends such an answer
	// itself.
	Natural []API
	// BothLimits means that a chat request sets both max_tokens and max_completion_tokens. Some
	// servers know only max_tokens, and others accept both if they are equal.
	BothLimits bool
	// ContinuousUsage means that "continuous_usage_stats" puts usage into each chunk. The usage
	// shows how many tokens the first chunk has. Token ids (return_token_ids on vLLM) would show
	// that too. But then the server would send the ids of the whole prompt before the first token.
	ContinuousUsage bool
	// Timings means that the field "timings_per_token" makes llama.cpp put the number of tokens so
	// far into each chunk. ContinuousUsage does this for other engines.
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
	// SGLangTokenizer accepts only {"prompt"}. The chat template adds tokens that it does not
	// count, so they are counted by the usage of a request.
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
	GaugeMost Kind = "gauge, the most" // largest value over all label sets
	Counter   Kind = "counter"         // summed over label sets
	Buckets   Kind = "histogram"       // summed over label sets
	Sum       Kind = "histogram's sum" // as a counter
)

// Series maps one series of an engine's metrics page to a name in tokgate.
type Series struct {
	Name string // without _bucket, _sum, _count
	Kind Kind
	Ours string // name of the metric.Def, or of the counter in metric.Telemetry
	// Label and Value select series by a label and its value; "" selects all.
	Label, Value string
	// Old explains a name that newer versions of the engine have replaced.
	Old string
}
