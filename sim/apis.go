package sim

import "github.com/tokgate/tokgate/engine"

// API is the API by which a request came.
type API = engine.API

const (
	chatAPI       = engine.Chat
	responsesAPI  = engine.Responses
	messagesAPI   = engine.Messages
	embeddingsAPI = engine.Embeddings
)
