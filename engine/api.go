package engine

// API is one of the HTTP APIs through which servers take requests.
type API string

const (
	Chat        API = "chat"        // OpenAI's chat completions
	Completions API = "completions" // OpenAI's text completions
	Responses   API = "responses"   // OpenAI's Responses
	Messages    API = "messages"    // Anthropic's Messages
	Embeddings  API = "embeddings"  // OpenAI's embeddings
)

// APIs lists the names of all APIs as a plan writes them.
var APIs = []string{string(Chat), string(Completions), string(Responses), string(Messages), string(Embeddings)}

// Path is the path of the API below the server's base URL, such as /chat/completions.
func (a API) Path() string {
	switch a {
	case Chat:
		return "/chat/completions"
	case Responses, Messages, Embeddings:
		return "/" + string(a)
	}
	return "/completions"
}

// Chats reports whether the API takes the messages of a conversation, to which the server applies
// its chat template.
func (a API) Chats() bool { return a == Chat || a == Responses || a == Messages }

// Embeds reports whether the API answers with vectors, in one piece and without output tokens. All
// other APIs stream text.
func (a API) Embeds() bool { return a == Embeddings }

// Forces reports whether the engine can make an answer of this API exactly as long as requested. It
// is true if that is not known, and for embeddings, which have no length.
func (d Dialect) Forces(a API) bool {
	for _, natural := range d.Natural {
		if natural == a {
			return false
		}
	}
	return true
}
