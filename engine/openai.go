package engine

// openai is any server with the OpenAI API whose engine is not in this package.
var openai = Engine{
	Name: Plain, Title: "a plain server",
	Sources: "OpenAI's API reference; pages that servers of the other engines have",
	Launch:  Launch{Port: 8000},
	Flags:   Flags{Equals: true},
	// The engine is unknown, so try the paths that vLLM uses.
	Pages:   Pages{Health: "/health", Version: []string{"/version"}, VersionKey: "version", Tokenize: "/tokenize", Template: "/apply-template", Metrics: "/metrics"},
	Dialect: Dialect{BothLimits: true, Tokenizer: AnyTokenizer},
	// OpenAI's completions API returns the prompt with log-probabilities.
	Scores: Scores{
		Path: "/v1/completions", Prompt: "prompt", Values: "choices[0].logprobs.token_logprobs",
		Fields: map[string]any{"max_tokens": 1, "temperature": 0, "echo": true, "logprobs": 1},
	},
	Without: map[string]string{
		"Launch":          "what starts it is not known",
		"Flags":           "what its flags mean is not known",
		"Pages.Reset":     "whose caches would be emptied is not known",
		"Series":          "a page is read for the names of all engines",
		"Dialect.Natural": "whether an answer can be forced to a length shows when its length is checked",
		"Died":            "what its log says is not known",
		"Labels":          "what its page tells is not known",
		"Log":             "what its log says is not known",
		"Guess":           "it is what is left",
		"Hints":           "what keeps its metrics away is not known",
	},
}
